//! What becomes of connections, and the frames that concern the connection itself.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use super::commits::{Doing, Refused};
use super::io::*;
use super::ledger::Known;
use super::machine::Worker;
use super::operations::Phase;
use super::recovery::{Overdue, Session, Stage};
use crate::code::Code;
use crate::daemon::{After, DialError, Refusal, SignIn, SocketId, Told};
use crate::id::{OperationId, RecoveryId};
use crate::limits;
use crate::operation::Failure;
use crate::status::LinkState;
use crate::time::Now;
use crate::wire::WireError;
use crate::wire::close::{self, Close};
use crate::wire::worker::{
    CLOSE_IN_USE, CLOSE_PROTOCOL, CLOSE_RECOVERY, ControlFrame, OutputOffset, Report, WorkerFrame,
};

impl Worker {
    pub(super) fn is_current(&self, socket: SocketId) -> bool {
        self.session.as_ref().is_some_and(|session| session.socket == socket)
    }

    pub(super) fn opened(&mut self, now: Now, socket: SocketId) {
        let Some(dropped) = self.dialer.opened(socket) else {
            self.out.push_back(Output::Drop(socket));
            return;
        };
        let older = self.session.take().map(|session| session.socket);
        if older.is_some() {
            self.note_away(now, "moving to another connection".into(), None);
        }
        self.out.extend(dropped.into_iter().chain(older).map(Output::Drop));
        let hello = WorkerFrame::Hello {
            resumable_protocol: 1,
            runtime_id: self.settings.runtime.clone(),
            ledger_id: self.ledger.clone(),
            startup_ready: true,
            host_info: self.settings.host.clone(),
        };
        self.session = Some(Session::new(now, socket, hello));
        self.missed = false;
        for entry in self.operations.iter_mut() {
            entry.offered = None;
        }
        self.outage.connected(now, &mut self.told);
        self.changed = true;
    }

    pub(super) fn refused(&mut self, now: Now, socket: SocketId, error: DialError) {
        let (after, cause, refusal) = match error {
            DialError::SignIn(SignIn::Revoked) => (After::Refusal, "device_revoked".into(), Some(Refusal::SignIn)),
            DialError::SignIn(SignIn::Unknown) => (After::Refusal, "device_unknown".into(), Some(Refusal::SignIn)),
            DialError::Transport(cause) => (After::Failure, cause, None),
        };
        if self.dialer.failed(now, socket, after) {
            self.note_away(now, cause, refusal);
        }
    }

    /// The socket is closed, by the relay or by the network.
    pub(super) fn closed(&mut self, now: Now, socket: SocketId, word: Option<(u16, Cow<'_, str>)>) {
        if self.dialer.failed(now, socket, After::Failure) {
            return self.note_away(now, "closed while dialling".into(), None);
        }
        if !self.is_current(socket) {
            return;
        }
        let is = |c: Close| word.as_ref().is_some_and(|(code, reason)| *code == c.0 && reason == c.1);
        let (after, cause, refusal): (After, Cow<'static, str>, _) = if is(CLOSE_IN_USE) {
            self.told.push(Told::DeviceInUse);
            (After::Refusal, "device_in_use".into(), None)
        } else if is(close::REVOKED) {
            (After::Refusal, "device_revoked".into(), Some(Refusal::SignIn))
        } else {
            match word.as_ref().map_or(1006, |(code, _)| *code) {
                1001 | 1012 | 1013 => (After::Restart, "the relay restarts or is unavailable".into(), None),
                1006 => (After::Loss, "connection interrupted".into(), None),
                1000 => (After::Loss, "the relay closed the connection".into(), None),
                code => (After::Failure, format!("the relay closed the connection ({code})").into(), None),
            }
        };
        self.gone(now, after, cause, refusal);
    }

    /// The machine ends its connection.
    pub(super) fn end_session(&mut self, now: Now, close: Option<Close>, why: &'static str) {
        let Some(session) = &self.session else { return };
        self.out.push_back(match close {
            Some((code, reason)) => Output::Close(session.socket, code, reason),
            None => Output::Drop(session.socket),
        });
        let after = if close.is_some() { After::Failure } else { After::Loss };
        self.gone(now, after, why.into(), None);
    }

    fn gone(&mut self, now: Now, after: After, cause: Cow<'static, str>, refusal: Option<Refusal>) {
        self.session = None;
        // Urgency has to be known before the next try is planned.
        self.dialer.set_urgent(now, !self.operations.is_empty());
        self.dialer.ended(now, after);
        self.note_away(now, cause, refusal);
    }

    /// Tells the world that no connection is live.
    pub(super) fn note_away(&mut self, now: Now, cause: Cow<'static, str>, refusal: Option<Refusal>) {
        if self.session.is_none() && self.outage.state().0 != LinkState::Stopped {
            self.outage.lost(now, cause, refusal, &mut self.told);
        }
        self.changed = true;
    }

    /// The machine woke, or the network changed.
    pub(super) fn check(&mut self, now: Now) {
        match &mut self.session {
            Some(session) => {
                session.check(now);
                self.out.push_back(Output::Ping(session.socket));
            }
            None => self.dial_now(now),
        }
    }

    pub(super) fn dial_now(&mut self, now: Now) {
        let dropped = self.dialer.nudge(now);
        self.out.extend(dropped.into_iter().map(Output::Drop));
    }

    pub(super) fn cut(&mut self, now: Now, lasting: Duration) {
        let session = self.session.take().map(|session| session.socket);
        let dropped = self.dialer.block(now, lasting);
        self.out.extend(session.into_iter().chain(dropped).map(Output::Drop));
        self.note_away(now, "drill".into(), None);
    }

    pub(super) fn session_due(&mut self, now: Now) {
        while let Some(overdue) = self.session.as_mut().and_then(|session| session.handle_timeout(now)) {
            match overdue {
                Overdue::Ping => self.out.extend(self.session.as_ref().map(|session| Output::Ping(session.socket))),
                Overdue::Dead(why) => self.end_session(now, None, why),
                Overdue::Stuck => self.end_session(now, Some(CLOSE_RECOVERY), "recovery made no progress"),
                Overdue::Doubtful => self.dial_now(now),
                Overdue::Reoffer => self.reoffer(now),
            }
        }
    }

    /// What no acknowledgement moved of for too long is offered again, whatever became of everything else meanwhile.
    fn reoffer(&mut self, now: Now) {
        let (round_trip, arrived) = (self.window.round_trip(), self.window.arrived());
        let Some(session) = &mut self.session else { return };
        let late = now.boot.saturating_sub(session.patience(round_trip));
        // What still stands in the socket is slow to leave, and not lost.
        let before = if session.has_left(now) { late } else { late.min(arrived) };
        let mut any = self.window.rewind_late(before);
        for entry in self.operations.iter_mut().filter(|entry| entry.phase == Phase::Ended) {
            if entry.offered.take_if(|offered| *offered <= before).is_some() {
                session.offer(entry.id());
                any = true;
            }
        }
        if any {
            session.offered_again();
        }
        self.expect();
    }

    /// Waits for the acknowledgement that has been waited for longest.
    pub(super) fn expect(&mut self) {
        let results = self.operations.iter().filter(|entry| entry.phase == Phase::Ended);
        let since = results.filter_map(|entry| entry.offered).chain(self.window.waits_since()).min();
        if let Some(session) = &mut self.session {
            session.expect(since, self.window.round_trip());
        }
    }

    /// A frame that could not be read.
    pub(super) fn unreadable(&mut self, now: Now, error: WireError, id: Option<OperationId>) {
        match (error, id) {
            (WireError::Malformed(_), Some(id)) => {
                let failure = Failure::new(Code::InvalidRequest, "this worker does not understand the request");
                let socket = self.session.as_ref().map(|session| session.socket);
                self.commit(Doing::Refuse(Refused { id, digest: None, failure, socket }));
            }
            (WireError::TooLarge, _) => self.end_session(now, Some(close::TOO_LARGE), "message too large"),
            (WireError::InvalidUtf8, _) => self.end_session(now, Some(close::INVALID_UTF8), "invalid UTF-8"),
            _ => self.end_session(now, Some(CLOSE_PROTOCOL), "malformed message"),
        }
    }

    /// A frame of the current connection.
    pub(super) fn frame(&mut self, now: Now, frame: ControlFrame, verdict: Result<(), Failure>) {
        match frame {
            ControlFrame::RecoveryRequest { recovery_id, requests, output_offsets } => {
                self.recover(now, recovery_id, &requests, &output_offsets);
            }
            ControlFrame::RecoveryReady { recovery_id, lease_ms } => self.recovered(now, &recovery_id, lease_ms),
            ControlFrame::WorkerExecutionLease { lease_ms } => {
                // While a replay goes on it is renewed too.
                if self.session.as_ref().is_some_and(Session::is_known) {
                    self.grant(now, Duration::from_millis(lease_ms));
                }
            }
            ControlFrame::ExecOutputAck { run_id, stream, next_offset } => {
                if self.window.ack(now, &run_id, stream, next_offset) {
                    self.moved(now);
                    self.leave_if_over(&run_id);
                }
            }
            ControlFrame::ExecTerminalAck { run_id } => {
                if let Some(id) = self.operations.of_run(&run_id).map(|entry| entry.id().clone()) {
                    self.end_acked(now, &id);
                }
            }
            ControlFrame::OperationResultAck { request_id } => self.end_acked(now, &request_id),
            ControlFrame::Cancel { request_id, .. } => self.cancel(request_id),
            ControlFrame::CancelSession { session_id, cancellation_id } => {
                self.cancel_session(session_id, cancellation_id);
            }
            ControlFrame::Operation(operation) => self.operation(operation, verdict),
        }
    }

    /// An acknowledgement moved.
    pub(super) fn moved(&mut self, now: Now) {
        if let Some(session) = &mut self.session {
            session.acked(now);
        }
        self.expect();
        self.changed = true;
    }

    fn recover(&mut self, now: Now, recovery: RecoveryId, requests: &[OperationId], offsets: &[OutputOffset]) {
        if requests.len() > 2 * limits::OPERATIONS_HELD_MAX {
            return self.end_session(now, Some(CLOSE_PROTOCOL), "too many requests");
        }
        self.window.rewind();
        for OutputOffset { run_id, stream, next_offset } in offsets {
            if let Some(attempt) = self.operations.of_run(run_id).map(|entry| entry.row.attempt) {
                self.window.wanted(run_id, attempt, *stream, *next_offset);
            }
        }
        // What it does not name it may have lost: of that it is offered everything there is, and acknowledges what it has.
        let asked: BTreeSet<&OperationId> = requests.iter().collect();
        let owed = self.operations.iter().filter(|entry| entry.owes_its_end() && !asked.contains(entry.id()));
        let mut unasked = BTreeSet::new();
        for entry in owed {
            unasked.insert(entry.id().clone());
            if let Some(run) = entry.run() {
                self.window.unasked(run);
            }
        }
        let mut ids = Vec::new();
        for id in requests {
            match self.operations.get_mut(id) {
                // Asked for, so its acknowledgement was for nothing.
                Some(entry) if entry.phase == Phase::Trailing => entry.phase = Phase::Ended,
                Some(entry) if entry.phase != Phase::Leaving => {}
                _ => ids.push(id.clone()),
            }
        }
        for wanted in offsets {
            self.leave_if_over(&wanted.run_id);
        }
        if let Some(session) = &mut self.session {
            session.enter(now, Stage::Recalling(recovery.clone()));
            session.unasked = unasked;
        }
        match ids.is_empty() {
            true => self.report(now, &recovery, Vec::new(), &[]),
            false => self.commit(Doing::Recall { recovery, ids, wanted: offsets.to_vec() }),
        }
    }

    /// Everything the relay asked for is known: says what there is, then replays it.
    pub(super) fn report(
        &mut self,
        now: Now,
        recovery: &RecoveryId,
        found: Vec<(OperationId, Known)>,
        wanted: &[OutputOffset],
    ) {
        let Some(session) = self.session.as_mut() else { return };
        if !matches!(&session.stage, Stage::Recalling(asked) if asked == recovery) {
            return;
        }
        let living = self.operations.iter().filter(|entry| entry.phase != Phase::Leaving);
        let mut operations: Vec<Report> = living
            .map(|entry| match session.unasked.contains(entry.id()) {
                true => entry.report_unasked(&self.window),
                false => entry.report(&self.window),
            })
            .collect();
        let found: Vec<_> = found
            .into_iter()
            .filter(|(id, _)| self.operations.get(id).is_none_or(|entry| entry.phase == Phase::Leaving))
            .collect();
        operations.extend(found.iter().map(|(id, known)| known.report(id)));
        let state = WorkerFrame::RecoveryState {
            recovery_id: recovery.clone(),
            runtime_id: self.settings.runtime.clone(),
            ledger_id: self.ledger.clone(),
            operations,
        };
        session.say(state);
        for (id, known) in &found {
            // A relay that went back wants what it had acknowledged, and that is gone: without this word its end waits for it.
            let gone = wanted.iter().filter(|wanted| Some(&wanted.run_id) == known.run_id.as_ref());
            for OutputOffset { run_id, stream, next_offset } in gone.cloned() {
                let written = known.written.get(&stream).copied().unwrap_or(0);
                if known.outcome.is_some() && next_offset < written {
                    session.say(WorkerFrame::ExecGap { run_id, stream, offset: next_offset, next_offset: written });
                }
            }
            if let Some(frame) = known.result(id) {
                session.say(frame);
            }
        }
        let owed = self.window.behind_in_all().min(limits::WORKER_WINDOW as u64);
        session.enter(now, Stage::Replaying(recovery.clone(), owed));
        for entry in self.operations.iter().filter(|entry| entry.phase == Phase::Ended) {
            session.offer(entry.id());
        }
    }

    /// Ends the replay when its ends and its window of output are said.
    pub(super) fn settle_replay(&mut self, now: Now) {
        let Some(session) = &mut self.session else { return };
        if let Stage::Replaying(recovery, owed) = &session.stage
            && session.has_no_results()
            && (*owed == 0 || self.window.is_drained())
        {
            let recovery_id = recovery.clone();
            session.say(WorkerFrame::RecoveryComplete { recovery_id: recovery_id.clone() });
            session.enter(now, Stage::Complete(recovery_id));
        }
    }

    fn recovered(&mut self, now: Now, recovery: &RecoveryId, lease_ms: u64) {
        let Some(session) = &mut self.session else { return };
        if !matches!(&session.stage, Stage::Complete(said) if said == recovery) {
            return;
        }
        session.enter(now, Stage::Live);
        let attempts = self.dialer.attempts();
        self.dialer.ready(now);
        self.outage.ready(now, attempts, &mut self.told);
        self.grant(now, Duration::from_millis(lease_ms));
    }
}
