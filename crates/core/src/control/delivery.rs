//! From a client's request to the worker's socket: admission, the queue, and the frames in their order.

use std::sync::Arc;
use std::time::Duration;

use super::SocketId;
use super::io::{AskId, Note, Start};
use super::life::Living;
use super::machine::{Control, Timer};
use super::record::Record;
use super::recovery::{Phase, lease_ms};
use crate::code::Code;
use crate::id::{OperationId, RunId};
use crate::limits;
use crate::operation::{Digest, Failure, Operation, Outcome, State, Streams};
use crate::time::{Due, Now};
use crate::wire::worker::ControlFrame;

impl Control {
    pub(super) fn start(&mut self, now: Now, ask: AskId, start: Start) {
        let ttl = start.ttl.unwrap_or(limits::OPERATIONS_QUEUE_TTL).min(limits::OPERATIONS_QUEUE_TTL);
        let key = start.key.clone();
        let record = match self.draw_up(start, ttl) {
            Ok(record) => record,
            Err(failure) => return self.refuse_ask(ask, failure),
        };
        let living = Box::new(Living::new(record, now.boot.saturating_add(ttl), false));
        match (self.refusal(&living), key) {
            (None, _) => self.commit_admission(ask, living),
            // A repetition is answered all the same.
            (Some(refusal), Some(key)) => self.commit_recall(ask, &living.record, key, refusal),
            (Some(refusal), None) => self.refuse_ask(ask, refusal),
        }
    }

    /// The record of a new operation, whatever else speaks against it.
    fn draw_up(&mut self, start: Start, ttl: Duration) -> Result<Record, Failure> {
        let invalid = |why: &str| Failure::nothing_done(Code::InvalidRequest, why);
        if start.key.as_ref().is_some_and(|key| key.is_empty() || key.chars().count() > limits::OPERATION_KEY_MAX) {
            return Err(invalid("a key has 1 to 128 characters"));
        }
        let kind = start.request.kind();
        if start.run_id.is_some() != kind.is_input() {
            return Err(invalid("input names the run it is for, and nothing else names a run"));
        }
        let request_id = OperationId::mint(self.random());
        let operation = Operation {
            request_id,
            run_id: if kind.is_run() { Some(RunId::mint(self.random())) } else { start.run_id },
            session_id: start.session_id,
            role: start.role,
            client: start.client,
            after: None,
            request: start.request,
        };
        operation.check().map_err(|why| invalid(why.0))?;
        self.order += 1;
        Ok(Record {
            digest: Digest::of(&operation),
            operation: Arc::new(operation),
            principal: start.principal,
            key: start.key,
            state: State::Queued,
            sent_to: None,
            cancelled: false,
            received: Streams::new(),
            written: Streams::new(),
            outcome: None,
            order: self.order,
            created: start.at,
            ttl,
        })
    }

    /// Why nothing new is admitted.
    fn refusal(&self, living: &Living) -> Option<Failure> {
        if self.revoked {
            return Some(Failure::nothing_done(Code::Unavailable, "the device was revoked"));
        }
        let operation = &living.record.operation;
        let run = operation.run_id.as_ref().filter(|_| operation.kind().is_input());
        if run.is_some_and(|run| !self.runs.contains_key(run)) {
            return Some(Failure::nothing_done(Code::NotFound, "the run is over, or there is none of that name"));
        }
        // The worker lets no more wait: what it would refuse is refused here, before anybody was told that it is accepted.
        if run.is_some_and(|run| self.inputs_waiting(run) >= limits::WORKER_RUN_INPUTS_MAX) {
            let text = "the program has not taken the input before this; it may be sent again";
            return Some(Failure::nothing_done(Code::Busy, text));
        }
        if self.living.len() + self.admitting().count() >= limits::OPERATIONS_HELD_MAX {
            let text = "too many operations of this device have not ended";
            return Some(Failure::nothing_done(Code::LimitExceeded, text));
        }
        let held: usize = self.living.values().chain(self.admitting()).map(|living| living.size).sum();
        if held + living.size > limits::OPERATIONS_HELD_BYTES {
            let text = "what the operations of this device that have not ended ask is too much together";
            return Some(Failure::nothing_done(Code::LimitExceeded, text));
        }
        None
    }

    /// Inputs of a run that its program has not taken, by the worker's word.
    fn inputs_waiting(&self, run: &RunId) -> usize {
        let waits = |living: &&Living| living.is_input_of(run) && living.ending.is_none();
        self.living.values().chain(self.admitting()).filter(waits).count()
    }

    /// The input before this one for the same run, if it was sent and may still be given.
    fn input_before(&self, id: &OperationId) -> Option<OperationId> {
        let this = &self.living.get(id)?.record;
        let run = this.operation.run_id.as_ref().filter(|_| this.operation.kind().is_input())?;
        let before = self.living.values().filter(|living| {
            living.is_input_of(run) && living.record.order < this.order && living.sent && !living.is_decided()
        });
        before.max_by_key(|living| living.record.order).map(|living| living.record.operation.request_id.clone())
    }

    /// Input that is not given leaves no hole: what comes after it for the same run and was not sent ends with it, the last
    /// first, so that a crash in between leaves none either. What was sent the worker does not take.
    pub(super) fn hold_back(&mut self, id: &OperationId, outcome: &Outcome) {
        let failure = match outcome {
            Outcome::Expired {} => None,
            Outcome::Failed { error, started: false, .. } => {
                Some(Failure::nothing_done(error.code, "the input before it was not given"))
            }
            _ => return,
        };
        let Some(living) = self.living.get(id) else { return };
        let Some(run) = living.record.operation.run_id.clone().filter(|run| living.is_input_of(run)) else { return };
        let order = living.record.order;
        let mut later: Vec<(u64, OperationId)> = self
            .living
            .values()
            .filter(|living| living.is_input_of(&run) && living.record.order > order)
            .filter(|living| !living.sent && living.ending.is_none())
            .map(|living| (living.record.order, living.record.operation.request_id.clone()))
            .collect();
        later.sort_unstable_by_key(|(order, _)| std::cmp::Reverse(*order));
        for (_, id) in later {
            let outcome = match failure.clone() {
                Some(error) => Outcome::Failed { error, started: false, evidence: None },
                None => Outcome::Expired {},
            };
            self.decide(&id, outcome, true);
        }
        // What is being admitted follows when it stands in the store.
        if self.admitting().any(|living| living.is_input_of(&run)) {
            self.held_back.insert(run, self.order);
        }
    }

    /// An operation of the store or a new one joins the living. What was sent waits for a recovery.
    pub(super) fn enlist(&mut self, now: Now, living: Living) {
        let id = living.record.operation.request_id.clone();
        self.order = self.order.max(living.record.order);
        if let Some(run) = living.run() {
            self.runs.insert(run.clone(), id.clone());
        }
        if !living.sent {
            self.queue.insert(living.record.order, id.clone());
            self.timers.set(Timer::Ttl(id.clone()), Due::boot(now, living.due.saturating_sub(now.boot)));
        }
        self.living.insert(id, living);
    }

    pub(super) fn restore(&mut self, now: Now, record: Record, left: Duration) {
        let sent = record.sent_to.is_some();
        self.enlist(now, Living::new(record, now.boot.saturating_add(left), sent));
    }

    /// Nobody came for it in its time. One that may have been sent is not touched here.
    pub(super) fn waited(&mut self, id: &OperationId) {
        if self.living.get(id).is_some_and(|living| !living.sent) {
            self.decide(id, Outcome::Expired {}, true);
        }
    }

    /// The next frame for this socket; asked only while it has room. Cancels and acknowledgements go before operations.
    pub fn poll_transmit(&mut self, now: Now, socket: SocketId) -> Option<ControlFrame> {
        let frame = self.next_word(socket).or_else(|| self.next_operation(socket))?;
        if let Some(line) = &mut self.line {
            line.wrote = now.boot;
        }
        Some(frame)
    }

    fn next_word(&mut self, socket: SocketId) -> Option<ControlFrame> {
        let line = self.line.as_mut().filter(|line| line.socket == socket)?;
        if let Some(word) = line.words.pop_front() {
            return Some(word);
        }
        if std::mem::take(&mut line.lease) {
            return Some(ControlFrame::WorkerExecutionLease { lease_ms: lease_ms() });
        }
        if let Some(request_id) = line.cancels.pop_first() {
            let run_id = self.living.get(&request_id).and_then(|living| living.run().cloned());
            return Some(ControlFrame::Cancel { request_id, run_id });
        }
        while let Some(session_id) = line.sessions.pop_first() {
            if let Some(cancel) = self.sessions.get(&session_id) {
                let cancellation_id = cancel.cancellation.clone();
                return Some(ControlFrame::CancelSession { session_id, cancellation_id });
            }
        }
        line.acks.next()
    }

    /// The first of the queue, once it stands as sent to this ledger. Nothing overtakes it.
    fn next_operation(&mut self, socket: SocketId) -> Option<ControlFrame> {
        let line = self.line.as_ref().filter(|line| line.socket == socket && line.phase > Phase::Asked)?;
        let (order, id) = self.queue.first_key_value()?;
        let after = self.input_before(id);
        let living = self.living.get_mut(id).filter(|living| living.record.sent_to.as_ref() == Some(&line.ledger))?;
        living.sent = true;
        let operation = Operation { after, ..Operation::clone(&living.record.operation) };
        let (order, id) = (*order, id.clone());
        self.queue.remove(&order);
        self.timers.stop(&Timer::Ttl(id.clone()));
        self.note(Note::Sent { id });
        Some(ControlFrame::Operation(operation))
    }
}
