//! The engines of one process: the embedded relay, and the link with the executor behind it.
//!
//! [`Engines::start`] takes the data folder, reads the configuration, starts what it asks for, and answers the loopback
//! API until [`Engines::shutdown`].

mod dispatch;
mod link_engine;
mod options;
mod relay_engine;
mod reload;

pub use dispatch::{CommandError, offline};
pub use link_engine::machine_name;
pub use options::{EngineOptions, Mode, Overrides, StartError};
pub use relay_engine::closed_store;

use std::sync::Arc;

use holdfast_core::limits;
use holdfast_core::status::{AppStatus, LinkState};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::{self, ApiServer};
use crate::config::{self, Config};
use crate::lock::{DataLock, LockError};
use crate::logs::Logs;
use crate::paths::Dirs;
use crate::secrets::Secrets;
use crate::status_hub::{StatusHub, unix_ms};
use link_engine::LinkEngine;
use relay_engine::RelayEngine;

/// Everything that runs in this process.
#[derive(Debug)]
pub struct Engines {
    running: Arc<Running>,
    api: ApiServer,
    tasks: TaskTracker,
    _lock: DataLock,
}

/// What the API, the configuration watch and the owner of [`Engines`] share.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) dirs: Dirs,
    pub(crate) hub: Arc<StatusHub>,
    overrides: Overrides,
    secrets: Secrets,
    logs: Logs,
    config: Mutex<Config>,
    relay: Option<Mutex<RelayEngine>>,
    pub(crate) link: Option<LinkEngine>,
    /// The process was asked to end.
    quit: CancellationToken,
    /// … and to wait for nothing.
    now: CancellationToken,
}

impl Engines {
    /// Starts everything. Returns when the engines run; with an embedded relay, when this machine was proven reachable
    /// through it or [`limits::READY_WAIT`] passed.
    pub async fn start(options: EngineOptions) -> Result<Engines, StartError> {
        let EngineOptions { dirs, mode, overrides } = options;
        dirs.prepare()?;
        let lock = take_lock(&dirs).await?;
        // What a killed holder left would lead commands to a port that is somebody else's now.
        api::forget(&dirs)?;
        let config = overrides.over(config::read(&dirs.config_file())?);
        let logs = Logs::start(&dirs.logs(), config.log.level)?;
        tracing::info!(version = env!("CARGO_PKG_VERSION"), ?mode, "start");
        let secrets = {
            let (data, store) = (dirs.data.clone(), config.secrets.store);
            tokio::task::spawn_blocking(move || Secrets::open(&data, store))
                .await
                .map_err(|_| StartError::Interrupted)??
        };
        let app = AppStatus {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            started_at: unix_ms(),
            ..AppStatus::default()
        };
        let outage_file = dirs.data.join("outages.json");
        let hub = StatusHub::new(app, StatusHub::load_outages(&outage_file));
        let tasks = TaskTracker::new();
        let (quit, now) = (CancellationToken::new(), CancellationToken::new());
        let relay = match (mode, &config.relay.url) {
            (Mode::Serve, Some(_)) => None,
            _ => Some(RelayEngine::start(&dirs, &config, &hub).await?),
        };
        let link = match mode {
            Mode::Relay => None,
            Mode::Serve => Some(LinkEngine::start(&dirs, &config, &secrets, relay.as_ref(), &hub).await?),
        };
        let running = Arc::new(Running {
            dirs,
            hub,
            overrides,
            secrets,
            logs,
            config: Mutex::new(config),
            relay: relay.map(Mutex::new),
            link,
            quit,
            now,
        });
        let api = ApiServer::start(Arc::clone(&running)).await?;
        tasks.spawn(Arc::clone(&running.hub).run(outage_file, running.quit.clone()));
        tasks.spawn(reload::follow(Arc::clone(&running)));
        running.wait_until_reachable().await;
        Ok(Engines { running, api, tasks, _lock: lock })
    }

    /// The address an MCP client uses; with a remote relay that relay's.
    pub fn mcp(&self) -> Option<String> {
        self.running.hub.snapshot().app.mcp.clone()
    }

    /// The address of the loopback API.
    pub fn api(&self) -> String {
        self.api.address()
    }

    /// Status, for a shell in this process.
    pub fn hub(&self) -> &Arc<StatusHub> {
        &self.running.hub
    }

    /// Waits until a command asked this process to end.
    pub async fn quit_asked(&self) {
        self.running.quit.cancelled().await;
    }

    /// A second wish to end: waits for nothing any more.
    pub fn hurry(&self) -> CancellationToken {
        self.running.now.clone()
    }

    /// Stops everything: running calls may finish and be delivered, unless [`Engines::hurry`] is cancelled.
    pub async fn shutdown(self) {
        let running = &self.running;
        running.quit.cancel();
        tracing::info!("stop");
        if let Some(link) = &running.link {
            link.stop(&running.hub, &running.now).await;
            link.shutdown().await;
        }
        if let Some(relay) = &running.relay {
            relay.lock().await.stop(&running.hub).await;
        }
        self.api.stop().await;
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Running {
    async fn wait_until_reachable(&self) {
        if self.relay.is_none() || self.link.is_none() {
            return;
        }
        let mut status = self.hub.watch();
        let healthy = status.wait_for(|s| s.relay.state == LinkState::Healthy);
        if tokio::time::timeout(limits::READY_WAIT, healthy).await.is_err() {
            tracing::warn!("the embedded relay does not reach this machine yet");
        }
    }
}

/// Takes the data folder; a command that works on it for a moment is waited for.
async fn take_lock(dirs: &Dirs) -> Result<DataLock, LockError> {
    let give_up = tokio::time::Instant::now() + limits::LOCK_WAIT;
    loop {
        match DataLock::take(&dirs.data) {
            Err(LockError::Held { .. }) if tokio::time::Instant::now() < give_up => {
                tokio::time::sleep(limits::LOCK_RETRY).await;
            }
            other => return other,
        }
    }
}
