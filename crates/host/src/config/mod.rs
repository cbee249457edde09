//! `config.toml`: what it may say, and what it says.

mod bindings;
mod calls;
mod channel;
mod channel_rules;
mod edit;
mod error;
mod notices;
mod reach;
mod read;
mod reload;
mod watch;

pub use bindings::{admit, bind, dismiss, unbind};
pub use calls::{AskConfig, AskTools, CallsConfig, PowerConfig};
pub use channel::{BindingConfig, ChannelConfig, ChannelService, Delivery, OnStart};
pub use edit::{ConfigView, EditError, edit, view};
pub use error::ConfigError;
pub use notices::NoticesConfig;
pub use reach::{AllowedHost, ForwardConfig, Ports, SyncConfig};
pub use read::{parse, read, schema};
pub use reload::{Applied, apply};
pub use watch::watch;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use holdfast_core::limits;
use holdfast_core::policy::{Policy, Profile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

/// The configuration file. Everything has a default; an empty file is a good one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The relay: a remote one, or the embedded one.
    pub relay: RelayConfig,
    /// How daemon and relay speak to each other.
    pub link: LinkConfig,
    /// How the relay answers clients.
    pub mcp: McpConfig,
    /// What clients may do on this machine.
    pub policy: PolicyConfig,
    /// Which calls ask the person at this machine before they run.
    pub ask: AskConfig,
    /// Where file tools work.
    pub workspace: WorkspaceConfig,
    /// From where files may be fetched.
    pub sync: SyncConfig,
    /// To which ports of this machine connections may be opened for clients.
    pub forward: ForwardConfig,
    /// When the machine may fall asleep.
    pub power: PowerConfig,
    /// What is remembered of calls.
    pub calls: CallsConfig,
    /// The bot at a chat service.
    pub channel: ChannelConfig,
    /// Which notices the desktop shows.
    pub notices: NoticesConfig,
    /// Where this machine keeps its credentials.
    pub secrets: SecretsConfig,
    /// What is logged.
    pub log: LogConfig,
}

/// The relay: a remote one, or the embedded one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct RelayConfig {
    /// Address of a remote relay. Without it `holdfast serve` and the tray application embed one.
    #[schemars(with = "Option<String>")]
    #[cfg_attr(feature = "ts", ts(type = "string | null"))]
    pub url: Option<Url>,
    /// Where the embedded relay, or `holdfast relay`, listens.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// The address clients use, when it is not the one that is listened on. Fixes issuer and resource.
    #[schemars(with = "Option<String>")]
    #[cfg_attr(feature = "ts", ts(type = "string | null"))]
    pub public_url: Option<Url>,
    /// Certificate chain, PEM. Read again when it changes.
    pub tls_cert: Option<PathBuf>,
    /// Private key of `tls_cert`, PEM.
    pub tls_key: Option<PathBuf>,
    /// Networks (CIDR) of reverse proxies whose forwarding headers are believed.
    pub behind_proxy: Vec<String>,
    /// Origins of browser pages that may call this relay, besides its own.
    pub allowed_origins: Vec<String>,
    /// Largest request of a client, in MiB; at most 16.
    pub body_max_mib: u32,
}

impl RelayConfig {
    /// Where the embedded relay listens by default.
    pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8787);
}

impl Default for RelayConfig {
    fn default() -> Self {
        RelayConfig {
            url: None,
            listen: RelayConfig::DEFAULT_LISTEN,
            public_url: None,
            tls_cert: None,
            tls_key: None,
            behind_proxy: Vec::new(),
            allowed_origins: Vec::new(),
            body_max_mib: u32::try_from(limits::MCP_BODY_MAX >> 20).unwrap_or(u32::MAX),
        }
    }
}

/// How the relay answers clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct McpConfig {
    /// After this many milliseconds a call that still runs is answered with a handle, to a client that takes no tasks; 0: never.
    pub patience_ms: u32,
}

impl Default for McpConfig {
    fn default() -> Self {
        McpConfig { patience_ms: u32::try_from(limits::PATIENCE.as_millis()).unwrap_or(u32::MAX) }
    }
}

/// The base peer this build can speak to, unmodified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub enum BasePeer {
    /// The one base version whose wire is spoken exactly.
    #[serde(rename = "machine-bridge-mcp@1.2.10")]
    MachineBridge1210,
}

/// How daemon and relay speak to each other.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct LinkConfig {
    /// Daemon: demand a relay of exactly this name and version, and use no feature of the link.
    pub compat: Option<BasePeer>,
    /// Relay: present this name and version to daemons, and offer no feature.
    pub identity: Option<BasePeer>,
    /// Certificates (PEM) trusted beside the system's when dialling the relay. Nothing turns the checks off.
    pub ca_file: Option<PathBuf>,
}

/// What clients may do on this machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct PolicyConfig {
    /// `review`: read. `edit`: and write files. `agent`, the default: and run programs as this user. `full`: everything
    /// this user may. A reload may tighten it, never loosen it.
    #[schemars(with = "Option<String>", extend("enum" = ["review", "edit", "agent", "full"]))]
    pub profile: Option<Profile>,
}

impl PolicyConfig {
    /// The profile that was chosen, or the default one.
    pub fn in_force(&self) -> Profile {
        self.profile.unwrap_or(Profile::Agent)
    }

    /// The policy as the link advertises it.
    pub fn policy(&self) -> Policy {
        Policy::of(self.in_force(), if self.profile.is_some() { "explicit" } else { "default" })
    }
}

/// Where file tools work.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct WorkspaceConfig {
    /// The folder; `~/holdfast` by default. Never a home folder or a root.
    pub root: Option<PathBuf>,
}

/// Where this machine keeps its credentials.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct SecretsConfig {
    /// Where they are kept. The variable `HOLDFAST_SECRETS` overrides it.
    pub store: SecretStore,
}

/// Kind of store for credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum SecretStore {
    /// The system's keyring if one answers, else a 0600 file.
    #[default]
    Auto,
    /// A 0600 file in the data folder.
    File,
}

/// What is logged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct LogConfig {
    /// The least important level that is written.
    pub level: LogLevel,
}

/// How much is logged; the order is from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Only what failed.
    Error,
    /// Also what is wrong.
    Warn,
    /// Also what happened.
    #[default]
    Info,
    /// Also how it happened.
    Debug,
}

impl LogLevel {
    /// The level's name in a log filter.
    pub const fn as_str(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
        }
    }
}
