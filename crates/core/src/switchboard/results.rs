//! Results: matched, handed over, committed, acknowledged.

use super::calls::{Call, Stage};
use super::intake::ChunkError;
use super::{EndKind, Loss, Note, Output, SocketId, Switchboard, Timer};
use crate::code::{Code, ToolError};
use crate::id::{CallId, InstanceId};
use crate::limits;
use crate::time::{Due, Now};
use crate::tools;
use crate::wire::{ToolProgress, ToolResult, close};

impl Switchboard {
    /// A result came. Only the socket a call was sent on, or moved to, can end it.
    pub(super) fn result(&mut self, now: Now, id: SocketId, result: ToolResult) {
        let ToolResult { id: call_id, outcome } = result;
        let Some(call) = self.calls.get_mut(&call_id) else {
            self.note(Note::Unmatched);
            return self.acknowledge(now, id, call_id, false);
        };
        match &call.stage {
            Stage::Sent { socket, .. } if *socket == id => {}
            // Sent again before it was acknowledged: the commit will answer both.
            Stage::Handed { .. } | Stage::Storing { told: false, .. } => return,
            Stage::Storing { told: true, .. } => return self.store_again(&call_id),
            _ => {
                self.note(Note::Unmatched);
                return self.acknowledge(now, id, call_id, false);
            }
        }
        let Some(instance) = call.instance().cloned() else { return };
        let outcome = outcome.map_err(|error| public(error, &call.tool));
        let kind = match &outcome {
            Ok(_) => EndKind::Done,
            Err(error) if error.code == Code::Cancelled => EndKind::Cancelled,
            Err(error) if error.code == Code::OutcomeUnknown => EndKind::Unknown,
            Err(_) => EndKind::Failed,
        };
        self.timers.stop(&Timer::Deadline(call_id.clone()));
        self.hand_over(now, &call_id, instance, outcome, kind);
        self.dispatch(now);
    }

    /// Gives the waiters an end that the daemon holds until we have it safe.
    fn hand_over(&mut self, now: Now, id: &CallId, instance: InstanceId, outcome: super::Outcome, kind: EndKind) {
        let Some(mut call) = self.calls.remove(id) else { return };
        self.ended(now, &call, &outcome, kind);
        if call.record.is_some() {
            self.keep_end(&call, &outcome, kind);
        }
        if call.is_durable() {
            call.stage = Stage::Storing { instance, outcome, told: false };
            self.calls.insert(id.clone(), call);
            return;
        }
        let waiters: Vec<_> = call.waiters.iter().map(|waiting| waiting.id).collect();
        call.stage = Stage::Handed { instance };
        call.record = None;
        call.request.arguments = super::calls::no_arguments();
        self.calls.insert(id.clone(), call);
        let mut outcome = Some(outcome);
        for (at, waiter) in waiters.iter().enumerate() {
            let outcome = if at + 1 == waiters.len() { outcome.take() } else { outcome.clone() };
            if let Some(outcome) = outcome {
                self.out.push_back(Output::End { waiter: *waiter, outcome });
            }
        }
    }

    /// A waiter has its end safe.
    pub(super) fn commit(&mut self, now: Now, id: &CallId) {
        if let Some(Call { stage: Stage::Handed { instance }, .. }) = self.calls.get(id) {
            let instance = instance.clone();
            self.forget_result(now, id, &instance, true);
        }
    }

    /// An ended call leaves the table, and the daemon may forget its result.
    pub(super) fn forget_result(&mut self, now: Now, id: &CallId, instance: &InstanceId, matched: bool) {
        self.calls.remove(id);
        self.acknowledge_to(now, id, instance, matched);
        self.stop_progress(now);
    }

    pub(super) fn acknowledge_to(&mut self, now: Now, id: &CallId, instance: &InstanceId, matched: bool) {
        let socket = self.ready_socket().filter(|socket| socket.instance() == Some(instance)).map(|socket| socket.id);
        if let Some(socket) = socket {
            self.acknowledge(now, socket, id.clone(), matched);
        }
    }

    pub(super) fn progress(&mut self, progress: ToolProgress) {
        let Some(call) = self.calls.get(&progress.id).filter(|call| call.is_out()) else { return };
        for waiting in call.waiters.iter().filter(|waiting| waiting.progress) {
            self.out.push_back(Output::Progress {
                waiter: waiting.id,
                progress: progress.progress,
                total: progress.total,
                message: progress.message.clone(),
            });
        }
    }

    /// A piece of a result. The first one stops the call's deadline: the tool is done, only the transfer counts.
    pub(super) fn chunk(
        &mut self,
        now: Now,
        id: SocketId,
        call: &CallId,
        whole: Option<Result<ToolResult, ChunkError>>,
    ) {
        if let Some(due) = self.timers.get(&Timer::Deadline(call.clone())) {
            self.timers.stop(&Timer::Deadline(call.clone()));
            if let Some(call) = self.calls.get_mut(call) {
                call.left = due.left(now);
            }
        }
        match whole {
            None => self.timers.set(Timer::Chunks(id), Due::boot(now, limits::TRANSFER_WINDOW)),
            Some(Ok(result)) => {
                // Other transfers may go on: their next chunk sets the timer again, a stalled one still finds its call
                // without a deadline, so the timer stays while there is such a call.
                if !self.transferring(id, Some(call)) {
                    self.timers.stop(&Timer::Chunks(id));
                }
                self.result(now, id, result);
            }
            Some(Err(ChunkError::Digest)) => self.bad_digest(now, id, call),
            Some(Err(ChunkError::OutOfPlace)) => self.close(now, id, close::BAD_CHUNK, Loss::Protocol),
        }
    }

    /// Whether a call (other than this one) is in transfer on a socket: sent there, without a running deadline.
    fn transferring(&self, id: SocketId, but: Option<&CallId>) -> bool {
        self.calls.iter().any(|(call_id, call)| {
            matches!(call.stage, Stage::Sent { socket, .. } if socket == id)
                && Some(call_id) != but
                && self.timers.get(&Timer::Deadline(call_id.clone())).is_none()
        })
    }

    /// The link is closed, so that the transfer starts again; a result that never comes through must not do so for ever.
    fn bad_digest(&mut self, now: Now, id: SocketId, call_id: &CallId) {
        if let Some(call) = self.calls.get_mut(call_id) {
            call.bad_transfers += 1;
            if call.bad_transfers >= limits::CHUNK_TRIES_MAX {
                let error =
                    ToolError::new(Code::IntegrityError, "the tool ran; its result could not be transferred intact");
                self.end(now, call_id, Err(error), EndKind::Failed);
                self.acknowledge(now, id, call_id.clone(), true);
                return self.dispatch(now);
            }
        }
        self.close(now, id, close::BAD_CHUNK, Loss::Protocol);
    }

    pub(super) fn chunk_due(&mut self, now: Now, id: SocketId) {
        if self.socket(id).is_some_and(|socket| socket.mid_frame) {
            return self.timers.set(Timer::Chunks(id), Due::boot(now, limits::STALL_NOTICED));
        }
        // Nobody waits for the rest of a result whose call was cancelled, and the daemon does not send it.
        if self.transferring(id, None) {
            self.close(now, id, close::LIVENESS, Loss::Silence);
        }
    }
}

/// A daemon's error as clients may see it. A timeout may be retried only if the tool changes nothing.
fn public(mut error: ToolError, tool: &str) -> ToolError {
    if let Some((end, _)) = error.message.char_indices().nth(limits::ERROR_MESSAGE_MAX) {
        error.message.truncate(end);
    }
    if error.code == Code::Timeout {
        error.retryable = tools::find(tool).is_some_and(tools::Tool::read_only);
    }
    error
}
