//! Channels with real processes: a chat service that behaves as Discord does, agents as programs, panes and MCP clients.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

mod asks;
mod bindings;
mod crew;
mod deliveries;
mod endurance;
mod mcp;
mod seats;
mod stage;
mod transcripts;
