//! Durable operations with real processes: a relay, a worker behind a fault proxy, runners, and programs that count.
//!
//! `ROUNDS=2000 BIG_ROUNDS=50` for more of the random kills than the continuous integration does (`make soak`).

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

mod desk;
mod honest;
mod kills;
mod people;
mod survive;
mod tools;
