//! What engines are started with, and why they may not start.

use std::net::SocketAddr;
use std::path::PathBuf;

use url::Url;

use crate::config::{Config, ConfigError};
use crate::exec::OpenError;
use crate::files::FileError;
use crate::link::LinkError;
use crate::lock::LockError;
use crate::paths::{Dirs, WorkspaceError};
use crate::secrets::SecretError;
use crate::worker::WorkerError;

/// What engines are started with.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The folders.
    pub dirs: Dirs,
    /// Which engines.
    pub mode: Mode,
    /// What the command line says; it wins over the file.
    pub overrides: Overrides,
    /// The program that may be started at login, where this process is the tray application.
    pub program: Option<PathBuf>,
}

/// Which engines a process hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The daemon, and a relay unless a remote one is configured.
    Serve,
    /// A relay alone.
    Relay,
}

impl Mode {
    /// As the command is called.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Serve => "serve",
            Mode::Relay => "relay",
        }
    }
}

/// Settings that win over the file.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// The workspace.
    pub workspace: Option<PathBuf>,
    /// Where the relay listens.
    pub listen: Option<SocketAddr>,
    /// A remote relay.
    pub relay: Option<Url>,
    /// The address clients use.
    pub public_url: Option<Url>,
    /// Certificate chain and private key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Networks of reverse proxies.
    pub behind_proxy: Vec<String>,
}

impl Overrides {
    /// The file's settings with these on top.
    #[must_use]
    pub fn over(&self, mut config: Config) -> Config {
        if let Some(workspace) = &self.workspace {
            config.workspace.root = Some(workspace.clone());
        }
        if let Some(listen) = self.listen {
            config.relay.listen = listen;
        }
        if let Some(relay) = &self.relay {
            config.relay.url = Some(relay.clone());
        }
        if let Some(public_url) = &self.public_url {
            config.relay.public_url = Some(public_url.clone());
        }
        if let Some((cert, key)) = &self.tls {
            (config.relay.tls_cert, config.relay.tls_key) = (Some(cert.clone()), Some(key.clone()));
        }
        if !self.behind_proxy.is_empty() {
            config.relay.behind_proxy.clone_from(&self.behind_proxy);
        }
        config
    }
}

impl StartError {
    /// What programs match on.
    pub fn code(&self) -> &'static str {
        match self {
            StartError::Lock(LockError::Held { .. }) => "in_use",
            StartError::Config(_) => "config_invalid",
            _ => "failed",
        }
    }

    /// What happened and, where one is known, the way out.
    pub fn sentence(&self) -> String {
        use holdfast_relay::{StartError as Relay, store::StoreError};
        let way_out = match self {
            StartError::Lock(LockError::Held { .. }) => "quit that one first",
            StartError::Relay(Relay::Bind { error, .. }) if error.kind() == std::io::ErrorKind::AddrInUse => {
                "another program listens there: end it, or choose another address with relay.listen in config.toml"
            }
            StartError::Relay(Relay::Store(StoreError::Damaged)) => {
                "put a backup of relay/relay.sqlite in its place, or move it away, and accounts and devices begin anew"
            }
            _ => return self.to_string(),
        };
        format!("{self}; {way_out}")
    }
}

/// Why the engines did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder is somebody else's now.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file or folder.
    #[error(transparent)]
    File(#[from] FileError),
    /// The workspace.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Credentials.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The relay.
    #[error(transparent)]
    Relay(#[from] holdfast_relay::StartError),
    /// The relay refused to enrol its own machine.
    #[error("this machine could not be enrolled at its own relay: {0}")]
    Enrol(#[from] holdfast_relay::ApiError),
    /// The link needs the relay in this process.
    #[error("the relay of this machine is stopped; `holdfast start relay` first")]
    RelayStopped,
    /// A reverse proxy's network.
    #[error("behind_proxy: {0:?} is not a network such as 10.0.0.0/8")]
    Network(String),
    /// The executor.
    #[error(transparent)]
    Exec(#[from] OpenError),
    /// The link.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The worker.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// The loopback API.
    #[error("the local API cannot listen: {0}")]
    Api(std::io::Error),
    /// The operating system gave no random bytes.
    #[error("no random bytes")]
    Random,
    /// The process is ending.
    #[error("interrupted")]
    Interrupted,
}
