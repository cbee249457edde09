//! The one dispatcher of commands: for the loopback API, the window and the command line, beside a running process or
//! on a closed store.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::command::{Command, Engine, Secret};
use holdfast_core::policy::Profile;
use holdfast_core::status::{EngineState, WarningCode};
use holdfast_relay::{Admin, ApiError, TokenRequest};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::channel_commands::{self, of_channels};
use super::link_engine::credential_name;
use super::{Running, StartError, relay_engine};
use crate::config::{self, Config, EditError};
use crate::http_client;
use crate::paths::Dirs;
use crate::secrets::Secrets;

/// Why a command was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[error("{message}")]
pub struct CommandError {
    /// What programs match on.
    pub code: String,
    /// One sentence for people.
    pub message: String,
}

impl CommandError {
    /// An error of this code.
    pub fn new(code: &str, message: impl Into<String>) -> CommandError {
        CommandError { code: code.into(), message: message.into() }
    }

    pub(crate) fn not_running() -> CommandError {
        CommandError::new("not_running", "no Holdfast runs on this data folder; `holdfast serve` starts one")
    }

    pub(crate) fn no_tray_here() -> CommandError {
        CommandError::new("not_found", "this process is no tray application, which could be started at login")
    }

    pub(crate) fn failed(error: &dyn std::fmt::Display) -> CommandError {
        CommandError::new("failed", error.to_string())
    }
}

impl From<ApiError> for CommandError {
    fn from(error: ApiError) -> Self {
        CommandError::new(error.code, error.message)
    }
}

impl From<EditError> for CommandError {
    fn from(error: EditError) -> Self {
        let code = if matches!(error, EditError::File(_)) { "config_invalid" } else { "invalid_request" };
        CommandError::new(code, error.to_string())
    }
}

impl From<StartError> for CommandError {
    fn from(error: StartError) -> Self {
        CommandError::new(error.code(), error.sentence())
    }
}

pub(crate) fn done() -> Value {
    json!({"done": true})
}

fn value(answer: impl Serialize) -> Result<Value, CommandError> {
    serde_json::to_value(answer).map_err(|e| CommandError::failed(&e))
}

fn secret(Secret(text): Secret) -> SecretString {
    text.into()
}

impl Running {
    /// Does what a command asks.
    pub(crate) async fn dispatch(self: &Arc<Self>, command: Command) -> Result<Value, CommandError> {
        match command {
            Command::Start { engine } => self.start(engine).await,
            Command::Stop { engine } => self.stop(engine).await,
            Command::TryNow {} if self.link.is_some() && !self.wanted.runs(Engine::Link) => {
                Err(CommandError::new("stopped", "the link is stopped; `holdfast start link` first"))
            }
            Command::TryNow {} => {
                self.link.as_ref().ok_or_else(no_such_engine)?.try_now();
                if let Some(worker) = self.worker.as_ref().filter(|_| self.wanted.runs(Engine::Worker)) {
                    worker.try_now().await;
                }
                Ok(done())
            }
            Command::Reload {} => {
                let applied = self.reload().await.map_err(|e| CommandError::failed(&e))?;
                Ok(json!({"changed": applied.changed, "restart": applied.restart}))
            }
            Command::PolicySet { .. } if self.link.is_none() => Err(relay_alone("the policy stands")),
            Command::PolicySet { profile } => {
                self.configure(profile_setting(profile)).await?;
                Ok(json!({"policy": profile}))
            }
            Command::Configure { set } => {
                let applied = self.configure(set).await?;
                Ok(json!({"changed": applied.changed, "restart": applied.restart}))
            }
            Command::DeviceToken { relay, token } => {
                let relay = relay_address(&relay)?;
                match &self.link {
                    Some(link) => {
                        link.enrolled_at(&relay, secret(token), &self.secrets, &self.hub).await?;
                        if self.wanted.runs(Engine::Worker) {
                            self.start_worker().await?;
                        }
                    }
                    None => store_credential(&self.secrets, &relay, token).await?,
                }
                Ok(json!({"relay": relay.origin().ascii_serialization()}))
            }
            Command::CutAllAccess {} => self.cut_all_access().await,
            Command::Answer { question, allow, remember } => {
                match self.link.as_ref().is_some_and(|link| link.answer(&question, allow, remember)) {
                    true => Ok(done()),
                    false => Err(CommandError::new("not_found", "no call waits for this answer any more")),
                }
            }
            Command::OperationCancel { operation } => {
                self.worker.as_ref().ok_or_else(no_such_engine)?.cancel(&operation).await
            }
            Command::OperationDismiss { operation } => {
                self.worker.as_ref().ok_or_else(no_such_engine)?.dismiss(&operation).await
            }
            Command::SeatTake { wait, force } => {
                // One that was replaced in the keyring is noticed by nothing else.
                self.renew_token().await;
                let channel = self.channel().await?;
                self.keep_wanted(Some(Engine::Channels), true).await;
                channel.take(&self.hub, wait, force).await
            }
            Command::SeatRelease {} => self.channel().await?.release().await,
            Command::SeatShow {} => self.seat_show().await,
            command if of_channels(&command) => match &self.link {
                Some(_) => self.channel_command(command).await,
                None => Err(relay_alone("channels are set up")),
            },
            Command::Autostart { .. } | Command::OpenLogs {} => Err(no_such_engine()),
            other => administer(&self.admin().await?, other).await,
        }
    }

    async fn admin(&self) -> Result<Admin, CommandError> {
        let elsewhere =
            || CommandError::new("no_relay_here", "the relay is elsewhere: run this on the machine it runs on");
        let relay = self.relay.as_ref().ok_or_else(elsewhere)?.lock().await;
        relay
            .admin()
            .ok_or_else(|| CommandError::new("not_running", "the relay is stopped; `holdfast start relay` first"))
    }

    /// What shall run is kept before it is tried: a failed start is tried again by the next one.
    pub(super) async fn keep_wanted(&self, engine: Option<Engine>, runs: bool) {
        let wanted = Arc::clone(&self.wanted);
        // A disk that fails is told in the log.
        let _ = tokio::task::spawn_blocking(move || wanted.set(engine, runs)).await;
    }

    async fn start(&self, engine: Option<Engine>) -> Result<Value, CommandError> {
        self.keep_wanted(engine, true).await;
        let wanted = |e| engine.is_none_or(|wanted| wanted == e);
        // First: what keeps a relay or a link from starting does not keep the bot from speaking.
        let mut known = wanted(Engine::Channels) && self.start_channel().await;
        if let (Some(relay), true) = (&self.relay, wanted(Engine::Relay)) {
            known = true;
            let mut relay = relay.lock().await;
            let running = relay.run(&self.hub).await;
            if let Some(worker) = &self.worker {
                worker.relay_listens(relay.port());
            }
            if let Err(error) = running {
                self.hub.engine(Engine::Relay, EngineState::Failed);
                self.hub.warn(WarningCode::RelayFailed, format!("the relay of this machine does not run: {error}"));
                return Err(error.into());
            }
        }
        if let (Some(link), true) = (&self.link, wanted(Engine::Link)) {
            known = true;
            let relay = match &self.relay {
                Some(relay) => Some(relay.lock().await),
                None => None,
            };
            link.run(relay.as_deref(), &self.secrets, &self.hub).await?;
        }
        if self.worker.is_some() && wanted(Engine::Worker) {
            known = true;
            self.start_worker().await?;
        }
        if known { Ok(done()) } else { Err(no_such_engine()) }
    }

    /// Starts the worker, if there is one.
    pub(super) async fn start_worker(&self) -> Result<(), StartError> {
        let (Some(link), Some(worker)) = (&self.link, &self.worker) else { return Ok(()) };
        let relay = match &self.relay {
            Some(relay) => Some(relay.lock().await),
            None => None,
        };
        if relay.as_ref().is_some_and(|relay| !relay.runs()) {
            self.hub.engine(Engine::Worker, EngineState::Stopped);
            return Err(StartError::RelayStopped);
        }
        worker.run(link, relay.as_deref(), &self.secrets, &self.hub).await
    }

    /// Nothing waits for anything else: not the grants for a link that says goodbye, nor the link for a worker that cannot
    /// write its ledger.
    async fn cut_all_access(&self) -> Result<Value, CommandError> {
        let at_once = CancellationToken::new();
        at_once.cancel();
        let work = async {
            if let Some(worker) = &self.worker {
                worker.cancel_all().await;
                tokio::join!(self.keep_wanted(Some(Engine::Worker), false), worker.stop(&self.hub, &at_once));
            }
        };
        let calls = async {
            if let Some(link) = &self.link {
                tokio::join!(self.keep_wanted(Some(Engine::Link), false), link.stop(&self.hub, &at_once));
                // Nobody is trusted for what was answered before.
                link.set_ask(&self.config.lock().await.ask);
            }
        };
        // Grants at a relay elsewhere are not ours to end; the answer must not look as if they were.
        let grants = async {
            let Some(relay) = &self.relay else { return Ok(json!({"revoked": null})) };
            let config = self.config().await;
            // Nobody starts it meanwhile: a stopped one's grants would open it again.
            let relay = relay.lock().await;
            let cut = Command::CutAllAccess {};
            match relay.admin() {
                Some(admin) => administer(&admin, cut).await,
                None => on_closed_store(&self.dirs, &config, cut).await,
            }
        };
        let (answer, (), ()) = tokio::join!(grants, calls, work);
        answer
    }

    async fn stop(&self, engine: Option<Engine>) -> Result<Value, CommandError> {
        self.keep_wanted(engine, false).await;
        let wanted = |e| engine.is_none_or(|wanted| wanted == e);
        let channel = self.channels.lock().await.clone();
        let mut known = false;
        if let (Some(channel), true) = (channel, wanted(Engine::Channels)) {
            known = true;
            channel.stop(&self.hub, &self.now).await;
        }
        if let (Some(worker), true) = (&self.worker, wanted(Engine::Worker)) {
            known = true;
            worker.stop(&self.hub, &self.now).await;
        }
        if let (Some(link), true) = (&self.link, wanted(Engine::Link)) {
            known = true;
            link.stop(&self.hub, &self.now).await;
        }
        if let (Some(relay), true) = (&self.relay, wanted(Engine::Relay)) {
            known = true;
            relay.lock().await.stop(&self.hub).await;
        }
        if known { Ok(done()) } else { Err(no_such_engine()) }
    }
}

fn profile_setting(profile: Profile) -> BTreeMap<String, Value> {
    BTreeMap::from([("policy.profile".into(), profile.as_str().into())])
}

pub(super) async fn edited(dirs: &Dirs, set: BTreeMap<String, Value>) -> Result<Config, CommandError> {
    let path = dirs.config_file();
    let edited = tokio::task::spawn_blocking(move || config::edit(&path, &set)).await;
    Ok(edited.map_err(|_| StartError::Interrupted)??)
}

fn relay_alone(what: &str) -> CommandError {
    CommandError::new("not_found", format!("this is a relay alone; {what} at the machines that join it"))
}

fn no_such_engine() -> CommandError {
    CommandError::new("not_found", "this process hosts no such engine")
}

/// Does what a command asks when no process holds the data folder. The caller holds the lock.
pub async fn offline(dirs: &Dirs, command: Command) -> Result<Value, CommandError> {
    let failed_config = |e| CommandError::failed(&e);
    let config = config::read(&dirs.config_file()).map_err(failed_config)?;
    match command {
        Command::Start { .. }
        | Command::Stop { .. }
        | Command::Quit { .. }
        | Command::TryNow {}
        | Command::Reload {}
        | Command::Restart {}
        | Command::Deny { .. }
        | Command::Answer { .. }
        | Command::OperationCancel { .. }
        | Command::OperationDismiss { .. }
        | Command::SeatTake { .. }
        | Command::SeatRelease {}
        | Command::SeatShow {}
        | Command::Autostart { .. }
        | Command::OpenLogs {}
        | Command::Approve { .. } => Err(CommandError::not_running()),
        Command::PolicySet { profile } => {
            edited(dirs, profile_setting(profile)).await?;
            Ok(json!({"policy": profile}))
        }
        Command::Configure { set } => {
            let keys: Vec<String> = set.keys().cloned().collect();
            edited(dirs, set).await?;
            Ok(json!({"changed": [], "restart": keys}))
        }
        command if of_channels(&command) => channel_commands::offline(dirs, &config, command).await,
        Command::DeviceToken { relay, token } => {
            let relay = relay_address(&relay)?;
            let secrets = secrets(dirs, &config).await?;
            store_credential(&secrets, &relay, token).await?;
            Ok(json!({"relay": relay.origin().ascii_serialization()}))
        }
        command => {
            if config.relay.url.is_some() {
                return Err(CommandError::new(
                    "no_relay_here",
                    "the relay is elsewhere: run this on the machine it runs on",
                ));
            }
            on_closed_store(dirs, &config, command).await
        }
    }
}

/// Administers a relay that does not run. The caller sees to it that it does not start meanwhile.
async fn on_closed_store(dirs: &Dirs, config: &Config, command: Command) -> Result<Value, CommandError> {
    let store = relay_engine::closed_store(dirs, config).await?;
    let answer = administer(&store.admin, command).await;
    store.close().await;
    answer
}

pub(super) async fn secrets(dirs: &Dirs, config: &Config) -> Result<Secrets, CommandError> {
    let (data, store) = (dirs.data.clone(), config.secrets.store);
    let opened = tokio::task::spawn_blocking(move || Secrets::open(&data, store)).await;
    opened.map_err(|_| StartError::Interrupted)?.map_err(|e| CommandError::failed(&e))
}

fn relay_address(text: &str) -> Result<Url, CommandError> {
    let bad = || {
        CommandError::new(
            "invalid_request",
            "the relay's address must be https://host[:port], or http:// to this machine",
        )
    };
    let url: Url = text.parse().map_err(|_| bad())?;
    if http_client::may_carry_secrets(&url) { Ok(url) } else { Err(bad()) }
}

async fn store_credential(secrets: &Secrets, relay: &Url, token: Secret) -> Result<(), CommandError> {
    secrets.store(&credential_name(relay), &secret(token)).await.map_err(|e| CommandError::failed(&e))
}

/// What the relay's own administration does.
async fn administer(admin: &Admin, command: Command) -> Result<Value, CommandError> {
    match command {
        Command::Approve { code } => value(admin.approve(&code.0).await?),
        Command::Deny { consent } => Ok(json!({"denied": admin.deny(&consent)?.client})),
        Command::AccountAdd { name, role, password } => {
            let password = password.map(secret);
            value(admin.create_account(holdfast_relay::NewAccount { name, role, password }).await?)
        }
        Command::AccountList {} => value(admin.accounts().await?),
        Command::DeviceCode { account } => value(admin.device_code(account.as_deref()).await?),
        Command::DeviceList {} => value(admin.devices(None).await?),
        Command::DeviceRename { device, name } => value(admin.rename_device(None, &device, &name).await?),
        Command::DeviceDefault { device } => value(admin.make_default_device(None, &device).await?),
        Command::DeviceRevoke { device } => Ok(json!({"revoked": admin.revoke_device(None, &device).await?})),
        Command::ClientList {} => value(admin.clients(None).await?),
        Command::ClientRevoke { client } => Ok(json!({"revoked": admin.revoke_client(None, &client).await?})),
        Command::TokenCreate { name, role, device, account, days } => {
            value(admin.create_token(TokenRequest { name, account, device, role, days }).await?)
        }
        Command::TokenList {} => value(admin.tokens().await?),
        Command::TokenRevoke { token } => {
            admin.revoke_token(&token).await?;
            Ok(done())
        }
        Command::CutAllAccess {} => Ok(json!({"revoked": admin.cut_all_access().await?})),
        Command::Start { .. }
        | Command::Stop { .. }
        | Command::Quit { .. }
        | Command::TryNow {}
        | Command::Reload {}
        | Command::Restart {}
        | Command::PolicySet { .. }
        | Command::Answer { .. }
        | Command::OperationCancel { .. }
        | Command::OperationDismiss { .. }
        | Command::SeatTake { .. }
        | Command::SeatRelease {}
        | Command::SeatShow {}
        | Command::ChannelSetup { .. }
        | Command::ChannelRemove {}
        | Command::ChannelBind { .. }
        | Command::ChannelUnbind { .. }
        | Command::ChannelPair { .. }
        | Command::ChannelAdmit { .. }
        | Command::ChannelDismiss { .. }
        | Command::ChannelRetry { .. }
        | Command::ChannelTest { .. }
        | Command::ChannelCheck { .. }
        | Command::ChannelCandidates { .. }
        | Command::Configure { .. }
        | Command::Autostart { .. }
        | Command::OpenLogs {}
        | Command::DeviceToken { .. } => Err(CommandError::not_running()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_goes_over_http_only_to_this_machine() {
        for good in ["https://relay.example", "http://127.0.0.1:8787", "http://[::1]:1", "http://localhost"] {
            assert!(relay_address(good).is_ok(), "{good}");
        }
        for bad in ["http://relay.example", "http://127.0.0.1.example", "ws://localhost", "relay.example"] {
            assert_eq!(relay_address(bad).unwrap_err().code, "invalid_request", "{bad}");
        }
    }
}
