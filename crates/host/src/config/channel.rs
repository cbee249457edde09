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
    #[schemars(with = "Option<String>", extend("enum" = ["discord", "telegram"]))]
    pub backend: Option<ChannelService>,
    /// The bot's id. Its token is kept among the secrets.
    pub bot: Option<String>,
    /// What a start does about the bot's seat.
    pub on_start: OnStart,
    /// Another address of the service's API than its own.
    #[schemars(with = "Option<String>")]
    #[cfg_attr(feature = "ts", ts(type = "string | null"))]
    pub base_url: Option<Url>,
    /// Another address of Discord's gateway than the one it names itself.
    #[schemars(with = "Option<String>")]
    #[cfg_attr(feature = "ts", ts(type = "string | null"))]
    pub gateway_url: Option<Url>,
    /// Who may talk to the agents, by their ids at the service. Empty: nobody; `holdfast channel pair` adds one.
    pub people: Vec<String>,
    /// The binding whose agent is meant where the bot is alone with one of them. Without it nothing is heard there.
    pub direct: Option<String>,
    /// A program that writes down what is said in a voice message: the file's path is its last argument, the text its output.
    pub voice: Vec<String>,
    /// Which agent speaks in which channel.
    #[serde(rename = "binding")]
    pub bindings: Vec<BindingConfig>,
}

/// An agent and its channel: what its transcript says is posted there, and what people write there reaches it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct BindingConfig {
    /// Its name: letters, digits and `-`.
    pub name: String,
    /// The channel's id; its threads belong to it.
    pub channel: String,
    /// The transcript's path. Without it the newest interactive session of `project` is followed.
    pub transcript: Option<String>,
    /// The session whose transcript is followed, by its id.
    pub session: Option<String>,
    /// The folder the agent works in.
    pub project: Option<String>,
    /// How messages reach the agent. Without it they do not: the channel only mirrors it.
    pub deliver: Option<Delivery>,
    /// For `command`: a program and its arguments; `{session}` and `{project}` are filled in. The message is its input.
    pub command: Vec<String>,
    /// For `tmux`: the pane, as `tmux -t` takes it.
    pub pane: Option<String>,
    /// For `tmux`: the key that stops the agent.
    pub stop_key: Option<String>,
    /// Only messages that name the bot count.
    pub mention: bool,
    /// If not empty: only these of the people who may speak at all.
    pub people: Vec<String>,
}

/// How messages reach an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Delivery {
    /// A program for each message.
    Command,
    /// Pasted into a pane of tmux.
    Tmux,
    /// Offered by `holdfast channel mcp`, which the agent starts.
    Mcp,
    /// Files in a folder.
    Inbox,
}

impl Delivery {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Delivery::Command => "command",
            Delivery::Tmux => "tmux",
            Delivery::Mcp => "mcp",
            Delivery::Inbox => "inbox",
        }
    }
}

/// A chat service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum ChannelService {
    /// Discord.
    Discord,
    /// Telegram's Bot API.
    Telegram,
}

impl ChannelService {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            ChannelService::Discord => "discord",
            ChannelService::Telegram => "telegram",
        }
    }

    /// The service of a name.
    pub fn parse(text: &str) -> Option<ChannelService> {
        [ChannelService::Discord, ChannelService::Telegram].into_iter().find(|service| service.as_str() == text)
    }

    /// The service whose tokens look like this one.
    pub fn of_token(token: &str) -> Option<ChannelService> {
        match (token.contains(':'), token.matches('.').count()) {
            (true, _) => Some(ChannelService::Telegram),
            (false, 2) => Some(ChannelService::Discord),
            (false, _) => None,
        }
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
