//! The worker's side of durable operations: what it admits it does once, and it keeps what came of it until the relay has
//! it, through drops, crashes and sleep.
//!
//! [`Worker`] is the whole machine; a shell gives it [`Input`]s and the time, carries out its [`Output`]s, and pulls the
//! frames to write with [`Worker::poll_transmit`], one at a time and only while a socket has room.
//!
//! Parts: `ledger` names what is durable and `commits` what a commit is for; `operations` is the table of what is not over;
//! `recovery` is one connection and `link` what becomes of connections; `admission` is what the relay asks for, `runs` what
//! happens to a run, `ends` work that is no run and how anything ends; `window` is output on its way, `lease` the leave to
//! execute, `show` what a new life finds and what people are told.

mod admission;
mod commits;
mod ends;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
mod io;
mod lease;
mod ledger;
mod link;
mod machine;
mod operations;
mod recovery;
mod retry;
mod runs;
mod show;
#[cfg(test)]
mod tests;
mod window;

pub use io::*;
pub use ledger::{Change, Found, Known, LedgerError, Living, Row, Stored, Ticket};
pub use machine::Worker;
pub use retry::Retry;
