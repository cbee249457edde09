//! `resume_calls` to `ready_ack`: which calls go over to a proven socket, and what becomes of the others.

use std::collections::{HashMap, HashSet};

use super::calls::Stage;
use super::life::Home;
use super::socket::Role;
use super::{EndKind, Loss, Note, Output, SocketId, Switchboard, Timer};
use crate::code::{Code, ToolError};
use crate::id::{CallId, InstanceId};
use crate::limits;
use crate::time::{Due, Now};
use crate::wire::{CancelCall, Feature, ReadyAck, RelayFrame, ResumeCalls, ResumeReport, close};

/// The daemon's word on a named call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// Running or finished: a result will come.
    Alive,
    /// Seen, and no result will come.
    Lost,
    /// Never seen.
    Unknown,
}

impl Switchboard {
    /// The probe came back. The calls sent to this instance are named; without `report` that is all there is to say.
    pub(super) fn proven(&mut self, now: Now, id: SocketId) {
        let Some(socket) = self.socket(id) else { return };
        let Some(instance) = socket.instance().cloned() else { return };
        let report = socket.has(Feature::Report);
        // A result that is here already is named only where it will be acknowledged: a base daemon forgot it long ago.
        let ack = socket.has(Feature::Ack);
        let named = self.sent_to(&instance, ack);
        self.transmit(id, &RelayFrame::ResumeCalls(ResumeCalls { ids: named.clone() }));
        if report {
            self.enter(id, Role::Resuming { named, cancel: Vec::new() });
            self.timers.set(Timer::Report(id), Due::boot(now, limits::REPORT_TIMEOUT));
        } else {
            self.take_over(now, id, &[], &HashMap::new());
        }
    }

    /// Calls sent to an instance whose result is not committed, in order.
    fn sent_to(&self, instance: &InstanceId, with_results: bool) -> Vec<CallId> {
        let mut calls: Vec<_> = self
            .calls
            .values()
            .filter(|call| match &call.stage {
                Stage::Sent { instance: to, .. } | Stage::Detached { instance: to } => to == instance,
                Stage::Handed { instance: from } | Stage::Storing { instance: from, .. } => {
                    with_results && from == instance
                }
                Stage::Reserving | Stage::Queued | Stage::Assigning { .. } => false,
            })
            .collect();
        calls.sort_by_key(|call| call.order);
        calls.into_iter().map(|call| call.request.id.clone()).collect()
    }

    pub(super) fn reported(&mut self, now: Now, id: SocketId, report: ResumeReport) {
        let Some(socket) = self.socket(id) else { return };
        let Role::Resuming { named, cancel } = &mut socket.role else { return };
        let (named, cancel) = (std::mem::take(named), std::mem::take(cancel));
        let ResumeReport { running, done, lost, unknown } = report;
        let count = running.len() + done.len() + lost.len() + unknown.len();
        let alive = running.into_iter().chain(done).map(|id| (id, Word::Alive));
        let dead = lost.into_iter().map(|id| (id, Word::Lost));
        let words: HashMap<_, _> = alive.chain(dead).chain(unknown.into_iter().map(|id| (id, Word::Unknown))).collect();
        // Exactly the named ids, each once: anything else claims a call that is not this instance's, or hides one.
        let named: HashSet<_> = named.into_iter().collect();
        if count != named.len() || words.len() != count || !words.keys().all(|id| named.contains(id)) {
            return self.close(now, id, close::BAD_REPORT, Loss::Protocol);
        }
        self.take_over(now, id, &cancel, &words);
    }

    /// Writes `ready_ack` and moves the calls: attached and detached ones of the same instance come along, those of another
    /// instance end, unsent ones are sent here from now on.
    fn take_over(&mut self, now: Now, id: SocketId, cancel: &[CallId], words: &HashMap<CallId, Word>) {
        let ready = ReadyAck {
            server: self.identity.server.to_string(),
            version: self.identity.version.to_string(),
            link: self.identity.link,
        };
        self.transmit(id, &RelayFrame::ReadyAck(ready));
        for call in cancel {
            self.transmit(id, &RelayFrame::CancelCall(CancelCall { id: call.clone() }));
        }
        let incumbent = self.ready_socket().map(|socket| socket.id);
        self.enter(id, Role::Ready { since: now.boot });
        let Some(socket) = self.socket(id) else { return };
        let Some(peer) = &socket.peer else { return };
        let (instance, catalogue) = (peer.instance.clone(), peer.catalogue.clone());
        let home = Home::of(peer);
        let due = socket.heard + socket.silence_allowed();
        self.timers.set(Timer::Life(id), Due::Boot(due));
        self.end_hold();
        self.timers.stop(&Timer::Grace);
        let same = self.home.as_ref().is_some_and(|home| home.instance == instance);
        self.home = Some(home);
        if !same {
            self.refused.retain(|refused| *refused != instance);
        }
        let rebound = self.move_calls(now, id, &instance, words);
        if let Some(old) = incumbent {
            let close = if same { close::MOVED } else { close::REPLACED };
            self.close(now, old, close, Loss::Replaced);
        }
        if *catalogue != *self.catalogue {
            self.catalogue = catalogue.clone();
            self.out.push_back(Output::Catalogue(catalogue));
        }
        self.note(Note::Ready { socket: id, rebound });
        self.dispatch(now);
    }

    fn move_calls(&mut self, now: Now, id: SocketId, instance: &InstanceId, words: &HashMap<CallId, Word>) -> usize {
        let mut calls: Vec<_> = self
            .calls
            .values()
            .filter(|call| call.is_out())
            .map(|call| (call.order, call.request.id.clone()))
            .collect();
        calls.sort();
        let mut again = Vec::new();
        let mut rebound = 0;
        for (_, call) in calls {
            let word = words.get(&call).copied().unwrap_or(Word::Alive);
            match self.calls.get(&call).and_then(|call| call.instance()) {
                Some(sent_to) if sent_to != instance => {
                    let error = ToolError::new(Code::OutcomeUnknown, "the daemon was restarted while it ran this call");
                    self.end(
                        now,
                        &call,
                        Err(error.with_details(&Reason { reason: "daemon_restarted" })),
                        EndKind::Unknown,
                    );
                }
                Some(_) if word == Word::Lost => {
                    let error = ToolError::new(Code::OutcomeUnknown, "the daemon lost this call");
                    self.end(now, &call, Err(error), EndKind::Unknown);
                }
                Some(_) if word == Word::Unknown => again.push(call),
                _ => {
                    self.attach(now, &call, id);
                    rebound += 1;
                }
            }
        }
        for call in again.iter().rev() {
            self.send_again(now, call);
        }
        rebound
    }
}

#[derive(serde::Serialize)]
struct Reason {
    reason: &'static str,
}
