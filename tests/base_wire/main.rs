//! Either side of Holdfast against an unmodified machine-bridge-mcp 1.2.10 in the other role, played frame by frame.
//!
//! T1 to T16 are the traps that later versions of that system found in its relay recovery.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

mod daemon_against_relay;
mod relay_against_daemon;
