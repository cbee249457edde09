//! What a process that stays is made of: the data folder once it is ours, the loopback API, and the engines, which may
//! fail to start and can be started again.

mod house;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use bytes::Bytes;
use holdfast_core::command::Command;
use holdfast_core::desktop::NoticeSwitches;
use holdfast_core::status::{AppStatus, StatusSnapshot, WarningCode};
use http::{Request, Response};
use parking_lot::RwLock;
use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::{self, ApiServer};
use crate::autostart::{self, Autostart};
use crate::config::{self, ConfigView};
use crate::engines::{CommandError, EngineOptions, Running, StartError, done, offline};
use crate::forwarder::Desk;
use crate::open;
use crate::paths::Dirs;
use crate::runtime;
use crate::status_hub::{StatusHub, unix_ms};
use crate::update;
use house::{House, Wish};

/// A process that stays, for its shell and its API. Clones are handles of the same one.
#[derive(Debug, Clone)]
pub struct Resident(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: EngineOptions,
    hub: Arc<StatusHub>,
    desk: Desk,
    autostart: Option<Autostart>,
    /// The file this process began with, by a name that lasts.
    program: Option<PathBuf>,
    /// The process begins anew once it has ended.
    again: AtomicBool,
    /// Starting and stopping take turns.
    house: Mutex<House>,
    running: RwLock<Option<Arc<Running>>>,
    /// The process was asked to end.
    quit: CancellationToken,
    /// … and to wait for nothing.
    now: CancellationToken,
    /// It has ended.
    ended: CancellationToken,
    tasks: TaskTracker,
}

impl Resident {
    /// Starts the engines that ran before, on the current runtime, and returns at once. What cannot start is a warning
    /// [`StartFailed`](holdfast_core::status::WarningCode::StartFailed), and [`Command::Start`] tries again.
    pub fn start(options: EngineOptions) -> Resident {
        let resident = Resident::new(options);
        let starting = resident.clone();
        resident.0.tasks.spawn(async move {
            // Why it failed stands in the status.
            let _ = starting.bring_up(Wish::AsBefore).await;
        });
        resident
    }

    /// Starts all engines, for a process that a person starts and that is nothing without them. Returns when they run; with
    /// an embedded relay, when this machine was proven reachable through it or
    /// [`READY_WAIT`](holdfast_core::limits::READY_WAIT) passed.
    pub async fn launch(options: EngineOptions) -> Result<Resident, StartError> {
        let resident = Resident::new(options);
        let mut house = resident.0.house.lock().await;
        let started = async {
            let running = resident.engines_up(&mut house, Wish::Start(None)).await?;
            resident.open_api(&mut house).await?;
            Ok(running)
        };
        let started = started.await;
        drop(house);
        match started {
            Ok(running) => {
                running.reachable().await;
                #[cfg(target_os = "linux")]
                tokio::spawn(async {
                    // What follows a start at once still belongs to it.
                    tokio::time::sleep(holdfast_core::limits::SHELL_TURN_MAX * 3).await;
                    crate::memory::give_back();
                });
                Ok(resident)
            }
            Err(error) => {
                resident.shutdown().await;
                Err(error)
            }
        }
    }

    fn new(options: EngineOptions) -> Resident {
        let app = AppStatus {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            started_at: unix_ms(),
            ..AppStatus::default()
        };
        let autostart = options
            .program
            .clone()
            .and_then(|program| Autostart::of(program).inspect_err(|e| tracing::warn!("starting at login: {e}")).ok());
        let inner = Inner {
            options,
            hub: StatusHub::new(app),
            desk: Desk::default(),
            autostart,
            program: autostart::program().inspect_err(|e| tracing::warn!("no name of this program: {e}")).ok(),
            again: AtomicBool::new(false),
            house: Mutex::default(),
            running: RwLock::default(),
            quit: CancellationToken::new(),
            now: CancellationToken::new(),
            ended: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        inner.tasks.spawn(Arc::clone(&inner.hub).run(inner.ended.clone()));
        if let Some(autostart) = inner.autostart.clone() {
            inner.tasks.spawn(autostart.follow(Arc::clone(&inner.hub), inner.ended.clone()));
        }
        if let Some(program) = inner.program.clone() {
            inner.tasks.spawn(update::follow(program, Arc::clone(&inner.hub), inner.ended.clone()));
        }
        Resident(Arc::new(inner))
    }

    /// Status as it changes.
    pub fn watch(&self) -> watch::Receiver<Arc<StatusSnapshot>> {
        self.0.hub.watch()
    }

    /// Status at this moment.
    pub fn status(&self) -> Arc<StatusSnapshot> {
        self.0.hub.snapshot()
    }

    /// Which notices the person wants, as it changes.
    pub fn notices(&self) -> watch::Receiver<NoticeSwitches> {
        self.0.hub.notices()
    }

    /// The address of the loopback API, once it listens.
    pub async fn api(&self) -> Option<String> {
        self.0.house.lock().await.api.as_ref().map(ApiServer::address)
    }

    pub(crate) fn hub(&self) -> &Arc<StatusHub> {
        &self.0.hub
    }

    /// Where agents meet whoever serves the channels.
    pub(crate) fn desk(&self) -> &Desk {
        &self.0.desk
    }

    pub(crate) fn dirs(&self) -> &Dirs {
        &self.0.options.dirs
    }

    /// The engines, if they run.
    pub(crate) fn running(&self) -> Result<Arc<Running>, CommandError> {
        self.0.running.read().clone().ok_or_else(CommandError::not_running)
    }

    /// The configuration: in force, and as the file has it.
    pub(crate) async fn config(&self) -> ConfigView {
        let options = &self.0.options;
        let config = match self.running() {
            Ok(running) => running.config().await,
            Err(_) => options.overrides.over(config::read(&options.dirs.config_file()).unwrap_or_default()),
        };
        config::view(&options.dirs.config_file(), config)
    }

    /// Does what a command asks.
    pub async fn dispatch(&self, command: Command) -> Result<Value, CommandError> {
        match command {
            Command::Quit { now } => {
                if now {
                    self.hurry();
                }
                self.0.quit.cancel();
                Ok(done())
            }
            Command::Start { engine } if self.running().is_err() => {
                let wish = Wish::Start(engine);
                self.undisturbed(|resident| async move { resident.bring_up(wish).await }).await?;
                Ok(done())
            }
            Command::Restart {} if self.0.hub.stands(WarningCode::RestartToUpdate) => {
                self.0.again.store(true, Ordering::Relaxed);
                self.0.quit.cancel();
                Ok(done())
            }
            Command::Restart {} => {
                self.undisturbed(|resident| async move { resident.restart().await }).await?;
                Ok(done())
            }
            Command::Autostart { on } => {
                let autostart = self.0.autostart.as_ref().ok_or_else(CommandError::no_tray_here)?;
                let on = autostart.set(on).map(|()| autostart.is_on()).map_err(|e| CommandError::failed(&e))?;
                self.0.hub.app(|app| app.autostart = Some(on));
                Ok(json!({"autostart": on}))
            }
            Command::OpenLogs {} => {
                let logs = self.dirs().logs();
                let shown = tokio::task::spawn_blocking(move || open::folder(&logs)).await;
                shown.map_err(|_| StartError::Interrupted)?.map_err(|e| CommandError::failed(&e))?;
                Ok(done())
            }
            command => {
                if let Ok(running) = self.running() {
                    return running.dispatch(command).await;
                }
                // A start may be under way.
                let house = self.0.house.lock().await;
                match self.running() {
                    Ok(running) => {
                        drop(house);
                        running.dispatch(command).await
                    }
                    Err(_) if house.lock.is_some() => offline(self.dirs(), command).await,
                    Err(not_running) => Err(not_running),
                }
            }
        }
    }

    /// Does something that whoever asked for it cannot leave half done by going away.
    async fn undisturbed<F>(&self, act: impl FnOnce(Resident) -> F) -> Result<(), StartError>
    where
        F: Future<Output = Result<(), StartError>> + Send + 'static,
    {
        self.0.tasks.spawn(act(self.clone())).await.map_err(|_| StartError::Interrupted)?
    }

    /// Answers a request of this process's own shell by the routes of the loopback API. Whoever holds a `Resident` is
    /// trusted: no token is needed.
    pub async fn request(&self, request: Request<Bytes>) -> Response<Body> {
        api::answer(self.clone(), request.map(Body::from)).await
    }

    /// Waits until a command asked this process to end.
    pub async fn quit_asked(&self) {
        self.0.quit.cancelled().await;
    }

    /// Stays until a command or a signal ended this process, and has shut down what runs. The first signal lets calls finish,
    /// the second does not, the third does not even wait for that.
    pub async fn stay(&self) {
        let ended = async {
            self.quit_asked().await;
            self.shutdown().await;
        };
        let driven_out = async {
            match runtime::signals() {
                Ok(mut signals) => while signals.recv().await.is_some() && !self.wish_to_end() {},
                Err(e) => {
                    tracing::error!("signals cannot be heard: {e}");
                    std::future::pending().await
                }
            }
        };
        tokio::select! { () = ended => {}, () = driven_out => {} }
    }

    /// A wish to end, as by a signal. True for the third one and for any after the end: whoever asks need not wait.
    pub fn wish_to_end(&self) -> bool {
        let Inner { quit, now, ended, .. } = &*self.0;
        let over = ended.is_cancelled() || now.is_cancelled();
        if quit.is_cancelled() {
            now.cancel();
        }
        quit.cancel();
        over
    }

    /// The program that takes this process's place now that it has ended, if a restart was asked for after an update; see
    /// [`update::begin_anew`].
    pub fn again(&self) -> Option<&Path> {
        self.0.program.as_deref().filter(|_| self.0.again.load(Ordering::Relaxed))
    }

    /// From now on nothing is waited for.
    pub fn hurry(&self) {
        self.0.now.cancel();
    }

    /// Stops everything: running calls may finish and be delivered, unless [`Resident::hurry`] was called.
    pub async fn shutdown(&self) {
        self.0.quit.cancel();
        let mut house = self.0.house.lock().await;
        self.engines_down().await;
        if let Some(api) = house.api.take() {
            api.stop().await;
        }
        let lock = house.lock.take();
        // A start that waits for its turn finds that the process ends.
        drop(house);
        self.0.ended.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
        drop(lock);
    }
}
