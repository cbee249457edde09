//! The daemon's side of the link: it dials, proves itself ready, runs calls once, and keeps results until they arrived.
//!
//! [`Daemon`] is the whole machine; a shell gives it [`Input`]s and the time, carries out its [`Output`]s, and pulls the
//! frames to write with [`Daemon::poll_transmit`], one at a time and only while a socket has room. Pulling is what lets a
//! small frame pass a big result, and what makes a frame's number the order in which it was written.
//!
//! Parts: [`Dialer`] decides when to try and [`Outage`] what is told to people, and both serve any client that dials;
//! `session` is one connection, `sockets` what becomes of connections, `calls` the table of calls, `outbox` the results on
//! their way, `resume` what happens after a cut, `work` what happens to a call.

mod calls;
mod dial;
mod io;
mod machine;
mod outage;
mod outbox;
mod redact;
mod resume;
mod session;
mod sockets;
#[cfg(test)]
mod tests;
mod work;

pub use dial::{After, Dial, Dialer};
pub use io::*;
pub use machine::Daemon;
pub use outage::{Outage, Refusal};
