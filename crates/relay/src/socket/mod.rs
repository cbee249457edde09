//! Sockets of devices: from an upgrade request to a room that a machine lives in. The link (`/daemon/ws`) and the worker's
//! socket (`/worker/ws`) differ in their machines, not in this.

mod metered;
mod pace;
mod pump;
mod timer;
mod transfer;
pub(crate) mod upgrade;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::switchboard::SocketId;
use holdfast_core::wire::WireError;
use tokio::sync::Notify;

pub(crate) use pace::Pace;
pub(crate) use timer::Alarm;
pub(crate) use wire::{Item, Wire, Wires};

/// A machine behind one lock, with the sockets it writes to and a timer.
pub(crate) trait Room: Send + Sync + 'static {
    /// What reading the frames of one socket remembers.
    type Intake: Default + Send;
    /// Longest frame either way, in bytes.
    const FRAME_MAX: usize;

    /// The clock of its machine.
    fn pace(&self) -> &Arc<Pace>;
    /// A socket was accepted.
    fn connect(&self) -> (SocketId, Arc<Wire>);
    /// A frame to write, besides those in the queue of the wire. Asked for while the socket has room, after
    /// [`Wire::nudge`].
    fn give(&self, _socket: SocketId) -> Option<String> {
        None
    }
    /// Something came.
    fn arrived(&self, socket: SocketId, intake: &mut Self::Intake, news: News<'_>);
    /// The socket is gone to the room; its task may still say goodbye. `word`: the peer's close, if it gave one.
    fn disconnect(&self, socket: SocketId, word: Option<(u16, String)>);
    /// The task of a socket is over.
    fn parted(&self);
    /// The timer's turn: what is due is done. Answers how long to sleep.
    fn turn(&self) -> Option<Duration>;
    /// Tells the timer that something is due earlier.
    fn earlier(&self) -> &Notify;
}

/// What came on a socket.
pub(crate) enum News<'a> {
    /// A text frame.
    Text(&'a str),
    /// A binary frame.
    Binary(&'a [u8]),
    /// A frame that breaks a rule of the WebSocket layer.
    Broken(WireError),
    /// The answer to a ping.
    Ponged(u64),
}
