//! What waits for a person: clients that ask to be let in, and calls that ask before they run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::UnixMs;

/// A client that waits at its browser page for the owner to type the page's code. The code itself is never here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct Consent {
    /// Names it in [`crate::command::Command::Deny`].
    pub id: String,
    /// What the client calls itself. A claim.
    pub client: String,
    /// Where its browser goes afterwards.
    pub redirect_host: String,
    /// Whose rights it would get.
    pub account: String,
    /// What it asks for.
    pub scopes: String,
    /// When it lapses.
    pub expires_at: UnixMs,
}

/// A call that runs only if the person at this machine says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct Question {
    /// Names it in the answer.
    pub id: String,
    /// When it was asked.
    pub at: UnixMs,
    /// When it counts as *no*.
    pub expires_at: UnixMs,
    /// Who asks.
    pub client: Option<Arc<str>>,
    /// The tool.
    pub tool: Arc<str>,
    /// One line on what would run. Lives in memory only.
    pub summary: Option<Arc<str>>,
    /// All that was asked for, one argument a line; a line break within one is ⏎. Lives in memory only.
    #[serde(default)]
    pub text: Option<Arc<str>>,
    /// Characters that `text` leaves out at its end.
    #[serde(default)]
    pub hidden: usize,
}
