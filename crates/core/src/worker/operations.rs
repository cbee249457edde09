//! The table of what is not over: operations that have not ended, and ends that the relay has not acknowledged.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ledger::{Known, Row};
use super::window::Window;
use crate::id::{OperationId, RunId};
use crate::limits;
use crate::operation::{Kind, OnLeaseExpiry, Operation, Outcome, State, Streams};
use crate::status::UnixMs;
use crate::time::Now;
use crate::wire::worker::{Report, WorkerFrame};

/// What is being done about an operation. The ledger's state lags behind by the commits under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing yet: it waits for its turn.
    Waiting,
    /// The step that begins it is being committed.
    Beginning,
    /// A run: a try was launched, is being settled or found again; the word on it is awaited.
    Asked,
    /// A run with its runner connected.
    Attached,
    /// An input whose beginning is committed, to be told to its run.
    Ready,
    /// An input that was told.
    Told,
    /// Being done by the shell.
    Performing,
    /// Its end is being committed.
    Ending,
    /// Its end is committed and offered to the relay until acknowledged.
    Ended,
    /// The relay has its end; some of its output is missing there.
    Trailing,
    /// The relay has everything, which is being committed.
    Leaving,
}

impl Phase {
    /// Whether its end is known.
    pub const fn is_over(self) -> bool {
        matches!(self, Phase::Ending | Phase::Ended | Phase::Trailing | Phase::Leaving)
    }
}

/// An operation that is not over.
#[derive(Debug)]
pub(super) struct Entry {
    /// As committed, but `cancelled` and `generation` as known.
    pub row: Row,
    pub phase: Phase,
    /// Since when its state is what it is (boot time).
    pub since: Duration,
    /// Since when its program waits for room.
    pub stalled: Option<UnixMs>,
    /// Unacknowledged output its run was promised to hold, in bytes.
    pub quota: u64,
    /// What it does, for people.
    pub summary: String,
    /// When its end was last written on this connection (boot time).
    pub offered: Option<Duration>,
    /// Of an input: it may have reached its run, in this life or an earlier one.
    pub told: bool,
    /// Of an input: it ended, or is about to, without having been given.
    pub untaken: bool,
}

impl Entry {
    pub fn new(now: Now, row: Row, phase: Phase) -> Entry {
        // Of a run that is found again the promise is not known: it keeps the least, and is raised when it needs more.
        let summary = row.operation.request.summary();
        let untaken = row.outcome.as_ref().is_some_and(is_untaken);
        Entry {
            row,
            phase,
            since: now.boot,
            stalled: None,
            quota: limits::SPOOL_RUN_MIN,
            summary,
            offered: None,
            told: false,
            untaken,
        }
    }

    pub fn id(&self) -> &OperationId {
        &self.row.operation.request_id
    }

    /// The run it is, if it is one.
    pub fn run(&self) -> Option<&RunId> {
        self.row.operation.run_id.as_ref().filter(|_| self.row.operation.kind().is_run())
    }

    /// The run it is input for.
    pub fn input_for(&self) -> Option<&RunId> {
        self.row.operation.run_id.as_ref().filter(|_| self.row.operation.kind().is_input())
    }

    /// Whether it must not run unsupervised.
    pub fn must_stop(&self) -> bool {
        self.row.operation.request.on_lease_expiry() == OnLeaseExpiry::Stop
    }

    /// How it stands, for the relay.
    pub fn report(&self, window: &Window) -> Report {
        Report {
            request_id: self.id().clone(),
            state: self.row.state,
            run_id: self.row.operation.run_id.clone(),
            written: self.run().map(|run| window.written(run)).unwrap_or_default(),
            output_stalled: self.stalled,
            operation: None,
        }
    }

    /// The same for a relay that did not ask for it: one that has lost it learns what it is.
    pub fn report_unasked(&self, window: &Window) -> Report {
        let (client, request) = (None, self.row.operation.request.outline());
        let operation = Box::new(Operation { client, request, ..self.row.operation.clone() });
        Report { operation: Some(operation), ..self.report(window) }
    }

    /// Whether the relay has not acknowledged its end, if it has one.
    pub const fn owes_its_end(&self) -> bool {
        !matches!(self.phase, Phase::Trailing | Phase::Leaving)
    }

    /// Its end as the relay is told it.
    pub fn result(&self) -> Option<WorkerFrame> {
        let outcome = self.row.outcome.as_ref()?;
        Some(result(
            self.id(),
            self.row.operation.run_id.as_ref(),
            self.row.operation.kind(),
            outcome,
            &self.row.written,
        ))
    }
}

impl Known {
    /// How it stood, for the relay.
    pub(super) fn report(&self, id: &OperationId) -> Report {
        Report {
            request_id: id.clone(),
            state: self.state,
            run_id: self.run_id.clone(),
            written: self.written.clone(),
            output_stalled: None,
            operation: None,
        }
    }

    /// Its end as the relay is told it.
    pub(super) fn result(&self, id: &OperationId) -> Option<WorkerFrame> {
        let outcome = self.outcome.as_ref()?;
        Some(result(id, self.run_id.as_ref(), self.kind, outcome, &self.written))
    }
}

/// Whether an end says that nothing was done.
pub(super) const fn is_untaken(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed { started: false, .. })
}

fn result(id: &OperationId, run: Option<&RunId>, kind: Kind, outcome: &Outcome, written: &Streams) -> WorkerFrame {
    let (request_id, outcome, written) = (id.clone(), outcome.clone(), written.clone());
    let Some(run_id) = run.filter(|_| kind.is_run()).cloned() else {
        return WorkerFrame::OperationCompleted { request_id, outcome };
    };
    match outcome.state() {
        State::Completed | State::Cancelled => WorkerFrame::ExecExit { request_id, run_id, outcome, written },
        _ => WorkerFrame::ExecError { request_id, run_id, outcome, written },
    }
}

/// All of them, in the order of admission; at most [`limits::OPERATIONS_HELD_MAX`] are admitted.
#[derive(Debug, Default)]
pub(super) struct Operations {
    entries: BTreeMap<u64, Entry>,
    ids: BTreeMap<OperationId, u64>,
    runs: BTreeMap<RunId, u64>,
    admitted: u64,
}

impl Operations {
    pub fn insert(&mut self, entry: Entry) {
        self.admitted += 1;
        self.ids.insert(entry.id().clone(), self.admitted);
        if let Some(run) = entry.run() {
            self.runs.insert(run.clone(), self.admitted);
        }
        self.entries.insert(self.admitted, entry);
    }

    pub fn remove(&mut self, id: &OperationId) -> Option<Entry> {
        let entry = self.entries.remove(&self.ids.remove(id)?)?;
        if let Some(run) = entry.run() {
            self.runs.remove(run);
        }
        Some(entry)
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn get(&self, id: &OperationId) -> Option<&Entry> {
        self.entries.get(self.ids.get(id)?)
    }

    pub fn get_mut(&mut self, id: &OperationId) -> Option<&mut Entry> {
        self.entries.get_mut(self.ids.get(id)?)
    }

    /// The operation that a run belongs to.
    pub fn of_run(&self, run: &RunId) -> Option<&Entry> {
        self.entries.get(self.runs.get(run)?)
    }

    pub fn of_run_mut(&mut self, run: &RunId) -> Option<&mut Entry> {
        self.entries.get_mut(self.runs.get(run)?)
    }

    /// In the order of admission.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.values_mut()
    }

    /// Inputs for a run, in the order of admission.
    pub fn inputs_mut(&mut self, run: &RunId) -> impl Iterator<Item = &mut Entry> {
        self.entries.values_mut().filter(move |entry| entry.input_for() == Some(run))
    }
}
