//! Warnings: stable codes that UI, scripts and notices match on.

use serde::{Deserialize, Serialize};

use super::UnixMs;

/// One thing that is wrong now. It disappears when it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct Warning {
    /// What it is.
    pub code: WarningCode,
    /// Since when.
    pub since: UnixMs,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence for people. Never holds a secret.
    pub text: String,
    /// What a person can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
}

/// How bad a warning is; the order is that of the tray's icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Works, but not as promised.
    Warning,
    /// Needs a person.
    NeedsYou,
}

/// What a person can do about a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Try to connect now.
    TryNow,
    /// Enrol this device again.
    Enroll,
    /// Mend the configuration file.
    EditConfig,
    /// Restart Holdfast.
    Restart,
    /// Update Holdfast or the relay.
    Update,
    /// Start again what did not start.
    Start,
    /// Look at the log.
    ReadLog,
}

macro_rules! warnings {
    ($(#[doc = $meaning:literal] $name:ident = $text:literal, $severity:ident, $action:expr;)+) => {
        /// What is wrong. The texts are stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "ts", derive(ts_rs::TS))]
        pub enum WarningCode { $(#[doc = $meaning] #[serde(rename = $text)] $name),+ }

        impl WarningCode {
            /// Every code.
            pub const ALL: &'static [WarningCode] = &[$(WarningCode::$name),+];

            /// The code as text.
            pub const fn as_str(self) -> &'static str {
                match self { $(WarningCode::$name => $text),+ }
            }

            /// What it says, in one sentence: the row of `docs/errors.md`.
            pub const fn meaning(self) -> &'static str {
                match self { $(WarningCode::$name => $meaning),+ }
            }

            /// How bad it is.
            pub const fn severity(self) -> Severity {
                match self { $(WarningCode::$name => Severity::$severity),+ }
            }

            /// What a person can do about it.
            pub const fn action(self) -> Option<Action> {
                match self { $(WarningCode::$name => $action),+ }
            }
        }
    };
}

warnings! {
    /// The relay does not know this device's credential any more.
    SignInNeeded = "sign_in_needed", NeedsYou, Some(Action::Enroll);
    /// Relay and device share no link version.
    Incompatible = "incompatible", NeedsYou, Some(Action::Update);
    /// Another running instance uses this device's credential.
    DeviceInUse = "device_in_use", NeedsYou, Some(Action::TryNow);
    /// The relay has been away for longer than a blip.
    RelayOutage = "relay_outage", Warning, Some(Action::TryNow);
    /// The peer broke the protocol three times in ten minutes.
    ProtocolErrors = "protocol_errors", Warning, Some(Action::ReadLog);
    /// Calls ended without a known outcome.
    CallsLost = "calls_lost", Warning, Some(Action::ReadLog);
    /// The edited configuration is not valid; the running one was kept.
    ConfigInvalid = "config_invalid", NeedsYou, Some(Action::EditConfig);
    /// An edit of the configuration takes effect with the next start.
    ConfigRestart = "config_restart", Info, Some(Action::Restart);
    /// A newer version is installed; this process is the old one.
    RestartToUpdate = "restart_to_update", Info, Some(Action::Restart);
    /// An edit of the configuration would loosen the policy; a reload never does that.
    PolicyNotLoosened = "policy_not_loosened", Warning, Some(Action::Restart);
    /// The disk is nearly full.
    DiskLow = "disk_low", Warning, None;
    /// The disk is too full to receive durable operations.
    StorageFull = "storage_full", NeedsYou, None;
    /// The ledger of durable operations, or the relay's store of them, was damaged and set aside; what it knew is unknown now.
    LedgerSetAside = "ledger_set_aside", Warning, Some(Action::ReadLog);
    /// Another machine works with this device's credential, so the relay refuses this worker.
    WorkerRefused = "worker_refused", NeedsYou, Some(Action::TryNow);
    /// The worker could not start; the text says why.
    WorkerFailed = "worker_failed", NeedsYou, Some(Action::ReadLog);
    /// The embedded relay could not start or ended.
    RelayFailed = "relay_failed", NeedsYou, Some(Action::ReadLog);
    /// The engines could not start; the text says why.
    StartFailed = "start_failed", NeedsYou, Some(Action::Start);
    /// The seat was given up for good; the text says why.
    SeatFailed = "seat_failed", NeedsYou, Some(Action::ReadLog);
    /// The seat's holder lives and does not answer; a person decides whether it is ended.
    SeatFrozen = "seat_frozen", NeedsYou, None;
    /// Somebody outside this seat uses the same bot.
    BotUsedElsewhere = "bot_used_elsewhere", Warning, None;
    /// A channel refuses what the bot posts; a person lets it be tried again.
    ChannelParked = "channel_parked", NeedsYou, None;
    /// Messages were refused, or nobody knows whether they were posted; a person lets them be sent again.
    MessagesHeld = "messages_held", Warning, None;
    /// Nothing can be stored of what passes between agents and channels, so nothing passes.
    ChannelStuck = "channel_stuck", NeedsYou, Some(Action::ReadLog);
    /// The seat's store was damaged and set aside: what waited to be posted or delivered is forgotten.
    ChannelSetAside = "channel_set_aside", Warning, Some(Action::ReadLog);
}

impl WarningCode {
    /// A warning of this code with the severity and the action of the table.
    pub fn warning(self, since: UnixMs, text: impl Into<String>) -> Warning {
        Warning { code: self, since, severity: self.severity(), text: text.into(), action: self.action() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_reads_the_same_in_json_and_as_text() {
        for code in WarningCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }
}
