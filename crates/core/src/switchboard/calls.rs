//! One call from opening to its one end.

use std::sync::Arc;
use std::time::Duration;

use rand::RngCore as _;
use serde_json::value::RawValue;

use super::keys::{Keyed, Record};
use super::promote::Patience;
use super::{EndKind, Note, OpenCall, Outcome, Output, SocketId, Switchboard, Timer, WaiterId};
use crate::code::{Code, ToolError};
use crate::id::{CallId, InstanceId};
use crate::limits;
use crate::time::{Due, Now};
use crate::wire::{CancelCall, RelayFrame, ToolCall};

/// A call the switchboard holds.
pub(super) struct Call {
    /// As it is sent; `timeout_ms` is set anew each time.
    pub(super) request: ToolCall,
    pub(super) tool: Arc<str>,
    /// Account and client.
    pub(super) principal: Arc<str>,
    /// Number in order of opening.
    pub(super) order: u64,
    pub(super) opened: Duration,
    pub(super) control: bool,
    pub(super) record: Option<Record>,
    pub(super) waiters: Vec<Waiting>,
    /// Loaded after a crash: cannot be sent, because its arguments are gone.
    pub(super) restored: bool,
    /// Execution budget left; the deadline of a sent call is this and the settlement.
    pub(super) budget: Duration,
    /// The rest until the deadline while it does not run: detached, or its result is on its way.
    pub(super) left: Duration,
    /// The ping written behind its big arguments: its pong says that they arrived, and only then the deadline counts.
    pub(super) arriving: Option<u64>,
    /// Transfers of its result that had the wrong digest.
    pub(super) bad_transfers: u32,
    pub(super) stage: Stage,
}

/// A waiter, whether it wants progress, and how long it waits for more than a handle.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: WaiterId,
    pub(super) progress: bool,
    pub(super) patience: Option<Patience>,
}

/// Where a call is.
pub(super) enum Stage {
    /// Its key's record is being looked up or made.
    Reserving,
    /// It waits to be sent.
    Queued,
    /// Its record is being told where it goes.
    Assigning { instance: InstanceId },
    /// On a socket.
    Sent { socket: SocketId, instance: InstanceId },
    /// Sent; the link is down.
    Detached { instance: InstanceId },
    /// Ended; the result was given to the waiters, none of which has it safe yet.
    Handed { instance: InstanceId },
    /// Ended; the record is being told. `told`: the waiters were; the store refused, and the daemon will send it again.
    Storing { instance: InstanceId, outcome: Outcome, told: bool },
}

impl Call {
    /// The instance it was sent to.
    pub(super) fn instance(&self) -> Option<&InstanceId> {
        match &self.stage {
            Stage::Sent { instance, .. }
            | Stage::Detached { instance }
            | Stage::Handed { instance }
            | Stage::Storing { instance, .. } => Some(instance),
            Stage::Reserving | Stage::Queued | Stage::Assigning { .. } => None,
        }
    }

    /// Sent and not ended.
    pub(super) fn is_out(&self) -> bool {
        matches!(self.stage, Stage::Sent { .. } | Stage::Detached { .. })
    }

    /// Not sent yet.
    pub(super) fn is_unsent(&self) -> bool {
        matches!(self.stage, Stage::Reserving | Stage::Queued | Stage::Assigning { .. })
    }

    /// Its record waits for its end, whoever else does.
    pub(super) fn is_promoted(&self) -> bool {
        self.record.as_ref().is_some_and(Record::is_told)
    }

    pub(super) fn key(&self) -> Option<&Keyed> {
        self.record.as_ref()?.key.as_ref()
    }

    /// Its end is to be committed before it is acknowledged.
    pub(super) fn is_durable(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.key.is_some() || record.is_told())
    }
}

impl Switchboard {
    pub(super) fn open(&mut self, now: Now, waiter: WaiterId, open: OpenCall) {
        let waiting = Waiting {
            id: waiter,
            progress: open.wants_progress,
            patience: open.outlives.as_ref().map(|outlives| Patience::from(now, outlives)),
        };
        let key = open.key.as_ref().map(|key| Keyed::of(&open, key));
        if let Some(key) = &key
            && let Some(running) = self.by_key.get(&key.scope).cloned()
        {
            self.join(&running, waiting, Some(&key.digest));
            return self.mind_patience(now, &running);
        }
        let mut random = [0; CallId::RANDOM_BYTES];
        self.rng.fill_bytes(&mut random);
        let id = CallId::mint(random);
        self.out.push_back(Output::Admitted { waiter, call: id.clone() });
        if let Err(error) = self.room_for(&open) {
            return self.out.push_back(Output::End { waiter, outcome: Err(error) });
        }
        let budget = open.budget.clamp(limits::CALL_TIMEOUT_MIN, limits::CALL_TIMEOUT_MAX);
        self.order += 1;
        let call = Call {
            tool: open.tool.clone(),
            request: ToolCall {
                id: id.clone(),
                tool: open.tool.to_string(),
                arguments: open.arguments,
                timeout_ms: 0,
                authorization: open.authorization,
                progress: open.wants_progress,
            },
            principal: open.principal,
            order: self.order,
            opened: now.boot,
            control: open.control,
            record: key.map(|key| Record { key: Some(key), handle: None, assigned: None }),
            waiters: vec![waiting],
            restored: false,
            budget,
            left: budget,
            arriving: None,
            bad_transfers: 0,
            stage: Stage::Queued,
        };
        let keyed = call.record.is_some();
        self.calls.insert(id.clone(), call);
        self.note(Note::Queued { call: id.clone() });
        if keyed {
            self.reserve(&id);
        } else {
            self.enqueue(now, &id);
        }
        self.mind_patience(now, &id);
    }

    /// Why a new call cannot be held: nothing is done.
    fn room_for(&self, open: &OpenCall) -> Result<(), ToolError> {
        if self.stop.refuses() {
            return Err(ToolError::nothing_done(Code::Unavailable, "the relay is stopping"));
        }
        let key_fits = open.key.as_ref().is_none_or(|key| key.key.chars().count() <= limits::IDEMPOTENCY_KEY_MAX);
        if !key_fits || open.tool.len() > limits::TOOL_NAME_MAX {
            return Err(ToolError::new(Code::InvalidRequest, "the tool's name or the idempotency key is too long"));
        }
        let bytes = open.arguments.get().len();
        if bytes > limits::ARGUMENTS_MAX {
            return Err(ToolError::new(Code::InvalidRequest, "the arguments do not fit one frame"));
        }
        // Promoted calls that wait to be sent have their own bound.
        let places = || self.calls.values().filter(|call| !(call.is_promoted() && call.is_unsent()));
        let ordinary = places().filter(|call| !call.control).count();
        let held: usize = self.calls.values().map(|call| call.request.arguments.get().len()).sum();
        let full = places().count() >= limits::DEVICE_CALLS_MAX
            || !open.control && ordinary >= limits::DEVICE_CALLS_MAX - limits::CONTROL_RESERVE
            || held + bytes > limits::DEVICE_ARGUMENTS_MAX;
        if full { Err(self.busy()) } else { Ok(()) }
    }

    /// Every place is taken, in the word of the wire the device speaks.
    pub(super) fn busy(&self) -> ToolError {
        let base = self.home.as_ref().map_or(self.identity.link.is_none(), |home| home.base);
        let code = if base { Code::LimitExceeded } else { Code::Busy };
        ToolError::nothing_done(code, "too many concurrent tool calls on this device")
    }

    /// One more waits for a running call: of the same key, or one that was promoted.
    pub(super) fn join(&mut self, id: &CallId, waiting: Waiting, digest: Option<&[u8; 32]>) {
        let waiter = waiting.id;
        self.out.push_back(Output::Admitted { waiter, call: id.clone() });
        let refusal = match self.calls.get_mut(id) {
            Some(call) if digest.is_some_and(|digest| call.key().is_some_and(|key| key.digest != *digest)) => {
                ToolError::new(Code::Conflict, "the idempotency key was used with other arguments")
            }
            Some(call) if call.waiters.len() >= limits::CALL_WAITERS_MAX => self.busy(),
            // The store refused to keep its end; the end itself is here.
            Some(Call { stage: Stage::Storing { outcome, told: true, .. }, .. }) => {
                let outcome = outcome.clone();
                return self.out.push_back(Output::End { waiter, outcome });
            }
            Some(call) => return call.waiters.push(waiting),
            None => self.busy(),
        };
        self.out.push_back(Output::End { waiter, outcome: Err(refusal) });
    }

    pub(super) fn leave(&mut self, now: Now, waiter: WaiterId, id: &CallId) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let before = call.waiters.len();
        call.waiters.retain(|waiting| waiting.id != waiter);
        if call.waiters.len() == before || !call.waiters.is_empty() {
            return;
        }
        match &call.stage {
            Stage::Storing { .. } => {}
            _ if call.is_promoted() => {}
            Stage::Handed { instance } => {
                let instance = instance.clone();
                self.note(Note::Undelivered { call: id.clone() });
                self.forget_result(now, id, &instance, false);
            }
            _ => self.cancel(now, id),
        }
    }

    /// Cancels a call for everybody who waits. One that ended already stays ended.
    pub(super) fn cancel(&mut self, now: Now, id: &CallId) {
        let Some(call) = self.calls.get(id) else { return };
        if !call.is_out() && !call.is_unsent() {
            return;
        }
        self.withdraw(id);
        self.end(now, id, Err(ToolError::new(Code::Cancelled, "the call was cancelled")), EndKind::Cancelled);
    }

    /// Tells the daemon that nobody waits. While a socket is being proven, that one is told right after its `ready_ack`.
    pub(super) fn withdraw(&mut self, id: &CallId) {
        for socket in &mut self.sockets {
            if let super::socket::Role::Resuming { named, cancel } = &mut socket.role
                && named.contains(id)
            {
                cancel.push(id.clone());
            }
        }
        if let Some(Call { stage: Stage::Sent { socket, .. }, .. }) = self.calls.get(id) {
            let socket = *socket;
            self.transmit(socket, &RelayFrame::CancelCall(CancelCall { id: id.clone() }));
        }
    }

    /// Ends a call by our own word or by one that needs no commit, and takes it out of the table.
    pub(super) fn end(&mut self, now: Now, id: &CallId, outcome: Outcome, kind: EndKind) {
        let Some(mut call) = self.calls.remove(id) else { return };
        self.stop_clocks(id);
        if matches!(call.stage, Stage::Queued) {
            self.queue.retain(|queued| queued != id);
        }
        self.keep_end(&call, &outcome, kind);
        if let Some(key) = call.key() {
            self.by_key.remove(&key.scope);
        }
        self.ended(now, &call, &outcome, kind);
        self.tell(std::mem::take(&mut call.waiters), outcome);
        self.stop_progress(now);
    }

    pub(super) fn ended(&mut self, now: Now, call: &Call, outcome: &Outcome, kind: EndKind) {
        let took = now.boot.saturating_sub(call.opened);
        let code = outcome.as_ref().err().map(|error| error.code);
        self.note(Note::Ended { call: call.request.id.clone(), kind, code, took });
    }

    /// Gives an end to all who wait.
    pub(super) fn tell(&mut self, mut waiters: Vec<Waiting>, outcome: Outcome) {
        let last = waiters.pop();
        for waiter in waiters {
            self.out.push_back(Output::End { waiter: waiter.id, outcome: outcome.clone() });
        }
        if let Some(waiter) = last {
            self.out.push_back(Output::End { waiter: waiter.id, outcome });
        }
    }

    pub(super) fn stop_clocks(&mut self, id: &CallId) {
        for timer in [Timer::Wait, Timer::Assign, Timer::Deadline] {
            self.timers.stop(&timer(id.clone()));
        }
    }

    /// Binds a sent call to a proven socket of its instance; its deadline goes on with what was left.
    pub(super) fn attach(&mut self, now: Now, id: &CallId, socket: SocketId) {
        let running = self.timers.get(&Timer::Deadline(id.clone()));
        let Some(call) = self.calls.get_mut(id) else { return };
        let Some(instance) = call.instance().cloned() else { return };
        call.stage = Stage::Sent { socket, instance };
        if running.is_none() {
            self.timers.set(Timer::Deadline(id.clone()), Due::awake(now, call.left));
        }
        self.note(Note::Rebound { call: id.clone() });
    }

    /// The link is down under a sent call: its deadline waits.
    pub(super) fn detach(&mut self, now: Now, id: &CallId) {
        let running = self.timers.get(&Timer::Deadline(id.clone()));
        self.timers.stop(&Timer::Deadline(id.clone()));
        let Some(call) = self.calls.get_mut(id) else { return };
        let Some(instance) = call.instance().cloned() else { return };
        call.left = running.map_or(call.left, |due| due.left(now));
        call.stage = Stage::Detached { instance };
        self.note(Note::Detached { call: id.clone() });
    }

    /// No word of the daemon in time. Says nothing about the socket: only silence does.
    pub(super) fn deadline(&mut self, now: Now, id: &CallId) {
        let Some(Call { stage: Stage::Sent { socket, .. }, .. }) = self.calls.get(id) else { return };
        let socket = *socket;
        if self.socket(socket).is_some_and(|socket| socket.mid_frame) {
            // What is being received may be this call's result.
            return self.timers.set(Timer::Deadline(id.clone()), Due::awake(now, limits::STALL_NOTICED));
        }
        self.withdraw(id);
        let error = ToolError::new(Code::OutcomeUnknown, "the daemon sent no word within the call's deadline");
        self.end(now, id, Err(error), EndKind::Unknown);
        self.dispatch(now);
    }
}

/// Arguments of a call that will not be sent.
pub(super) fn no_arguments() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}
