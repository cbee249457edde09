//! The doctor: one copyable report on what could keep this machine from being reached.

mod channel;
mod checks;
mod delivery;
mod public;

use std::path::Path;

use holdfast_core::status::StatusSnapshot;
use serde::{Deserialize, Serialize};

use crate::paths::Dirs;

pub use channel::examine_channel;
pub(crate) use delivery::pane_of;
pub use public::examine_public;

/// Everything that was looked at. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct Report {
    /// Version of this build.
    pub version: String,
    /// Operating system and architecture.
    pub platform: String,
    /// Whether nothing failed.
    pub ok: bool,
    /// The findings, in a fixed order.
    pub checks: Vec<Check>,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct Check {
    /// What was looked at; stable.
    pub name: String,
    /// How it is.
    pub state: CheckState,
    /// What was found, in one line.
    pub found: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// How a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// As it should be.
    Ok,
    /// Works, but worth knowing.
    Warning,
    /// Does not work.
    Failed,
    /// Nothing to look at here.
    Skipped,
}

impl Check {
    fn new(name: &str, state: CheckState, found: impl Into<String>) -> Check {
        Check { name: name.into(), state, found: found.into(), advice: None }
    }

    fn ok(name: &str, found: impl Into<String>) -> Check {
        Check::new(name, CheckState::Ok, found)
    }

    fn warning(name: &str, found: impl Into<String>) -> Check {
        Check::new(name, CheckState::Warning, found)
    }

    fn failed(name: &str, found: impl Into<String>) -> Check {
        Check::new(name, CheckState::Failed, found)
    }

    fn skipped(name: &str, found: impl Into<String>) -> Check {
        Check::new(name, CheckState::Skipped, found)
    }

    #[must_use]
    fn advise(mut self, advice: impl Into<String>) -> Check {
        self.advice = Some(advice.into());
        self
    }
}

impl Report {
    /// A report of these findings.
    pub fn of(checks: Vec<Check>) -> Report {
        Report {
            version: env!("CARGO_PKG_VERSION").into(),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            ok: checks.iter().all(|c| c.state != CheckState::Failed),
            checks,
        }
    }

    /// The report as text, to be read and pasted.
    pub fn text(&self) -> String {
        format!("holdfast {} on {}\n{}", self.version, self.platform, self.checks_text())
    }

    /// The findings alone, as text.
    pub fn checks_text(&self) -> String {
        let mut text = String::new();
        let width = self.checks.iter().map(|c| c.name.len()).max().unwrap_or(0);
        for Check { name, state, found, advice } in &self.checks {
            let mark = match state {
                CheckState::Ok => "ok  ",
                CheckState::Warning => "warn",
                CheckState::Failed => "FAIL",
                CheckState::Skipped => "-   ",
            };
            text.push_str(&format!("{mark}  {name:width$}  {found}\n"));
            if let Some(advice) = advice {
                text.push_str(&format!("      {:width$}  → {advice}\n", ""));
            }
        }
        text
    }
}

/// Looks at this machine. `running` is the status of the process that holds the data folder, if one does.
pub async fn examine(dirs: &Dirs, running: Option<&StatusSnapshot>) -> Report {
    let (config, config_check) = checks::config(dirs);
    let mut found = vec![config_check, checks::folders(dirs), checks::holder(running), checks::disk(&dirs.data)];
    found.push(checks::credentials(dirs, &config).await);
    found.push(checks::workspace(&config, running));
    found.push(checks::link(running));
    found.push(checks::tray_host().await);
    found.push(checks::awake(&config).await);
    found.push(checks::proxy());
    let ca_file = config.link.ca_file.as_deref();
    found.push(checks::trust(ca_file).await);
    match checks::relay_address(&config, running) {
        Some(relay) => found.extend(checks::relay(&relay, ca_file).await),
        None => found.push(Check::skipped("relay", "no relay is known while nothing runs")),
    }
    found.extend(channel::checks(dirs, &config, None).await);
    Report::of(found)
}

fn in_folder(path: &Path) -> String {
    path.display().to_string()
}
