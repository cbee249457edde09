//! The daemon's side of the link: it dials, proves itself ready, runs calls once, and keeps results until they arrived.
//!
//! `Daemon` is the whole machine; a shell gives it [`Input`]s and the time, carries out its [`Output`]s, and pulls the
//! frames to write with `Daemon::poll_transmit`, one at a time and only while a socket has room. Pulling is what lets a
//! small frame pass a big result, and what makes a frame's number the order in which it was written.
//!
//! Parts: `dial` decides when to try, and serves any client that dials; `session` is one connection, `calls` the table
//! of calls, `outbox` the results on their way, `outage` what is told to people, `resume` what happens after a cut.

mod io;

pub use io::*;
