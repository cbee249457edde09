//! The shells of the engines: sockets, files, processes, clocks.

pub mod api;
mod asked;
pub mod autostart;
pub mod bridge;
pub mod channel;
pub mod config;
pub mod deliver;
pub mod doctor;
pub mod drill;
pub mod engines;
pub mod enrol;
pub mod exec;
pub mod files;
pub mod forwarder;
mod group;
mod http_client;
mod identity;
pub mod link;
mod local_socket;
pub mod lock;
pub mod logs;
#[cfg(target_os = "linux")]
mod memory;
pub mod notices;
pub mod open;
pub mod paths;
#[cfg(any(windows, target_os = "macos"))]
mod platform;
pub mod power;
pub mod reset;
pub mod resident;
pub mod run;
pub mod runtime;
pub mod seat;
pub mod secrets;
pub mod spool;
pub mod status_hub;
pub mod support;
pub mod transcript;
pub mod tray_host;
pub mod update;
mod worker;

/// The worker's ledger by itself, for measurements.
#[doc(hidden)]
pub mod ledger {
    pub use crate::worker::{Ledger, Opened};
}
