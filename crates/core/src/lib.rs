//! Holdfast's decisions, without any I/O.
//!
//! Every state machine of the product lives here. Nothing in this crate reads a clock, a file, a socket, the environment
//! or a random source: the time ([`time::Now`]) and a seeded generator come in as arguments, and what should happen
//! comes out as values. Shells in `holdfast-host` and `holdfast-relay` turn those values into I/O.

pub mod ask;
pub mod chat;
pub mod code;
pub mod command;
pub mod control;
pub mod daemon;
pub mod desktop;
pub mod id;
pub mod limits;
pub mod line;
pub mod operation;
pub mod policy;
pub mod redact;
pub mod request_code;
pub mod run;
pub mod seat;
pub mod status;
pub mod switchboard;
pub mod time;
pub mod tools;
pub mod transcript;
pub mod wire;
pub mod worker;
