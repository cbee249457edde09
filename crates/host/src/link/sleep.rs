//! The operating system's word before it sleeps, and a delay until the relay knows.
//!
//! Where nothing is announced (containers, systems without logind) the machine notices a sleep by its clocks.

#[cfg(target_os = "linux")]
mod logind;
#[cfg(any(windows, target_os = "macos"))]
mod system;

use std::sync::Arc;

use tokio::sync::{Notify, mpsc};

use super::run::Event;

/// Keeps the machine awake until the relay knows that it will sleep.
#[derive(Debug, Clone, Default)]
pub(super) struct Delay(Arc<Notify>);

impl Delay {
    /// The machine may sleep now.
    pub(super) fn allow(&self) {
        self.0.notify_one();
    }
}

/// Listens for sleep where the system announces it.
pub(super) fn watch(events: mpsc::UnboundedSender<Event>) -> Delay {
    let delay = Delay::default();
    #[cfg(target_os = "linux")]
    tokio::spawn(logind::watch(events, delay.clone()));
    #[cfg(any(windows, target_os = "macos"))]
    system::watch(events, delay.clone());
    #[cfg(not(any(target_os = "linux", windows, target_os = "macos")))]
    drop(events);
    delay
}
