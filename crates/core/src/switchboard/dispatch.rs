//! Waiting calls, and the window of what the device takes at once.

use std::time::Duration;

use super::calls::Stage;
use super::{EndKind, Note, SocketId, Switchboard, Timer};
use crate::code::{Code, ToolError};
use crate::id::{CallId, InstanceId};
use crate::limits;
use crate::time::{Due, Now};

use super::handshake::millis;
use super::socket::{Role, Window};

impl Switchboard {
    /// A call is ready to be sent.
    pub(super) fn enqueue(&mut self, now: Now, id: &CallId) {
        let Some(call) = self.calls.get_mut(id) else { return };
        call.stage = Stage::Queued;
        self.queue.push_back(id.clone());
        self.dispatch(now);
        self.wait(now, id);
    }

    /// A call that is still queued waits its time from now, unless it waits already.
    pub(super) fn wait(&mut self, now: Now, id: &CallId) {
        let timer = Timer::Wait(id.clone());
        if self.queue.contains(id)
            && self.timers.get(&timer).is_none()
            && let Some(call) = self.calls.get(id)
        {
            let until = call.queue_until(now);
            self.timers.set(timer, until);
        }
    }

    /// Where calls may be sent now. Nowhere while a socket is being proven with calls named on it, while the device is
    /// about to sleep, and when the relay stops.
    fn open_socket(&self) -> Option<(SocketId, InstanceId, Window)> {
        let sleeping = self.home.as_ref().is_some_and(|home| home.hold.is_some());
        let ready = self.ready_socket().filter(|_| !self.paused() && !sleeping && !self.stop.refuses())?;
        let peer = ready.peer.as_ref()?;
        Some((ready.id, peer.instance.clone(), peer.window))
    }

    /// A socket is being proven and calls are named on it.
    fn paused(&self) -> bool {
        self.sockets.iter().any(|socket| matches!(socket.role, Role::Resuming { .. }))
    }

    /// Sends what may be sent: control calls first, then the others, each first come first.
    pub(super) fn dispatch(&mut self, now: Now) {
        if self.queue.is_empty() {
            return;
        }
        let Some((socket, instance, window)) = self.open_socket() else { return };
        // What was sent and is not committed is named in one resume_calls.
        let mut named = self.calls.values().filter(|call| !call.is_unsent()).count();
        let out = self.calls.values().filter(|call| call.is_out());
        let (mut all, mut ordinary) =
            out.fold((0, 0), |(all, ordinary), call| (all + 1, ordinary + usize::from(!call.control)));
        while let Some(at) = self
            .next_queued(all < window.max, ordinary < window.max - window.reserve && all < window.max)
            .filter(|_| named < limits::RESUME_IDS_MAX)
        {
            let Some(id) = self.queue.remove(at) else { return };
            all += 1;
            named += 1;
            ordinary += usize::from(!self.calls.get(&id).is_some_and(|call| call.control));
            if self.needs_assigning(&id, &instance) {
                self.assign(&id, &instance);
            } else {
                self.send(now, &id, socket, &instance);
            }
        }
    }

    /// Where in the queue the next call stands for which there is a place.
    fn next_queued(&self, control: bool, ordinary: bool) -> Option<usize> {
        let is_control = |id: &CallId| self.calls.get(id).is_some_and(|call| call.control);
        let first = |place: bool, of: bool| self.queue.iter().position(|id| is_control(id) == of).filter(|_| place);
        first(control, true).or_else(|| first(ordinary, false))
    }

    fn send(&mut self, now: Now, id: &CallId, socket: SocketId, instance: &InstanceId) {
        // Taken out while it is written, so that writing may use the rest of the machine.
        let Some(mut call) = self.calls.remove(id) else { return };
        call.request.timeout_ms = millis(call.budget);
        // Big arguments may take as long as the transfer rule allows; the tool's time begins when they have arrived.
        let bytes = call.request.arguments.get().len();
        let big = bytes > limits::CHUNK_FRAME_MAX;
        let transfer = Duration::from_secs(if big { (bytes / limits::TRANSFER_MIN_RATE) as u64 } else { 0 });
        call.left = call.budget + limits::SETTLEMENT + transfer;
        call.stage = Stage::Sent { socket, instance: instance.clone() };
        self.timers.stop(&Timer::Wait(id.clone()));
        self.timers.set(Timer::Deadline(id.clone()), Due::awake(now, call.left));
        self.transmit_call(socket, &call.request);
        call.arriving = big.then(|| self.ping(socket));
        self.calls.insert(id.clone(), call);
        self.note(Note::Sent { call: id.clone() });
    }

    /// A pong: the calls whose arguments stood before that ping have arrived.
    pub(super) fn arrived_before(&mut self, now: Now, nonce: u64) {
        if let Some(call) = self.calls.values_mut().find(|call| call.arriving == Some(nonce)) {
            call.arriving = None;
            let deadline = Timer::Deadline(call.request.id.clone());
            // Without a running deadline its result is already on its way.
            if self.timers.get(&deadline).is_some() {
                self.timers.set(deadline, Due::awake(now, call.budget + limits::SETTLEMENT));
            }
        }
    }

    /// The instance never saw this call: it is sent again with what is left of its budget, before all that wait.
    pub(super) fn send_again(&mut self, now: Now, id: &CallId) {
        let running = self.timers.get(&Timer::Deadline(id.clone()));
        self.timers.stop(&Timer::Deadline(id.clone()));
        let Some(call) = self.calls.get_mut(id) else { return };
        let left = running.map_or(call.left, |due| due.left(now));
        let budget = left.saturating_sub(limits::SETTLEMENT).min(call.budget);
        if call.restored || budget < limits::REDISPATCH_MIN {
            let error = ToolError::nothing_done(Code::Unavailable, "the call did not reach the device");
            return self.end(now, id, Err(error), EndKind::Expired);
        }
        call.budget = budget;
        call.stage = Stage::Queued;
        self.queue.push_front(id.clone());
        self.wait(now, id);
    }

    /// A call has waited long enough for a ready device or a place. A pause does not count: it lasts a report at most.
    pub(super) fn waited(&mut self, now: Now, id: &CallId) {
        if self.paused() {
            return self.timers.set(Timer::Wait(id.clone()), Due::boot(now, limits::REPORT_TIMEOUT));
        }
        let error = if self.open_socket().is_some() {
            self.busy()
        } else {
            ToolError::nothing_done(Code::Unavailable, "the device is not connected")
        };
        self.end(now, id, Err(error), EndKind::Expired);
    }
}
