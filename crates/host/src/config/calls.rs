//! How calls are treated on this machine, beyond the policy.

use holdfast_core::ask::AskRule;
use holdfast_core::tools::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which calls ask the person at this machine before they run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct AskConfig {
    /// Clients by id, as `holdfast client list` shows them; `"*"` means all. Without any, nothing is asked.
    pub clients: Vec<String>,
    /// Which tools ask.
    pub tools: AskTools,
}

/// Tools that ask. Those that only stop something or look at Holdfast itself never do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum AskTools {
    /// Tools that run programs.
    Runs,
    /// Also tools that write files.
    #[default]
    Writes,
    /// Also tools that only read.
    All,
}

impl AskConfig {
    /// The rule as the executor keeps it.
    pub fn rule(&self) -> AskRule {
        let least = match self.tools {
            AskTools::Runs => Effect::Runs,
            AskTools::Writes => Effect::Writes,
            AskTools::All => Effect::Reads,
        };
        AskRule { clients: self.clients.clone(), least }
    }
}

/// When the machine may fall asleep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct PowerConfig {
    /// While calls run and there is mains power, the machine does not fall asleep by itself. Closing the lid or choosing
    /// *Sleep* still works.
    pub keep_awake: bool,
}

impl Default for PowerConfig {
    fn default() -> Self {
        PowerConfig { keep_awake: true }
    }
}

/// What is remembered of calls.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct CallsConfig {
    /// Keep arguments and results of recent calls, in memory only, cut and without what looks like a secret.
    pub keep_bodies: bool,
}
