//! Which notices the desktop shows.

use holdfast_core::desktop::NoticeSwitches;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which notices the desktop shows; all, unless switched off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct NoticesConfig {
    /// Outages of half a minute and more, and their ends.
    pub outages: bool,
    /// Calls whose outcome is not known.
    pub calls_lost: bool,
    /// Clients that ask to be let in.
    pub consents: bool,
    /// Calls that ask before they run.
    pub questions: bool,
    /// The seat: taken, taken over, given up.
    pub seat: bool,
    /// What could not start.
    pub start_failed: bool,
    /// Once, when the window is closed: Holdfast goes on in the tray.
    pub still_running: bool,
}

impl Default for NoticesConfig {
    fn default() -> Self {
        let all = NoticeSwitches::default();
        NoticesConfig {
            outages: all.outages,
            calls_lost: all.calls_lost,
            consents: all.consents,
            questions: all.questions,
            seat: all.seat,
            start_failed: all.start_failed,
            still_running: all.still_running,
        }
    }
}

impl NoticesConfig {
    /// The switches as the notices take them.
    pub fn switches(&self) -> NoticeSwitches {
        NoticeSwitches {
            outages: self.outages,
            calls_lost: self.calls_lost,
            consents: self.consents,
            questions: self.questions,
            seat: self.seat,
            start_failed: self.start_failed,
            still_running: self.still_running,
        }
    }
}
