//! The worker's sockets: at most one speaks for the device.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::io::{Loss, Note, Output};
use super::machine::{Control, Timer};
use super::{SocketId, recovery::Phase};
use crate::id::{LedgerId, OperationId, RecoveryId, RunId};
use crate::limits;
use crate::operation::Stream;
use crate::time::Now;
use crate::wire::close::{Close, INCOMPATIBLE, REVOKED};
use crate::wire::worker::{
    CLOSE_IN_USE, CLOSE_PROTOCOL, CLOSE_RECOVERY, CLOSE_REPLACED, ControlFrame, WORKER_PROTOCOL, WorkerFrame,
};

/// The socket that said hello, and what is to be written to it. What it did not take is not missed: a new socket begins with
/// a recovery.
pub(super) struct Line {
    pub(super) socket: SocketId,
    pub(super) phase: Phase,
    /// Its one recovery.
    pub(super) recovery: RecoveryId,
    pub(super) heard: Duration,
    /// When the last frame or ping was given to it.
    pub(super) wrote: Duration,
    pub(super) ledger: LedgerId,
    /// Words of the recovery, at most two.
    pub(super) words: VecDeque<ControlFrame>,
    /// The lease is to be renewed.
    pub(super) lease: bool,
    /// Everything of the queue up to this place is to stand as sent to this ledger, and then to be sent.
    pub(super) assigned: u64,
    pub(super) cancels: BTreeSet<OperationId>,
    /// Cancelled sessions.
    pub(super) sessions: BTreeSet<String>,
    pub(super) acks: Acks,
}

/// What is committed and not yet said.
#[derive(Debug, Default)]
pub(super) struct Acks {
    pub(super) output: BTreeMap<(RunId, Stream), u64>,
    pub(super) terminals: BTreeSet<RunId>,
    pub(super) results: BTreeSet<OperationId>,
}

impl Acks {
    pub(super) fn len(&self) -> usize {
        self.output.len() + self.terminals.len() + self.results.len()
    }

    pub(super) fn next(&mut self) -> Option<ControlFrame> {
        if let Some(((run_id, stream), next_offset)) = self.output.pop_first() {
            return Some(ControlFrame::ExecOutputAck { run_id, stream, next_offset });
        }
        if let Some(run_id) = self.terminals.pop_first() {
            return Some(ControlFrame::ExecTerminalAck { run_id });
        }
        self.results.pop_first().map(|request_id| ControlFrame::OperationResultAck { request_id })
    }
}

impl Control {
    pub(super) fn connected(&mut self, now: Now, socket: SocketId) {
        if self.revoked {
            return self.out.push_back(Output::Close { socket, close: REVOKED });
        }
        // A worker dials one socket at a time, so an older one without a hello is abandoned.
        if let Some(older) = self.candidate.replace(socket) {
            self.out.push_back(Output::Close { socket: older, close: CLOSE_REPLACED });
        }
        self.set(now, Timer::Hello, limits::WORKER_HANDSHAKE);
    }

    pub(super) fn hello_late(&mut self) {
        if let Some(socket) = self.candidate.take() {
            self.out.push_back(Output::Close { socket, close: CLOSE_RECOVERY });
        }
    }

    fn refuse(&mut self, socket: SocketId, close: Close) {
        self.candidate = None;
        self.timers.stop(&Timer::Hello);
        self.out.push_back(Output::Close { socket, close });
    }

    pub(super) fn frame(&mut self, now: Now, socket: SocketId, frame: WorkerFrame) {
        if self.candidate == Some(socket) {
            let WorkerFrame::Hello { resumable_protocol, ledger_id, .. } = frame else {
                return self.refuse(socket, CLOSE_PROTOCOL);
            };
            if resumable_protocol != WORKER_PROTOCOL {
                return self.refuse(socket, INCOMPATIBLE);
            }
            return self.hello(now, socket, ledger_id);
        }
        // Frames of a socket that is no longer current are ignored.
        if self.line.as_ref().is_some_and(|line| line.socket == socket) {
            self.heard(socket, now.boot);
            self.word(now, frame);
        }
    }

    fn hello(&mut self, now: Now, socket: SocketId, ledger: LedgerId) {
        if let Some(incumbent) = &self.line {
            // The incumbent is no older than WORKER_SILENCE, or its life timer had ended it: a copied data folder or a
            // stolen credential must not evict the real worker.
            if incumbent.ledger != ledger {
                self.note(Note::InUse);
                return self.refuse(socket, CLOSE_IN_USE);
            }
            self.lose(Loss::Replaced, Some(CLOSE_REPLACED));
        }
        self.candidate = None;
        self.timers.stop(&Timer::Hello);
        let recovery = RecoveryId::mint(self.random());
        self.line = Some(Line {
            socket,
            phase: Phase::Asked,
            recovery,
            heard: now.boot,
            wrote: now.boot,
            ledger,
            words: VecDeque::new(),
            lease: false,
            assigned: 0,
            cancels: BTreeSet::new(),
            sessions: BTreeSet::new(),
            acks: Acks::default(),
        });
        self.set(now, Timer::Life, limits::WORKER_SILENCE);
        self.set(now, Timer::Beat, limits::WORKER_ALIVE);
        self.recover(now);
    }

    /// The line is gone. What was sent stays sent: the next recovery tells what came of it.
    pub(super) fn lose(&mut self, why: Loss, close: Option<Close>) {
        let Some(line) = self.line.take() else { return };
        for timer in [Timer::Life, Timer::Beat, Timer::Step, Timer::Lease] {
            self.timers.stop(&timer);
        }
        if let Some(close) = close {
            self.out.push_back(Output::Close { socket: line.socket, close });
        }
        self.note(Note::Away { socket: line.socket, why });
    }

    pub(super) fn closed(&mut self, socket: SocketId) {
        if self.candidate == Some(socket) {
            self.candidate = None;
            self.timers.stop(&Timer::Hello);
        } else if self.line.as_ref().is_some_and(|line| line.socket == socket) {
            self.lose(Loss::Peer, None);
        }
    }

    pub(super) fn unreadable(&mut self, socket: SocketId) {
        if self.candidate == Some(socket) {
            self.refuse(socket, CLOSE_PROTOCOL);
        } else if self.line.as_ref().is_some_and(|line| line.socket == socket) {
            self.lose(Loss::Protocol, Some(CLOSE_PROTOCOL));
        }
    }

    pub(super) fn heard(&mut self, socket: SocketId, at: Duration) {
        if let Some(line) = self.line.as_mut().filter(|line| line.socket == socket) {
            line.heard = line.heard.max(at);
        }
    }

    pub(super) fn life_due(&mut self, now: Now) {
        let Some(line) = &self.line else { return };
        let left = (line.heard + limits::WORKER_SILENCE).saturating_sub(now.boot);
        if left.is_zero() {
            self.lose(Loss::Silence, Some(CLOSE_RECOVERY));
        } else {
            self.set(now, Timer::Life, left);
        }
    }

    pub(super) fn beat(&mut self, now: Now) {
        let Some(line) = &mut self.line else { return };
        let left = (line.wrote + limits::WORKER_ALIVE).saturating_sub(now.boot);
        if left.is_zero() {
            line.wrote = now.boot;
            let socket = line.socket;
            self.out.push_back(Output::Ping { socket });
            self.set(now, Timer::Beat, limits::WORKER_ALIVE);
        } else {
            self.set(now, Timer::Beat, left);
        }
    }

    pub(super) fn close_all(&mut self) {
        if let Some(socket) = self.candidate.take() {
            self.refuse(socket, REVOKED);
        }
        self.lose(Loss::Revoked, Some(REVOKED));
    }
}
