//! The command line as a person or a script uses it.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

mod ask;
mod channel;
mod clients;
mod devices;
mod embedded;
mod hook;
mod shown;
mod system_start;
