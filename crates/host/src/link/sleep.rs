//! The operating system's word before it sleeps, and a delay until the relay knows.
//!
//! Where nothing is announced (containers, systems without logind) a machine notices a sleep by its clocks.

#[cfg(target_os = "linux")]
mod logind;
#[cfg(any(windows, target_os = "macos"))]
mod system;

use std::sync::Arc;

use tokio::sync::{Notify, mpsc};

/// What the system says.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sleep {
    /// It is about to sleep, and waits for [`Delay::allow`].
    Announced,
    /// It woke.
    Over,
}

/// Keeps the machine awake until the relay knows that it will sleep.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delay(Arc<Notify>);

impl Delay {
    /// The machine may sleep now.
    pub(crate) fn allow(&self) {
        self.0.notify_one();
    }
}

/// Listens for sleep where the system announces it, until the receiver is dropped.
pub(crate) fn watch() -> (Delay, mpsc::UnboundedReceiver<Sleep>) {
    let delay = Delay::default();
    let (tell, told) = mpsc::unbounded_channel();
    #[cfg(target_os = "linux")]
    tokio::spawn(logind::watch(tell, delay.clone()));
    #[cfg(any(windows, target_os = "macos"))]
    system::watch(tell, delay.clone());
    #[cfg(not(any(target_os = "linux", windows, target_os = "macos")))]
    drop(tell);
    (delay, told)
}
