//! The shell of the daemon machine: one task that owns the sockets, the clocks and the outbox folder of the link.

pub(crate) mod clock;
pub(crate) mod dial;
pub(crate) mod network;
mod run;
pub(crate) mod sleep;
pub(crate) mod socket;
pub(crate) mod sockets;
mod spill;
mod stream;
#[cfg(test)]
mod tests;
mod types;

pub(crate) use dial::check_address;
pub use run::spawn;
use types::Command;
pub use types::*;
