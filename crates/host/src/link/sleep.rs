//! The operating system's word before it sleeps.

use tokio::sync::mpsc;

use super::run::Event;

/// Keeps the machine awake until the relay knows that it will sleep.
#[derive(Debug)]
pub(super) struct Delay;

impl Delay {
    /// The machine may sleep now.
    pub(super) fn allow(&self) {}
}

/// Listens for sleep where the system announces it.
pub(super) fn watch(_events: mpsc::UnboundedSender<Event>) -> Delay {
    Delay
}
