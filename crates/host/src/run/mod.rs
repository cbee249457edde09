//! Runs: processes of operations, each owned by a *runner* that outlives the worker.
//!
//! A run has a folder, `<data>/runs/<run id>-<attempt>/`. The worker [prepares](prepare) it and [starts](start) a runner on
//! it; the runner puts its [claim](claim) in place before anything runs. Whoever comes later [looks](look) what became of it,
//! and [attaches](attach) to a runner that lives.

mod attach;
mod claim;
mod folder;
mod leftovers;
mod look;
mod orphan;
mod runner;
mod signal;
mod start;
#[cfg(test)]
#[cfg(unix)]
mod tests;

pub use attach::{Asker, Attached, attach};
pub use claim::claim;
pub(crate) use folder::sync_folder;
pub use folder::{folder, prepare, socket, spec};
pub use leftovers::{Leftovers, kill_leftovers};
pub use look::{Found, look};
pub use orphan::end_orphan;
pub use runner::{asked, main};
pub use signal::signal;
pub use start::Starter;

use std::time::Duration;

/// The system's boot clock, by which leases are told to a runner: every process of this boot reads the same, it counts
/// sleep, and nobody can set it.
pub fn boot_clock() -> Duration {
    #[cfg(windows)]
    return crate::platform::boot_clock();
    #[cfg(not(windows))]
    holdfast_relay::boot_reading().unwrap_or_default()
}
