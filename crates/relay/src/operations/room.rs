//! One device's worker: its control machine, its sockets, the clients that wait.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use holdfast_core::code::Code;
use holdfast_core::control::{
    Accepted, AskId, Change, Control, Found, Input, Loaded, Note, Output, Refused, Snapshot, Ticket, View,
};
use holdfast_core::id::{DeviceId, OperationId};
use holdfast_core::limits;
use holdfast_core::operation::Failure;
use holdfast_core::switchboard::SocketId;
use holdfast_core::time::Now;
use holdfast_core::wire::close;
use holdfast_core::wire::worker::WorkerFrame;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot, watch};

use super::Shared;
use super::store;
use crate::socket::{Alarm, Item, News, Pace, Room, Wire, Wires};
use crate::store::StoreError;

/// The worker of one device.
pub(super) struct WorkerRoom {
    me: Weak<WorkerRoom>,
    id: DeviceId,
    shared: Arc<Shared>,
    state: Mutex<State>,
    /// What the store answered and the machine has not heard, in the order of the commits. A lock of its own: the store
    /// answers on its thread, or at once and under the other lock.
    committed: Mutex<VecDeque<(Ticket, Result<Found, Refused>)>>,
    /// The store refused something, and has taken nothing of substance since.
    refusing: AtomicBool,
    earlier: Notify,
    parted: Notify,
}

struct State {
    control: Control,
    asks: HashMap<AskId, oneshot::Sender<Result<Accepted, Failure>>>,
    watched: HashMap<OperationId, watch::Sender<()>>,
    wires: Wires,
    alarm: Alarm,
    open_sockets: usize,
    /// When another ledger was last refused (boot time).
    in_use_at: Option<Duration>,
    /// The relay stops: no socket is taken.
    stopping: bool,
}

impl WorkerRoom {
    pub(super) fn new(id: DeviceId, shared: Arc<Shared>, loaded: Loaded) -> Arc<Self> {
        let now = shared.pace.now();
        let control = Control::new(now, shared.seed(), loaded);
        let room = Arc::new_cyclic(|me| WorkerRoom {
            me: me.clone(),
            id,
            shared,
            state: Mutex::new(State {
                control,
                asks: HashMap::new(),
                watched: HashMap::new(),
                wires: Wires::default(),
                alarm: Alarm::default(),
                open_sockets: 0,
                in_use_at: None,
                stopping: false,
            }),
            committed: Mutex::default(),
            refusing: AtomicBool::new(false),
            earlier: Notify::new(),
            parted: Notify::new(),
        });
        // What was loaded may have run out of time.
        room.settle(&mut room.state.lock(), now);
        room
    }

    /// Asks the machine, and waits for what it says.
    pub(super) async fn ask(&self, input: impl FnOnce(AskId) -> Input) -> Result<Accepted, Failure> {
        let ask = self.shared.ask();
        let (tell, told) = oneshot::channel();
        {
            let mut state = self.state.lock();
            state.asks.insert(ask, tell);
            self.drive(&mut state, input(ask));
        }
        // Dropped only with the relay.
        told.await.unwrap_or_else(|_| Err(Failure::nothing_done(Code::Unavailable, "the relay stops")))
    }

    /// A living operation, as the machine knows it.
    pub(super) fn view(&self, id: &OperationId) -> Option<View> {
        self.state.lock().control.view(id)
    }

    /// Hears of every change of an operation from now on.
    pub(super) fn watch(&self, id: &OperationId) -> watch::Receiver<()> {
        let mut state = self.state.lock();
        state.watched.retain(|_, sender| sender.receiver_count() > 0);
        state.watched.entry(id.clone()).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    /// The worker and its operations at this moment.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.state.lock().control.snapshot()
    }

    /// Whether the store refuses what this device's operations need room for.
    pub(super) fn is_refusing(&self) -> bool {
        self.refusing.load(Ordering::Relaxed)
    }

    /// Whether the worker is connected and recovered.
    pub(super) fn is_live(&self) -> bool {
        self.state.lock().control.is_live()
    }

    pub(super) fn tell(&self, input: Input) {
        self.drive(&mut self.state.lock(), input);
    }

    /// Closes the sockets, and waits until they have heard why.
    pub(super) async fn stop(&self) {
        {
            let mut state = self.state.lock();
            state.stopping = true;
            let sockets: Vec<SocketId> = state.wires.iter().map(|(socket, _)| socket).collect();
            for socket in sockets {
                state.wires.close(socket, close::RELAY_STOPS);
            }
        }
        loop {
            let parted = self.parted.notified();
            if self.state.lock().open_sockets == 0 {
                return;
            }
            parted.await;
        }
    }

    /// Cuts the sockets.
    pub(super) fn cut(&self) {
        let mut state = self.state.lock();
        state.stopping = true;
        state.wires.iter().for_each(|(_, wire)| wire.cut());
    }

    fn drive(&self, state: &mut MutexGuard<'_, State>, input: Input) {
        let now = self.shared.pace.now();
        state.control.handle(now, input);
        self.settle(state, now);
    }

    /// Does what the machine wants done.
    fn settle(&self, state: &mut State, now: Now) {
        while let Some(output) = state.control.poll_output() {
            match output {
                Output::Commit { ticket, changes } => self.commit(ticket, changes),
                Output::Answer { ask, answer } => {
                    if let Some(asker) = state.asks.remove(&ask) {
                        // Whoever left needs no answer.
                        drop(asker.send(answer));
                    }
                }
                Output::Changed { id } => {
                    if let Some(watched) = state.watched.get(&id)
                        && watched.send(()).is_err()
                    {
                        state.watched.remove(&id);
                    }
                }
                Output::Ping { socket } => state.wires.put(socket, Item::Ping(0)),
                Output::Close { socket, close } => state.wires.close(socket, close),
                Output::Note(note) => self.note(state, now, &note),
            }
        }
        for (_, wire) in state.wires.iter() {
            wire.nudge();
        }
        let left = state.control.poll_timeout(now);
        state.alarm.set(&self.me, &self.shared.runtime, now, left);
    }

    fn note(&self, state: &mut State, now: Now, note: &Note) {
        self.shared.counters.count(note);
        match note {
            Note::InUse => {
                // A copy that keeps trying is told of once.
                let before = state.in_use_at.replace(now.boot);
                if before.is_none_or(|at| now.boot >= at + limits::IN_USE_TOLD) {
                    tracing::warn!(device = %self.id, "a copy of the device's worker, with a ledger of its own, was refused");
                }
            }
            Note::LedgerReplaced { unknown } => {
                tracing::warn!(device = %self.id, unknown, "the worker has lost its ledger");
            }
            Note::Adopted { id } => {
                tracing::warn!(device = %self.id, %id, "an operation that the store had lost was taken back from its worker");
            }
            Note::Live { .. } => tracing::info!(device = %self.id, "the worker is live"),
            Note::Away { why, .. } => tracing::info!(device = %self.id, ?why, "the worker is away"),
            Note::Admitted { .. } | Note::Sent { .. } | Note::Ended { .. } => {}
        }
    }

    fn commit(&self, ticket: Ticket, mut changes: Vec<Change>) {
        for change in &mut changes {
            if let Change::Adopt(record) = change {
                record.principal = self.owner();
            }
        }
        let Some(room) = self.me.upgrade() else { return };
        let (device, now, bounds) = (self.id.clone(), self.shared.moment(), self.shared.bounds);
        let bytes: usize =
            changes.iter().map(|change| if let Change::Output { bytes, .. } = change { bytes.len() } else { 0 }).sum();
        let begins =
            changes.iter().any(|change| matches!(change, Change::Admit(_) | Change::Adopt(_) | Change::Output { .. }));
        let done = move |result: Result<Found, StoreError>| {
            if result.is_ok() {
                room.shared.counters.committed(bytes);
            }
            room.note_refusal(&result, begins);
            room.committed(ticket, result);
        };
        let work = move |db: &rusqlite::Connection| store::apply(db, &bounds, &device, &changes, &now);
        match begins {
            true => self.shared.store.submit(move |db| work(db), done),
            // The end of what was begun is a few rows: it passes when the disk is nearly full.
            false => self.shared.store.submit_final(work, done),
        }
    }

    /// Whose an operation is of which nothing else is known: the account's that the device belongs to.
    fn owner(&self) -> Arc<str> {
        let account = self.shared.owners.get(&self.id).map_or(self.id.as_str(), String::as_str);
        format!("{account} {}", self.id).into()
    }

    /// Tells when the store begins to refuse and when that is over. A few rows may pass while a disk is full: only what
    /// `needs_room` shows that there is some.
    fn note_refusal(&self, result: &Result<Found, StoreError>, needs_room: bool) {
        match result {
            Err(error) if !self.refusing.swap(true, Ordering::Relaxed) => {
                tracing::warn!(device = %self.id, %error, "operations cannot be kept: refused from now on");
            }
            Ok(_) if needs_room && self.refusing.swap(false, Ordering::Relaxed) => {
                tracing::info!(device = %self.id, "operations can be kept again");
            }
            _ => {}
        }
    }

    /// The store's answer. Never blocks for long: this is its thread.
    fn committed(self: &Arc<Self>, ticket: Ticket, result: Result<Found, StoreError>) {
        let result = result.map_err(|error| match error {
            StoreError::Full => Refused::Full,
            _ => Refused::Unavailable,
        });
        let first = {
            let mut committed = self.committed.lock();
            committed.push_back((ticket, result));
            committed.len() == 1
        };
        if first {
            let room = Arc::clone(self);
            self.shared.runtime.spawn(async move { room.hear_store() });
        }
    }

    fn hear_store(&self) {
        let mut state = self.state.lock();
        let answers = std::mem::take(&mut *self.committed.lock());
        for (ticket, result) in answers {
            self.drive(&mut state, Input::Committed { ticket, result });
        }
    }
}

impl State {
    /// What the sockets received counts, whatever frames it belongs to.
    fn hear(&mut self, now: Now) {
        for (socket, wire) in self.wires.iter() {
            self.control.handle(now, Input::Heard { socket, at: wire.meter().heard() });
        }
    }
}

impl Room for WorkerRoom {
    type Intake = ();
    const FRAME_MAX: usize = limits::OPERATION_FRAME_MAX;

    fn pace(&self) -> &Arc<Pace> {
        &self.shared.pace
    }

    fn connect(&self) -> (SocketId, Arc<Wire>) {
        let socket = self.shared.socket();
        let mut state = self.state.lock();
        // Whether the device still answers on another one decides whether this one is taken.
        state.hear(self.shared.pace.now());
        state.open_sockets += 1;
        let wire = state.wires.add(socket);
        match state.stopping {
            true => state.wires.close(socket, close::RELAY_STOPS),
            false => self.drive(&mut state, Input::Connected { socket }),
        }
        (socket, wire)
    }

    fn give(&self, socket: SocketId) -> Option<String> {
        let frame = {
            let mut state = self.state.lock();
            let now = self.shared.pace.now();
            let frame = state.control.poll_transmit(now, socket);
            if frame.is_some() {
                self.settle(&mut state, now);
            }
            frame
        };
        frame.map(|frame| frame.encode())
    }

    fn arrived(&self, socket: SocketId, (): &mut (), news: News<'_>) {
        let input = match news {
            News::Text(text) => match WorkerFrame::decode(text) {
                Ok(frame) => Input::Frame { socket, frame },
                Err(_) => Input::Unreadable { socket },
            },
            News::Binary(_) | News::Broken(_) => Input::Unreadable { socket },
            // Bytes were heard, and that is all a pong says.
            News::Ponged(_) => return,
        };
        self.tell(input);
    }

    fn disconnect(&self, socket: SocketId, _word: Option<(u16, String)>) {
        let mut state = self.state.lock();
        state.wires.remove(socket);
        self.drive(&mut state, Input::Closed { socket });
    }

    fn parted(&self) {
        self.state.lock().open_sockets -= 1;
        self.parted.notify_waiters();
    }

    /// What the sockets received meanwhile counts, then what is due is done.
    fn turn(&self) -> Option<Duration> {
        let now = self.shared.pace.now();
        let mut state = self.state.lock();
        state.hear(now);
        state.control.handle_timeout(now);
        self.settle(&mut state, now);
        let left = state.control.poll_timeout(now);
        state.alarm.next(now, left)
    }

    fn earlier(&self) -> &Notify {
        &self.earlier
    }
}
