//! An honest worker that crashes: its ledger and its runs survive it, its socket and its cursors do not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::desk::{done, ledger};
use crate::code::Code;
use crate::id::{OperationId, RecoveryId, RunId, RuntimeId};
use crate::operation::{Failure, Operation, Outcome, State, Stream, Streams};
use crate::wire::worker::{ControlFrame, HostInfo, Report, WorkerFrame};

/// The byte a run writes at an offset.
pub fn byte(run: &RunId, offset: u64) -> u8 {
    run.as_str().as_bytes()[8].wrapping_mul(31).wrapping_add(offset as u8).wrapping_add((offset >> 8) as u8)
}

pub struct Row {
    pub operation: Operation,
    pub state: State,
    pub outcome: Option<Outcome>,
    pub written: u64,
    /// Given up, in order.
    pub gaps: Vec<(u64, u64)>,
    pub acked: u64,
    pub forgotten: bool,
}

impl Row {
    fn is_run(&self) -> bool {
        self.operation.kind().is_run()
    }
}

/// What survives a crash.
#[derive(Default)]
pub struct Ledger {
    pub n: u8,
    pub rows: BTreeMap<OperationId, Row>,
    tombstones: BTreeSet<OperationId>,
    sessions: BTreeSet<String>,
}

/// What does not.
#[derive(Default)]
struct Link {
    recovery: Option<RecoveryId>,
    completed: bool,
    up: VecDeque<WorkerFrame>,
    cursors: BTreeMap<OperationId, u64>,
    offered: BTreeSet<OperationId>,
}

#[derive(Default)]
pub struct Worker {
    pub ledger: Ledger,
    link: Link,
    /// How often each operation was started, whatever ledger it stood in.
    pub started: BTreeMap<OperationId, usize>,
    /// Inputs in the order in which they were done, per run.
    pub inputs: BTreeMap<RunId, Vec<OperationId>>,
    pub full: bool,
}

impl Ledger {
    pub fn new(n: u8) -> Ledger {
        Ledger { n, ..Ledger::default() }
    }
}

impl Worker {
    pub fn dial(&mut self) {
        self.link = Link::default();
        self.link.up.push_back(WorkerFrame::Hello {
            resumable_protocol: 1,
            runtime_id: RuntimeId::mint([self.ledger.n; 16]),
            ledger_id: ledger(self.ledger.n),
            startup_ready: true,
            host_info: HostInfo::default(),
        });
    }

    pub fn hear(&mut self, frame: ControlFrame) {
        match frame {
            ControlFrame::RecoveryRequest { recovery_id, requests, output_offsets } => {
                let reports = self
                    .ledger
                    .rows
                    .iter()
                    .filter(|(id, row)| requests.contains(id) || row.outcome.is_none())
                    .map(|(id, row)| Report {
                        request_id: id.clone(),
                        state: row.state,
                        run_id: None,
                        written: Streams::from([(Stream::Stdout, row.written)]),
                        output_stalled: None,
                        operation: None,
                    })
                    .collect();
                self.link.cursors = self.ledger.rows.iter().map(|(id, row)| (id.clone(), row.acked)).collect();
                for offset in output_offsets.iter().filter(|offset| offset.stream == Stream::Stdout) {
                    let row =
                        self.ledger.rows.values().find(|row| row.operation.run_id.as_ref() == Some(&offset.run_id));
                    if let Some(row) = row {
                        assert!(offset.next_offset >= row.acked, "acknowledged output was lost");
                        self.link.cursors.insert(row.operation.request_id.clone(), offset.next_offset);
                    }
                }
                self.link.recovery = Some(recovery_id.clone());
                self.link.up.push_back(WorkerFrame::RecoveryState {
                    recovery_id,
                    runtime_id: RuntimeId::mint([self.ledger.n; 16]),
                    ledger_id: ledger(self.ledger.n),
                    operations: reports,
                });
            }
            ControlFrame::Operation(operation) => self.admit(operation),
            ControlFrame::Cancel { request_id, .. } => {
                let state = match self.ledger.rows.get_mut(&request_id) {
                    None => {
                        self.ledger.tombstones.insert(request_id.clone());
                        State::Cancelled
                    }
                    Some(row) => {
                        call_off(row);
                        row.state
                    }
                };
                self.link.up.push_back(WorkerFrame::CancelResult { request_id, state });
            }
            ControlFrame::CancelSession { session_id, cancellation_id } => {
                for row in self.ledger.rows.values_mut() {
                    if row.operation.session_id.as_ref() == Some(&session_id) {
                        call_off(row);
                    }
                }
                self.ledger.sessions.insert(session_id);
                self.link.up.push_back(WorkerFrame::CancelSessionAck { cancellation_id });
            }
            ControlFrame::ExecOutputAck { run_id, next_offset, .. } => {
                if let Some(row) = self.of_run(&run_id) {
                    row.acked = row.acked.max(next_offset);
                }
            }
            ControlFrame::ExecTerminalAck { run_id } => {
                if let Some(row) = self.of_run(&run_id) {
                    row.forgotten = true;
                }
            }
            ControlFrame::OperationResultAck { request_id } => {
                if let Some(row) = self.ledger.rows.get_mut(&request_id) {
                    row.forgotten = true;
                }
            }
            ControlFrame::RecoveryReady { .. } | ControlFrame::WorkerExecutionLease { .. } => {}
        }
    }

    fn of_run(&mut self, run: &RunId) -> Option<&mut Row> {
        self.ledger.rows.values_mut().find(|row| row.is_run() && row.operation.run_id.as_ref() == Some(run))
    }

    fn admit(&mut self, operation: Operation) {
        let request_id = operation.request_id.clone();
        if self.ledger.rows.contains_key(&request_id) {
            self.link.offered.remove(&request_id);
            return self.link.up.push_back(WorkerFrame::OperationReceived { request_id });
        }
        if self.full {
            let failure = Failure::nothing_done(Code::StorageFull, "full");
            return self.link.up.push_back(WorkerFrame::OperationRejected { request_id, failure });
        }
        let dead = self.ledger.tombstones.contains(&request_id)
            || operation.session_id.as_ref().is_some_and(|session| self.ledger.sessions.contains(session));
        let mut row = Row {
            operation,
            state: State::Received,
            outcome: None,
            written: 0,
            gaps: Vec::new(),
            acked: 0,
            forgotten: false,
        };
        if dead {
            call_off(&mut row);
        } else if !row.is_run() {
            let run = row.operation.run_id.clone().unwrap();
            *self.started.entry(request_id.clone()).or_default() += 1;
            self.inputs.entry(run).or_default().push(request_id.clone());
            end(&mut row, Outcome::Completed { exit: None, value: None });
        }
        self.ledger.rows.insert(request_id.clone(), row);
        self.link.up.push_back(WorkerFrame::OperationReceived { request_id });
    }

    /// One of the runs goes on, with or without a socket: it starts, writes, gives output up, or ends.
    pub fn advance(&mut self, at: usize, bytes: u64, gives_up: bool, ends: bool) {
        let mut open: Vec<_> = self.ledger.rows.values_mut().filter(|row| row.outcome.is_none()).collect();
        if open.is_empty() {
            return;
        }
        let at = at % open.len();
        let row = &mut open[at];
        if row.state == State::Received {
            row.state = State::Running;
            *self.started.entry(row.operation.request_id.clone()).or_default() += 1;
        }
        let from = row.written;
        row.written += bytes;
        if gives_up && bytes > 0 {
            row.gaps.push((from, row.written));
        }
        if ends {
            end(row, done(bytes as i32));
        }
        let report = Report {
            request_id: row.operation.request_id.clone(),
            state: row.state,
            run_id: None,
            written: Streams::from([(Stream::Stdout, row.written)]),
            output_stalled: None,
            operation: None,
        };
        if self.link.recovery.is_some() {
            self.link.up.push_back(WorkerFrame::OperationState(report));
        }
    }

    /// No acknowledgement moved for long enough: everything is offered again from the first unacknowledged byte.
    pub fn reoffer(&mut self) {
        self.link.offered.clear();
        self.link.cursors = self.ledger.rows.iter().map(|(id, row)| (id.clone(), row.acked)).collect();
    }

    /// The next frame to say.
    pub fn say(&mut self, piece: u64) -> Option<WorkerFrame> {
        if let Some(frame) = self.link.up.pop_front() {
            return Some(frame);
        }
        let recovery = self.link.recovery.clone()?;
        for (id, row) in self.ledger.rows.iter().filter(|(_, row)| !row.forgotten) {
            let cursor = self.link.cursors.entry(id.clone()).or_insert(row.acked);
            *cursor = (*cursor).max(row.acked);
            if let Some(run_id) = row.operation.run_id.clone().filter(|_| row.is_run() && *cursor < row.written) {
                let (offset, stream) = (*cursor, Stream::Stdout);
                let gap = row.gaps.iter().find(|(from, to)| (*from..*to).contains(&offset));
                if let Some((_, next_offset)) = gap {
                    *cursor = *next_offset;
                    return Some(WorkerFrame::ExecGap { run_id, stream, offset, next_offset: *next_offset });
                }
                let next_gap =
                    row.gaps.iter().map(|(from, _)| *from).find(|from| *from > offset).unwrap_or(row.written);
                let end = row.written.min(next_gap).min(offset + piece);
                let data: Bytes = (offset..end).map(|at| byte(&run_id, at)).collect();
                *cursor = end;
                return Some(WorkerFrame::ExecOutput { run_id, stream, offset, data });
            }
            if let Some(outcome) = row.outcome.clone()
                && self.link.offered.insert(id.clone())
            {
                let request_id = id.clone();
                let written = Streams::from([(Stream::Stdout, row.written)]);
                return Some(match row.operation.run_id.clone().filter(|_| row.is_run()) {
                    Some(run_id) => WorkerFrame::ExecExit { request_id, run_id, outcome, written },
                    None => WorkerFrame::OperationCompleted { request_id, outcome },
                });
            }
        }
        let first = !std::mem::replace(&mut self.link.completed, true);
        first.then_some(WorkerFrame::RecoveryComplete { recovery_id: recovery })
    }
}

fn end(row: &mut Row, outcome: Outcome) {
    row.state = outcome.state();
    row.outcome = Some(outcome);
}

fn call_off(row: &mut Row) {
    if row.outcome.is_none() {
        let started = row.state != State::Received;
        end(row, Outcome::Cancelled { started, exit: None });
    }
}
