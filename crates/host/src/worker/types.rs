//! What a holder of the worker sees of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::daemon::Told;
use holdfast_core::id::OperationId;
use holdfast_core::status::{LinkState, WorkerStatus};
use holdfast_core::worker::Step;
use holdfast_store::StoreError;
use secrecy::SecretString;
use tokio::sync::{mpsc, watch};
use url::Url;

use super::ledger::Aside;
use super::run::Event;
use crate::config::{ForwardConfig, SyncConfig};
use crate::exec::LocalExecutor;
use crate::files::FileError;
use crate::link::{LinkError, Proxies};
use crate::paths::Dirs;
use crate::run::Starter;

/// For which relay a worker works, as whom, and with what.
pub(crate) struct WorkerOptions {
    /// The relay's origin.
    pub(crate) relay: Url,
    /// The device's credential, the link's.
    pub(crate) token: SecretString,
    /// Certificate authorities that count beside the system's.
    pub(crate) ca_file: Option<PathBuf>,
    /// As the link's.
    pub(crate) proxies: Proxies,
    /// Holdfast's folders, which this process holds: `worker/` and `runs/` in the data folder are the worker's.
    pub(crate) dirs: Dirs,
    /// The rules of this device.
    pub(crate) executor: Arc<LocalExecutor>,
    /// How runners are started.
    pub(crate) starter: Starter,
    /// From where files may be fetched, as it is configured now.
    pub(crate) sync: watch::Receiver<SyncConfig>,
    /// Which ports may be reached, as it is configured now.
    pub(crate) forward: watch::Receiver<ForwardConfig>,
    /// Where the relay in this process listens now: a port that may never be reached.
    pub(crate) relay_port: watch::Receiver<Option<u16>>,
}

/// Why a worker cannot even start.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The way to the relay.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The ledger.
    #[error("the ledger of durable operations: {0}")]
    Ledger(#[from] StoreError),
    /// Its folders.
    #[error(transparent)]
    File(#[from] FileError),
    /// The operating system gave no random bytes.
    #[error("no random bytes")]
    Random,
}

/// Hears what happens, on the worker's own task: never block, never call back into the worker and wait.
pub(crate) trait WorkerObserver: Send + Sync + 'static {
    /// How it stands now.
    fn status(&self, status: &WorkerStatus);
    /// A step of an operation.
    fn step(&self, step: Step);
    /// Something for the log.
    fn told(&self, told: Told);
    /// An earlier ledger was set aside here; what it knew is unknown now.
    fn set_aside(&self, why: Aside, to: &Path);
}

/// Steers a running worker. Cloning shares it; the task ends with [`WorkerHandle::end`].
#[derive(Clone)]
pub(crate) struct WorkerHandle {
    pub(super) events: mpsc::UnboundedSender<Event>,
    pub(super) status: watch::Receiver<Arc<WorkerStatus>>,
}

/// What a handle asks of the worker's task.
#[derive(Debug)]
pub(super) enum Command {
    Start,
    Stop,
    Cut(Duration),
    Cancel(OperationId),
    CancelAll,
    Dismiss(OperationId),
    Close,
}

impl WorkerHandle {
    /// The worker is wanted; if it already is: try now.
    pub(crate) fn start(&self) {
        self.send(Command::Start);
    }

    /// The worker is not wanted. Runs go on under their runners. [`WorkerHandle::stopped`] tells when it rests.
    pub(crate) fn stop(&self) {
        self.send(Command::Stop);
    }

    /// The drill: behave as if the network were gone for this long.
    pub(crate) fn cut(&self, lasting: Duration) {
        self.send(Command::Cut(lasting));
    }

    /// Cancels an operation, as the relay may.
    pub(crate) fn cancel(&self, id: OperationId) {
        self.send(Command::Cancel(id));
    }

    /// Cancels every operation that has not ended, also those that no list shows.
    pub(crate) fn cancel_all(&self) {
        self.send(Command::CancelAll);
    }

    /// A person has seen that this operation's outcome is unknown.
    pub(crate) fn dismiss(&self, id: OperationId) {
        self.send(Command::Dismiss(id));
    }

    /// The latest state.
    pub(crate) fn status(&self) -> watch::Receiver<Arc<WorkerStatus>> {
        self.status.clone()
    }

    /// Waits until the worker rests after [`WorkerHandle::stop`], or its task is gone.
    pub(crate) async fn stopped(&self) {
        let mut status = self.status.clone();
        // An error means that the task is gone: then it rests too.
        let _ = status.wait_for(|status| status.state == LinkState::Stopped).await;
    }

    /// Ends the worker's task and closes its ledger; returns when that is done. Runs go on under their runners.
    pub(crate) async fn end(&self) {
        self.send(Command::Close);
        let mut status = self.status.clone();
        while status.changed().await.is_ok() {}
    }

    fn send(&self, command: Command) {
        // The task is gone only after the end: nothing is left to steer.
        let _ = self.events.send(Event::Command(command));
    }
}

impl std::fmt::Debug for WorkerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerHandle").finish_non_exhaustive()
    }
}
