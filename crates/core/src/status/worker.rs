//! Durable operations as this machine's worker sees them.

use serde::{Deserialize, Serialize};

use super::{LinkState, UnixMs};
use crate::operation::{Kind, OnLeaseExpiry, State};

/// The worker: its connection, its lease, its operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct WorkerStatus {
    /// Its own connection to the relay.
    pub state: LinkState,
    /// Since when.
    pub since: UnixMs,
    /// Why it is not healthy, in plain words.
    pub cause: Option<String>,
    /// When the next try begins.
    pub next_try_at: Option<UnixMs>,
    /// The execution lease.
    pub lease: LeaseStatus,
    /// How many operations have not ended, and how many ended without an outcome lately.
    pub counts: WorkerCounts,
    /// Output written here that the relay has not acknowledged, in bytes.
    pub behind_bytes: u64,
    /// Results that the relay has not acknowledged.
    pub results_waiting: usize,
    /// Since when new operations are refused because the disk is full.
    pub admission_closed: Option<UnixMs>,
    /// Living operations, oldest first, then the latest ended ones; at most
    /// [`crate::limits::WORKER_SHOWN`].
    pub operations: Vec<OperationRow>,
}

/// The execution lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct LeaseStatus {
    /// Whether it is in force.
    pub held: bool,
    /// When it ends unless it is renewed; shown as a countdown while it is not.
    pub ends_at: Option<UnixMs>,
    /// Whether it is being renewed now: the worker is live.
    pub renewed: bool,
    /// Grows by one each time it expired.
    pub generation: u64,
}

/// Numbers of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct WorkerCounts {
    /// Received, not started.
    pub waiting: usize,
    /// Starting or running.
    pub running: usize,
    /// Of the running: those whose program waits because its output finds no room.
    pub stalled: usize,
    /// Ended with an unknown outcome, of the ones shown.
    pub unknown: usize,
}

/// One operation in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct OperationRow {
    /// Its id.
    pub id: String,
    /// What kind of work it is.
    pub kind: Kind,
    /// What it does, in a few words; cleaned and redacted.
    pub summary: String,
    /// How it stands.
    pub state: State,
    /// Since when it stands so.
    pub since: UnixMs,
    /// Its exit code, if it ended with one.
    pub exit_code: Option<i32>,
    /// Output that the relay has not acknowledged, in bytes.
    pub behind_bytes: u64,
    /// Since when its program waits for room.
    pub stalled_since: Option<UnixMs>,
    /// What happens when the lease ends.
    pub on_lease_expiry: OnLeaseExpiry,
    /// Why it failed or what is known of it, in one sentence.
    pub note: Option<String>,
}
