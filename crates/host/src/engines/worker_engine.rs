//! The worker: durable operations for the relay that the link goes to, under the link's credential.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::command::Engine;
use holdfast_core::daemon::Told;
use holdfast_core::id::OperationId;
use holdfast_core::operation::State;
use holdfast_core::status::{EngineState, LinkState, WarningCode, WorkerStatus};
use holdfast_core::worker::Step;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use super::dispatch::done;
use super::link_engine::LinkEngine;
use super::relay_engine::RelayEngine;
use super::{CommandError, StartError};
use crate::config::{Config, ForwardConfig, SyncConfig};
use crate::link::Proxies;
use crate::paths::Dirs;
use crate::run::Starter;
use crate::secrets::Secrets;
use crate::status_hub::StatusHub;
use crate::worker::{self, Aside, WorkerHandle, WorkerObserver, WorkerOptions};

/// See the module.
#[derive(Debug)]
pub(crate) struct WorkerEngine {
    dirs: Dirs,
    sync: watch::Sender<SyncConfig>,
    forward: watch::Sender<ForwardConfig>,
    relay_port: watch::Sender<Option<u16>>,
    /// Absent until there is a credential.
    current: Mutex<Option<Current>>,
}

#[derive(Debug)]
struct Current {
    worker: WorkerHandle,
    token: SecretString,
}

impl WorkerEngine {
    pub(super) fn new(dirs: &Dirs, config: &Config) -> WorkerEngine {
        WorkerEngine {
            dirs: dirs.clone(),
            sync: watch::Sender::new(config.sync.clone()),
            forward: watch::Sender::new(config.forward.clone()),
            relay_port: watch::Sender::new(None),
            current: Mutex::default(),
        }
    }

    /// Works, from now on, as the device that the link is. What keeps it from starting is a warning, and keeps nothing else.
    pub(super) async fn run(
        &self,
        link: &LinkEngine,
        relay: Option<&RelayEngine>,
        secrets: &Secrets,
        hub: &Arc<StatusHub>,
    ) -> Result<(), StartError> {
        let started = self.start(link, relay, secrets, hub).await;
        match &started {
            Ok(()) => {
                hub.engine(Engine::Worker, EngineState::Running);
                hub.clear(WarningCode::WorkerFailed);
            }
            Err(error) => {
                hub.engine(Engine::Worker, EngineState::Failed);
                hub.warn(WarningCode::WorkerFailed, format!("durable operations are not done here: {error}"));
            }
        }
        started
    }

    async fn start(
        &self,
        link: &LinkEngine,
        relay: Option<&RelayEngine>,
        secrets: &Secrets,
        hub: &Arc<StatusHub>,
    ) -> Result<(), StartError> {
        self.relay_listens(relay.and_then(RelayEngine::port));
        let mut current = self.current.lock().await;
        // Without one the status says so already, and enrolling comes back here.
        let Some(token) = link.credential(relay, secrets).await? else { return Ok(()) };
        if let Some(current) = &*current
            && current.token.expose_secret() == token.expose_secret()
        {
            current.worker.start();
            return Ok(());
        }
        if let Some(before) = current.take() {
            before.worker.end().await;
        }
        let options = WorkerOptions {
            relay: link.relay(),
            token: token.clone(),
            ca_file: link.ca_file(),
            proxies: Proxies::Environment,
            dirs: self.dirs.clone(),
            executor: link.executor(),
            starter: Starter::of_this_program(),
            sync: self.sync.subscribe(),
            forward: self.forward.subscribe(),
            relay_port: self.relay_port.subscribe(),
        };
        // It reads certificates and opens the ledger before it is a task.
        let observer = Arc::clone(hub);
        let worker = tokio::task::spawn_blocking(move || worker::spawn(options, observer)).await;
        let worker = worker.map_err(|_| StartError::Interrupted)??;
        worker.start();
        *current = Some(Current { worker, token });
        Ok(())
    }

    /// Stops the worker; what runs goes on under its runner, and is found again.
    pub(super) async fn stop(&self, hub: &StatusHub, now: &CancellationToken) {
        if let Some(worker) = self.handle().await {
            hub.engine(Engine::Worker, EngineState::Stopping);
            worker.stop();
            tokio::select! {
                () = worker.stopped() => {}
                () = now.cancelled() => {}
            }
            let running = worker.status().borrow().counts.running;
            if running > 0 {
                tracing::info!(running, "the worker is stopped; what it started goes on and is found again");
            }
        }
        hub.engine(Engine::Worker, EngineState::Stopped);
    }

    /// Ends it for good.
    pub(super) async fn shutdown(&self) {
        if let Some(Current { worker, .. }) = self.current.lock().await.take() {
            worker.end().await;
        }
    }

    pub(super) async fn try_now(&self) {
        if let Some(worker) = self.handle().await {
            worker.start();
        }
    }

    pub(crate) async fn cut(&self, lasting: Duration) {
        if let Some(worker) = self.handle().await {
            worker.cut(lasting);
        }
    }

    /// Where the relay in this process listens: it may be started later, and on another port.
    pub(super) fn relay_listens(&self, port: Option<u16>) {
        self.relay_port.send_replace(port);
    }

    pub(super) fn set_reach(&self, sync: &SyncConfig, forward: &ForwardConfig) {
        self.sync.send_replace(sync.clone());
        self.forward.send_replace(forward.clone());
    }

    /// Cancels one operation that has not ended.
    pub(super) async fn cancel(&self, operation: &str) -> Result<Value, CommandError> {
        let (worker, id) = self.shown(operation, |state| !state.is_final()).await?;
        worker.cancel(id);
        Ok(done())
    }

    /// Cancels every operation that has not ended.
    pub(super) async fn cancel_all(&self) {
        if let Some(worker) = self.handle().await {
            worker.cancel_all();
        }
    }

    /// Shows an operation of unknown outcome no more.
    pub(super) async fn dismiss(&self, operation: &str) -> Result<Value, CommandError> {
        let (worker, id) = self.shown(operation, |state| state == State::Unknown).await?;
        worker.dismiss(id);
        Ok(done())
    }

    async fn shown(
        &self,
        operation: &str,
        which: impl Fn(State) -> bool,
    ) -> Result<(WorkerHandle, OperationId), CommandError> {
        let none = || CommandError::new("not_found", "this machine shows no such operation");
        let worker = self.handle().await.ok_or_else(none)?;
        let stands = worker.status().borrow().operations.iter().any(|row| row.id == operation && which(row.state));
        let id = OperationId::parse(operation).ok().filter(|_| stands).ok_or_else(none)?;
        Ok((worker, id))
    }

    async fn handle(&self) -> Option<WorkerHandle> {
        self.current.lock().await.as_ref().map(|current| current.worker.clone())
    }
}

impl WorkerObserver for StatusHub {
    fn status(&self, status: &WorkerStatus) {
        let full =
            "durable operations are not received: the disk is full, or the ledger cannot be written; what runs goes on";
        self.hold(WarningCode::StorageFull, status.admission_closed.map(|_| full.into()));
        let refused = status.state != LinkState::Healthy && status.cause.as_deref() == Some("device_in_use");
        let why = "another machine does durable operations with this device's credential, a copy of its data folder perhaps; \
                   if that is not you, revoke the device";
        self.hold(WarningCode::WorkerRefused, refused.then(|| why.into()));
        self.worker(Some(status.clone()));
    }

    fn step(&self, step: Step) {
        let Step { id, kind, state, code } = step;
        let code = code.map(|code| code.as_str());
        tracing::info!(operation = %id, kind = kind.as_str(), code, "operation: {}", state.as_str());
    }

    fn told(&self, told: Told) {
        match told {
            Told::State { from, to, why } => tracing::info!("worker: {} → {}, {why}", from.words(), to.words()),
            Told::DeviceInUse => {
                tracing::warn!("another machine does durable operations with this device's credential")
            }
            // The link tells of the same network in more words.
            other => tracing::debug!("worker: {other:?}"),
        }
    }

    fn set_aside(&self, why: Aside, to: &Path) {
        let to = to.display();
        match why {
            Aside::OfAnother => tracing::info!("the ledger of another device was put aside, as {to}"),
            Aside::Damaged => self.warn(
                WarningCode::LedgerSetAside,
                format!(
                    "the ledger of durable operations was damaged; it was put aside as {to}, and the relay is told \
                         that the outcome of what it knew is unknown"
                ),
            ),
        }
    }
}
