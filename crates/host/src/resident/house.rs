//! Starting and stopping: what a process has while the data folder is its own.

use std::sync::Arc;

use holdfast_core::command::Engine;
use holdfast_core::limits;
use holdfast_core::status::WarningCode;

use super::{Inner, Resident};
use crate::api::{self, ApiServer};
use crate::config;
use crate::engines::{Running, StartError, Wanted};
use crate::link;
use crate::lock::{DataLock, LockError};
use crate::logs::Logs;
use crate::paths::{self, Dirs};

/// Which engines a start is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wish {
    /// Those that ran when they were last asked to.
    AsBefore,
    /// Those, and this one; without one, all.
    Start(Option<Engine>),
}

/// What this process has while the data folder is its own.
#[derive(Debug, Default)]
pub(super) struct House {
    pub(super) lock: Option<DataLock>,
    pub(super) logs: Option<Arc<Logs>>,
    pub(super) api: Option<ApiServer>,
}

impl Resident {
    /// Starts what does not run; what came of it stands in the status.
    pub(super) async fn bring_up(&self, wish: Wish) -> Result<(), StartError> {
        let mut house = self.0.house.lock().await;
        self.bring_up_in(&mut house, wish).await
    }

    pub(super) async fn restart(&self) -> Result<(), StartError> {
        let mut house = self.0.house.lock().await;
        self.would_start()?;
        self.engines_down().await;
        self.bring_up_in(&mut house, Wish::AsBefore).await
    }

    /// Refuses to stop what runs for a configuration that would not start.
    fn would_start(&self) -> Result<(), StartError> {
        let Ok(running) = self.running() else { return Ok(()) };
        let options = &self.0.options;
        let config = options.overrides.over(config::read(&options.dirs.config_file())?);
        if running.link.is_some() {
            paths::workspace(config.workspace.root.as_deref())?;
            config.relay.url.as_ref().map(link::check_address).transpose()?;
        }
        Ok(())
    }

    async fn bring_up_in(&self, house: &mut House, wish: Wish) -> Result<(), StartError> {
        if self.0.quit.is_cancelled() {
            return Err(StartError::Interrupted);
        }
        let started = self.engines_up(house, wish).await;
        // Without engines too: commands, the window in a browser and the doctor find out there why.
        let opened = if house.lock.is_some() { self.open_api(house).await } else { Ok(()) };
        let outcome = started.and(opened);
        match &outcome {
            Ok(()) => self.0.hub.clear(WarningCode::StartFailed),
            Err(error) => self.0.hub.warn(WarningCode::StartFailed, error.sentence()),
        }
        self.0.hub.snapshot();
        outcome
    }

    pub(super) async fn engines_up(&self, house: &mut House, wish: Wish) -> Result<Arc<Running>, StartError> {
        if let Ok(running) = self.running() {
            return Ok(running);
        }
        let Inner { options, hub, desk, now, .. } = &*self.0;
        if house.lock.is_none() {
            options.dirs.prepare()?;
            house.lock = Some(take_lock(&options.dirs).await?);
            // What a killed holder left would lead commands to a port that is somebody else's now.
            api::forget(&options.dirs)?;
            hub.keep_outages(options.dirs.data.join("outages.json"));
        }
        let logs = match &house.logs {
            Some(logs) => Arc::clone(logs),
            None => Arc::clone(house.logs.insert(Arc::new(Logs::start(&options.dirs.logs(), Default::default())?))),
        };
        let wanted = Wanted::load(&options.dirs);
        if let Wish::Start(engine) = wish {
            wanted.set(engine, true);
        }
        match Running::begin(options, hub, desk, &logs, wanted, now).await {
            Ok(running) => {
                *self.0.running.write() = Some(Arc::clone(&running));
                Ok(running)
            }
            Err(error) => {
                hub.engines_gone();
                Err(error)
            }
        }
    }

    pub(super) async fn engines_down(&self) {
        let running = self.0.running.write().take();
        if let Some(running) = running {
            running.end().await;
            self.0.hub.engines_gone();
            // Whoever waits for what comes next must not take the old for it.
            self.0.hub.snapshot();
        }
    }

    pub(super) async fn open_api(&self, house: &mut House) -> Result<(), StartError> {
        if house.api.is_none() {
            house.api = Some(ApiServer::start(self.clone()).await?);
        }
        Ok(())
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
