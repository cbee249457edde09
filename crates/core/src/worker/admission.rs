//! What the relay asks for: admitted once, known again, refused, or cancelled.

use super::commits::{Doing, Refused};
use super::io::Output;
use super::ledger::{Found, Known, LedgerError, Row};
use super::machine::{Will, Worker};
use super::operations::{Entry, Phase};
use crate::code::Code;
use crate::daemon::SocketId;
use crate::id::OperationId;
use crate::limits;
use crate::operation::{Digest, Failure, Operation, Outcome, State, Streams};
use crate::run::Ask;
use crate::time::Now;
use crate::wire::worker::WorkerFrame;

/// An operation whose admission is under way.
#[derive(Debug)]
pub(super) struct Admitting {
    digest: Digest,
    /// Where it came last: only there a refusal is no surprise.
    socket: Option<SocketId>,
    session: Option<String>,
    /// Cancelled in the meantime.
    cancelled: bool,
}

impl Worker {
    /// An operation came, with what the device's policy says of it.
    pub(super) fn operation(&mut self, operation: Operation, verdict: Result<(), Failure>) {
        if self.will != Will::Working {
            // It would begin only with the next start, and by then whoever stopped the worker may not want it any more.
            self.missed = true;
            return;
        }
        let id = operation.request_id.clone();
        let mut row = Row::received(operation);
        if let Some(entry) = self.operations.get(&id) {
            let answer = (entry.row.digest == row.digest).then(|| entry.result());
            return self.answer_known(id, answer);
        }
        let socket = self.session.as_ref().map(|session| session.socket);
        if let Some(admitting) = self.admitting.get_mut(&id) {
            // The same again is answered with the first.
            match admitting.digest == row.digest {
                true => admitting.socket = socket,
                false => self.answer_known(id, None),
            }
            return;
        }
        if let Err(failure) = self.may_admit(&row).and(verdict) {
            return self.commit(Doing::Refuse(Refused { id, digest: Some(row.digest), failure, socket }));
        }
        if self.can_be_told_at_once(&row.operation) {
            row.state = State::Running;
        }
        let session = row.operation.session_id.clone();
        self.admitting.insert(id, Admitting { digest: row.digest, socket, session, cancelled: false });
        self.commit(Doing::Admit(Box::new(row)));
    }

    /// Whether a new operation has a place.
    fn may_admit(&self, row: &Row) -> Result<(), Failure> {
        let operation = &row.operation;
        operation.check().map_err(|bad| Failure::new(Code::InvalidRequest, bad.0))?;
        if self.is_closed() {
            return Err(Failure::nothing_done(self.closed_code(), "the worker cannot keep anything more now"));
        }
        // What the relay has everything of is over there and does not count there any more.
        let held =
            self.operations.iter().filter(|entry| !matches!(entry.phase, Phase::Trailing | Phase::Leaving)).count();
        if held + self.admitting.len() >= limits::OPERATIONS_HELD_MAX {
            return Err(Failure::nothing_done(Code::LimitExceeded, "the worker holds as many operations as it may"));
        }
        let Some(run) = &operation.run_id else { return Ok(()) };
        if operation.kind().is_run() && self.operations.of_run(run).is_some() {
            return Err(Failure::new(Code::InvalidRequest, "another operation has this run id"));
        }
        let waiting = self.operations.iter().filter(|entry| entry.input_for() == Some(run) && !entry.phase.is_over());
        if operation.kind().is_input() && waiting.count() >= limits::WORKER_RUN_INPUTS_MAX {
            return Err(Failure::nothing_done(Code::LimitExceeded, "the run has as many inputs waiting as it may"));
        }
        self.follows(operation)
    }

    /// Whether the input before it was taken, or may still be.
    fn follows(&self, operation: &Operation) -> Result<(), Failure> {
        let Some(before) = &operation.after else { return Ok(()) };
        let taken = match self.operations.get(before) {
            Some(entry) => !entry.untaken,
            None => self.admitting.contains_key(before),
        };
        taken.then_some(()).ok_or_else(|| Failure::nothing_done(Code::Unavailable, "the input before it was not taken"))
    }

    fn closed_code(&self) -> Code {
        if self.disk_full { Code::StorageFull } else { self.ledger_code }
    }

    /// Input for a run that is connected, with nothing before it that still waits: its admission and the commit that it is
    /// about to be told are one, so that a key pressed waits for the disk once.
    fn can_be_told_at_once(&self, operation: &Operation) -> bool {
        let Some(run) = operation.run_id.as_ref().filter(|_| operation.kind().is_input()) else { return false };
        self.operations.of_run(run).is_some_and(|entry| entry.phase == Phase::Attached)
            && self.operations.iter().all(|entry| entry.input_for() != Some(run) || entry.phase != Phase::Waiting)
    }

    /// It stands in the ledger: with the stored answer if there is one, or as something else (`None`).
    fn answer_known(&mut self, request_id: OperationId, answer: Option<Option<WorkerFrame>>) {
        let Some(result) = answer else {
            let failure = Failure::new(Code::Conflict, "another operation has this id");
            return self.say(WorkerFrame::OperationRejected { request_id, failure });
        };
        self.say(WorkerFrame::OperationReceived { request_id });
        if let Some(result) = result {
            self.say(result);
        }
    }

    fn answer_found(&mut self, id: OperationId, digest: Option<Digest>, known: &Known) {
        let same = digest.is_none_or(|digest| digest == known.digest);
        let answer = same.then(|| known.result(&id));
        self.answer_known(id, answer);
    }

    pub(super) fn admitted(&mut self, now: Now, mut row: Box<Row>, result: Result<Found, LedgerError>) {
        let id = row.operation.request_id.clone();
        match result {
            Ok(Found { known: Some(known), .. }) => {
                self.admitting.remove(&id);
                self.answer_found(id, Some(row.digest), &known);
            }
            Ok(Found { cancelled: true, .. }) => {
                row.state = State::Cancelled;
                row.outcome = Some(Outcome::Cancelled { started: false, exit: None });
                row.cancelled = true;
                self.commit(Doing::Settle(row));
            }
            Ok(Found { .. }) => {
                row.cancelled = self.admitting.remove(&id).is_some_and(|admitting| admitting.cancelled);
                self.say(WorkerFrame::OperationReceived { request_id: id.clone() });
                let follows = self.follows(&row.operation);
                let phase = if row.state == State::Running { Phase::Ready } else { Phase::Waiting };
                let run = row.operation.run_id.clone();
                self.operations.insert(Entry::new(now, *row, phase));
                self.step_told(&id);
                if let Err(error) = follows {
                    // The one before it found no room, and this one did.
                    self.end(&id, Outcome::Failed { error, started: false, evidence: None }, Streams::new());
                }
                if let Some(run) = run.filter(|_| phase == Phase::Ready) {
                    self.feed(&run);
                }
                self.due = true;
            }
            // Nothing was inserted, but whether it stood there before is not known: only what did not is refused.
            Err(error) => {
                let socket = self.admitting.remove(&id).and_then(|admitting| admitting.socket);
                let failure =
                    Failure::nothing_done(self.failed(now, error), "the worker cannot keep anything more now");
                self.commit(Doing::Refuse(Refused { id, digest: Some(row.digest), failure, socket }));
            }
        }
    }

    pub(super) fn refusal_checked(&mut self, refused: Refused, found: &Found) {
        let Refused { id, digest, failure, socket } = refused;
        if let Some(entry) = self.operations.get(&id) {
            let same = digest.is_none_or(|digest| digest == entry.row.digest);
            let answer = same.then(|| entry.result());
            return self.answer_known(id, answer);
        }
        match &found.known {
            Some(known) => self.answer_found(id, digest, known),
            None => self.reject(id, failure, socket),
        }
    }

    /// Refuses an operation on the connection on which it came. On a later one it may have been sent again since, because the
    /// recovery showed that it is not here: there the word would be taken for one on that.
    fn reject(&mut self, request_id: OperationId, failure: Failure, socket: Option<SocketId>) {
        if socket.is_some_and(|socket| self.is_current(socket)) {
            self.say(WorkerFrame::OperationRejected { request_id, failure });
        }
    }

    /// An operation that was cancelled before it came stands in the ledger, ended.
    pub(super) fn settled(&mut self, now: Now, row: Box<Row>, result: Result<(), LedgerError>) {
        let id = row.operation.request_id.clone();
        let socket = self.admitting.remove(&id).and_then(|admitting| admitting.socket);
        if let Err(error) = result {
            let failure = Failure::nothing_done(self.failed(now, error), "the worker cannot keep anything more now");
            return self.reject(id, failure, socket);
        }
        self.say(WorkerFrame::OperationReceived { request_id: id.clone() });
        self.operations.insert(Entry::new(now, *row, Phase::Ended));
        self.offer(&id);
    }

    /// A cancel: it takes effect at once, and is answered when it stands in the ledger.
    pub(super) fn cancel(&mut self, id: OperationId) {
        if let Some(entry) = self.operations.get(&id)
            && entry.phase.is_over()
            && entry.phase != Phase::Ending
        {
            let state = entry.row.state;
            return self.say(WorkerFrame::CancelResult { request_id: id, state });
        }
        if let Some(admitting) = self.admitting.get_mut(&id) {
            admitting.cancelled = true;
        }
        self.cancel_living(&id);
        self.commit(Doing::Cancel(id));
    }

    pub(super) fn cancel_all(&mut self) {
        let living = self.operations.iter().filter(|entry| !entry.phase.is_over()).map(|entry| entry.id().clone());
        let ids: Vec<_> = living.chain(self.admitting.keys().cloned()).collect();
        ids.into_iter().for_each(|id| self.cancel(id));
    }

    pub(super) fn cancel_session(&mut self, session: String, cancellation: String) {
        for admitting in self.admitting.values_mut() {
            admitting.cancelled |= admitting.session.as_ref() == Some(&session);
        }
        let of_session = |entry: &&Entry| entry.row.operation.session_id.as_ref() == Some(&session);
        let ids: Vec<_> = self.operations.iter().filter(of_session).map(|entry| entry.id().clone()).collect();
        for id in ids {
            self.cancel_living(&id);
        }
        self.commit(Doing::CancelSession { session, cancellation });
    }

    fn cancel_living(&mut self, id: &OperationId) {
        let Some(entry) = self.operations.get_mut(id).filter(|entry| !entry.phase.is_over()) else { return };
        entry.row.cancelled = true;
        match entry.phase {
            // A runner that lives and cannot be reached is ended in another way.
            Phase::Asked | Phase::Attached => {
                if let Some(run) = entry.run() {
                    self.out.push_back(Output::Tell(run.clone(), entry.row.attempt, Ask::Kill {}));
                }
            }
            Phase::Performing => self.out.push_back(Output::Abandon(id.clone())),
            // Ended before it began; what is under way sees the mark when its word comes; input that was told is given.
            _ => self.due = true,
        }
    }

    /// A cancel stands in the ledger.
    pub(super) fn cancel_kept(&mut self, id: OperationId, found: &Found) {
        let living = self.operations.get(&id).map(|entry| entry.row.state);
        let state = living.or(found.known.as_ref().map(|known| known.state)).unwrap_or(State::Cancelled);
        self.say(WorkerFrame::CancelResult { request_id: id, state });
    }
}
