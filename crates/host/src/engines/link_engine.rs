//! The link to the relay and the executor behind it.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::command::Engine;
use holdfast_core::daemon::Compat;
use holdfast_core::id::InstanceId;
use holdfast_core::status::{EngineState, LinkState};
use holdfast_core::wire::Features;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::StartError;
use super::relay_engine::RelayEngine;
use crate::config::{AskConfig, Config, LinkConfig, PolicyConfig};
use crate::exec::{CallBody, ExecOptions, Executor as _, LocalExecutor, Told};
use crate::link::{self, LinkHandle, LinkOptions, Proxies};
use crate::paths::{self, Dirs};
use crate::power;
use crate::secrets::Secrets;
use crate::status_hub::StatusHub;

/// Name of the credential for the relay inside this process.
const EMBEDDED: &str = "device@embedded";

/// Name of the first account of an embedded relay.
const OWNER: &str = "owner";

/// Name under which the credential for a relay is stored.
pub(super) fn credential_name(relay: &Url) -> String {
    format!("device@{}", relay.origin().ascii_serialization())
}

/// Names of the credentials that a configuration leads to.
pub(crate) fn credential_names(config: &Config) -> Vec<String> {
    std::iter::once(EMBEDDED.to_owned()).chain(config.relay.url.as_ref().map(credential_name)).collect()
}

/// The link and its executor.
pub(crate) struct LinkEngine {
    executor: Arc<LocalExecutor>,
    /// Whether the machine may not fall asleep while calls run.
    keep_awake: watch::Sender<bool>,
    settings: LinkConfig,
    dirs: Dirs,
    /// Where it goes. Of an embedded relay the port is known once that ran.
    relay: Mutex<Url>,
    embedded: bool,
    /// Absent until there is a credential.
    link: Mutex<Option<(LinkHandle, SecretString)>>,
    /// One credential takes the place of another at a time.
    replacing: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for LinkEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LinkEngine").field("relay", &self.relay().as_str()).finish_non_exhaustive()
    }
}

impl LinkEngine {
    pub(super) async fn start(
        dirs: &Dirs,
        config: &Config,
        secrets: &Secrets,
        embedded: Option<&RelayEngine>,
        runs: bool,
        hub: &Arc<StatusHub>,
    ) -> Result<LinkEngine, StartError> {
        let workspace = paths::workspace(config.workspace.root.as_deref())?;
        let executor = LocalExecutor::open(ExecOptions {
            private: vec![dirs.config.clone()],
            diagnose: diagnose(hub),
            ask: config.ask.rule(),
            questions: questions(hub),
            ..ExecOptions::new(workspace.clone(), dirs.data.clone(), config.policy.policy())
        })?;
        let relay = match (embedded, &config.relay.url) {
            (Some(relay), _) => relay.own_address(),
            (None, url) => url.clone(),
        };
        let relay = relay.ok_or(link::LinkError::Address("is missing"))?;
        hub.app(|app| {
            app.policy = Some(config.policy.in_force().as_str().into());
            app.workspace = Some(workspace.display().to_string());
            if embedded.is_none() {
                app.mcp = relay.join("mcp").ok().map(String::from);
            }
        });
        executor.keep_bodies(config.calls.keep_bodies);
        let keep_awake = watch::Sender::new(config.power.keep_awake);
        let (busy, wanted) = (executor.busy(), keep_awake.subscribe());
        tokio::spawn(power::keep_awake(power::Locks::default(), power::Mains::default(), busy, wanted));
        let engine = LinkEngine {
            executor,
            settings: config.link.clone(),
            dirs: dirs.clone(),
            embedded: embedded.is_some(),
            keep_awake,
            relay: Mutex::new(relay),
            link: Mutex::new(None),
            replacing: tokio::sync::Mutex::new(()),
        };
        // Its own relay may have been left stopped; starting that starts the link too.
        if runs && embedded.is_none_or(RelayEngine::runs) {
            engine.run(embedded, secrets, hub).await?;
        } else {
            hub.engine(Engine::Link, EngineState::Stopped);
        }
        Ok(engine)
    }

    pub(super) fn executor(&self) -> Arc<LocalExecutor> {
        Arc::clone(&self.executor)
    }

    pub(super) fn ca_file(&self) -> Option<std::path::PathBuf> {
        self.settings.ca_file.clone()
    }

    pub(super) fn relay(&self) -> Url {
        self.relay.lock().clone()
    }

    fn secret_name(&self) -> String {
        if self.embedded { EMBEDDED.into() } else { credential_name(&self.relay()) }
    }

    /// Dials with this credential. A link with another one is stopped first, and its calls with it: what they did for one
    /// device must not be answered, nor go on, for another.
    async fn connect(&self, token: SecretString, hub: &Arc<StatusHub>) -> Result<(), StartError> {
        let mut random = [0; InstanceId::RANDOM_BYTES];
        getrandom::fill(&mut random).map_err(|_| StartError::Random)?;
        let options = LinkOptions {
            relay: self.relay(),
            token: token.clone(),
            compat: if self.settings.compat.is_some() { Compat::Base } else { Compat::Holdfast },
            features: Features::all(),
            instance: InstanceId::mint(random),
            ca_file: self.settings.ca_file.clone(),
            data_dir: self.dirs.data.clone(),
            proxies: Proxies::Environment,
        };
        let _turn = self.replacing.lock().await;
        if let Some(old) = self.handle() {
            old.end().await;
            *self.link.lock() = None;
        }
        // It reads certificates and empties a folder before it is a task.
        let (executor, observer) = (self.executor.clone(), hub.clone());
        let handle = tokio::task::spawn_blocking(move || link::spawn(options, executor, observer)).await;
        let handle = handle.map_err(|_| StartError::Interrupted)??;
        hub.set_link(Some(handle.status()));
        handle.start();
        *self.link.lock() = Some((handle, token));
        Ok(())
    }

    /// Uses a new credential for `relay` from now on, if that is the relay this link goes to.
    pub(super) async fn enrolled_at(
        &self,
        relay: &Url,
        token: SecretString,
        secrets: &Secrets,
        hub: &Arc<StatusHub>,
    ) -> Result<(), StartError> {
        if relay.origin() != self.relay().origin() {
            return Ok(secrets.store(&credential_name(relay), &token).await?);
        }
        secrets.store(&self.secret_name(), &token).await?;
        self.connect(token, hub).await
    }

    /// Dials, from now on. The link to a relay in this process begins when that has run for the first time.
    pub(super) async fn run(
        &self,
        embedded: Option<&RelayEngine>,
        secrets: &Secrets,
        hub: &Arc<StatusHub>,
    ) -> Result<(), StartError> {
        if let Some(link) = self.handle() {
            link.start();
        } else {
            match self.credential(embedded, secrets).await? {
                Some(token) => self.connect(token, hub).await?,
                None => hub.no_credential(self.relay().as_str()),
            }
        }
        hub.engine(Engine::Link, EngineState::Running);
        Ok(())
    }

    /// This machine's credential at its relay, if it has one. At the relay in this process, which has to run, it gets one.
    pub(super) async fn credential(
        &self,
        embedded: Option<&RelayEngine>,
        secrets: &Secrets,
    ) -> Result<Option<SecretString>, StartError> {
        let known = secrets.find(&self.secret_name()).await?;
        let Some(relay) = embedded else { return Ok(known) };
        let token = enrolled(relay, secrets, known).await?;
        *self.relay.lock() = relay.own_address().ok_or(link::LinkError::Address("is missing"))?;
        Ok(Some(token))
    }

    /// Stops the link: calls may finish, unless `now` is cancelled.
    pub(super) async fn stop(&self, hub: &StatusHub, now: &CancellationToken) {
        if let Some(link) = self.handle() {
            hub.engine(Engine::Link, EngineState::Stopping);
            link.stop(!now.is_cancelled());
            tokio::select! {
                () = link.stopped() => {}
                () = now.cancelled() => {
                    link.stop(false);
                    link.stopped().await;
                }
            }
        }
        hub.engine(Engine::Link, EngineState::Stopped);
    }

    /// Ends the link and the executor for good.
    pub(super) async fn shutdown(&self) {
        if let Some(link) = self.handle() {
            link.close();
        }
        self.executor.shutdown().await;
    }

    pub(super) fn try_now(&self) {
        if let Some(link) = self.handle() {
            link.start();
        }
    }

    pub(crate) fn cut(&self, lasting: Duration) {
        if let Some(link) = self.handle() {
            link.cut(lasting);
        }
    }

    /// The relay, this device's credential, and the certificates to trust besides: what the drill calls with.
    pub(crate) fn caller(&self) -> Option<(Url, SecretString, Option<std::path::PathBuf>)> {
        let token = self.link.lock().as_ref().map(|(_, token)| token.clone())?;
        Some((self.relay(), token, self.ca_file()))
    }

    pub(super) fn set_policy(&self, policy: &PolicyConfig, hub: &StatusHub) {
        self.executor.set_policy(policy.policy());
        if let Some(link) = self.handle() {
            link.advertised_changed();
        }
        hub.app(|app| app.policy = Some(policy.in_force().as_str().into()));
    }

    pub(super) fn set_ask(&self, ask: &AskConfig) {
        self.executor.set_ask(ask.rule());
    }

    pub(super) fn keep_bodies(&self, on: bool) {
        self.executor.keep_bodies(on);
    }

    /// What a call was asked and answered, if that is kept.
    pub(crate) fn body(&self, call: &str) -> Option<CallBody> {
        self.executor.body(call)
    }

    pub(super) fn set_keep_awake(&self, on: bool) {
        self.keep_awake.send_replace(on);
    }

    /// Answers a call that asks before it runs; `false` when it does not wait any more.
    pub(super) fn answer(&self, question: &str, allow: bool, remember: bool) -> bool {
        self.executor.answer(question, allow, remember)
    }

    fn handle(&self) -> Option<LinkHandle> {
        self.link.lock().as_ref().map(|(link, _)| link.clone())
    }
}

/// This machine's credential at its own relay: the one it has, if the relay knows it, else a new one.
async fn enrolled(
    relay: &RelayEngine,
    secrets: &Secrets,
    known: Option<SecretString>,
) -> Result<SecretString, StartError> {
    if let Some(token) = known.filter(|t| relay.knows(t.expose_secret())) {
        return Ok(token);
    }
    let admin = relay.admin().ok_or(StartError::RelayStopped)?;
    let owner = admin.ensure_owner(OWNER).await?;
    let enrolled = admin.enrol_local(&owner.id, &machine_name()).await?;
    let token = SecretString::from(enrolled.token);
    secrets.store(EMBEDDED, &token).await?;
    tracing::info!(device = %enrolled.device, "this machine is enrolled at its own relay");
    Ok(token)
}

/// What this machine calls itself at a relay.
pub fn machine_name() -> String {
    #[cfg(unix)]
    let name = nix::unistd::gethostname().ok().and_then(|n| n.into_string().ok());
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").ok();
    name.filter(|n| !n.trim().is_empty()).unwrap_or_else(|| "this machine".into())
}

/// Tells the hub which calls ask before they run.
fn questions(hub: &Arc<StatusHub>) -> Told {
    let hub = Arc::downgrade(hub);
    Arc::new(move |questions| {
        if let Some(hub) = hub.upgrade() {
            hub.questions(questions);
        }
    })
}

/// What `diagnose_runtime` shows: counts and states, no address and no name.
fn diagnose(hub: &Arc<StatusHub>) -> Arc<dyn Fn() -> serde_json::Value + Send + Sync> {
    let hub = Arc::downgrade(hub);
    Arc::new(move || {
        let Some(hub) = hub.upgrade() else { return serde_json::json!({}) };
        let now = hub.snapshot();
        serde_json::json!({
            "relay": {
                "connected": now.relay.state == LinkState::Healthy,
                "state": now.relay.state,
                "since": now.relay.since,
                "attempts": now.relay.attempts,
            },
            "calls": now.calls,
            "outages": now.outages.len(),
            "warnings": now.health.iter().map(|w| w.code).collect::<Vec<_>>(),
        })
    })
}
