//! Either side of Holdfast against an unmodified machine-bridge-mcp 1.2.10 in the other role, played frame by frame.
//!
//! Later versions of that system found traps in its relay recovery. Those that reach either side of ours, by the names that the tests
//! give them:
//!
//! - T1: a new socket of the same instance while the old one is open takes only detached calls along, and orphans the others.
//! - T2: an `error` frame about a dead socket, or most closes, make the daemon give up instead of coming back.
//! - T3: what a dying socket accepted is not delivered, and there are no acknowledgements to tell.
//! - T4: a call that was lost on its way is named at every resume and hangs until its deadline.
//! - T16: a result too big for a frame closes the socket, and its call hangs.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

mod daemon_against_relay;
mod relay_against_daemon;
