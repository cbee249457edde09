//! The engines of one process: the embedded relay, the link with the executor behind it, and the channel.
//! [`Resident`](crate::resident::Resident) starts and stops them.

mod channel_commands;
mod channels_engine;
mod dispatch;
mod link_engine;
mod options;
mod relay_engine;
mod reload;
mod wanted;
mod worker_engine;

pub(crate) use dispatch::done;
pub use dispatch::{CommandError, offline};
pub(crate) use link_engine::credential_names;
pub use link_engine::machine_name;
pub use options::{EngineOptions, Mode, Overrides, StartError};
pub use relay_engine::closed_store;
pub(crate) use wanted::Wanted;

use std::sync::Arc;

use holdfast_core::command::Engine;
use holdfast_core::limits;
use holdfast_core::status::{EngineState, LinkState};
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{self, Config};
use crate::forwarder::Desk;
use crate::logs::Logs;
use crate::paths::Dirs;
use crate::secrets::Secrets;
use crate::status_hub::StatusHub;
use channels_engine::ChannelsEngine;
use link_engine::LinkEngine;
use relay_engine::RelayEngine;
use worker_engine::WorkerEngine;

/// Engines that run, and what their parts share.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) dirs: Dirs,
    pub(crate) hub: Arc<StatusHub>,
    /// Lives as long as the process.
    pub(crate) desk: Desk,
    overrides: Overrides,
    secrets: Secrets,
    logs: Arc<Logs>,
    config: Mutex<Config>,
    relay: Option<Mutex<RelayEngine>>,
    pub(crate) link: Option<LinkEngine>,
    /// Absent where the link is, and for a relay that knows no durable operations.
    pub(crate) worker: Option<WorkerEngine>,
    /// Absent until a channel is set up that can be used.
    channels: Mutex<Option<ChannelsEngine>>,
    channel_changed: Notify,
    wanted: Arc<Wanted>,
    /// These engines end.
    ended: CancellationToken,
    /// The process ends, and waits for nothing.
    now: CancellationToken,
    tasks: TaskTracker,
}

impl Running {
    /// Starts the engines that are wanted. The caller owns the data folder.
    pub(crate) async fn begin(
        options: &EngineOptions,
        hub: &Arc<StatusHub>,
        desk: &Desk,
        logs: &Arc<Logs>,
        wanted: Wanted,
        now: &CancellationToken,
    ) -> Result<Arc<Running>, StartError> {
        let EngineOptions { dirs, mode, overrides, program: _ } = options;
        let config = overrides.over(config::read(&dirs.config_file())?);
        logs.set_level(config.log.level);
        hub.set_notices(config.notices.switches());
        tracing::info!(version = env!("CARGO_PKG_VERSION"), mode = mode.as_str(), "start");
        let secrets = {
            let (data, store) = (dirs.data.clone(), config.secrets.store);
            tokio::task::spawn_blocking(move || Secrets::open(&data, store))
                .await
                .map_err(|_| StartError::Interrupted)??
        };
        let mut relay = match (mode, &config.relay.url) {
            (Mode::Serve, Some(_)) => None,
            _ => Some(RelayEngine::start(dirs, &config, wanted.runs(Engine::Relay), hub).await?),
        };
        let link = match mode {
            Mode::Relay => Ok(None),
            Mode::Serve => {
                let runs = wanted.runs(Engine::Link);
                LinkEngine::start(dirs, &config, &secrets, relay.as_ref(), runs, hub).await.map(Some)
            }
        };
        let link = match (link, &mut relay) {
            (Ok(link), _) => link,
            (Err(error), None) => return Err(error),
            (Err(error), Some(relay)) => {
                // Its port and its store have to be free for the next try.
                relay.stop(hub).await;
                return Err(error);
            }
        };
        let worker = link.as_ref().filter(|_| config.link.compat.is_none()).map(|_| WorkerEngine::new(dirs, &config));
        let running = Arc::new(Running {
            dirs: dirs.clone(),
            hub: Arc::clone(hub),
            desk: desk.clone(),
            overrides: overrides.clone(),
            secrets,
            logs: Arc::clone(logs),
            config: Mutex::new(config),
            relay: relay.map(Mutex::new),
            link,
            worker,
            channels: Mutex::default(),
            channel_changed: Notify::new(),
            wanted: Arc::new(wanted),
            ended: CancellationToken::new(),
            now: now.clone(),
            tasks: TaskTracker::new(),
        });
        match &running.worker {
            Some(_) if !running.wanted.runs(Engine::Worker) => hub.engine(Engine::Worker, EngineState::Stopped),
            // Why it failed stands among the warnings.
            Some(_) => _ = running.start_worker().await,
            None => {}
        }
        running.renew_channel(true).await;
        running.tasks.spawn(reload::follow(Arc::clone(&running)));
        Ok(running)
    }

    /// Stops the engines for good: running calls may finish and be delivered, unless the process may wait for nothing.
    pub(crate) async fn end(&self) {
        tracing::info!("stop");
        self.ended.cancel();
        if let Some(channel) = self.channels.lock().await.take() {
            channel.shutdown(&self.now).await;
        }
        if let Some(worker) = &self.worker {
            worker.stop(&self.hub, &self.now).await;
            worker.shutdown().await;
        }
        if let Some(link) = &self.link {
            link.stop(&self.hub, &self.now).await;
            link.shutdown().await;
        }
        if let Some(relay) = &self.relay {
            relay.lock().await.stop(&self.hub).await;
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// With an embedded relay: waits until this machine was proven reachable through it, at most [`limits::READY_WAIT`].
    pub(crate) async fn reachable(&self) {
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
