//! One device: its switchboard, the sockets it writes to, the requests that wait.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use holdfast_core::id::{CallId, DeviceId};
use holdfast_core::limits;
use holdfast_core::switchboard::{
    Catalogue, Input, Intake, Note, OpenCall, Output, SocketId, StoreRequest, Switchboard, SwitchboardStatus, WaiterId,
};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};

use super::call::{CallHandle, CallProgress, Slot};
use super::{Shared, store};
use crate::socket::{Alarm, Item, News, Pace, Room, Wire, Wires};

/// One device.
pub struct DeviceRoom {
    me: Weak<DeviceRoom>,
    id: DeviceId,
    pub(super) shared: Arc<Shared>,
    state: Mutex<State>,
    /// Written under the state's lock.
    catalogue: watch::Sender<Arc<Catalogue>>,
    /// The timer is to look again, because something is due earlier.
    earlier: Notify,
    stopped: Notify,
}

pub(super) struct State {
    board: Switchboard,
    waiters: HashMap<WaiterId, Arc<Slot>>,
    wires: Wires,
    alarm: Alarm,
    admitted: Option<CallId>,
    /// When another instance was last refused (boot time).
    in_use_at: Option<Duration>,
    stopped: bool,
    /// Sockets whose task still runs, if only to say goodbye.
    open_sockets: usize,
}

/// A device as `server_info` and `/metrics` show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceStatus {
    /// The machine's own view.
    pub link: SwitchboardStatus,
    /// When it became ready, in seconds since 1970, if it is.
    pub connected_at: Option<i64>,
    /// When it was last heard, in seconds since 1970.
    pub last_seen: Option<i64>,
    /// When another computer with this device's credential was last refused, in seconds since 1970; `None` once
    /// [`limits::IN_USE_TOLD`] went by without another try.
    pub in_use: Option<i64>,
    /// Age of the oldest call.
    pub oldest: Option<Duration>,
}

impl std::fmt::Debug for DeviceRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceRoom").field("id", &self.id).finish_non_exhaustive()
    }
}

impl DeviceRoom {
    pub(super) fn new(id: DeviceId, shared: Arc<Shared>, board: Switchboard) -> Arc<Self> {
        Arc::new_cyclic(|me| DeviceRoom {
            me: me.clone(),
            id,
            shared,
            state: Mutex::new(State {
                board,
                waiters: HashMap::new(),
                wires: Wires::default(),
                alarm: Alarm::default(),
                admitted: None,
                in_use_at: None,
                stopped: false,
                open_sockets: 0,
            }),
            catalogue: watch::Sender::default(),
            earlier: Notify::new(),
            stopped: Notify::new(),
        })
    }

    /// Which device.
    pub fn id(&self) -> &DeviceId {
        &self.id
    }

    /// Asks the device to run a tool. Never blocks; a refusal arrives as the end. Inside a tokio runtime.
    pub fn open(self: &Arc<Self>, call: OpenCall) -> CallHandle {
        self.wait(&mut self.state.lock(), |waiter| Input::Open { waiter, call: Box::new(call) })
    }

    /// Whether a call has not left the switchboard.
    pub(super) fn holds(&self, call: &CallId) -> bool {
        self.state.lock().board.holds(call)
    }

    /// Waits for a promoted call too. `None`: it is over, and its record says how, or will when the store's queue is through.
    pub(super) fn attend(self: &Arc<Self>, call: &CallId) -> Option<CallHandle> {
        let mut state = self.state.lock();
        let held = state.board.holds(call);
        held.then(|| self.wait(&mut state, |waiter| Input::Attend { waiter, call: call.clone() }))
    }

    fn wait(self: &Arc<Self>, state: &mut MutexGuard<'_, State>, input: impl FnOnce(WaiterId) -> Input) -> CallHandle {
        let waiter = self.shared.waiter();
        let slot = Arc::new(Slot::default());
        state.waiters.insert(waiter, Arc::clone(&slot));
        self.drive(state, input(waiter));
        let admitted = state.admitted.take();
        debug_assert!(admitted.is_some(), "every waiter is admitted");
        let id = admitted.unwrap_or_else(|| CallId::mint([0; CallId::RANDOM_BYTES]));
        CallHandle::new(Arc::clone(self), slot, waiter, id)
    }

    /// The device's tools and policy as last heard, whether it is connected or not. No tools: it was never seen.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.borrow())
    }

    /// Hears of every change of the catalogue from now on; `tools/list` listeners are told.
    pub fn catalogue_changes(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.catalogue.subscribe()
    }

    /// A proven link is open now.
    pub fn is_ready(&self) -> bool {
        self.state.lock().board.is_ready()
    }

    /// Counts of this moment.
    pub fn status(&self) -> DeviceStatus {
        let now = self.shared.pace.now();
        let link = {
            let mut state = self.state.lock();
            heard(&mut state, now);
            state.board.snapshot(now)
        };
        let unix = |boot: Option<Duration>| boot.map(|boot| self.shared.pace.unix_of(boot));
        DeviceStatus {
            connected_at: unix(link.ready_since),
            last_seen: unix(link.last_heard),
            in_use: unix(link.in_use_at.filter(|at| now.boot < *at + limits::IN_USE_TOLD)),
            oldest: link.pending.oldest,
            link,
        }
    }

    /// Takes in what happened.
    pub(super) fn tell(&self, input: Input) {
        self.drive(&mut self.state.lock(), input);
    }

    /// The request that waited goes away before the end.
    pub(super) fn leave(&self, waiter: WaiterId, call: &CallId) {
        let mut state = self.state.lock();
        state.waiters.remove(&waiter);
        self.drive(&mut state, Input::Leave { waiter, call: call.clone() });
    }

    pub(super) fn remember(&self, memory: store::Memory) {
        let mut state = self.state.lock();
        if let Some(catalogue) = memory.catalogue {
            self.catalogue.send_replace(Arc::new(catalogue));
        }
        if !memory.calls.is_empty() {
            self.drive(&mut state, Input::Restore { calls: memory.calls });
        }
    }

    /// Resolves when the machine has stopped and every socket has heard why.
    pub(super) async fn stopped(&self) {
        loop {
            let notified = self.stopped.notified();
            {
                let state = self.state.lock();
                if state.stopped && state.open_sockets == 0 {
                    return;
                }
            }
            notified.await;
        }
    }

    fn drive(&self, state: &mut MutexGuard<'_, State>, input: Input) {
        let now = self.shared.pace.now();
        state.board.handle(now, input);
        self.route(state);
        let left = state.board.poll_timeout(now);
        state.alarm.set(&self.me, &self.shared.runtime, now, left);
    }

    fn route(&self, state: &mut State) {
        while let Some(output) = state.board.poll_output() {
            match output {
                Output::Transmit { socket, text } => state.wires.put(socket, Item::Text(text)),
                Output::Ping { socket, nonce } => state.wires.put(socket, Item::Ping(nonce)),
                Output::Close { socket, close } => state.wires.close(socket, close),
                Output::Admitted { call, .. } => state.admitted = Some(call),
                Output::Progress { waiter, progress, total, message } => {
                    if let Some(slot) = state.waiters.get(&waiter) {
                        slot.progress(CallProgress { progress, total, message });
                    }
                }
                Output::Kept { waiter, handle } => {
                    if let Some(slot) = state.waiters.remove(&waiter) {
                        slot.kept(handle);
                    }
                }
                Output::End { waiter, outcome } => {
                    if let Some(slot) = state.waiters.remove(&waiter) {
                        slot.end(outcome);
                    }
                }
                Output::Store(request) => self.store(request),
                Output::Catalogue(catalogue) => {
                    store::keep_catalogue(&self.shared.store, &self.id, &catalogue, self.shared.pace.unix());
                    self.catalogue.send_replace(catalogue);
                }
                Output::Note(note) => {
                    self.shared.counters.count(&note);
                    if note == Note::InUse {
                        self.warn_in_use(state);
                    }
                }
                Output::Stopped => {
                    state.stopped = true;
                    self.stopped.notify_waiters();
                }
            }
        }
    }

    /// A copy that keeps trying is told of once.
    fn warn_in_use(&self, state: &mut State) {
        let now = self.shared.pace.boot();
        let before = state.in_use_at.replace(now);
        if before.is_none_or(|at| now >= at + limits::IN_USE_TOLD) {
            tracing::warn!(device = %self.id, "another computer answers with this device's credential and was refused");
        }
    }

    fn store(&self, request: StoreRequest) {
        let room = self.me.clone();
        let runtime = self.shared.runtime.clone();
        let told = move |call, answer| {
            if let Some(room) = room.upgrade() {
                runtime.spawn(async move { room.tell(Input::Stored { call, answer }) });
            }
        };
        store::keep(&self.shared.store, &self.id, request, self.shared.pace.unix(), told);
    }
}

impl Room for DeviceRoom {
    type Intake = Intake;
    const FRAME_MAX: usize = limits::FRAME_MAX;

    fn pace(&self) -> &Arc<Pace> {
        &self.shared.pace
    }

    fn connect(&self) -> (SocketId, Arc<Wire>) {
        let socket = self.shared.socket();
        let mut state = self.state.lock();
        state.open_sockets += 1;
        let wire = state.wires.add(socket);
        self.drive(&mut state, Input::Connected { socket });
        drop(state);
        (socket, wire)
    }

    fn arrived(&self, socket: SocketId, intake: &mut Intake, news: News<'_>) {
        let arrival = match news {
            News::Text(text) => intake.read(text),
            News::Binary(bytes) => intake.read_binary(bytes),
            News::Broken(error) => error.into(),
            News::Ponged(nonce) => return self.tell(Input::Ponged { socket, nonce }),
        };
        self.tell(Input::Arrived { socket, arrival });
    }

    fn disconnect(&self, socket: SocketId, word: Option<(u16, String)>) {
        let mut state = self.state.lock();
        self.drive(&mut state, Input::Closed { socket, word });
        state.wires.remove(socket);
    }

    fn parted(&self) {
        self.state.lock().open_sockets -= 1;
        self.stopped.notify_waiters();
    }

    /// What the sockets received meanwhile counts, then what is due is done.
    fn turn(&self) -> Option<Duration> {
        let now = self.shared.pace.now();
        let mut state = self.state.lock();
        heard(&mut state, now);
        state.board.handle_timeout(now);
        self.route(&mut state);
        let left = state.board.poll_timeout(now);
        state.alarm.next(now, left)
    }

    fn earlier(&self) -> &Notify {
        &self.earlier
    }
}

fn heard(state: &mut State, now: holdfast_core::time::Now) {
    let State { board, wires, .. } = state;
    for (socket, wire) in wires.iter() {
        let meter = wire.meter();
        board.handle(now, Input::Heard { socket, at: meter.heard(), mid_frame: meter.mid_frame() });
    }
}
