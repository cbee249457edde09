//! `[channel]`: the bot at a chat service.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

/// The bot at a chat service. `holdfast channel setup` writes it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct ChannelConfig {
    /// The chat service. Without it there is no channel.
    #[schemars(with = "Option<String>", extend("enum" = ["telegram"]))]
    pub backend: Option<ChannelService>,
    /// The bot's id. Its token is kept among the secrets.
    pub bot: Option<String>,
    /// What a start does about the bot's seat.
    pub on_start: OnStart,
    /// Another address of the service's API than its own.
    #[schemars(with = "Option<String>")]
    #[cfg_attr(feature = "ts", ts(type = "string | null"))]
    pub base_url: Option<Url>,
}

/// A chat service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum ChannelService {
    /// Telegram's Bot API.
    Telegram,
}

impl ChannelService {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            ChannelService::Telegram => "telegram",
        }
    }

    /// The service of a name.
    pub fn parse(text: &str) -> Option<ChannelService> {
        (text == "telegram").then_some(ChannelService::Telegram)
    }
}

/// What a start does about the seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum OnStart {
    /// Takes it if nobody holds it.
    #[default]
    IfVacant,
    /// Takes it from whoever holds it.
    Take,
    /// Nothing.
    Off,
}
