//! What a holder of the link sees of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::daemon::{CallStep, Compat, Snapshot, Told};
use holdfast_core::id::InstanceId;
use holdfast_core::status::{CallCounts, LinkState, RelayStatus, UnixMs};
use holdfast_core::time::Now;
use holdfast_core::wire::Features;
use secrecy::SecretString;
use tokio::sync::{mpsc, watch};
use url::Url;

use super::run::Event;

/// How to reach which relay as whom.
#[derive(Debug, Clone)]
pub struct LinkOptions {
    /// The relay's origin, `https:` (or `http:` to a loopback address). Path, query and user are refused.
    pub relay: Url,
    /// The device's credential, sent as `X-Bridge-Token`.
    pub token: SecretString,
    /// Which wire is spoken.
    pub compat: Compat,
    /// Features offered; [`Features::all`] outside tests.
    pub features: Features,
    /// This process life.
    pub instance: InstanceId,
    /// A PEM file with certificate authorities that count beside the system's.
    pub ca_file: Option<PathBuf>,
    /// Results that wait on disk go to `<data>/outbox/`, which is emptied at the start.
    pub data_dir: PathBuf,
    /// Proxies, usually [`Proxies::Environment`].
    pub proxies: Proxies,
}

/// Which proxy is used for which host.
#[derive(Debug, Clone, Default)]
pub enum Proxies {
    /// None.
    #[default]
    Direct,
    /// `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` by the usual rules, read when the link starts.
    Environment,
    /// This one for every relay that is not on a loopback address: `http:`, `https:`, `socks5:` or `socks5h:`.
    Fixed(String),
}

/// Why a link cannot even start.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The relay's address cannot be used.
    #[error("the relay's address {0}")]
    Address(&'static str),
    /// The `ca_file` cannot be read or holds no certificate.
    #[error("ca_file: {0}")]
    CaFile(String),
    /// The credential cannot stand in a header.
    #[error("the device's credential is not well-formed")]
    Token,
    /// TLS cannot be set up.
    #[error("TLS: {0}")]
    Tls(String),
    /// A proxy's address cannot be used. Its text is not repeated, for it may hold a password.
    #[error("the proxy's address cannot be used")]
    Proxy,
    /// The outbox folder cannot be made or emptied.
    #[error("outbox folder: {0}")]
    Outbox(#[from] std::io::Error),
}

/// Hears what happens on the link, on the link's own task: never block, never call back into the link and wait.
pub trait LinkObserver: Send + Sync + 'static {
    /// A step of a call, for the timeline.
    fn step(&self, step: CallStep);
    /// Something for the log.
    fn told(&self, told: Told);
}

/// The latest state of the link, readable as wall-clock time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSnapshot {
    /// What the machine says; its times are boot time.
    pub link: Snapshot,
    /// When it was taken, on the machine's clocks.
    pub taken: Now,
    /// The same moment for people.
    pub taken_at: UnixMs,
    /// How the relay was last reached: `direct`, or `proxy`.
    pub route: Option<&'static str>,
    /// The relay's origin.
    pub url: Arc<str>,
}

impl LinkSnapshot {
    /// A boot time of the machine as wall-clock time.
    pub fn at(&self, boot: Duration) -> UnixMs {
        let ms = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        match boot.checked_sub(self.taken.boot) {
            Some(ahead) => self.taken_at.saturating_add(ms(ahead)),
            None => self.taken_at.saturating_sub(ms(self.taken.boot - boot)),
        }
    }

    /// The link as `status` shows it.
    pub fn relay_status(&self) -> RelayStatus {
        RelayStatus {
            state: self.link.state,
            since: self.at(self.link.since),
            attempts: self.link.attempts,
            cause: self.link.cause.as_deref().map(str::to_owned),
            next_try_at: self.link.next_try_at.map(|t| self.at(t)),
            route: self.route.map(str::to_owned),
            url: Some(self.url.to_string()),
            grace_ends_at: self.link.grace_ends_at.map(|t| self.at(t)),
        }
    }

    /// The calls as `status` shows them.
    pub fn calls(&self) -> &CallCounts {
        &self.link.calls
    }

    /// Whether the relay can reach this machine now.
    pub fn is_ready(&self) -> bool {
        self.link.state == LinkState::Healthy
    }
}

/// Steers a running link. Cloning shares it; the task ends with [`LinkHandle::close`].
#[derive(Clone)]
pub struct LinkHandle {
    pub(super) events: mpsc::UnboundedSender<Event>,
    pub(super) status: watch::Receiver<Arc<LinkSnapshot>>,
}

/// What a handle asks of the link's task.
#[derive(Debug)]
pub(super) enum Command {
    Start,
    Stop { patient: bool },
    Wake,
    NetworkChanged,
    Cut(Duration),
    Advertised,
    Close,
}

impl LinkHandle {
    /// The link is wanted; if it already is: try now.
    pub fn start(&self) {
        self.send(Command::Start);
    }

    /// The link is not wanted. With `patient`, running calls get [`holdfast_core::limits::STOP_WAIT`]; asking again without
    /// it ends that wait. [`LinkHandle::stopped`] tells when everything is closed.
    pub fn stop(&self, patient: bool) {
        self.send(Command::Stop { patient });
    }

    /// The machine woke. The link notices by itself; this is for a signal that comes earlier.
    pub fn wake(&self) {
        self.send(Command::Wake);
    }

    /// The network changed: prove the link, or try now.
    pub fn network_changed(&self) {
        self.send(Command::NetworkChanged);
    }

    /// The drill: behave as if the network were gone for this long.
    pub fn cut(&self, lasting: Duration) {
        self.send(Command::Cut(lasting));
    }

    /// What the executor advertises changed; the relay learns it by a handover to a new connection.
    pub fn advertised_changed(&self) {
        self.send(Command::Advertised);
    }

    /// Stops the link without patience and ends its task: calls that run are stopped, results that wait get
    /// [`holdfast_core::limits::STOP_ACK_WAIT`], and the relay is told.
    pub async fn end(&self) {
        self.stop(false);
        self.stopped().await;
        self.close();
    }

    /// Ends the link's task at once and leaves running calls alone; only for one that rests, or whose executor ends too.
    pub fn close(&self) {
        self.send(Command::Close);
    }

    /// The latest state.
    pub fn status(&self) -> watch::Receiver<Arc<LinkSnapshot>> {
        self.status.clone()
    }

    /// Waits until the link rests after [`LinkHandle::stop`], or its task is gone.
    pub async fn stopped(&self) {
        let mut status = self.status.clone();
        // An error means that the task is gone: then it rests too.
        let _ = status.wait_for(|s| s.link.state == LinkState::Stopped).await;
    }

    fn send(&self, command: Command) {
        // The task is gone only after close: nothing is left to steer.
        let _ = self.events.send(Event::Command(command));
    }
}

impl std::fmt::Debug for LinkHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LinkHandle").finish_non_exhaustive()
    }
}
