//! Everything malformed, oversized, duplicated or out of order gets the documented error; nothing is lost by it, and what
//! is good still works.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

mod frames_to_daemon;
mod frames_to_relay;
mod http_mcp;
mod http_rest;
