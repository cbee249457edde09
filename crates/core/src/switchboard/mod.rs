//! The relay's side of one device's link: its sockets, its calls, and which call is on which socket.
//!
//! One [`Switchboard`] per device. The shell mints socket and waiter numbers, decodes frames with one [`Intake`] per
//! socket, and does what [`Switchboard::poll_output`] says, in that order.

mod calls;
mod catalogue;
mod dispatch;
mod frames;
mod handover;
mod handshake;
mod input;
mod intake;
mod keys;
mod life;
mod output;
mod promote;
mod redact;
mod results;
mod snapshot;
mod socket;
mod stop;

#[cfg(test)]
mod tests;

pub use catalogue::Catalogue;
pub use input::{IdempotencyKey, Input, OpenCall, Outcome, Outlives, RestoredCall, SocketId, StoreAnswer, WaiterId};
pub use intake::{Arrival, ChunkError, Intake};
pub use output::{EndKind, Loss, NewRecord, Note, Output, StoreRequest};

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;

use self::calls::Call;
use self::keys::KeyScope;
use self::life::Home;
use self::socket::Socket;
use self::stop::Stage as StopStage;
use crate::id::{CallId, InstanceId};
use crate::time::{Now, TimerTable};
use crate::wire::{BASE_SERVER, BASE_VERSION, Features, LinkRange};

/// What this relay presents itself as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// `server` of welcome, `hello_ack` and `ready_ack`.
    pub server: Arc<str>,
    /// `version` beside it.
    pub version: Arc<str>,
    /// Link versions; `None` on the base wire.
    pub link: Option<LinkRange>,
    /// Features offered; none on the base wire.
    pub features: Features,
}

impl Identity {
    /// A Holdfast of this version with every feature.
    pub fn holdfast(version: &str) -> Identity {
        Identity {
            server: "holdfast".into(),
            version: version.into(),
            link: Some(LinkRange::OURS),
            features: Features::all(),
        }
    }

    /// `link.identity = "machine-bridge-mcp@1.2.10"`: what an unmodified base daemon demands.
    pub fn base() -> Identity {
        Identity { server: BASE_SERVER.into(), version: BASE_VERSION.into(), link: None, features: Features::NONE }
    }
}

/// A switchboard as `server_info`, `/metrics` and tests see it. Times are boot times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SwitchboardStatus {
    /// A proven socket is open.
    pub ready: bool,
    /// Since when, if ready.
    pub ready_since: Option<Duration>,
    /// When the ready socket was last heard, or the last one before it was lost.
    pub last_heard: Option<Duration>,
    /// The instance that holds the device.
    pub instance: Option<InstanceId>,
    /// Features of the ready socket.
    pub features: Features,
    /// Sockets before their hello was accepted.
    pub candidates: usize,
    /// Sockets being proven.
    pub probing: usize,
    /// Calls.
    pub pending: PendingCalls,
    /// Until when the calls of a sleeping device are held.
    pub hold_until: Option<Duration>,
    /// When another instance was last refused while this one answered.
    pub in_use_at: Option<Duration>,
    /// The relay stops.
    pub stopping: bool,
}

/// Counts of the calls of one device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PendingCalls {
    /// Held, in whatever stage.
    pub active: usize,
    /// Of them waiting to be sent.
    pub queued: usize,
    /// Of them sent and on a socket.
    pub sent: usize,
    /// Of them sent and without a socket.
    pub detached: usize,
    /// Of them ended, not yet committed.
    pub uncommitted: usize,
    /// Of them with an idempotency key.
    pub keyed: usize,
    /// Of them promoted.
    pub promoted: usize,
    /// The bound on `active`, promoted ones that wait to be sent not counted.
    pub maximum: usize,
    /// Age of the oldest.
    pub oldest: Option<Duration>,
    /// By tool, sorted.
    pub by_tool: BTreeMap<Arc<str>, usize>,
}

/// The relay's side of one device's link.
pub struct Switchboard {
    identity: Arc<Identity>,
    rng: StdRng,
    /// Open sockets, oldest first; a handful at most.
    sockets: Vec<Socket>,
    /// Who holds the device.
    home: Option<Home>,
    /// Instances refused while another one answered.
    refused: VecDeque<InstanceId>,
    in_use_at: Option<Duration>,
    last_heard: Option<Duration>,
    calls: HashMap<CallId, Call>,
    /// Calls that wait to be sent, first come first.
    queue: VecDeque<CallId>,
    by_key: HashMap<KeyScope, CallId>,
    /// Number of the next call, for their order.
    order: u64,
    catalogue: Arc<Catalogue>,
    stop: StopStage,
    revoked: bool,
    timers: TimerTable<Timer>,
    out: VecDeque<Output>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// hello is due.
    Hello(SocketId),
    /// The incumbent's answer is due, or this newcomer goes on.
    Challenge(SocketId),
    /// Readiness is due.
    Ready(SocketId),
    /// The report is due.
    Report(SocketId),
    /// We have to write something.
    Beat(SocketId),
    /// A sign of life is due.
    Life(SocketId),
    /// Acknowledgements have waited long enough.
    Acks(SocketId),
    /// The next chunk is due.
    Chunks(SocketId),
    /// A queued call has waited long enough.
    Wait(CallId),
    /// A promoted call whose assignment the store refused is assigned again.
    Assign(CallId),
    /// The next request that outlives its patience.
    Patience,
    /// A sent call's word is due (awake time).
    Deadline(CallId),
    /// Grace or hold of the instance that is away.
    Grace,
    /// The relay has waited long enough to stop.
    Stop,
}

impl Switchboard {
    /// A switchboard without sockets and calls. The seed must come from the operating system: probes and call ids are drawn
    /// from it.
    pub fn new(identity: Arc<Identity>, seed: [u8; 32]) -> Self {
        Switchboard {
            identity,
            rng: StdRng::from_seed(seed),
            sockets: Vec::new(),
            home: None,
            refused: VecDeque::new(),
            in_use_at: None,
            last_heard: None,
            calls: HashMap::new(),
            queue: VecDeque::new(),
            by_key: HashMap::new(),
            order: 0,
            catalogue: Arc::default(),
            stop: StopStage::default(),
            revoked: false,
            timers: TimerTable::default(),
            out: VecDeque::new(),
        }
    }

    /// Takes in what happened. Outputs stand ready afterwards.
    pub fn handle(&mut self, now: Now, input: Input) {
        match input {
            Input::Connected { socket } => self.connected(now, socket),
            Input::Arrived { socket, arrival } => self.arrived(now, socket, arrival),
            Input::Ponged { socket, nonce } => self.ponged(now, socket, nonce),
            Input::Heard { socket, at, mid_frame } => self.heard(socket, at, mid_frame),
            Input::Closed { socket, word } => self.closed(now, socket, word),
            Input::Open { waiter, call } => self.open(now, waiter, *call),
            Input::Attend { waiter, call } => self.attend(waiter, &call),
            Input::Leave { waiter, call } => self.leave(now, waiter, &call),
            Input::Cancel { call } => self.cancel(now, &call),
            Input::Commit { call } => self.commit(now, &call),
            Input::Stored { call, answer } => self.stored(now, &call, answer),
            Input::Restore { calls } => self.restore(now, calls),
            Input::Stop => self.stop(now),
            Input::Revoke => self.revoke(now),
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Now) {
        while let Some(timer) = self.timers.expired(now) {
            match timer {
                Timer::Hello(socket) => self.hello_late(now, socket),
                Timer::Challenge(socket) => self.incumbent_silent(now, socket),
                Timer::Ready(socket) | Timer::Report(socket) => self.ready_late(now, socket),
                Timer::Beat(socket) => self.beat(now, socket),
                Timer::Life(socket) => self.life_due(now, socket),
                Timer::Acks(socket) => self.flush_acks(socket),
                Timer::Chunks(socket) => self.chunk_due(now, socket),
                Timer::Wait(call) => self.waited(now, &call),
                Timer::Assign(call) => self.assign_again(now, &call),
                Timer::Patience => self.patience_over(now),
                Timer::Deadline(call) => self.deadline(now, &call),
                Timer::Grace => self.grace_over(now),
                Timer::Stop => self.stop_now(now),
            }
        }
    }

    /// A proven link is open.
    pub fn is_ready(&self) -> bool {
        self.ready_socket().is_some()
    }

    /// Whether this call has not left yet.
    pub fn holds(&self, call: &CallId) -> bool {
        self.calls.contains_key(call)
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Time until [`Self::handle_timeout`] is due; `None`: nothing runs.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.timers.earliest(now)
    }

    fn note(&mut self, note: Note) {
        self.out.push_back(Output::Note(note));
    }
}
