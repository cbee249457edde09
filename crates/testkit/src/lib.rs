//! What tests need and the product does not: a bad network, a bad disk, temporary homes, the real binary as a process, MCP
//! clients of both eras, an OAuth browser, and scripted peers of the base wire.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

pub mod base;
mod calendar;
pub mod discord;
pub mod disk;
pub mod fault;
pub mod home;
pub mod mcp;
pub mod oauth;
pub mod pair;
pub mod port;
pub mod process;
pub mod stand;
pub mod store;
pub mod telegram;
pub mod worker;
