//! What happens to a call: taken in once, run, stopped, and its result carried until it arrived.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::calls::{CallDue, Fate, Label};
use super::io::*;
use super::machine::{Daemon, Stopping, Timer};
use super::outbox::{Carriage, Piece};
use super::session::Heard;
use crate::code::{Code, ToolError};
use crate::id::CallId;
use crate::limits;
use crate::status::{LinkState, Step};
use crate::time::{Due, Now};
use crate::wire::{Feature, ToolCall, ToolProgress, close};

impl Daemon {
    /// The next frame to write on a socket, if there is one. Pull it only when the socket has room, and write it.
    pub fn poll_transmit(&mut self, now: Now, socket: SocketId) -> Option<String> {
        if let Some(candidate) = self.candidate.as_mut().filter(|session| session.socket == socket) {
            return candidate.next_control(now);
        }
        let serving = self.serving.as_mut().filter(|session| session.socket == socket && !self.deaf)?;
        if let Some(text) = serving.next_control(now) {
            return Some(text);
        }
        if serving.is_hushed() {
            return None;
        }
        let carriage = Carriage {
            chunk: serving.features.has(Feature::Chunk),
            ack: serving.features.has(Feature::Ack),
            beat: serving.beats(),
        };
        let (piece, sent) = self.outbox.next_piece(now, carriage)?;
        let text = match piece {
            Piece::Whole(text) => serving.number(now, |n| splice(&text, n)),
            Piece::Chunk(frame) => serving.number(now, |n| frame.encode(n)),
        };
        if let Some((id, label)) = sent {
            self.step(&id, &label, Step::Sent, None);
        }
        Some(text)
    }

    /// Something on the serving connection.
    pub(super) fn heard(&mut self, now: Now, heard: Heard) {
        match heard {
            Heard::Call(call) => self.take_in(now, call),
            Heard::BadCall(Some(id)) if self.calls.fate(&id).is_none() => {
                self.answer(&id, Label::default(), ToolError::new(Code::InvalidRequest, "invalid tool_call envelope"));
            }
            Heard::Cancel(id) => {
                if let Some(label) = self.outbox.remove(&id) {
                    self.calls.remember(&id, Fate::Lost);
                    self.step(&id, &label, Step::Cancelled, None);
                } else {
                    self.cancel(now, &id, CancelReason::Caller);
                }
            }
            Heard::Pong { beat, in_use } if self.acked() => {
                if let Some(beat) = beat {
                    self.outbox.mark_read(beat);
                }
                self.told_in_use(now, in_use);
            }
            Heard::Pong { beat: Some(beat), .. } => {
                for (id, label) in self.outbox.read_until(beat) {
                    self.arrived(&id, &label);
                    // Without an acknowledgement this is no proof: should the relay name the id again, then as one that ran.
                    self.calls.remember(&id, Fate::Lost);
                }
            }
            Heard::Acked(id, matched) => {
                if let Some(label) = self.outbox.remove(&id) {
                    if matched {
                        self.arrived(&id, &label);
                    } else {
                        // Who asked had left: nothing that somebody still waits for is lost.
                        self.calls.forget(&id);
                        self.step(&id, &label, Step::Lost, None);
                    }
                }
            }
            Heard::Held if self.timers.get(&Timer::AllowSleep).is_some() => self.allow_sleep(now),
            _ => {}
        }
        self.mark_changed();
    }

    fn acked(&self) -> bool {
        self.ready().is_some_and(|session| session.features.has(Feature::Ack))
    }

    /// So many results wait that the relay cannot be acknowledging what it reads. A further call ends the connection:
    /// answers would pile up without end. The next `resume_calls` says which of them are still wanted.
    pub(super) fn flooded(&self) -> bool {
        self.outbox.len() >= limits::SEEN_IDS_MAX
    }

    pub(super) fn arrived(&mut self, id: &CallId, label: &Label) {
        self.calls.forget(id);
        self.delivered += 1;
        self.step(id, label, Step::Delivered, None);
    }

    fn take_in(&mut self, now: Now, call: ToolCall) {
        let id = call.id;
        match self.calls.fate(&id) {
            Some(Fate::Running) => return,
            Some(Fate::Held) => return self.outbox.resend(&id),
            Some(Fate::Lost) => {
                return self.answer(&id, Label::default(), outcome_unknown("this call was given up before"));
            }
            None => {}
        }
        let label = Label { tool: call.tool.as_str().into(), client: call.authorization.asker() };
        let (most, reserve) = match self.settings.compat {
            Compat::Holdfast => (limits::DAEMON_CALLS_MAX, limits::CONTROL_RESERVE),
            Compat::Base => (limits::BASE_CALLS_MAX, limits::BASE_CONTROL_RESERVE),
        };
        let refusal = if !(1..=limits::TOOL_NAME_MAX).contains(&call.tool.len())
            || !call.arguments.get().trim_start().starts_with('{')
            || call.authorization.account_version == 0
        {
            Some(ToolError::new(Code::InvalidRequest, "invalid tool_call envelope"))
        } else if self.stopping.is_some() {
            Some(ToolError::nothing_done(Code::Unavailable, "this device is stopping"))
        } else if !self.calls.has_place(&call.tool, most, reserve) {
            Some(ToolError::nothing_done(Code::Busy, "this device runs as many calls as it can"))
        } else {
            None
        };
        if let Some(error) = refusal {
            return self.answer(&id, label, error);
        }
        let budget = Duration::from_millis(call.timeout_ms).clamp(limits::CALL_TIMEOUT_MIN, limits::CALL_TIMEOUT_MAX);
        self.calls.begin(now, &id, label.clone(), budget, call.progress);
        let about = crate::tools::summary(&call.arguments);
        self.out.push_back(Output::Step(CallStep {
            id: id.clone(),
            tool: label.tool,
            step: Step::Received,
            code: None,
            client: label.client,
            summary: Some(about).filter(|s| !s.is_empty()).map(Arc::from),
        }));
        self.out.push_back(Output::Run(Run {
            id,
            tool: call.tool,
            arguments: call.arguments,
            budget,
            authorization: call.authorization,
            progress: call.progress,
        }));
    }

    /// A result that no execution made.
    pub(super) fn answer(&mut self, id: &CallId, label: Label, error: ToolError) {
        self.keep(id, label, Err(error));
    }

    fn keep(&mut self, id: &CallId, label: Label, mut outcome: Result<Box<RawValue>, ToolError>) {
        if let Err(error) = &mut outcome
            && let Some((cut, _)) = error.message.char_indices().nth(limits::ERROR_MESSAGE_MAX)
        {
            error.message.truncate(cut);
        }
        let code = outcome.as_ref().err().map(|error| error.code);
        self.step(id, &label, Step::Finished, code);
        self.outbox.put(id, label, outcome);
        self.calls.remember(id, Fate::Held);
        let early = self.outbox.len() == limits::SEEN_IDS_MAX / 2 && !self.acked();
        let now = self.last;
        if let Some(session) = self.ready_mut().filter(|_| early) {
            // Only the pong to a heartbeat settles results here; a fast relay must not fill the outbox before the next one.
            session.beat(now);
        }
        self.mark_changed();
    }

    pub(super) fn finished(&mut self, now: Now, id: &CallId, outcome: Result<Box<RawValue>, ToolError>) {
        let Some(label) = self.calls.finish(id) else { return self.mark_changed() };
        self.keep(id, label, outcome);
        // Without a connection the result waits as its call did.
        if self.ready().is_none() && self.timers.get(&Timer::Grace).is_none() {
            self.timers.set(Timer::Grace, Due::awake(now, self.grace));
        }
    }

    pub(super) fn progress(&mut self, id: &CallId, progress: Progress) {
        if !self.calls.wants_progress(id) {
            return;
        }
        if let Some(session) = self.ready_mut().filter(|session| session.features.has(Feature::Progress)) {
            let Progress { progress, total, message } = progress;
            session.queue_progress(ToolProgress { id: id.clone(), progress, total, message });
        }
    }

    pub(super) fn loaded(&mut self, id: &CallId, text: Option<Arc<str>>) {
        if !self.outbox.loaded(id, text) {
            self.calls.remember(id, Fate::Lost);
            self.lost += 1;
            // On a connection that stays open no resume_calls will ask; the relay has to be told.
            self.answer(id, Label::default(), outcome_unknown("the result could not be read from disk"));
        }
    }

    pub(super) fn calls_due(&mut self, now: Now) {
        while let Some(due) = self.calls.handle_timeout(now) {
            match due {
                CallDue::Deadline(id) => {
                    if self.calls.stop(now, &id, CancelReason::Timeout).is_some() {
                        self.out.push_back(Output::Cancel(id, CancelReason::Timeout));
                    }
                }
                CallDue::Stuck(id) => {
                    self.finished(now, &id, Err(outcome_unknown("the tool ran out of time and could not be stopped")));
                }
            }
            self.mark_changed();
        }
    }

    /// Stops a call whose result nobody wants.
    pub(super) fn cancel(&mut self, now: Now, id: &CallId, why: CancelReason) {
        if let Some(label) = self.calls.stop(now, id, why) {
            self.out.push_back(Output::Cancel(id.clone(), why));
            let unwanted = why == CancelReason::CallerNoLongerWaiting;
            self.step(id, &label, if unwanted { Step::Lost } else { Step::Cancelled }, None);
        }
    }

    /// Stops every running call; returns how many.
    fn cancel_all(&mut self, now: Now, why: CancelReason) -> usize {
        let running: Vec<CallId> = self.calls.wanted().map(|(id, _)| id.clone()).collect();
        for id in &running {
            self.cancel(now, id, why);
        }
        running.len()
    }

    pub(super) fn grace_expired(&mut self, now: Now) {
        let stopped = self.cancel_all(now, CancelReason::GraceExpired);
        self.lost += stopped as u64;
        self.told.push(Told::GraceExpired { stopped, held: self.outbox.len() });
    }

    pub(super) fn stop(&mut self, now: Now, patient: bool) {
        if self.state() == LinkState::Stopped {
            self.out.push_back(Output::Stopped);
        } else if self.stopping.is_none() {
            self.stopping = Some(Stopping::Draining);
            self.timers.set(Timer::Stop, Due::awake(now, if patient { limits::STOP_WAIT } else { Duration::ZERO }));
        } else if !patient {
            self.timers.set(Timer::Stop, Due::awake(now, Duration::ZERO));
        }
    }

    /// The wait of this stage is over, whatever is left.
    pub(super) fn stop_stage_over(&mut self, now: Now) {
        match self.stopping {
            Some(Stopping::Draining) => {
                let stopped = self.cancel_all(now, CancelReason::Shutdown);
                self.cut_off(stopped);
                self.stop_progress(now);
            }
            Some(Stopping::Settling) => self.rest(now),
            None => {}
        }
    }

    fn cut_off(&mut self, calls: usize) {
        self.lost += calls as u64;
        if calls > 0 {
            self.told.push(Told::CutOff { calls });
        }
    }

    /// Goes on with a stop as soon as nothing holds it.
    pub(super) fn stop_progress(&mut self, now: Now) {
        if self.stopping == Some(Stopping::Draining) && self.calls.wanted().next().is_none() {
            self.stopping = Some(Stopping::Settling);
            self.timers.set(Timer::Stop, Due::awake(now, limits::STOP_ACK_WAIT));
        }
        let nothing_waits = self.outbox.is_empty() || self.ready().is_none();
        if self.stopping == Some(Stopping::Settling) && nothing_waits {
            self.rest(now);
        }
    }

    fn rest(&mut self, now: Now) {
        let open = self.serving.take().into_iter().chain(self.candidate.take());
        let (code, reason) = close::SHUTDOWN;
        self.out.extend(open.map(|session| Output::Close(session.socket, code, reason)));
        self.out.extend(self.dialer.stop().into_iter().map(Output::Drop));
        let held: Vec<CallId> = self.outbox.ids().cloned().collect();
        for id in &held {
            if let Some(label) = self.outbox.remove(id) {
                self.step(id, &label, Step::Lost, None);
            }
            self.calls.remember(id, Fate::Lost);
        }
        self.cut_off(held.len());
        self.deaf = false;
        self.unclean = false;
        self.stopping = None;
        if self.timers.get(&Timer::AllowSleep).is_some() {
            self.allow_sleep(now);
        }
        for timer in [Timer::Stop, Timer::Grace, Timer::Check, Timer::NoSleep] {
            self.timers.stop(&timer);
        }
        self.outage.stopped(now, &mut self.told);
        self.out.push_back(Output::Stopped);
        self.mark_changed();
    }

    pub(super) fn step(&mut self, id: &CallId, label: &Label, step: Step, code: Option<Code>) {
        // An answer to an id that was never taken in is no call of this machine.
        if label.tool.is_empty() {
            return;
        }
        let (tool, client) = (label.tool.clone(), label.client.clone());
        self.out.push_back(Output::Step(CallStep { id: id.clone(), tool, step, code, client, summary: None }));
    }
}

pub(super) fn outcome_unknown(message: &str) -> ToolError {
    ToolError::new(Code::OutcomeUnknown, message)
}

/// A stored frame with a number: the same bytes that encoding it with the number would write.
fn splice(text: &str, n: Option<u64>) -> String {
    let Some(n) = n else { return text.to_owned() };
    let mut numbered = String::with_capacity(text.len() + 24);
    // Writing to a String cannot fail.
    let _ = write!(numbered, "{{\"n\":{n},");
    numbered.push_str(&text[1..]);
    numbered
}
