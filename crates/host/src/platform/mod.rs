//! System calls of Windows and macOS that no crate of this build wraps, and the unsafe code they need. Both files are
//! type-checked by `make cross`; no test runs them.
#![allow(unsafe_code, reason = "calls into the operating system; each says why it is sound")]

#[cfg(target_os = "macos")]
mod macos;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "macos")]
pub(crate) use macos::on_power;
#[cfg(windows)]
pub(crate) use windows::{boot_clock, free_space, on_power, process_started};

/// What the system tells of its power. It waits a moment for whoever hears `Sleeps`.
pub(crate) enum Power {
    /// It is about to sleep.
    Sleeps,
    /// It woke.
    Woke,
}
