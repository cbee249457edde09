//! The control side of durable operations: the relay's half of one device's worker.
//!
//! One [`Control`] per device. It admits operations, sends them to the worker, commits what comes back and acknowledges only
//! what is committed. Nothing in it survives a crash: whatever must is a [`Change`] that the shell commits to its store, and
//! a new machine is made of what the store loads. So every promise has one shape: `Output::Commit` → the store →
//! `Input::Committed` → the word to the client or the worker.
//!
//! Only operations that have not ended are in memory. Ended ones stand in the store, which is also the arbiter of clients'
//! keys and of cancelled sessions; cost and memory do not grow with what a device did before.
//!
//! The shell decodes frames and mints socket, asker and operation numbers. After every input it drains
//! [`Control::poll_output`], writes what [`Control::poll_transmit`] gives while the socket has room, and waits for
//! [`Control::poll_timeout`].

mod commit;
mod delivery;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
mod io;
mod life;
mod machine;
mod output;
mod record;
mod recovery;
mod sockets;

#[cfg(test)]
mod tests;

pub use io::{Accepted, AskId, Input, Loss, Note, Output, Refused, Snapshot, Start, Ticket, View};
pub use machine::Control;
pub use record::{Change, Found, Loaded, Record, SessionCancel, evidence};

pub use crate::switchboard::SocketId;
