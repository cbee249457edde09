//! Edits of the configuration while it runs.

use std::sync::Arc;

use holdfast_core::status::WarningCode;
use tokio::sync::mpsc;

use super::Running;
use crate::config::{self, Applied, ConfigError};

/// Applies edits until the process ends.
pub(super) async fn follow(running: Arc<Running>) {
    let (told, mut edited) = mpsc::channel(1);
    let watch = config::watch(running.dirs.config_file(), told, running.ended.clone());
    let apply = async {
        while edited.recv().await.is_some() {
            // What is wrong with the edit stands among the warnings.
            let _ = running.reload().await;
        }
    };
    tokio::join!(watch, apply);
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
        self.hub.clear(WarningCode::ConfigInvalid);
        let applied = config::apply(&config, &edited);
        if applied.running.log != config.log {
            self.logs.set_level(applied.running.log.level);
        }
        if applied.running.policy != config.policy
            && let Some(link) = &self.link
        {
            link.set_policy(&applied.running.policy, &self.hub);
        }
        *config = applied.running.clone();
        drop(config);
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
        Ok(applied)
    }
}
