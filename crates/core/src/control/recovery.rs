//! From hello to live: each side tells the other what it has.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::io::{Loss, Note};
use super::life::{Ack, Ending, Living};
use super::machine::{Control, Timer};
use super::output::{Arriving, Piece};
use super::record::Record;
use crate::id::{OperationId, RecoveryId};
use crate::limits;
use crate::operation::{Digest, State, Stream, Streams};
use crate::time::Now;
use crate::wire::worker::{CLOSE_PROTOCOL, CLOSE_RECOVERY, ControlFrame, OutputOffset, Report, WorkerFrame};

/// How far a recovery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// `recovery_state` is due.
    Asked,
    /// The worker sends what it has. Operations may be sent to it meanwhile: a replay can take minutes.
    Replaying,
    /// Everything was replayed.
    Live,
}

pub(super) const LOST: &str = "the worker's ledger has lost the operation";
pub(super) const REPLACED: &str = "the worker came back with another ledger than the one it was sent to";

impl Control {
    /// A frame of the worker.
    pub(super) fn word(&mut self, now: Now, frame: WorkerFrame) {
        if self.timers.get(&Timer::Step).is_some() {
            self.set(now, Timer::Step, limits::WORKER_HANDSHAKE);
        }
        match frame {
            WorkerFrame::Hello { .. } => self.lose(Loss::Protocol, Some(CLOSE_PROTOCOL)),
            WorkerFrame::RecoveryState { recovery_id, operations, .. } => {
                self.recovery_state(now, &recovery_id, operations);
            }
            WorkerFrame::RecoveryComplete { recovery_id } => self.recovery_complete(now, &recovery_id),
            WorkerFrame::OperationReceived { request_id } => self.received(&request_id),
            WorkerFrame::OperationRejected { request_id, failure } => self.rejected(&request_id, failure),
            WorkerFrame::OperationState(report) => self.reported(report),
            WorkerFrame::OperationCompleted { request_id, outcome } => {
                self.told(&request_id.clone(), outcome, Streams::new(), Ack::Result(request_id));
            }
            WorkerFrame::ExecOutput { run_id, stream, offset, data } => {
                self.output(run_id, stream, offset, Piece::Bytes(data));
            }
            WorkerFrame::ExecGap { run_id, stream, offset, next_offset } => {
                self.output(run_id, stream, offset, Piece::Gap(next_offset));
            }
            WorkerFrame::ExecExit { request_id, run_id, outcome, written }
            | WorkerFrame::ExecError { request_id, run_id, outcome, written } => {
                self.told(&request_id, outcome, written, Ack::Terminal(run_id));
            }
            WorkerFrame::CancelResult { request_id, state } => self.cancel_result(&request_id, state),
            WorkerFrame::CancelSessionAck { cancellation_id } => self.session_confirmed(cancellation_id),
        }
    }

    /// Says what is wanted: every operation sent to this ledger whose end is not committed, and where its output goes on.
    /// What was sent to another ledger is unknown.
    pub(super) fn recover(&mut self, now: Now) {
        let Some(ledger) = self.line.as_ref().map(|line| line.ledger.clone()) else { return };
        let elsewhere = |living: &Living| living.sent && living.record.sent_to.as_ref() != Some(&ledger);
        let lost: Vec<OperationId> =
            self.living.iter().filter(|(_, living)| elsewhere(living)).map(|(id, _)| id.clone()).collect();
        let mut unknown = 0;
        for id in lost {
            unknown += usize::from(self.end_unknown(&id, REPLACED));
        }
        if unknown > 0 {
            self.note(Note::LedgerReplaced { unknown });
        }
        let mut requests = Vec::new();
        let mut output_offsets = Vec::new();
        for living in self.living.values().filter(|living| living.sent && !living.is_decided()) {
            requests.push(living.record.operation.request_id.clone());
            if let Some(run) = living.run() {
                // All of them, and zeros too: what the worker remembers as acknowledged must not override it.
                output_offsets.extend(Stream::ALL.into_iter().map(|stream| OutputOffset {
                    run_id: run.clone(),
                    stream,
                    next_offset: living.received(stream),
                }));
            }
        }
        if let Some(line) = &mut self.line {
            let recovery_id = line.recovery.clone();
            line.words.push_back(ControlFrame::RecoveryRequest { recovery_id, requests, output_offsets });
        }
        self.set(now, Timer::Step, limits::WORKER_HANDSHAKE);
        // What is sent first is assigned to this ledger while the worker answers.
        self.flush_queue();
    }

    pub(super) fn step_late(&mut self) {
        self.lose(Loss::Late, Some(CLOSE_RECOVERY));
    }

    /// The worker's answer. What was asked for and is not in it never reached the ledger.
    pub(super) fn recovery_state(&mut self, now: Now, recovery: &RecoveryId, reports: Vec<Report>) {
        let Some(line) = self.line.as_mut().filter(|line| line.recovery == *recovery) else { return };
        if line.phase != Phase::Asked {
            return self.lose(Loss::Protocol, Some(CLOSE_PROTOCOL));
        }
        line.phase = Phase::Replaying;
        line.sessions = self.sessions.keys().cloned().collect();
        let (adopted, reports): (Vec<_>, Vec<_>) = reports
            .into_iter()
            .partition(|report| report.operation.is_some() && !self.living.contains_key(&report.request_id));
        let mut reports: BTreeMap<OperationId, Report> =
            reports.into_iter().map(|report| (report.request_id.clone(), report)).collect();
        let sent: Vec<OperationId> = self
            .living
            .iter()
            .filter(|(_, living)| living.sent && !living.is_decided())
            .map(|(id, _)| id.clone())
            .collect();
        for id in sent {
            match reports.remove(&id) {
                Some(report) => self.reported(report),
                None => self.not_received(now, &id),
            }
        }
        for report in adopted {
            self.adopt(now, report);
        }
        self.call_off();
        self.flush_queue();
        self.renew(now);
    }

    /// The worker has an operation that is not living here. Either it is over, or this side has lost it and takes it back: the
    /// store knows, and nothing of it is acknowledged before it has answered.
    fn adopt(&mut self, now: Now, mut report: Report) {
        let Some(operation) = report.operation.take().filter(|operation| operation.request_id == report.request_id)
        else {
            return;
        };
        let ledger = self.line.as_ref().map(|line| line.ledger.clone());
        let taken =
            operation.kind().is_run() && operation.run_id.as_ref().is_none_or(|run| self.runs.contains_key(run));
        // An honest worker has no more.
        if taken || self.living.len() >= 2 * limits::OPERATIONS_HELD_MAX {
            return;
        }
        self.order += 1;
        let record = Record {
            digest: Digest::of(&operation),
            operation: Arc::new(*operation),
            principal: "".into(),
            key: None,
            state: State::Received,
            sent_to: ledger,
            cancelled: false,
            received: Streams::new(),
            written: Streams::new(),
            outcome: None,
            order: self.order,
            created: 0,
            ttl: limits::OPERATIONS_QUEUE_TTL,
        };
        self.enlist(now, Living { adopted: true, ..Living::new(record, now.boot, true) });
        self.reported(report);
    }

    /// It is over here: what the worker said of it is late.
    pub(super) fn not_adopted(&mut self, id: &OperationId) {
        let Some(living) = self.living.remove(id) else { return };
        self.gathered = self.gathered.saturating_sub(living.arriving.values().map(Arriving::bytes).sum());
        if let Some(line) = &mut self.line {
            line.cancels.remove(id);
        }
        if let Some(run) = living.run() {
            self.runs.remove(run);
            for (stream, arriving) in &living.arriving {
                self.acknowledge_late_output(run.clone(), *stream, arriving.taken);
            }
        }
        if let Some(Ending::Told { outcome, ack, .. }) = living.ending {
            self.late(id.clone(), outcome, ack);
        }
    }

    /// The ledger does not know an operation that was sent to it.
    fn not_received(&mut self, now: Now, id: &OperationId) {
        let Some(living) = self.living.get_mut(id) else { return };
        if let Some(Ending::Told { written, .. }) = &living.ending {
            // What its end still waits for will not come.
            if !living.has_all(written) {
                self.end_unknown(id, LOST);
            }
        } else if living.record.state != State::Queued {
            // It was there: sending it again could run it twice.
            self.end_unknown(id, LOST);
        } else if !living.record.cancelled && living.due > now.boot {
            self.queue.insert(living.record.order, id.clone());
        } else if let Some(line) = &mut self.line {
            // Not sent again. The cancel leaves a tombstone, and its answer proves that it never started.
            line.cancels.insert(id.clone());
        }
    }

    /// Cancels of what the worker has go before operations.
    fn call_off(&mut self) {
        let Some(line) = &mut self.line else { return };
        let cancelled = |living: &&Living| living.sent && living.record.cancelled && living.ending.is_none();
        let ids = self.living.values().filter(cancelled).map(|living| living.record.operation.request_id.clone());
        line.cancels.extend(ids);
    }

    pub(super) fn recovery_complete(&mut self, now: Now, recovery: &RecoveryId) {
        let Some(line) = self.line.as_mut().filter(|line| line.recovery == *recovery) else { return };
        if line.phase != Phase::Replaying {
            return self.lose(Loss::Protocol, Some(CLOSE_PROTOCOL));
        }
        line.phase = Phase::Live;
        line.lease = false;
        line.words.push_back(ControlFrame::RecoveryReady { recovery_id: recovery.clone(), lease_ms: lease_ms() });
        let socket = line.socket;
        self.timers.stop(&Timer::Step);
        self.set(now, Timer::Lease, limits::WORKER_LEASE_RENEW);
        self.note(Note::Live { socket });
    }

    /// The lease is renewed while a replay goes on too: the relay is there, whatever the worker has to tell.
    pub(super) fn renew(&mut self, now: Now) {
        if let Some(line) = &mut self.line {
            line.lease = true;
            self.set(now, Timer::Lease, limits::WORKER_LEASE_RENEW);
        }
    }
}

pub(super) fn lease_ms() -> u64 {
    u64::try_from(limits::WORKER_LEASE.as_millis()).unwrap_or(u64::MAX)
}
