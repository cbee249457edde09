//! The relay's side of one device's link: its sockets, its calls, and which call is on which socket.
//!
//! One [`Switchboard`] per device. The shell mints socket and waiter numbers, decodes frames with one [`Intake`] per
//! socket, and does what [`Switchboard::poll_output`] says, in that order.

mod catalogue;
mod input;
mod intake;
mod output;

pub use catalogue::Catalogue;
pub use input::{
    IdempotencyKey, Input, KeyScope, OpenCall, Outcome, RestoredCall, SocketId, StoreAnswer, WaiterId,
};
pub use intake::{Arrival, ChunkError, Intake};
pub use output::{EndKind, Loss, Note, Output, StoreRequest};

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::id::InstanceId;
use crate::time::Now;
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
    /// The bound on `active`.
    pub maximum: usize,
    /// Age of the oldest.
    pub oldest: Option<Duration>,
    /// By tool, sorted.
    pub by_tool: BTreeMap<Arc<str>, usize>,
}

/// The relay's side of one device's link.
#[derive(Debug)]
pub struct Switchboard {
    identity: Arc<Identity>,
    out: VecDeque<Output>,
}

impl Switchboard {
    /// A switchboard without sockets and calls. The seed must come from the operating system.
    pub fn new(identity: Arc<Identity>, seed: [u8; 32]) -> Self {
        let _ = seed;
        Switchboard { identity, out: VecDeque::new() }
    }

    /// Takes in what happened. Outputs stand ready afterwards.
    pub fn handle(&mut self, now: Now, input: Input) {
        let _ = (now, input, &self.identity);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Now) {
        let _ = now;
    }

    /// A proven link is open.
    pub fn is_ready(&self) -> bool {
        false
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Time until [`Self::handle_timeout`] is due; `None`: nothing runs.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        let _ = now;
        None
    }

    /// The counts of this moment.
    pub fn snapshot(&self, now: Now) -> SwitchboardStatus {
        let _ = now;
        SwitchboardStatus::default()
    }
}
