//! A living operation: how it stands, what cancels it, and its one end.

use std::collections::BTreeMap;
use std::time::Duration;

use super::commit::Flight;
use super::io::{Accepted, AskId, Note, Output, View};
use super::machine::{Control, Timer};
use super::output::Arriving;
use super::record::{Record, SessionCancel, evidence};
use super::recovery::Phase;
use crate::code::Code;
use crate::id::{OperationId, RunId};
use crate::limits;
use crate::operation::{Failure, Outcome, State, Stream, Streams};
use crate::status::UnixMs;
use crate::wire::worker::Report;

/// What the worker waits to hear once an end is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ack {
    Terminal(RunId),
    Result(OperationId),
}

/// An end that is not committed.
#[derive(Debug)]
pub(super) enum Ending {
    /// The worker's word. It counts once all of its output is here.
    Told { outcome: Outcome, written: Streams, ack: Ack },
    /// Nothing that comes changes it any more.
    Decided { outcome: Outcome, frees_key: bool },
}

pub(super) struct Living {
    /// `state` and `cancelled` may be ahead of the store, everything else is as committed.
    pub(super) record: Record,
    /// What it asks, as JSON, in bytes.
    pub(super) size: usize,
    /// State and cancellation as the store has them.
    pub(super) saved: (State, bool),
    /// It may have left this process, or an earlier life of it: only the ledger knows.
    pub(super) sent: bool,
    /// The worker told of it, and whether the store has it is being asked.
    pub(super) adopted: bool,
    /// When its time to be sent is over (boot time).
    pub(super) due: Duration,
    /// The latest word on its output.
    pub(super) written: Streams,
    pub(super) output_stalled: Option<UnixMs>,
    pub(super) arriving: BTreeMap<Stream, Arriving>,
    pub(super) ending: Option<Ending>,
    /// What the commit in flight carries; there is one at a time.
    pub(super) flight: Option<Flight>,
    /// Who waits for its cancellation to be committed.
    pub(super) asks: Vec<AskId>,
}

impl Living {
    pub(super) fn new(record: Record, due: Duration, sent: bool) -> Living {
        Living {
            saved: (record.state, record.cancelled),
            written: record.received.clone(),
            size: record.operation.request.size(),
            record,
            sent,
            adopted: false,
            due,
            output_stalled: None,
            arriving: BTreeMap::new(),
            ending: None,
            flight: None,
            asks: Vec::new(),
        }
    }

    /// Its run, if it has output.
    pub(super) fn run(&self) -> Option<&RunId> {
        self.record.operation.run_id.as_ref().filter(|_| self.record.operation.kind().is_run())
    }

    /// Whether it is input for this run.
    pub(super) fn is_input_of(&self, run: &RunId) -> bool {
        let operation = &self.record.operation;
        operation.run_id.as_ref() == Some(run) && operation.kind().is_input()
    }

    /// Output that is committed, in bytes.
    pub(super) fn received(&self, stream: Stream) -> u64 {
        self.record.received.get(&stream).copied().unwrap_or(0)
    }

    pub(super) fn is_decided(&self) -> bool {
        matches!(self.ending, Some(Ending::Decided { .. }))
    }

    pub(super) fn behind(&self) -> u64 {
        let behind = |(stream, written): (&Stream, &u64)| written.saturating_sub(self.received(*stream));
        // A worker may claim anything.
        self.written.iter().map(behind).fold(0, u64::saturating_add)
    }

    /// Output there is at least this much of. A word that came late takes nothing back.
    pub(super) fn has_written(&mut self, written: &Streams) {
        for (stream, bytes) in written {
            let known = self.written.entry(*stream).or_default();
            *known = (*known).max(*bytes);
        }
    }

    pub(super) fn view(&self) -> View {
        View {
            record: self.record.clone(),
            written: self.written.clone(),
            output_stalled: self.output_stalled,
            ending: self.ending.is_some(),
        }
    }
}

impl Control {
    /// How it stands, by the worker's latest word. An end is not told like this.
    pub(super) fn reported(&mut self, report: Report) {
        let Some(living) = self.living.get_mut(&report.request_id) else { return };
        if living.ending.is_some() || !living.sent {
            return;
        }
        living.has_written(&report.written);
        living.output_stalled = report.output_stalled;
        let confirmed = living.record.state == State::Queued;
        // An ended one has at least been received; its end follows.
        let state = if report.state.is_final() { living.record.state.max(State::Received) } else { report.state };
        living.record.state = state.max(State::Received);
        self.changed(&report.request_id);
        self.flush(&report.request_id);
        if confirmed {
            self.flush_queue();
        }
    }

    pub(super) fn received(&mut self, id: &OperationId) {
        let Some(living) = self.living.get_mut(id) else { return };
        if living.sent && living.ending.is_none() && living.record.state == State::Queued {
            living.record.state = State::Received;
            self.changed(id);
            self.flush(id);
            self.flush_queue();
        }
    }

    /// The ledger does not have it and will not.
    pub(super) fn rejected(&mut self, id: &OperationId, failure: Failure) {
        let Some(living) = self.living.get(id).filter(|living| living.sent && living.ending.is_none()) else { return };
        if living.record.state != State::Queued || failure.code == Code::Conflict {
            self.end_unknown(id, "the worker refused an operation that it had received before");
        } else if failure.code == Code::Cancelled {
            self.decide(id, Outcome::Cancelled { started: false, exit: None }, false);
        } else {
            self.decide(id, Outcome::Failed { error: failure.bounded(), started: false, evidence: None }, true);
        }
    }

    /// The end by the worker's word. Offered again, it changes nothing until it is committed.
    pub(super) fn told(&mut self, id: &OperationId, outcome: Outcome, written: Streams, ack: Ack) {
        let outcome = outcome.bounded();
        let Some(living) = self.living.get(id) else { return self.late(id.clone(), outcome, ack) };
        if !living.sent || living.ending.is_some() {
            return;
        }
        self.hold_back(id, &outcome);
        if let Some(living) = self.living.get_mut(id) {
            living.has_written(&written);
            living.ending = Some(Ending::Told { outcome, written, ack });
            self.changed(id);
            self.flush(id);
        }
    }

    /// The end of an operation as this side knows it.
    pub(super) fn decide(&mut self, id: &OperationId, outcome: Outcome, frees_key: bool) {
        if self.living.get(id).is_none_or(Living::is_decided) {
            return;
        }
        self.hold_back(id, &outcome);
        let Some(living) = self.living.get_mut(id) else { return };
        living.ending = Some(Ending::Decided { outcome, frees_key });
        self.queue.remove(&living.record.order);
        self.timers.stop(&Timer::Ttl(id.clone()));
        if let Some(line) = &mut self.line {
            line.cancels.remove(id);
        }
        self.changed(id);
        self.flush(id);
    }

    /// It was sent, and no word of it will come. What was told of its end is evidence. False: it was decided before.
    pub(super) fn end_unknown(&mut self, id: &OperationId, reason: &str) -> bool {
        let Some(living) = self.living.get(id).filter(|living| !living.is_decided()) else { return false };
        let unknown = Outcome::Unknown { reason: reason.into(), evidence: None };
        let outcome = match &living.ending {
            Some(Ending::Told { outcome, .. }) => evidence(&unknown, outcome).unwrap_or(unknown),
            _ => unknown,
        };
        self.decide(id, outcome, false);
        true
    }

    /// The end is committed.
    pub(super) fn ended(&mut self, id: &OperationId, state: State, ack: Option<Ack>) {
        let Some(living) = self.living.remove(id) else { return };
        if let Some(run) = living.run() {
            self.runs.remove(run);
            self.held_back.remove(run);
        }
        self.queue.remove(&living.record.order);
        self.timers.stop(&Timer::Ttl(id.clone()));
        self.gathered = self.gathered.saturating_sub(living.arriving.values().map(Arriving::bytes).sum());
        if let Some(line) = &mut self.line {
            line.cancels.remove(id);
        }
        if let Some(ack) = ack {
            self.acknowledge(ack);
        }
        self.note(Note::Ended { id: id.clone(), state });
        self.changed(id);
        for ask in living.asks {
            self.accept(ask, id);
        }
        self.flush_queue();
    }

    pub(super) fn cancel(&mut self, ask: AskId, id: &OperationId) {
        let Some(living) = self.living.get_mut(id) else { return self.accept(ask, id) };
        living.asks.push(ask);
        self.call_off_one(id);
    }

    /// Cancels a living operation. One that was never sent ends here; of another the worker tells what came of it. The cancel
    /// is sent before it is committed: it may come twice or for nothing, but not too late.
    fn call_off_one(&mut self, id: &OperationId) {
        let Some(living) = self.living.get_mut(id) else { return };
        living.record.cancelled = true;
        if !living.sent {
            return self.decide(id, Outcome::Cancelled { started: false, exit: None }, false);
        }
        self.queue.remove(&living.record.order);
        if let Some(line) = self.line.as_mut().filter(|line| living.ending.is_none() && line.phase > Phase::Asked) {
            line.cancels.insert(id.clone());
        }
        self.changed(id);
        self.flush(id);
    }

    /// The worker's answer to a cancel. One that it never received, and now never will start, ends by it; of one that has
    /// ended in another way the end is told by itself.
    pub(super) fn cancel_result(&mut self, id: &OperationId, state: State) {
        let Some(living) = self.living.get(id).filter(|living| living.sent && living.ending.is_none()) else { return };
        if living.record.state != State::Queued || state != State::Cancelled {
            return;
        }
        if living.record.cancelled {
            self.decide(id, Outcome::Cancelled { started: false, exit: None }, false);
        } else {
            self.decide(id, Outcome::Expired {}, true);
        }
    }

    pub(super) fn cancel_session(&mut self, ask: AskId, cancel: SessionCancel) {
        let named = |name: &str| !name.is_empty() && name.len() <= limits::OPERATION_SESSION_MAX;
        if !named(&cancel.session) || !named(&cancel.cancellation) {
            return self.refuse_ask(ask, Failure::new(Code::InvalidRequest, "a session's name has 1 to 128 bytes"));
        }
        // It stands in the store and waits for the worker: nothing was admitted since.
        if self.sessions.contains_key(&cancel.session) {
            return self.out.push_back(Output::Answer { ask, answer: Ok(Accepted::Session) });
        }
        if self.sessions.len() >= limits::SESSION_CANCELS_MAX {
            let text = "too many cancelled sessions wait for the worker";
            return self.refuse_ask(ask, Failure::nothing_done(Code::LimitExceeded, text));
        }
        self.commit_session(ask, cancel);
    }

    /// It stands in the store: nothing of this session is admitted any more, and what it has is cancelled.
    pub(super) fn session_cancelled(&mut self, ask: AskId, cancel: SessionCancel) {
        let of_session = |living: &&Living| living.record.operation.session_id.as_ref() == Some(&cancel.session);
        let ids: Vec<OperationId> =
            self.living.values().filter(of_session).map(|living| living.record.operation.request_id.clone()).collect();
        for id in ids {
            self.call_off_one(&id);
        }
        if let Some(line) = self.line.as_mut().filter(|line| line.phase > Phase::Asked) {
            line.sessions.insert(cancel.session.clone());
        }
        // Of two that came at once the store has the first.
        self.sessions.entry(cancel.session.clone()).or_insert(cancel);
        self.out.push_back(Output::Answer { ask, answer: Ok(Accepted::Session) });
    }

    /// What is being admitted follows when it stands in the store.
    pub(super) fn cancel_all(&mut self) {
        self.cancelled_up_to = self.order;
        let ids: Vec<OperationId> = self.living.keys().cloned().collect();
        for id in ids {
            self.call_off_one(&id);
        }
    }

    /// No worker will come back.
    pub(super) fn revoke(&mut self) {
        self.revoked = true;
        self.close_all();
        let ids: Vec<OperationId> = self.living.keys().cloned().collect();
        for id in ids {
            if self.living.get(&id).is_some_and(|living| living.sent) {
                self.end_unknown(&id, "the device was revoked; what it was running may go on there");
            } else {
                self.call_off_one(&id);
            }
        }
    }

    pub(super) fn accept(&mut self, ask: AskId, id: &OperationId) {
        self.out.push_back(Output::Answer { ask, answer: Ok(Accepted::Operation(id.clone())) });
    }

    pub(super) fn refuse_ask(&mut self, ask: AskId, failure: Failure) {
        self.out.push_back(Output::Answer { ask, answer: Err(failure) });
    }
}
