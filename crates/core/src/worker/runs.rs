//! What happens to a run: it starts once, is found again after a crash, is given its input, and ends once.

use serde_json::json;

use super::commits::Doing;
use super::io::{Launch, Output, RunNews};
use super::machine::{Timer, Worker};
use super::operations::Phase;
use crate::code::Code;
use crate::id::{OperationId, RunId};
use crate::limits;
use crate::operation::{Failure, Kind, OnFull, Outcome, Request, State, Streams};
use crate::run::{Ask, Budget, End};
use crate::time::{Due, Now};

impl Worker {
    /// News of a try. Of an older try, or of a run that is over, there is none that counts.
    pub(super) fn run_news(&mut self, now: Now, run: &RunId, attempt: u32, news: RunNews) {
        let Some(entry) = self.operations.of_run_mut(run) else { return };
        if entry.row.attempt != attempt || !matches!(entry.phase, Phase::Asked | Phase::Attached) {
            return;
        }
        let id = entry.id().clone();
        match news {
            RunNews::Attached { written, stalled } => {
                entry.phase = Phase::Attached;
                entry.stalled = stalled;
                self.window.track(run, attempt, &written);
                self.attached(now, run, &id);
            }
            RunNews::Detached => {
                entry.phase = Phase::Asked;
                let cancelled = entry.row.cancelled;
                self.out.push_back(Output::Attach(run.clone(), attempt));
                // One that cannot be reached again is ended all the same.
                self.out.extend(cancelled.then(|| Output::Tell(run.clone(), attempt, Ask::Kill {})));
            }
            // Its claim stood there: whatever is found in its folder now, it ran.
            RunNews::Void(_) if entry.row.state == State::Running => {
                let reason = "what its runner left is gone".into();
                self.end(&id, Outcome::Unknown { reason, evidence: None }, Streams::new());
            }
            RunNews::Void(_) if entry.row.cancelled => {
                self.end(&id, Outcome::Cancelled { started: false, exit: None }, Streams::new());
            }
            RunNews::Void(Some(error)) => {
                self.end(&id, Outcome::Failed { error, started: false, evidence: None }, Streams::new());
            }
            RunNews::Void(None) => {
                entry.phase = Phase::Waiting;
                self.due = true;
            }
            RunNews::Grew(written) => {
                self.window.track(run, attempt, &written);
                self.changed = true;
            }
            RunNews::Stalled(since) => {
                entry.stalled = since;
                self.stalled(now, &id);
            }
            RunNews::Done(input, result) => self.input_given(&input, result),
            // Its lease left it no time to start: it waits for the next one, as if that had been seen before its launch.
            RunNews::Ended(end) if end.exit.is_none() && end.lease_expired.is_some() && !entry.row.cancelled => {
                entry.phase = Phase::Waiting;
                self.due = true;
            }
            RunNews::Ended(end) => {
                let outcome = outcome_of(&end, entry.row.cancelled, entry.must_stop());
                self.end(&id, outcome, end.written);
            }
            RunNews::Gone { written, evidence } => {
                let reason = "its runner is gone and left no word of how it ended".into();
                self.end(&id, Outcome::Unknown { reason, evidence: Some(evidence) }, written);
            }
        }
    }

    /// A runner is connected, for the first time or again: it is told what it may have missed.
    fn attached(&mut self, now: Now, run: &RunId, id: &OperationId) {
        let (budget, held) = (self.budget(), self.window.behind(run) + limits::SPOOL_SEGMENT);
        let Some(entry) = self.operations.get_mut(id) else { return };
        // The promise to a run that is found again is not known; less than it holds would make its runner give output up.
        entry.quota = entry.quota.max(held);
        if matches!(entry.row.operation.request, Request::Exec { on_full: OnFull::DropMiddle, .. }) {
            // It never waits for room, so it never asks for more.
            entry.quota = budget.raise(entry.quota);
        }
        let attempt = entry.row.attempt;
        let mut asks = vec![Ask::Quota { bytes: entry.quota }];
        let lease = self.leave.lease().filter(|lease| entry.must_stop() && entry.row.generation == lease.generation);
        asks.extend(lease.map(|lease| Ask::Lease { lease }));
        if entry.row.cancelled {
            asks.push(Ask::Kill {});
        }
        let stalled = entry.stalled.is_some();
        if entry.row.state != State::Running {
            self.commit(Doing::Run(id.clone()));
        }
        self.out.extend(asks.into_iter().map(|ask| Output::Tell(run.clone(), attempt, ask)));
        for input in self.operations.inputs_mut(run).filter(|input| input.phase == Phase::Told) {
            input.phase = Phase::Ready;
        }
        self.feed(run);
        if stalled {
            self.stalled(now, id);
        }
        self.due = true;
        self.changed = true;
    }

    /// A run waits for room in its spool, or does so no longer.
    fn stalled(&mut self, now: Now, id: &OperationId) {
        if let Some(session) = &mut self.session {
            session.tell(id);
        }
        self.changed = true;
        self.raise_quotas(now);
    }

    /// Gives runs that wait for room what can be promised.
    pub(super) fn raise_quotas(&mut self, now: Now) {
        let stalled: Vec<_> = self.operations.iter().filter(|e| e.stalled.is_some()).map(|e| e.id().clone()).collect();
        for id in &stalled {
            let budget = self.budget();
            let Some(entry) = self.operations.get_mut(id) else { continue };
            let quota = budget.raise(entry.quota);
            if quota > entry.quota
                && let Some(run) = entry.run().cloned()
            {
                entry.quota = quota;
                self.out.push_back(Output::Tell(run, entry.row.attempt, Ask::Quota { bytes: quota }));
            }
        }
        if !stalled.is_empty() {
            self.timers.set(Timer::Quota, Due::boot(now, limits::SPOOL_RETRY));
        }
    }

    pub(super) fn budget(&self) -> Budget {
        let mut budget = Budget { disk: self.disk_free, ..Budget::default() };
        for entry in self.operations.iter() {
            let Some(run) = entry.run() else { continue };
            let behind = self.window.behind(run);
            match entry.phase {
                Phase::Waiting => {}
                phase if phase.is_over() => budget.promised += behind,
                _ => {
                    budget.promised += behind.max(entry.quota);
                    budget.runs += 1;
                }
            }
        }
        budget
    }

    /// A try to start is committed: its runner is spawned, unless something else was decided meanwhile.
    pub(super) fn try_committed(&mut self, id: &OperationId, attempt: u32, generation: u64) {
        let may_stop = self.leave.may_start() && generation == self.leave.generation();
        let lease = self.leave.lease();
        let resting = self.will != super::machine::Will::Working;
        let Some(entry) = self.operations.get_mut(id).filter(|entry| entry.phase == Phase::Beginning) else { return };
        entry.row.state = State::Starting;
        entry.row.attempt = attempt;
        entry.row.generation = generation;
        let Some(run) = entry.run().cloned() else { return };
        if attempt > 1 {
            self.out.push_back(Output::Remove(run, attempt - 1));
        }
        if entry.row.cancelled {
            return self.end(id, Outcome::Cancelled { started: false, exit: None }, Streams::new());
        }
        if resting || entry.must_stop() && !may_stop {
            // This try is never launched; the next one has a number of its own.
            entry.phase = Phase::Waiting;
            self.due = true;
            return;
        }
        entry.phase = Phase::Asked;
        let lease = lease.filter(|_| entry.must_stop());
        let launch = Launch { operation: entry.row.operation.clone(), attempt, quota: entry.quota, lease };
        self.out.push_back(Output::Launch(Box::new(launch)));
        self.step_told(id);
    }

    /// Tells a connected run the inputs that are committed, in the order of admission; no more than its runner lets wait, because
    /// one that was refused would leave a hole.
    pub(super) fn feed(&mut self, run: &RunId) {
        let Some(attempt) =
            self.operations.of_run(run).filter(|entry| entry.phase == Phase::Attached).map(|entry| entry.row.attempt)
        else {
            return self.orphan(run);
        };
        let mut asks = Vec::new();
        let waiting = self.operations.inputs_mut(run).filter(|input| !input.phase.is_over());
        for input in waiting.take(limits::RUNNER_INPUT_WAITING) {
            match input.phase {
                Phase::Told => {}
                Phase::Ready => {
                    (input.phase, input.told) = (Phase::Told, true);
                    asks.extend(ask_of(input.id(), &input.row.operation.request));
                }
                // What comes after it waits for it.
                _ => break,
            }
        }
        self.out.extend(asks.into_iter().map(|ask| Output::Tell(run.clone(), attempt, ask)));
    }

    fn input_given(&mut self, id: &OperationId, result: Result<(), String>) {
        let Some(input) = self.operations.get(id).filter(|entry| matches!(entry.phase, Phase::Told | Phase::Ready))
        else {
            return;
        };
        let run = input.input_for().cloned();
        let outcome = match result {
            Ok(()) => Outcome::Completed { exit: None, value: None },
            Err(message) => {
                Outcome::Failed { error: Failure::new(Code::Conflict, message), started: true, evidence: None }
            }
        };
        self.end(id, outcome, Streams::new());
        // It made room for the next one.
        if let Some(run) = run {
            self.feed(&run);
        }
    }

    /// Ends the inputs of a run that is over, each as honestly as it stands: what was never told did not start.
    pub(super) fn orphan(&mut self, run: &RunId) {
        if self.operations.of_run(run).is_some_and(|entry| !entry.phase.is_over()) {
            return;
        }
        let waits = |phase| matches!(phase, Phase::Waiting | Phase::Ready | Phase::Told);
        let inputs: Vec<_> = self
            .operations
            .inputs_mut(run)
            .filter(|input| waits(input.phase))
            .map(|input| (input.id().clone(), input.row.operation.kind(), input.told))
            .collect();
        for (id, kind, told) in inputs {
            let outcome = match (kind, told) {
                (Kind::PtyClose, _) => Outcome::Completed { exit: None, value: None },
                (Kind::ExecStdin | Kind::PtyInput, true) => {
                    Outcome::Unknown { reason: "its run ended before it was confirmed".into(), evidence: None }
                }
                _ => {
                    let error = Failure::new(Code::NotFound, "its run is over");
                    Outcome::Failed { error, started: false, evidence: None }
                }
            };
            self.end(&id, outcome, Streams::new());
        }
    }
}

fn ask_of(id: &OperationId, request: &Request) -> Option<Ask> {
    let id = id.clone();
    match request {
        Request::ExecStdin { data, close } => Some(Ask::Input { id, data: data.clone(), close: *close }),
        Request::PtyInput { data } => Some(Ask::Input { id, data: data.clone(), close: false }),
        Request::PtyClose {} => Some(Ask::Input { id, data: bytes::Bytes::new(), close: true }),
        Request::PtyResize { cols, rows } => Some(Ask::Resize { id, cols: *cols, rows: *rows }),
        _ => None,
    }
}

/// What a run came to, by the word of its runner. A program's own exit code is never judged.
fn outcome_of(end: &End, cancelled: bool, must_stop: bool) -> Outcome {
    let failed = |code, message: &str, started, evidence| Outcome::Failed {
        error: Failure::new(code, message),
        started,
        evidence,
    };
    let escaped = (!end.escaped.is_empty()).then(|| json!({"escaped": end.escaped}));
    let Some(exit) = end.exit else {
        return match cancelled {
            true => Outcome::Cancelled { started: false, exit: None },
            false => {
                let why = end.not_started.as_deref().unwrap_or("it could not be started");
                failed(Code::ExecutionFailed, why, false, None)
            }
        };
    };
    let evidence = || {
        Some(
            json!({"exit": exit, "escaped": end.escaped, "leaseGeneration": end.lease_expired, "interrupted": end.interrupted}),
        )
    };
    if must_stop && end.lease_expired.is_some() {
        failed(Code::LeaseExpired, "its lease expired and it must not run unsupervised", true, evidence())
    } else if end.timed_out {
        failed(Code::Timeout, "its time was over", true, evidence())
    } else if end.killed && (cancelled || !end.interrupted) {
        // Only a cancel asks a runner for that, also one of an earlier life that is not in the ledger yet.
        Outcome::Cancelled { started: true, exit: Some(exit) }
    } else if end.killed {
        failed(Code::ExecutionFailed, "the system ended it before it was through", true, evidence())
    } else {
        Outcome::Completed { exit: Some(exit), value: escaped }
    }
}
