//! Edits of the configuration while it runs.

use std::sync::Arc;

use holdfast_core::status::WarningCode;
use tokio::sync::mpsc;

use super::Running;
use crate::config::{self, Config, ConfigError};

/// Applies edits until the process ends.
pub(super) async fn follow(running: Arc<Running>) {
    let (edits, mut edited) = mpsc::channel(1);
    let watch = config::watch(running.dirs.config_file(), edits, running.quit.clone());
    let apply = async {
        while let Some(edit) = edited.recv().await {
            running.take_edit(edit).await;
        }
    };
    tokio::join!(watch, apply);
}

impl Running {
    /// Applies what an edit changes and tells what it does not. Returns the keys that changed and those that wait.
    pub(super) async fn take_edit(&self, edit: Result<Config, ConfigError>) -> Option<config::Applied> {
        let edited = match edit {
            Ok(edited) => self.overrides.over(edited),
            Err(error) => {
                self.hub.warn(WarningCode::ConfigInvalid, format!("the running configuration was kept: {error}"));
                return None;
            }
        };
        self.hub.clear(WarningCode::ConfigInvalid);
        let mut config = self.config.lock().await;
        let applied = config::apply(&config, &edited);
        if applied.running.log != config.log {
            self.logs.set_level(applied.running.log.level);
        }
        if applied.running.policy != config.policy
            && let Some(link) = &self.link
        {
            link.set_profile(applied.running.policy.profile, &self.hub);
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
        Some(applied)
    }
}
