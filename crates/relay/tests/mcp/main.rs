//! The MCP endpoint over real HTTP, before a scripted device.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod attacks;
mod defects;
mod eras;
mod handles;
mod listing;
mod stage;
mod tasks;
