//! The end of the relay, and the end of a device's credential.

use super::calls::Stage as CallStage;
use super::{EndKind, Loss, Output, Switchboard, Timer};
use crate::code::{Code, ToolError};
use crate::id::CallId;
use crate::limits;
use crate::time::{Due, Now};
use crate::wire::close::{self, Close};

/// How far the stop has come.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not asked for.
    #[default]
    Running,
    /// New calls are refused, the others may end.
    Stopping,
    /// Nothing is held any more.
    Stopped,
}

impl Stage {
    pub(super) fn refuses(&self) -> bool {
        *self != Stage::Running
    }
}

impl Switchboard {
    pub(super) fn stop(&mut self, now: Now) {
        if self.stop.refuses() {
            return;
        }
        self.stop = Stage::Stopping;
        self.end_unsent(now, "the relay is stopping");
        self.timers.set(Timer::Stop, Due::boot(now, limits::RELAY_STOP_WAIT));
        self.stop_progress(now);
    }

    /// Nothing is held any more: no reason to wait.
    pub(super) fn stop_progress(&mut self, now: Now) {
        if self.stop == Stage::Stopping && self.calls.is_empty() {
            self.stop_now(now);
        }
    }

    /// The wait is over. Calls with a record stay in the store as they are: the next start finds them detached.
    pub(super) fn stop_now(&mut self, now: Now) {
        if self.stop == Stage::Stopped {
            return;
        }
        self.stop = Stage::Stopped;
        let durable: Vec<_> =
            self.calls.iter().filter(|(_, call)| call.is_durable()).map(|(id, _)| id.clone()).collect();
        for id in durable {
            self.drop_record(&id);
        }
        self.end_all(now, "the relay was stopped");
        self.close_all(now, close::RELAY_STOPS);
        self.timers.stop(&Timer::Stop);
        self.timers.stop(&Timer::Patience);
        self.timers.stop(&Timer::Grace);
        self.out.push_back(Output::Stopped);
    }

    /// The credential was revoked: the device is asked to cancel, and no word of it counts any more.
    pub(super) fn revoke(&mut self, now: Now) {
        self.revoked = true;
        for id in self.out_calls(|_| true) {
            self.withdraw(&id);
        }
        self.end_all(now, "the device was revoked");
        self.close_all(now, close::REVOKED);
        self.forget_home();
    }

    fn end_unsent(&mut self, now: Now, why: &str) {
        for id in
            self.ids(|stage| matches!(stage, CallStage::Reserving | CallStage::Queued | CallStage::Assigning { .. }))
        {
            self.end(now, &id, Err(ToolError::nothing_done(Code::Unavailable, why)), EndKind::Expired);
        }
    }

    fn end_all(&mut self, now: Now, why: &str) {
        self.end_unsent(now, why);
        for id in self.ids(|stage| matches!(stage, CallStage::Sent { .. } | CallStage::Detached { .. })) {
            self.end(now, &id, Err(ToolError::new(Code::OutcomeUnknown, why)), EndKind::Unknown);
        }
        // These have their end already: the waiters have it, or get it now.
        for id in self.ids(|_| true) {
            if let Some(call) = self.calls.remove(&id)
                && let CallStage::Storing { outcome, told: false, .. } = call.stage
            {
                self.tell(call.waiters, outcome);
            }
        }
        self.by_key.clear();
    }

    fn ids(&self, pick: impl Fn(&CallStage) -> bool) -> Vec<CallId> {
        let mut calls: Vec<_> = self.calls.values().filter(|call| pick(&call.stage)).collect();
        calls.sort_by_key(|call| call.order);
        calls.into_iter().map(|call| call.request.id.clone()).collect()
    }

    fn close_all(&mut self, now: Now, close: Close) {
        // Candidates first, so that none of them takes the place of the one in service.
        while let Some(id) = self.sockets.iter().find(|socket| !socket.is_ready()).map(|socket| socket.id) {
            self.close(now, id, close, Loss::Ours);
        }
        while let Some(id) = self.sockets.first().map(|socket| socket.id) {
            self.close(now, id, close, Loss::Ours);
        }
    }
}
