//! Work that is no run, and how anything ends: committed first, then offered until the relay has it.

use serde_json::{Value, json};

use super::commits::Doing;
use super::io::{Output, Step};
use super::ledger::{Found, LedgerError, Ticket};
use super::machine::{Timer, Will, Worker};
use super::operations::{Entry, Phase, is_untaken};
use crate::code::Code;
use crate::id::{OperationId, RunId};
use crate::limits;
use crate::operation::{Failure, Kind, Outcome, State, Streams};
use crate::time::{Due, Now};

impl Worker {
    /// Begins, in the order of admission, whatever may begin. A workspace's configuration waits for everything before it to
    /// have begun, and what comes after it waits for its end: everything runs under the configuration it was admitted under.
    pub(super) fn begin_due(&mut self) {
        let (mut unbegun, mut configuring, mut crowded) = (false, false, false);
        let entries: Vec<(OperationId, Kind, Phase)> = self
            .operations
            .iter()
            .filter(|entry| !entry.phase.is_over())
            .map(|entry| (entry.id().clone(), entry.row.operation.kind(), entry.phase))
            .collect();
        for (id, kind, phase) in entries {
            let is_config = kind == Kind::WorkspaceConfig;
            if phase == Phase::Waiting {
                let held = !kind.is_input() && (configuring || is_config && unbegun);
                // Runs wait for a place in the order of admission.
                crowded |= !self.begin(&id, held || crowded && kind.is_run());
            }
            let waits = self.operations.get(&id).is_some_and(|entry| entry.phase == Phase::Waiting);
            unbegun |= waits && !kind.is_input();
            configuring |= is_config && self.operations.get(&id).is_some_and(|entry| !entry.phase.is_over());
        }
    }

    /// Begins an operation if it may. Returns `false` if it is a run for which there is no place.
    fn begin(&mut self, id: &OperationId, held: bool) -> bool {
        let Some(entry) = self.operations.get(id) else { return true };
        if entry.row.cancelled {
            let started = entry.row.state == State::Running;
            self.end(id, Outcome::Cancelled { started, exit: None }, Streams::new());
        } else if held || self.will != Will::Working || self.timers.get(&Timer::Ledger).is_some() {
            // Its turn comes.
        } else if entry.run().is_some() {
            return self.begin_run(id);
        } else if let Some(run) = entry.input_for().cloned() {
            self.begin_input(id, &run);
        } else {
            self.begin_work(id);
        }
        true
    }

    fn begin_run(&mut self, id: &OperationId) -> bool {
        let (may_start, generation) = (self.leave.may_start(), self.leave.generation());
        if self.operations.get(id).is_none_or(|entry| entry.must_stop() && !may_start) {
            return true;
        }
        let budget = self.budget();
        let Some(quota) = budget.promise().filter(|_| budget.runs < limits::WORKER_RUNS_MAX) else { return false };
        let Some(entry) = self.operations.get_mut(id) else { return true };
        (entry.quota, entry.phase) = (quota, Phase::Beginning);
        let attempt = entry.row.attempt + 1;
        self.commit(Doing::Start { id: id.clone(), attempt, generation });
        true
    }

    fn begin_input(&mut self, id: &OperationId, run: &RunId) {
        match self.operations.of_run(run).map(|entry| entry.phase) {
            Some(Phase::Attached) => {
                self.set_phase(id, Phase::Beginning);
                self.commit(Doing::Run(id.clone()));
            }
            Some(phase) if !phase.is_over() => {}
            _ => self.orphan(run),
        }
    }

    fn begin_work(&mut self, id: &OperationId) {
        let under_way =
            |entry: &&Entry| matches!(entry.phase, Phase::Performing | Phase::Beginning) && entry.run().is_none();
        if self.operations.iter().filter(under_way).count() >= limits::WORKER_PERFORMS_MAX {
            return;
        }
        let Some(entry) = self.operations.get(id) else { return };
        if entry.row.operation.kind() == Kind::WorkspaceConfig && self.config == Some(entry.row.digest) {
            let value = Some(json!({"reused": true}));
            return self.end(id, Outcome::Completed { exit: None, value }, Streams::new());
        }
        if entry.row.state == State::Running {
            // It was being done when the last life ended; doing it again comes to the same.
            return self.perform(id);
        }
        self.set_phase(id, Phase::Beginning);
        self.commit(Doing::Run(id.clone()));
    }

    fn perform(&mut self, id: &OperationId) {
        self.set_phase(id, Phase::Performing);
        if let Some(entry) = self.operations.get(id) {
            self.out.push_back(Output::Perform(Box::new(entry.row.operation.clone())));
        }
    }

    /// State `running` is committed.
    pub(super) fn running_committed(&mut self, now: Now, id: &OperationId) {
        let Some(entry) = self.operations.get_mut(id).filter(|entry| !entry.phase.is_over()) else { return };
        entry.row.state = State::Running;
        entry.since = now.boot;
        let (phase, cancelled, input_for) = (entry.phase, entry.row.cancelled, entry.input_for().cloned());
        self.step_told(id);
        match (phase, input_for) {
            (Phase::Beginning, Some(run)) => {
                self.set_phase(id, Phase::Ready);
                self.feed(&run);
            }
            (Phase::Beginning, None) if cancelled => {
                self.end(id, Outcome::Cancelled { started: false, exit: None }, Streams::new());
            }
            (Phase::Beginning, None) => self.perform(id),
            _ => {}
        }
    }

    /// Work that is no run ended.
    pub(super) fn performed(&mut self, id: &OperationId, result: Result<Value, Failure>) {
        let Some(entry) = self.operations.get_mut(id).filter(|entry| entry.phase == Phase::Performing) else { return };
        let kind = entry.row.operation.kind();
        let outcome = match result {
            Ok(value) => Outcome::Completed { exit: None, value: Some(value).filter(|value| !value.is_null()) },
            Err(failure) if failure.code == Code::Cancelled && entry.row.cancelled => {
                Outcome::Cancelled { started: true, exit: None }
            }
            Err(failure) if failure.code == Code::Cancelled && kind.is_repeatable() => {
                // Cut off by a stop; it is done again.
                entry.phase = Phase::Waiting;
                self.due = true;
                return;
            }
            Err(error) => Outcome::Failed { error, started: true, evidence: None },
        };
        self.end(id, outcome, Streams::new());
    }

    /// An end is known; it counts when it is committed.
    pub(super) fn end(&mut self, id: &OperationId, outcome: Outcome, written: Streams) {
        let Some(entry) = self.operations.get_mut(id).filter(|entry| !entry.phase.is_over()) else { return };
        entry.phase = Phase::Ending;
        entry.stalled = None;
        entry.untaken = is_untaken(&outcome);
        let configured = entry.row.operation.kind() == Kind::WorkspaceConfig && outcome.state() == State::Completed;
        let configured = configured.then_some(entry.row.digest);
        if let Some(run) = entry.run().cloned() {
            self.window.track(&run, entry.row.attempt, &written);
            self.orphan(&run);
        }
        self.commit(Doing::End { id: id.clone(), outcome: Box::new(outcome), written, configured });
        self.changed = true;
    }

    fn end_committed(&mut self, now: Now, id: &OperationId, outcome: Outcome, written: Streams) {
        let Some(entry) = self.operations.get_mut(id) else { return };
        entry.row.state = outcome.state();
        entry.row.outcome = Some(outcome);
        entry.row.written = written;
        entry.phase = Phase::Ended;
        entry.since = now.boot;
        self.step_told(id);
        self.offer(id);
        self.due = true;
    }

    /// Offers an end on the connection, if there is one.
    pub(super) fn offer(&mut self, id: &OperationId) {
        if let Some(session) = &mut self.session {
            session.offer(id);
        }
    }

    /// The relay has the end of an operation.
    pub(super) fn end_acked(&mut self, now: Now, id: &OperationId) {
        let Some(entry) = self.operations.get_mut(id).filter(|entry| entry.phase == Phase::Ended) else { return };
        entry.phase = Phase::Trailing;
        let run = entry.run().cloned();
        self.moved(now);
        match run {
            Some(run) => self.leave_if_over(&run),
            None => self.leave_over(id),
        }
    }

    /// A run is over for good when the relay has its end and all of its output.
    pub(super) fn leave_if_over(&mut self, run: &RunId) {
        if let Some(entry) = self.operations.of_run(run).filter(|entry| entry.phase == Phase::Trailing)
            && self.window.behind(run) == 0
        {
            let id = entry.id().clone();
            self.leave_over(&id);
        }
    }

    fn leave_over(&mut self, id: &OperationId) {
        if let Some(run) = self.operations.get(id).and_then(Entry::run) {
            // Its offsets go with this commit: none may be written after it, nor anything trimmed.
            self.window.settled(run);
        }
        self.set_phase(id, Phase::Leaving);
        self.commit(Doing::Leave(id.clone()));
    }

    fn left(&mut self, id: &OperationId) {
        let Some(entry) = self.operations.remove(id) else { return };
        if let Some(run) = entry.run() {
            self.window.forget(run);
            if entry.row.attempt > 0 {
                self.out.push_back(Output::Remove(run.clone(), entry.row.attempt));
            }
        }
        self.ended.push_front(self.shown(&entry));
        self.ended.truncate(limits::WORKER_ENDED_SHOWN);
        self.due = true;
        self.changed = true;
    }

    /// The ledger could not be written: nothing is admitted or begun until it is tried again. Returns the code that says so.
    pub(super) fn failed(&mut self, now: Now, error: LedgerError) -> Code {
        self.ledger_code = match error {
            LedgerError::Full => Code::StorageFull,
            LedgerError::Failed => Code::Unavailable,
        };
        if self.timers.get(&Timer::Ledger).is_none() {
            self.timers.set(Timer::Ledger, Due::boot(now, limits::SPOOL_RETRY));
        }
        self.ledger_code
    }

    pub(super) fn commit_again(&mut self) {
        for doing in self.commits.take_failed() {
            // What ended meanwhile is not running.
            let moot = matches!(&doing, Doing::Run(id) if self.operations.get(id).is_none_or(|e| e.phase.is_over()));
            if !moot {
                self.commit(doing);
            }
        }
        self.due = true;
    }

    /// A commit is durable, or nothing of it is.
    pub(super) fn committed(&mut self, now: Now, ticket: Ticket, result: Result<Vec<Found>, LedgerError>) {
        let Some(doing) = self.commits.ended(ticket) else { return };
        let mut found = match (doing, result) {
            (Doing::Admit(row), result) => {
                let first = result.map(|found| found.into_iter().next().unwrap_or_default());
                return self.admitted(now, row, first);
            }
            (Doing::Settle(row), result) => return self.settled(now, row, result.map(drop)),
            (doing, Err(error)) => return self.not_committed(now, doing, error),
            (doing, Ok(found)) => {
                let found = found.into_iter();
                (doing, found)
            }
        };
        let first = |found: &mut std::vec::IntoIter<Found>| found.next().unwrap_or_default();
        match found.0 {
            Doing::Refuse(refused) => {
                let first = first(&mut found.1);
                self.refusal_checked(refused, &first);
            }
            Doing::Start { id, attempt, generation } => self.try_committed(&id, attempt, generation),
            Doing::Run(id) => self.running_committed(now, &id),
            Doing::End { id, outcome, written, configured } => {
                self.config = configured.or(self.config);
                self.end_committed(now, &id, *outcome, written);
            }
            Doing::Leave(id) => self.left(&id),
            Doing::Cancel(id) => {
                let first = first(&mut found.1);
                self.cancel_kept(id, &first);
            }
            Doing::CancelSession { cancellation, .. } => {
                self.say(crate::wire::worker::WorkerFrame::CancelSessionAck { cancellation_id: cancellation });
            }
            Doing::Offsets(acked) => {
                let trim = |a: super::window::Acked| Output::Trim(a.run, a.attempt, a.stream, a.offset);
                self.out.extend(acked.into_iter().map(trim));
            }
            Doing::Recall { recovery, ids, wanted } => {
                let known = ids.into_iter().zip(found.1).filter_map(|(id, found)| Some((id, found.known?)));
                self.report(now, &recovery, known.collect(), &wanted);
            }
            Doing::Generation(_) | Doing::Admit(_) | Doing::Settle(_) => {}
        }
    }

    fn not_committed(&mut self, now: Now, doing: Doing, error: LedgerError) {
        self.failed(now, error);
        match doing {
            Doing::Offsets(mut acked) => {
                // The offsets of a run that is leaving go with it.
                acked.retain(|a| self.operations.of_run(&a.run).is_some_and(|entry| entry.phase != Phase::Leaving));
                self.window.put_back(acked);
            }
            // What the relay asked for is not known, and must not be told as never received.
            Doing::Recall { .. } => {
                self.end_session(now, Some(crate::wire::worker::CLOSE_RECOVERY), "the ledger could not be read");
            }
            Doing::Start { id, .. } => self.set_phase(&id, Phase::Waiting),
            Doing::Run(id) if self.operations.get(&id).is_some_and(|entry| entry.phase == Phase::Beginning) => {
                self.set_phase(&id, Phase::Waiting);
            }
            doing => self.commits.again(doing),
        }
    }

    /// Tells timeline and relay how an operation stands now.
    pub(super) fn step_told(&mut self, id: &OperationId) {
        let Some(entry) = self.operations.get(id) else { return };
        let code = match &entry.row.outcome {
            Some(Outcome::Failed { error, .. }) => Some(error.code),
            _ => None,
        };
        let (kind, state) = (entry.row.operation.kind(), entry.row.state);
        self.out.push_back(Output::Step(Step { id: id.clone(), kind, state, code }));
        if let Some(session) = &mut self.session {
            session.tell(id);
        }
        self.changed = true;
    }

    fn set_phase(&mut self, id: &OperationId, phase: Phase) {
        if let Some(entry) = self.operations.get_mut(id) {
            entry.phase = phase;
        }
    }
}
