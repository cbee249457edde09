//! Commits: what is asked of the store, and the words that wait for its answer.
//!
//! An operation has one commit in flight. What comes meanwhile gathers and makes up the next one, so a store that is slow
//! gets fewer and larger commits, and one that refuses leaves nothing behind that a later commit could turn into a hole.

use std::sync::Arc;

use super::io::{AskId, Note, Output, Refused, Ticket};
use super::life::{Ack, Ending, Living};
use super::machine::{Control, Timer};
use super::output::Arriving;
use super::record::{Change, Found, Record, SessionCancel};
use super::sockets::Line;
use crate::code::Code;
use crate::id::{LedgerId, OperationId};
use crate::limits;
use crate::operation::{Digest, Failure, Outcome, State, Stream};
use crate::time::{Due, Now};

/// What a commit in flight is for.
pub(super) enum Purpose {
    Admit { ask: AskId, living: Box<Living> },
    Recall { ask: AskId, digest: Digest, otherwise: Failure },
    Operation(OperationId),
    Late(Ack),
    Session { ask: AskId, cancel: SessionCancel },
    SessionConfirmed { session: String },
}

/// What an operation's commit in flight carries.
pub(super) struct Flight {
    sent_to: Option<LedgerId>,
    saved: (State, bool),
    streams: Vec<(Stream, u64)>,
    bytes: usize,
    /// How it ends by this commit, and who is told.
    end: Option<(State, Option<Ack>)>,
    asks: Vec<AskId>,
}

impl Living {
    /// The next commit, if there is something to commit.
    fn next_commit(&mut self, assign: Option<&LedgerId>) -> Option<(Vec<Change>, Flight)> {
        let id = &self.record.operation.request_id;
        let saved = (self.record.state, self.record.cancelled);
        if self.adopted {
            // Alone: what came of it is committed once it is known that the row is this device's.
            let flight = Flight { sent_to: None, saved, streams: Vec::new(), bytes: 0, end: None, asks: Vec::new() };
            return Some((vec![Change::Adopt(Box::new(self.record.clone()))], flight));
        }
        let mut changes = Vec::new();
        let sent_to = assign.filter(|ledger| self.record.sent_to.as_ref() != Some(ledger)).cloned();
        if let Some(ledger) = &sent_to {
            changes.push(Change::Sent { id: id.clone(), ledger: ledger.clone() });
        }
        if self.record.state != self.saved.0 {
            changes.push(Change::State { id: id.clone(), state: self.record.state });
        }
        if self.record.cancelled && !self.saved.1 {
            changes.push(Change::Cancel { id: id.clone() });
        }
        let bytes = self.arriving.values().map(Arriving::bytes).sum();
        let streams = self
            .arriving
            .iter_mut()
            .filter_map(|(stream, arriving)| Some((*stream, arriving.send(id, *stream, &mut changes)?)))
            .collect();
        let end = self.end().map(|(outcome, frees_key, ack)| {
            let state = outcome.state();
            changes.push(Change::End { id: id.clone(), outcome, written: self.written.clone(), frees_key });
            (state, ack)
        });
        if changes.is_empty() {
            return None;
        }
        let asks = std::mem::take(&mut self.asks);
        Some((changes, Flight { sent_to, saved, streams, bytes, end, asks }))
    }

    /// Its end, if that may be committed now.
    fn end(&self) -> Option<(Outcome, bool, Option<Ack>)> {
        match self.ending.as_ref()? {
            Ending::Told { outcome, written, ack } => {
                self.has_all(written).then(|| (outcome.clone(), false, Some(ack.clone())))
            }
            Ending::Decided { outcome, frees_key } => Some((outcome.clone(), *frees_key, None)),
        }
    }
}

impl Control {
    fn commit(&mut self, changes: Vec<Change>, purpose: Purpose) {
        let ticket = self.ticket();
        self.commits.insert(ticket, purpose);
        self.out.push_back(Output::Commit { ticket, changes });
    }

    /// Commits what the store does not have of an operation, unless it is being asked or has just refused.
    pub(super) fn flush(&mut self, id: &OperationId) {
        if self.timers.get(&Timer::Retry).is_some() {
            return;
        }
        let Some(living) = self.living.get_mut(id).filter(|living| living.flight.is_none()) else { return };
        let order = living.record.order;
        let waits = self.queue.contains_key(&order);
        let assign = self.line.as_ref().filter(|line| waits && order <= line.assigned).map(|line| &line.ledger);
        match living.next_commit(assign) {
            Some((changes, flight)) => {
                living.flight = Some(flight);
                self.commit(changes, Purpose::Operation(id.clone()));
            }
            // It was cancelled before, and that is committed.
            None => {
                for ask in std::mem::take(&mut living.asks) {
                    self.accept(ask, id);
                }
            }
        }
    }

    pub(super) fn flush_all(&mut self) {
        let ids: Vec<OperationId> = self.living.keys().cloned().collect();
        for id in ids {
            self.flush(&id);
        }
    }

    /// What is sent next is to stand as sent to the worker's ledger before it is. Only a few at a time: what stands so does
    /// not expire any more, and another ledger makes it unknown.
    pub(super) fn flush_queue(&mut self) {
        while let Some(line) = &self.line
            && let Some((order, id)) = self.queue.range(line.assigned + 1..).next()
            && self.unreceived() < limits::CONTROL_UNRECEIVED_MAX
        {
            let (order, id) = (*order, id.clone());
            self.assign_up_to(order);
            self.flush(&id);
        }
    }

    fn assign_up_to(&mut self, order: u64) {
        if let Some(line) = &mut self.line {
            line.assigned = order;
        }
    }

    /// How many stand as sent, or soon will, and are not confirmed by the worker.
    fn unreceived(&self) -> usize {
        let up_to = self.line.as_ref().map_or(0, |line| line.assigned);
        let handed =
            |living: &&Living| living.record.state == State::Queued && (living.sent || living.record.order <= up_to);
        self.living.values().chain(self.admitting()).filter(handed).count()
    }

    /// Admissions on their way.
    pub(super) fn admitting(&self) -> impl Iterator<Item = &Living> {
        self.commits.values().filter_map(|purpose| match purpose {
            Purpose::Admit { living, .. } => Some(&**living),
            _ => None,
        })
    }

    /// If it is to be sent next it stands as sent at once, which saves a second commit.
    pub(super) fn commit_admission(&mut self, ask: AskId, mut living: Box<Living>) {
        let Living { record, .. } = &mut *living;
        let mut changes = vec![Change::Admit(Box::new(record.clone()))];
        if let Some(line) = self.line.as_ref().filter(|line| self.is_next(line)) {
            let (id, ledger) = (record.operation.request_id.clone(), line.ledger.clone());
            record.sent_to = Some(ledger.clone());
            changes.push(Change::Sent { id, ledger });
            self.assign_up_to(record.order);
        }
        self.commit(changes, Purpose::Admit { ask, living });
    }

    /// Whether a new operation is to be sent before anything else is assigned to this line.
    fn is_next(&self, line: &Line) -> bool {
        let mut waiting = self.queue.keys().copied().chain(self.admitting().map(|living| living.record.order));
        waiting.all(|order| order <= line.assigned) && self.unreceived() < limits::CONTROL_UNRECEIVED_MAX
    }

    pub(super) fn commit_recall(&mut self, ask: AskId, record: &Record, key: Arc<str>, otherwise: Failure) {
        let (principal, digest) = (record.principal.clone(), record.digest);
        self.commit(vec![Change::Recall { principal, key }], Purpose::Recall { ask, digest, otherwise });
    }

    pub(super) fn commit_session(&mut self, ask: AskId, cancel: SessionCancel) {
        self.commit(vec![Change::CancelSession(cancel.clone())], Purpose::Session { ask, cancel });
    }

    /// The worker has a cancelled session in its ledger.
    pub(super) fn session_confirmed(&mut self, cancellation: String) {
        if let Some(cancel) = self.sessions.values().find(|cancel| cancel.cancellation == cancellation) {
            let session = cancel.session.clone();
            self.commit(vec![Change::SessionConfirmed { cancellation }], Purpose::SessionConfirmed { session });
        }
    }

    /// A result of an operation that is over here, or nobody's: evidence at most, and then the worker may forget it.
    pub(super) fn late(&mut self, id: OperationId, outcome: Outcome, ack: Ack) {
        let on_their_way = self.commits.values().filter(|purpose| matches!(purpose, Purpose::Late(_))).count();
        // A worker that reads nothing must not fill the memory.
        let unsaid = self.line.as_ref().map_or(0, |line| line.acks.len());
        if on_their_way + unsaid < limits::CONTROL_LATE_MAX {
            self.commit(vec![Change::Late { id, outcome }], Purpose::Late(ack));
        }
    }

    pub(super) fn acknowledge(&mut self, ack: Ack) {
        let Some(line) = &mut self.line else { return };
        match ack {
            Ack::Terminal(run) => line.acks.terminals.insert(run),
            Ack::Result(id) => line.acks.results.insert(id),
        };
    }

    pub(super) fn committed(&mut self, now: Now, ticket: Ticket, result: Result<Found, Refused>) {
        let Some(purpose) = self.commits.remove(&ticket) else { return };
        match (purpose, result) {
            (Purpose::Operation(id), Ok(Found::Known { .. })) => self.not_adopted(&id),
            (Purpose::Operation(id), Ok(_)) => self.flown(&id),
            (Purpose::Operation(id), Err(_)) => self.refused(now, &id),
            (Purpose::Admit { ask, living }, Ok(found)) => self.admitted(now, ask, *living, found),
            (Purpose::Recall { ask, digest, otherwise }, Ok(found)) => self.recalled(ask, digest, otherwise, found),
            (Purpose::Session { ask, cancel }, Ok(_)) => self.session_cancelled(ask, cancel),
            (Purpose::SessionConfirmed { session }, Ok(_)) => _ = self.sessions.remove(&session),
            (Purpose::Late(ack), Ok(_)) => self.acknowledge(ack),
            (Purpose::Admit { ask, .. } | Purpose::Recall { ask, .. } | Purpose::Session { ask, .. }, Err(refused)) => {
                self.refuse_ask(ask, not_stored(refused));
            }
            // Both are offered again: by the worker, or by the next recovery.
            (Purpose::Late(_) | Purpose::SessionConfirmed { .. }, Err(_)) => {}
        }
    }

    /// An operation's commit is durable.
    fn flown(&mut self, id: &OperationId) {
        let Some(living) = self.living.get_mut(id) else { return };
        let Some(flight) = living.flight.take() else { return };
        self.gathered = self.gathered.saturating_sub(flight.bytes);
        living.saved = flight.saved;
        let adopted = std::mem::take(&mut living.adopted);
        if let Some(ledger) = flight.sent_to {
            living.record.sent_to = Some(ledger);
        }
        let run = living.run().cloned();
        for (stream, next) in &flight.streams {
            living.record.received.insert(*stream, *next);
        }
        if !flight.streams.is_empty() {
            self.changed(id);
        }
        for (stream, next) in flight.streams {
            if let Some(run) = &run {
                self.acknowledge_output(run.clone(), stream, next);
            }
        }
        if adopted {
            self.note(Note::Adopted { id: id.clone() });
            self.changed(id);
        }
        for ask in flight.asks {
            self.accept(ask, id);
        }
        match flight.end {
            Some((state, ack)) => self.ended(id, state, ack),
            None => self.flush(id),
        }
    }

    /// The store refused: output is dropped, not acknowledged, and will be offered again; facts are kept and tried again.
    fn refused(&mut self, now: Now, id: &OperationId) {
        self.timers.set(Timer::Retry, Due::boot(now, limits::CONTROL_RETRY));
        let Some(living) = self.living.get_mut(id) else { return };
        let Some(flight) = living.flight.take() else { return };
        if living.adopted {
            // What gathers is part of no commit yet.
            return;
        }
        let gathered: usize = living.arriving.values().map(Arriving::bytes).sum();
        self.gathered = self.gathered.saturating_sub(flight.bytes + gathered);
        living.arriving.clear();
        // The cancel stands here, and the worker may have it: not the word for "nothing was done".
        for ask in flight.asks {
            let text = "the cancel is under way and could not be stored yet";
            self.refuse_ask(ask, Failure::new(Code::OutcomeUnknown, text));
        }
    }

    fn recalled(&mut self, ask: AskId, digest: Digest, otherwise: Failure, found: Found) {
        match found {
            Found::Known { id, digest: known } if known == digest => self.accept(ask, &id),
            Found::Known { .. } => self.refuse_ask(ask, conflict()),
            Found::Nothing | Found::SessionCancelled => self.refuse_ask(ask, otherwise),
        }
    }

    fn admitted(&mut self, now: Now, ask: AskId, living: Living, found: Found) {
        let record = &living.record;
        match found {
            Found::Nothing => {}
            Found::SessionCancelled => {
                return self.refuse_ask(ask, Failure::nothing_done(Code::Cancelled, "the session was cancelled"));
            }
            known => return self.recalled(ask, record.digest, conflict(), known),
        }
        let id = record.operation.request_id.clone();
        let called_off = self.revoked || record.order <= self.cancelled_up_to;
        let run = record.operation.run_id.as_ref().filter(|run| living.is_input_of(run));
        let held_back = run.and_then(|run| self.held_back.get(run)).is_some_and(|up_to| record.order <= *up_to);
        self.accept(ask, &id);
        self.note(Note::Admitted { id: id.clone() });
        self.enlist(now, living);
        self.changed(&id);
        if called_off {
            self.decide(&id, Outcome::Cancelled { started: false, exit: None }, false);
        } else if held_back {
            let error = Failure::nothing_done(Code::Unavailable, "the input before it was not given");
            self.decide(&id, Outcome::Failed { error, started: false, evidence: None }, true);
        }
        self.flush(&id);
        self.flush_queue();
    }
}

fn conflict() -> Failure {
    Failure::new(Code::Conflict, "the key was used for another request")
}

fn not_stored(refused: Refused) -> Failure {
    Failure::nothing_done(refused.code(), "the relay could not store it")
}
