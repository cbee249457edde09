//! The channel: a bot at a chat service, and the seat that says whether this process speaks for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::command::{Engine, Secret};
use holdfast_core::seat::{Failed, Want};
use holdfast_core::status::{EngineState, SeatState, SeatStatus, WarningCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{CommandError, Running};
use crate::channel::{self, Bot};
use crate::config::{ChannelConfig, ChannelService, OnStart};
use crate::forwarder::{Desk, Means};
use crate::paths::Dirs;
use crate::seat::{self, SeatHandle, SeatOptions};
use crate::secrets::Secrets;
use crate::status_hub::{StatusHub, unix_ms};
use crate::transcript::Homes;

/// The channel that is set up, with what it was started with.
#[derive(Debug, Clone)]
pub(super) struct ChannelsEngine {
    seat: SeatHandle,
    /// The bot's, as it was read at the start.
    token: SecretString,
    config: watch::Sender<Arc<ChannelConfig>>,
}

impl Running {
    /// The channel's engine.
    pub(super) async fn channel(&self) -> Result<ChannelsEngine, CommandError> {
        if let Some(engine) = &*self.channels.lock().await {
            return Ok(engine.clone());
        }
        match self.hub.snapshot().seat.as_ref().and_then(|s| s.reason.clone()) {
            Some(reason) => Err(CommandError::new("seat_failed", reason)),
            None => Err(no_channel()),
        }
    }

    /// The seat, looked at anew where it can be; else why it is not there.
    pub(super) async fn seat_show(&self) -> Result<Value, CommandError> {
        let engine = self.channels.lock().await.clone();
        match (engine, &self.hub.snapshot().seat) {
            (Some(engine), _) => engine.look().await,
            (None, Some(status)) => shown(status),
            (None, None) => Err(no_channel()),
        }
    }

    /// Makes the channel what the configuration says, and `anew` does what a start does. Returns whether there is one.
    pub(super) async fn renew_channel(&self, anew: bool) -> bool {
        let mut engine = self.channels.lock().await;
        let config = self.config().await.channel;
        if self.link.is_none() || self.ended.is_cancelled() {
            return false;
        }
        let bot = |c: &ChannelConfig| (c.backend, c.bot.clone(), c.base_url.clone(), c.gateway_url.clone());
        // Whoever sees the edit or the new token first starts the channel with both; nobody does it a second time.
        let same = match engine.as_ref().filter(|e| bot(&e.config.borrow()) == bot(&config)) {
            Some(running) if !anew || self.keeps(running, &config).await => Some(running),
            _ => None,
        };
        if let Some(same) = same {
            same.config.send_if_modified(|before| {
                let differs = **before != config;
                *before = Arc::new(config);
                differs
            });
            if anew && self.wanted.runs(Engine::Channels) {
                same.run(&self.hub).await;
            }
            return true;
        }
        if let Some(before) = engine.take() {
            before.shutdown(&self.now).await;
        }
        self.hub.no_channel();
        let runs = self.wanted.runs(Engine::Channels);
        *engine = ChannelsEngine::start(&config, &self.secrets, runs, &self.hub, &self.desk).await;
        config.backend.is_some()
    }

    /// Whether the token that is kept is the one a channel was started with.
    async fn keeps(&self, channel: &ChannelsEngine, config: &ChannelConfig) -> bool {
        let Some(name) = token_name(config) else { return false };
        let kept = self.secrets.find(&name).await.ok().flatten();
        kept.is_some_and(|kept| kept.expose_secret() == channel.token.expose_secret())
    }

    /// Uses the bot's token as it is kept now, if it is another one than the channel was started with. A seat that is held is
    /// held again, and one whose token did not hold any more is claimed.
    pub(super) async fn renew_token(&self) {
        let mut engine = self.channels.lock().await;
        let config = self.config().await.channel;
        let Some(name) = token_name(&config) else { return };
        // What cannot be read now is read when it changes again.
        let Ok(Some(kept)) = self.secrets.find(&name).await else { return };
        let (same, wanted) = match &*engine {
            Some(before) => {
                let wanted = before.seat.status().borrow().state != SeatState::Off;
                (before.token.expose_secret() == kept.expose_secret(), wanted)
            }
            None => (false, true),
        };
        if same || self.link.is_none() || self.ended.is_cancelled() {
            return;
        }
        tracing::info!("the bot's token was replaced");
        if let Some(before) = engine.take() {
            before.shutdown(&self.now).await;
        }
        self.hub.no_channel();
        let runs = wanted && self.wanted.runs(Engine::Channels);
        *engine = ChannelsEngine::start(&config, &self.secrets, runs, &self.hub, &self.desk).await;
        if let Some(engine) = engine.as_ref().filter(|_| runs && config.on_start == OnStart::Off) {
            engine.seat.want(Want::IfVacant).await;
        }
    }

    /// Does what a start does. Returns whether there is a channel.
    pub(super) async fn start_channel(&self) -> bool {
        let engine = self.channels.lock().await.clone();
        match engine {
            Some(engine) => engine.run(&self.hub).await,
            // What kept it from starting may be mended.
            None => return self.renew_channel(true).await,
        }
        true
    }

    pub(super) async fn channel_setup(
        &self,
        service: Option<&str>,
        token: Secret,
        base_url: Option<String>,
        gateway_url: Option<String>,
    ) -> Result<Value, CommandError> {
        let before = self.config().await.channel;
        let (set, answer) = set_up(&self.secrets, &before, service, token, base_url, gateway_url).await?;
        self.configure(set).await?;
        forget_former(&self.secrets, &before, &self.config().await.channel).await?;
        self.keep_wanted(Some(Engine::Channels), true).await;
        self.renew_channel(true).await;
        Ok(answer)
    }

    pub(super) async fn channel_remove(&self) -> Result<Value, CommandError> {
        let (set, answer) = removed(&self.secrets, &self.config().await.channel).await?;
        self.configure(set).await?;
        self.renew_channel(true).await;
        Ok(answer)
    }
}

/// What a person may do about a holder that does not answer.
const ENDS: &str = "`holdfast seat take --force` ends its process";

fn no_channel() -> CommandError {
    CommandError::new("not_found", "no channel is set up; `holdfast channel setup` does that")
}

impl ChannelsEngine {
    /// Starts what the configuration asks for. A channel that cannot be used is told and keeps nothing else from starting.
    pub(super) async fn start(
        config: &ChannelConfig,
        secrets: &Secrets,
        runs: bool,
        hub: &Arc<StatusHub>,
        desk: &Desk,
    ) -> Option<ChannelsEngine> {
        let service = config.backend?;
        let (config_sender, edited) = watch::channel(Arc::new(config.clone()));
        let means = Means { desk: desk.clone(), config: edited, homes: Homes::here() };
        match options(service, config, secrets, means).await {
            Ok((options, token)) => {
                let seat = seat::spawn(options, Arc::clone(hub));
                let engine = ChannelsEngine { seat, token, config: config_sender };
                match runs {
                    true => engine.run(hub).await,
                    false => hub.engine(Engine::Channels, EngineState::Stopped),
                }
                Some(engine)
            }
            Err(reason) => {
                hub.engine(Engine::Channels, EngineState::Failed);
                hub.warn(WarningCode::SeatFailed, format!("the channel cannot be used: {reason}"));
                hub.seat(unusable(service, config, reason));
                None
            }
        }
    }

    /// Does what a start does about the seat.
    pub(super) async fn run(&self, hub: &StatusHub) {
        hub.engine(Engine::Channels, EngineState::Running);
        let on_start = self.config.borrow().on_start;
        match on_start {
            OnStart::IfVacant => self.seat.want(Want::IfVacant).await,
            OnStart::Take => self.seat.want(Want::Take { force: false }).await,
            OnStart::Off => {}
        }
    }

    /// Lets go of the seat: what is under way is finished first, unless `now` is cancelled.
    pub(super) async fn stop(&self, hub: &StatusHub, now: &CancellationToken) {
        hub.engine(Engine::Channels, EngineState::Stopping);
        tokio::select! {
            _ = self.release() => {}
            () = now.cancelled() => {}
        }
        hub.engine(Engine::Channels, EngineState::Stopped);
    }

    /// Stops it for good.
    pub(super) async fn shutdown(&self, now: &CancellationToken) {
        tokio::select! {
            () = self.seat.end() => {}
            () = now.cancelled() => {}
        }
    }

    /// Takes the seat, or waits for it, and says what came of it.
    pub(super) async fn take(&self, hub: &StatusHub, wait: bool, force: bool) -> Result<Value, CommandError> {
        hub.engine(Engine::Channels, EngineState::Running);
        self.seat.want(if wait { Want::Wait } else { Want::Take { force } }).await;
        let under_way = |s: &SeatStatus| match s.state {
            SeatState::Claiming => !s.frozen && s.next_try_at.is_none(),
            // What keeps it from connecting is known, and the next try comes by itself.
            SeatState::Connecting => s.next_try_at.is_none(),
            SeatState::Draining => true,
            _ => false,
        };
        let status = self.seat.wait(|s| !under_way(s)).await;
        let reason = || status.reason.clone().unwrap_or_else(|| "it did not end in time".into());
        match status.state {
            SeatState::Serving | SeatState::Connecting => shown(&status),
            SeatState::Standby if wait => shown(&status),
            SeatState::Standby if status.frozen => Err(CommandError::new(
                "seat_frozen",
                format!("{}; the take is withdrawn, and the holder keeps the seat if it goes on; {ENDS}", reason()),
            )),
            SeatState::Claiming if status.frozen => Err(CommandError::new(
                "seat_frozen",
                format!(
                    "the seat's holder began to let go and does not answer any more; the seat is taken when it goes on, \
                     unless `holdfast seat release` ends that; {ENDS}"
                ),
            )),
            SeatState::Failed => Err(CommandError::new("seat_failed", reason())),
            SeatState::Off | SeatState::Claiming | SeatState::Draining | SeatState::Standby => Err(match status.code {
                Some(code) => {
                    let more =
                        "it is tried again by itself, and the seat taken then; `holdfast seat release` ends that";
                    CommandError::new(code.as_str(), format!("{}; {more}", reason()))
                }
                None => CommandError::new("seat_busy", reason()),
            }),
        }
    }

    /// The seat as it is at this moment.
    pub(super) async fn look(&self) -> Result<Value, CommandError> {
        self.seat.look().await;
        shown(&self.seat.status().borrow())
    }

    /// Waits until a seat that is being taken is there, or is not: what was just set up is used at once. Tells whether it is.
    pub(super) async fn settled(&self) -> bool {
        let under_way = |s: &SeatStatus| {
            matches!(s.state, SeatState::Claiming | SeatState::Connecting) && !s.frozen && s.next_try_at.is_none()
        };
        self.seat.wait(|s| !under_way(s)).await.state == SeatState::Serving
    }

    /// Lets go of the seat.
    pub(super) async fn release(&self) -> Result<Value, CommandError> {
        self.seat.release().await;
        shown(&*self.seat.wait(|s| s.state == SeatState::Off).await)
    }
}

fn shown(status: &SeatStatus) -> Result<Value, CommandError> {
    serde_json::to_value(status).map_err(|e| CommandError::failed(&e))
}

async fn options(
    service: ChannelService,
    config: &ChannelConfig,
    secrets: &Secrets,
    means: Means,
) -> Result<(SeatOptions, SecretString), String> {
    let set_up = "`holdfast channel setup` mends that";
    let bot = config.bot.as_deref().ok_or(format!("channel.bot is missing; {set_up}"))?;
    let kept = secrets.find(&channel::secret_name(service, bot)).await.map_err(|e| e.to_string())?;
    let token = kept.ok_or(format!("no token of bot {bot} is kept here; {set_up}"))?;
    let (owner, backend) =
        channel::backend(service, token.clone(), config.base_url.as_ref(), config.gateway_url.as_ref())
            .map_err(|e| e.to_string())?;
    if owner != bot {
        return Err(format!("the token that is kept here belongs to another bot; {set_up}"));
    }
    let state = Dirs::state().map_err(|e| e.to_string())?;
    Ok((SeatOptions { state, service: service.as_str().into(), bot: bot.into(), backend, means }, token))
}

fn unusable(service: ChannelService, config: &ChannelConfig, reason: String) -> SeatStatus {
    SeatStatus {
        state: SeatState::Failed,
        since: unix_ms(),
        backend: service.as_str().into(),
        bot: config.bot.clone().unwrap_or_default(),
        holder: None,
        generation: 0,
        channel: None,
        transcript: None,
        waiting: 0,
        last_sent: None,
        reason: Some(reason),
        code: None,
        next_try_at: None,
        frozen: false,
        waits: false,
    }
}

/// A channel as a person sets it up: proven at the service, its token among the secrets. Returns what goes into the
/// configuration, and the answer.
pub(super) async fn set_up(
    secrets: &Secrets,
    before: &ChannelConfig,
    service: Option<&str>,
    token: Secret,
    base_url: Option<String>,
    gateway_url: Option<String>,
) -> Result<(BTreeMap<String, Value>, Value), CommandError> {
    let invalid = |why: &dyn std::fmt::Display| CommandError::new("invalid_request", why.to_string());
    let service = match service {
        Some(name) => ChannelService::parse(name).ok_or("the chat service must be discord or telegram"),
        None => ChannelService::of_token(&token.0).ok_or("this is no token of a Discord or Telegram bot"),
    };
    let service = service.map_err(|why| invalid(&why))?;
    let address = |url: Option<String>| url.as_deref().map(str::parse::<Url>).transpose();
    let (Ok(base_url), Ok(gateway_url)) = (address(base_url), address(gateway_url)) else {
        return Err(invalid(&channel::BadChannel::Address));
    };
    // What was configured for this service stays, unless another address is named.
    let same = before.backend.is_none_or(|known| known == service);
    let base_url = base_url.or_else(|| before.base_url.clone().filter(|_| same));
    let gateway_url = gateway_url.or_else(|| before.gateway_url.clone().filter(|_| same));
    let token = SecretString::from(token.0);
    let backend = channel::backend(service, token.clone(), base_url.as_ref(), gateway_url.as_ref());
    let (id, backend) = backend.map_err(|e| invalid(&e))?;
    let Bot { name, .. } = backend.prove().await.map_err(|why| match why {
        Failed::ForGood(reason) => CommandError::new("token_refused", reason),
        Failed::ForNow { reason, .. } | Failed::UsedElsewhere(reason) => CommandError::new("unavailable", reason),
    })?;
    secrets.store(&channel::secret_name(service, &id), &token).await.map_err(|e| CommandError::failed(&e))?;
    let set = BTreeMap::from([
        ("channel.backend".into(), service.as_str().into()),
        ("channel.bot".into(), id.as_str().into()),
        ("channel.base_url".into(), base_url.map_or(Value::Null, |url| url.as_str().into())),
        ("channel.gateway_url".into(), gateway_url.map_or(Value::Null, |url| url.as_str().into())),
    ]);
    let mut answer = json!({"backend": service, "bot": id, "name": name});
    if let Some(invite) = channel::invite(service, &id) {
        answer["invite"] = invite.into();
    }
    Ok((set, answer))
}

fn token_name(config: &ChannelConfig) -> Option<String> {
    Some(channel::secret_name(config.backend?, config.bot.as_deref()?))
}

/// Forgets the token of a bot in whose place another one was set up: nothing names it any more, not even a reset.
pub(super) async fn forget_former(
    secrets: &Secrets,
    before: &ChannelConfig,
    now: &ChannelConfig,
) -> Result<(), CommandError> {
    match token_name(before).filter(|former| token_name(now).as_ref() != Some(former)) {
        Some(former) => secrets.forget(&former).await.map_err(|e| CommandError::failed(&e)),
        None => Ok(()),
    }
}

/// Forgets the token of the channel that is set up. Returns what goes out of the configuration.
pub(super) async fn removed(
    secrets: &Secrets,
    config: &ChannelConfig,
) -> Result<(BTreeMap<String, Value>, Value), CommandError> {
    let (service, bot) = (config.backend.ok_or_else(no_channel)?, config.bot.as_deref().ok_or_else(no_channel)?);
    secrets.forget(&channel::secret_name(service, bot)).await.map_err(|e| CommandError::failed(&e))?;
    let set = ["backend", "bot", "base_url", "gateway_url"].map(|key| (format!("channel.{key}"), Value::Null));
    Ok((set.into(), json!({"removed": bot})))
}
