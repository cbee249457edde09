//! Attacks that need the whole product, and must fail.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

mod browsers;
mod files;
mod grants;
mod leaks;
mod oauth;
mod strangers;
