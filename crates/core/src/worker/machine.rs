//! The machine as a whole.

use std::collections::VecDeque;
use std::time::Duration;

use super::io::*;
use super::ledger::Stored;
use crate::daemon::SocketId;
use crate::status::LinkState;
use crate::time::Now;

/// The worker's side of durable operations.
pub struct Worker {
    settings: Settings,
    stored: Stored,
    out: VecDeque<Output>,
    seed: u64,
}

impl Worker {
    /// A worker at rest that settles at once what its ledger says was starting or running. `seed` is for jitter only.
    pub fn new(_now: Now, settings: Settings, stored: Stored, seed: u64) -> Self {
        Worker { settings, stored, out: VecDeque::new(), seed }
    }

    /// Takes in what happened. Outputs and transmits stand ready afterwards.
    pub fn handle(&mut self, _now: Now, _input: Input<'_>) {}

    /// Does what is due.
    pub fn handle_timeout(&mut self, _now: Now) {}

    /// The next thing to do, in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// The next frame to write on a socket, if there is one now.
    pub fn poll_transmit(&mut self, _now: Now, _socket: SocketId) -> Option<String> {
        None
    }

    /// Time until [`Worker::handle_timeout`] is due; `None`: nothing runs.
    pub fn poll_timeout(&self, _now: Now) -> Option<Duration> {
        None
    }

    /// The state of the connection people see.
    pub fn state(&self) -> LinkState {
        LinkState::Stopped
    }

    /// What people are told.
    pub fn snapshot(&self, _now: Now) -> Snapshot {
        let _ = (&self.settings, self.seed);
        Snapshot {
            state: LinkState::Stopped,
            since: Duration::ZERO,
            attempts: 0,
            cause: None,
            next_try_at: None,
            live: false,
            lease_ends_at: None,
            lease_held: false,
            generation: self.stored.generation,
            counts: Vec::new(),
            stalled: 0,
            behind: 0,
            results_waiting: 0,
            full_since: None,
            living: Vec::new(),
            ended: Vec::new(),
        }
    }
}
