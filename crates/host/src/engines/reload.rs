//! Edits of the configuration while it runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use holdfast_core::limits;
use holdfast_core::status::{SeatState, StatusSnapshot, WarningCode};
use serde_json::Value;
use tokio::sync::mpsc;

use super::Running;
use crate::config::{self, Applied, Config, ConfigError, EditError};

/// Applies edits until the process ends.
pub(super) async fn follow(running: Arc<Running>) {
    let (told, mut edited) = mpsc::channel(1);
    let watch = config::watch(running.dirs.config_file(), limits::CONFIG_POLL, told, running.ended.clone());
    let (told, mut replaced) = mpsc::channel(1);
    let secrets = running.secrets.file().to_owned();
    let guard = config::watch(secrets, limits::SECRETS_POLL, told, running.ended.clone());
    let token = async {
        while replaced.recv().await.is_some() {
            running.renew_token().await;
        }
    };
    let apply = async {
        while edited.recv().await.is_some() {
            // What is wrong with the edit stands among the warnings.
            let _ = running.reload().await;
        }
    };
    let channel = async {
        while running.ended.run_until_cancelled(running.channel_changed.notified()).await.is_some() {
            running.renew_channel(false).await;
        }
    };
    let refused = async {
        let mut status = running.hub.watch();
        let mut becomes = async |failed: bool| {
            let is = |s: &StatusSnapshot| s.seat.as_ref().is_some_and(|seat| seat.state == SeatState::Failed);
            status.wait_for(|s| is(s) == failed).await.is_ok()
        };
        while running.ended.run_until_cancelled(becomes(true)).await == Some(true) {
            running.renew_token().await;
            if running.ended.run_until_cancelled(becomes(false)).await != Some(true) {
                break;
            }
        }
    };
    tokio::join!(watch, apply, channel, guard, token, refused);
}

impl Running {
    /// Reads the file, applies what can be applied and tells what cannot. A file that is not valid changes nothing.
    pub(super) async fn reload(&self) -> Result<Applied, ConfigError> {
        // Read under the lock: a file read before `policy set` must not be applied after it.
        let mut config = self.config.lock().await;
        let edited = match config::read(&self.dirs.config_file()) {
            Ok(edited) => self.overrides.over(edited),
            Err(error) => {
                self.hub.warn(WarningCode::ConfigInvalid, format!("the running configuration was kept: {error}"));
                return Err(error);
            }
        };
        Ok(self.take(&mut config, &edited, |_| false))
    }

    /// Changes settings in the file, and applies what can be applied: what loosens the policy too, if it is among them.
    pub(super) async fn configure(&self, set: BTreeMap<String, Value>) -> Result<Applied, EditError> {
        let asked: Vec<String> = set.keys().cloned().collect();
        self.edit(move |path| config::edit(path, &set), |key| asked.iter().any(|asked| asked == key)).await
    }

    /// Changes the file, and applies what can be applied; of what loosens the policy only what was `asked` for.
    pub(super) async fn edit(
        &self,
        edit: impl FnOnce(&Path) -> Result<Config, EditError> + Send + 'static,
        asked: impl Fn(&str) -> bool,
    ) -> Result<Applied, EditError> {
        let mut config = self.config.lock().await;
        let path = self.dirs.config_file();
        let edited = tokio::task::spawn_blocking(move || edit(&path)).await;
        let edited = edited.map_err(|_| EditError::Refused("interrupted".into()))??;
        Ok(self.take(&mut config, &self.overrides.over(edited), asked))
    }

    /// The configuration in force.
    pub(crate) async fn config(&self) -> Config {
        self.config.lock().await.clone()
    }

    fn take(&self, config: &mut Config, edited: &Config, asked: impl Fn(&str) -> bool) -> Applied {
        self.hub.clear(WarningCode::ConfigInvalid);
        let applied = config::apply(config, edited, asked);
        if applied.running.log != config.log {
            self.logs.set_level(applied.running.log.level);
        }
        if applied.running.policy != config.policy
            && let Some(link) = &self.link
        {
            link.set_policy(&applied.running.policy, &self.hub);
        }
        if let Some(link) = &self.link {
            if applied.running.ask != config.ask {
                link.set_ask(&applied.running.ask);
            }
            if applied.running.calls != config.calls {
                link.keep_bodies(applied.running.calls.keep_bodies);
            }
            link.set_keep_awake(applied.running.power.keep_awake);
        }
        if let Some(worker) = &self.worker {
            worker.set_reach(&applied.running.sync, &applied.running.forward);
        }
        if applied.running.channel != config.channel {
            self.channel_changed.notify_one();
        }
        self.hub.set_notices(applied.running.notices.switches());
        *config = applied.running.clone();
        if !applied.changed.is_empty() {
            tracing::info!(keys = applied.changed.join(", "), "configuration applied");
        }
        match applied.restart.as_slice() {
            [] => self.hub.clear(WarningCode::ConfigRestart),
            keys => {
                self.hub
                    .warn(WarningCode::ConfigRestart, format!("takes effect with the next start: {}", keys.join(", ")));
            }
        }
        match applied.not_loosened {
            None => self.hub.clear(WarningCode::PolicyNotLoosened),
            Some(profile) => {
                let name = profile.as_str();
                let text =
                    format!("a reload does not loosen the policy; `holdfast policy set {name}` or a restart does");
                self.hub.warn(WarningCode::PolicyNotLoosened, text);
            }
        }
        applied
    }
}
