//! The seat's shell: the lock, the socket between processes, and the connection to the chat service, moved by
//! [`holdfast_core::seat::Seat`].

mod disk;
mod door;
mod folder;
mod process;
mod run;
mod serve;
mod show;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_core::limits;
use holdfast_core::seat::Want;
use holdfast_core::status::{SeatState, SeatStatus};
use tokio::sync::{mpsc, oneshot, watch};

use crate::channel::ChannelBackend;
use crate::forwarder::Means;
use crate::status_hub::StatusHub;
use run::{Command, Event};

/// What a seat is about.
#[derive(Debug)]
pub struct SeatOptions {
    /// Where seats are kept; see [`crate::paths::Dirs::state`].
    pub state: PathBuf,
    /// The chat service's name.
    pub service: String,
    /// The bot's id.
    pub bot: String,
    /// The bot.
    pub backend: Arc<dyn ChannelBackend>,
    /// What is done while the seat serves.
    pub(crate) means: Means,
}

/// A running seat. When the last handle is dropped, its connection and its lock go.
#[derive(Debug, Clone)]
pub struct SeatHandle {
    events: mpsc::UnboundedSender<Event>,
    status: watch::Receiver<Arc<SeatStatus>>,
}

/// Starts a seat's task; it does nothing until it is told what is wanted. Needs a tokio runtime.
pub fn spawn(options: SeatOptions, hub: Arc<StatusHub>) -> SeatHandle {
    run::spawn(options, hub)
}

impl SeatHandle {
    /// What it is now, and as it changes.
    pub fn status(&self) -> watch::Receiver<Arc<SeatStatus>> {
        self.status.clone()
    }

    /// The seat is wanted. Returns when that is known and the status shows it.
    pub async fn want(&self, want: Want) {
        self.command(|known| Command::Want(want, known)).await;
    }

    /// The seat is not wanted any more. Returns when that is known and the status shows it.
    pub async fn release(&self) {
        self.command(Command::Release).await;
    }

    /// Looks anew who holds the seat. Returns when the status shows it.
    pub async fn look(&self) {
        self.command(Command::Look).await;
    }

    /// Waits for a status, at most [`limits::SEAT_COMMAND_WAIT`]; then it is whatever it is.
    pub async fn wait(&self, until: impl Fn(&SeatStatus) -> bool) -> Arc<SeatStatus> {
        let mut status = self.status.clone();
        let waited = tokio::time::timeout(limits::SEAT_COMMAND_WAIT, status.wait_for(|s| until(s))).await;
        match waited {
            Ok(Ok(found)) => found.clone(),
            _ => self.status.borrow().clone(),
        }
    }

    /// Lets go of the seat and ends the task.
    pub async fn end(&self) {
        self.release().await;
        self.wait(|s| !matches!(s.state, SeatState::Connecting | SeatState::Serving | SeatState::Draining)).await;
        // Without the task there is nothing to end.
        let _ = self.events.send(Event::Close);
    }

    async fn command(&self, command: impl FnOnce(oneshot::Sender<()>) -> Command) {
        let (known, wait) = oneshot::channel();
        if self.events.send(Event::Command(command(known))).is_ok() {
            let _ = wait.await;
        }
    }
}
