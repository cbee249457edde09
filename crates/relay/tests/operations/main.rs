//! Durable operations over real sockets, before a scripted worker.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

#[path = "../common/mod.rs"]
mod common;
mod stage;

mod crashes;
mod flow;
mod full;
mod reading;
mod rights;
mod sockets;
mod storm;
