//! The relay inside this process.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::command::Engine;
use holdfast_core::status::{Consent, EngineState, WarningCode};
use holdfast_core::switchboard::Identity;
use holdfast_relay::{Admin, ApprovalView, Exposure, Offline, RelayHandle, RelayOptions};
use tokio::sync::watch;
use url::Url;

use super::StartError;
use crate::config::Config;
use crate::files;
use crate::paths::Dirs;
use crate::status_hub::{StatusHub, unix_ms};

/// The relay, running or not.
pub(super) struct RelayEngine {
    options: RelayOptions,
    handle: Option<RelayHandle>,
}

impl std::fmt::Debug for RelayEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelayEngine").field("listen", &self.options.listen).finish_non_exhaustive()
    }
}

impl RelayEngine {
    pub(super) async fn start(
        dirs: &Dirs,
        config: &Config,
        runs: bool,
        hub: &Arc<StatusHub>,
    ) -> Result<RelayEngine, StartError> {
        let mut engine = RelayEngine { options: options(dirs, config)?, handle: None };
        if runs {
            engine.run(hub).await?;
        } else {
            hub.engine(Engine::Relay, EngineState::Stopped);
        }
        Ok(engine)
    }

    /// Starts it, if it does not run.
    pub(super) async fn run(&mut self, hub: &Arc<StatusHub>) -> Result<(), StartError> {
        if self.handle.is_some() {
            return Ok(());
        }
        let handle = holdfast_relay::start(self.options.clone()).await?;
        // Started again, it shall be found where it was.
        self.options.listen.set_port(handle.addr.port());
        tracing::info!(addr = %handle.addr, "the relay listens");
        hub.app(|app| app.mcp = Some(handle.mcp_url()));
        tokio::spawn(tell_consents(handle.admin.watch_approvals(), Arc::clone(hub)));
        hub.engine(Engine::Relay, EngineState::Running);
        hub.clear(WarningCode::RelayFailed);
        if handle.state().operations.set_aside().is_some() {
            let why = "the relay's store of durable operations was damaged and put aside: what it knew of earlier ones is lost";
            hub.warn(WarningCode::LedgerSetAside, why);
        }
        self.handle = Some(handle);
        Ok(())
    }

    pub(super) async fn stop(&mut self, hub: &Arc<StatusHub>) {
        if let Some(handle) = self.handle.take() {
            hub.engine(Engine::Relay, EngineState::Stopping);
            handle.shutdown().await;
        }
        hub.engine(Engine::Relay, EngineState::Stopped);
    }

    pub(super) fn runs(&self) -> bool {
        self.handle.is_some()
    }

    /// Administration, while it runs.
    pub(super) fn admin(&self) -> Option<Admin> {
        self.handle.as_ref().map(|h| h.admin.clone())
    }

    /// Whether it accepts this device credential. A stopped relay does not.
    pub(super) fn knows(&self, token: &str) -> bool {
        self.handle.as_ref().is_some_and(|h| h.state().auth.device(token).is_ok())
    }

    /// Where it listens, or would.
    pub(super) fn port(&self) -> Option<u16> {
        let port = self.handle.as_ref().map_or(self.options.listen.port(), |h| h.addr.port());
        (port > 0).then_some(port)
    }

    /// How this machine's own link reaches it.
    pub(super) fn own_address(&self) -> Option<Url> {
        if let (Some(url), false) = (&self.options.public_url, self.options.exposure == Exposure::Loopback) {
            return Some(url.clone());
        }
        let port = self.port().unwrap_or_default();
        let ip = match self.options.listen.ip() {
            ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            ip => ip,
        };
        let scheme = if matches!(self.options.exposure, Exposure::Tls { .. }) { "https" } else { "http" };
        Url::parse(&format!("{scheme}://{}", SocketAddr::new(ip, port))).ok()
    }
}

/// Shows who waits to be let in, until the relay stops.
async fn tell_consents(mut approvals: watch::Receiver<Vec<ApprovalView>>, hub: Arc<StatusHub>) {
    loop {
        let now = unix_ms();
        let waiting = approvals.borrow_and_update().clone();
        let consents = waiting.into_iter().map(|view| Consent {
            id: view.id,
            client: view.client,
            redirect_host: view.redirect_host,
            account: view.account,
            scopes: view.scopes,
            expires_at: now.saturating_add(u64::try_from(view.lapses_in.as_millis()).unwrap_or(u64::MAX)),
        });
        hub.consents(consents.collect());
        if approvals.changed().await.is_err() {
            return;
        }
    }
}

fn options(dirs: &Dirs, config: &Config) -> Result<RelayOptions, StartError> {
    let settings = &config.relay;
    let folder = dirs.relay();
    files::make_dir(&folder)?;
    let exposure = match (&settings.tls_cert, &settings.tls_key) {
        (Some(cert), Some(key)) => Exposure::Tls { cert: cert.clone(), key: key.clone() },
        _ if settings.behind_proxy.is_empty() => Exposure::Loopback,
        _ => {
            let parsed = settings.behind_proxy.iter().map(|n| n.parse().map_err(|_| StartError::Network(n.clone())));
            Exposure::BehindProxy(parsed.collect::<Result<_, _>>()?)
        }
    };
    let mut options = RelayOptions::loopback(0, folder);
    options.listen = settings.listen;
    options.public_url.clone_from(&settings.public_url);
    options.exposure = exposure;
    options.allowed_origins.clone_from(&settings.allowed_origins);
    options.body_max = usize::try_from(settings.body_max_mib).unwrap_or(usize::MAX).saturating_mul(1 << 20);
    options.patience = Duration::from_millis(config.mcp.patience_ms.into());
    if config.link.identity.is_some() {
        options.identity = Identity::base();
    }
    Ok(options)
}

/// The store of a relay that does not run, for commands that find no holder. The caller holds the lock.
pub async fn closed_store(dirs: &Dirs, config: &Config) -> Result<Offline, StartError> {
    Ok(Offline::open(options(dirs, config)?).await?)
}
