//! The machine as a whole.

use std::time::Duration;

use super::io::{Input, Output, Place, Snapshot, View};
use super::record::Loaded;
use crate::id::OperationId;
use crate::time::Now;
use crate::wire::worker::ControlFrame;

/// The control side of one device. `handle`, drain `poll_output` and `poll_transmit`, wait for `poll_timeout`.
pub struct Control {}

impl Control {
    /// A machine of what the store loaded. The seed must come from the operating system: ids are drawn from it.
    pub fn new(_now: Now, _seed: [u8; 32], _loaded: Loaded) -> Control {
        Control {}
    }

    /// Takes in what happened. Outputs stand ready afterwards.
    pub fn handle(&mut self, _now: Now, _input: Input) {}

    /// Does what is due.
    pub fn handle_timeout(&mut self, _now: Now) {}

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        None
    }

    /// The next frame for this socket; asked only while it has room. Acknowledgements and cancels go before operations.
    pub fn poll_transmit(&mut self, _now: Now, _socket: super::SocketId) -> Option<ControlFrame> {
        None
    }

    /// Time until [`Control::handle_timeout`] is due; `None`: nothing runs.
    pub fn poll_timeout(&self, _now: Now) -> Option<Duration> {
        None
    }

    /// A living operation.
    pub fn view(&self, _id: &OperationId) -> Option<View> {
        None
    }

    /// All living operations, in order of admission.
    pub fn views(&self) -> Vec<View> {
        Vec::new()
    }

    /// The machine as a whole.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            place: Place::Away { since: None },
            held: 0,
            queued: 0,
            behind: 0,
            in_use_at: None,
            refused_since: None,
        }
    }
}
