//! Life and death of the link: silence, loss, grace, announced sleep.

use std::time::Duration;

use super::calls::Stage;
use super::socket::{Peer, Role, Socket};
use super::{EndKind, Loss, Note, Output, SocketId, StoreRequest, Switchboard, Timer};
use crate::code::{Code, ToolError};
use crate::id::{CallId, InstanceId};
use crate::limits;
use crate::time::{Due, Now};
use crate::wire::{DaemonFrame, Feature, Features, RelayFrame, SuspendingAck, close};

/// The instance that holds the device: the last one that was ready, until its grace or hold is over.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) instance: InstanceId,
    /// It speaks the base wire.
    pub(super) base: bool,
    /// It keeps results until they are acknowledged.
    pub(super) acknowledges: bool,
    grace: Duration,
    /// It said that it goes to sleep.
    pub(super) hold: Option<Hold>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    since: Duration,
    pub(super) until: Duration,
}

impl Home {
    pub(super) fn of(peer: &Peer) -> Home {
        let grace = if peer.features.has(Feature::Grace) { limits::GRACE } else { limits::BASE_GRACE };
        Home {
            instance: peer.instance.clone(),
            base: peer.features == Features::NONE,
            acknowledges: peer.features.has(Feature::Ack),
            grace,
            hold: None,
        }
    }
}

impl Socket {
    /// How long no byte may come.
    pub(super) fn silence_allowed(&self) -> Duration {
        if self.has(Feature::Live) { limits::SILENCE_DEAD } else { limits::BASE_RELAY_SILENCE }
    }
}

impl Switchboard {
    pub(super) fn heard(&mut self, id: SocketId, at: Duration, mid_frame: bool) {
        if let Some(socket) = self.socket(id) {
            socket.heard = socket.heard.max(at);
            socket.mid_frame = mid_frame;
        }
    }

    pub(super) fn beat(&mut self, now: Now, id: SocketId) {
        self.ping(id);
        self.flush_acks(id);
        self.timers.set(Timer::Beat(id), Due::boot(now, limits::HEARTBEAT));
    }

    /// Only this, never a call's timeout, makes a socket dead. On the base wire too it is a close without an error, because
    /// any error would make the daemon give up.
    pub(super) fn life_due(&mut self, now: Now, id: SocketId) {
        let Some(socket) = self.socket(id) else { return };
        let due = socket.heard + socket.silence_allowed();
        if due > now.boot {
            self.timers.set(Timer::Life(id), Due::Boot(due));
        } else {
            self.close(now, id, close::LIVENESS, Loss::Silence);
        }
    }

    pub(super) fn closed(&mut self, now: Now, id: SocketId, word: Option<(u16, String)>) {
        let shutdown = word.is_some_and(|(code, reason)| (code, reason.as_str()) == close::SHUTDOWN);
        let Some(socket) = self.socket(id) else { return };
        let proven = matches!(socket.role, Role::Ready { .. } | Role::Resuming { .. });
        let instance = socket.instance().cloned();
        self.lose(now, id, if shutdown { Loss::Shutdown } else { Loss::Peer });
        if let (true, true, Some(instance)) = (shutdown, proven, instance) {
            self.instance_stopped(now, &instance);
        }
    }

    /// The daemon said that it stops: no word of its calls will come. They need not wait for the grace.
    fn instance_stopped(&mut self, now: Now, instance: &InstanceId) {
        for id in self.out_calls(|to| to == instance) {
            self.end(now, &id, Err(ToolError::new(Code::OutcomeUnknown, "the daemon was stopped")), EndKind::Unknown);
        }
        if self.home.as_ref().is_some_and(|home| home.instance == *instance) && self.ready_socket().is_none() {
            self.forget_home();
        }
    }

    /// The socket in service is gone. Its calls wait for the same instance.
    pub(super) fn link_lost(&mut self, now: Now, lost: &Socket) {
        if self.ready_socket().is_some() {
            // Replaced: the calls moved before.
            return;
        }
        for id in self.calls_on(lost.id) {
            self.detach(now, &id);
        }
        if let Some(home) = &self.home {
            let due = home.hold.map_or(Due::boot(now, home.grace), |hold| Due::Boot(hold.until));
            self.timers.set(Timer::Grace, due);
        }
        self.device_away(now);
    }

    fn calls_on(&self, id: SocketId) -> Vec<CallId> {
        let on = |stage: &Stage| matches!(stage, Stage::Sent { socket, .. } if *socket == id);
        let mut calls: Vec<_> = self.calls.values().filter(|call| on(&call.stage)).collect();
        calls.sort_by_key(|call| call.order);
        calls.into_iter().map(|call| call.request.id.clone()).collect()
    }

    /// Sent calls of the instances that `of` picks, in order.
    pub(super) fn out_calls(&self, of: impl Fn(&InstanceId) -> bool) -> Vec<CallId> {
        let mut calls: Vec<_> =
            self.calls.values().filter(|call| call.is_out() && call.instance().is_some_and(&of)).collect();
        calls.sort_by_key(|call| call.order);
        calls.into_iter().map(|call| call.request.id.clone()).collect()
    }

    /// Grace or hold ran out: the instance does not hold the device any more.
    pub(super) fn grace_over(&mut self, now: Now) {
        self.note(Note::GraceOver);
        for id in self.out_calls(|_| true) {
            // It may be named on a socket that is just being proven.
            self.withdraw(&id);
            let error = ToolError::new(Code::OutcomeUnknown, "the device did not come back in time");
            self.end(now, &id, Err(error), EndKind::Unknown);
        }
        self.forget_home();
    }

    pub(super) fn forget_home(&mut self) {
        self.home = None;
        self.refused.clear();
        self.timers.stop(&Timer::Grace);
    }

    /// The device is about to sleep: its calls are held much longer than the grace, and nothing new is sent to it.
    pub(super) fn suspending(&mut self, now: Now, id: SocketId) {
        let instance = self.socket(id).and_then(|socket| socket.instance().cloned());
        if let Some(home) = self.home.as_mut().filter(|home| Some(&home.instance) == instance.as_ref()) {
            home.hold = Some(Hold { since: now.boot, until: now.boot + limits::SUSPEND_HOLD });
            self.note(Note::Suspending);
            self.store_hold(Some(limits::SUSPEND_HOLD));
        }
        let hold_ms = super::handshake::millis(limits::SUSPEND_HOLD);
        self.transmit(id, &RelayFrame::SuspendingAck(SuspendingAck { hold_ms }));
    }

    /// An ordinary frame ends the hold. A heartbeat right after the announcement is not one: the machine is still falling
    /// asleep.
    pub(super) fn awake_again(&mut self, now: Now, frame: &DaemonFrame) {
        let Some(hold) = self.home.as_ref().and_then(|home| home.hold) else { return };
        let falling_asleep = match frame {
            DaemonFrame::Suspending(_) => true,
            DaemonFrame::Heartbeat(_) | DaemonFrame::Ping(_) => now.boot < hold.since + limits::SILENCE_DEAD,
            _ => false,
        };
        if !falling_asleep {
            self.end_hold();
            self.dispatch(now);
        }
    }

    pub(super) fn end_hold(&mut self) {
        if self.home.as_mut().is_some_and(|home| home.hold.take().is_some()) {
            self.store_hold(None);
        }
    }

    fn store_hold(&mut self, hold: Option<Duration>) {
        let durable = self.calls.values().filter(|call| call.is_out() && call.is_durable());
        let durable: Vec<_> = durable.map(|call| call.request.id.clone()).collect();
        for call in durable {
            self.out.push_back(Output::Store(StoreRequest::Hold { call, hold }));
        }
    }
}
