//! Starting and stopping a relay.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::limits;
use holdfast_core::switchboard::Identity;
use ipnet::IpNet;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::admin::Admin;
use crate::auth::Auth;
use crate::clock::{Clock, SystemClock};
use crate::devices::{DeviceCheck, Devices, DevicesOptions};
use crate::http::listen::{Server, bind};
use crate::http::tls::{Certificates, TlsError};
use crate::operations::Operations;
use crate::state::{AppState, Site};
use crate::store::{self, Store, StoreError};

/// How the relay is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exposure {
    /// Plain HTTP; only on a loopback address.
    Loopback,
    /// TLS with these PEM files.
    Tls {
        /// Certificate chain.
        cert: PathBuf,
        /// Private key.
        key: PathBuf,
    },
    /// Plain HTTP from these proxies, which do TLS and whose `X-Forwarded-For` is believed.
    BehindProxy(Vec<IpNet>),
}

impl Exposure {
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Exposure::Tls { .. })
    }
}

/// Everything a relay is started with.
#[derive(Clone)]
pub struct RelayOptions {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Origin under which clients reach it; a path is not allowed.
    pub public_url: Option<Url>,
    /// How it is reached.
    pub exposure: Exposure,
    /// Folder of the store. The caller holds its lock.
    pub data_dir: PathBuf,
    /// What it presents itself as.
    pub identity: Identity,
    /// Origins of browser pages that may call it, besides its own.
    pub allowed_origins: Vec<String>,
    /// Largest body of `POST /mcp`, in bytes.
    pub body_max: usize,
    /// How long a client without tasks waits for a call before it gets a handle; zero: until the end.
    pub patience: Duration,
    /// Tools beside the core catalogue, for a bench whose device registers them too.
    pub extra_tools: Vec<crate::mcp::ExtraTool>,
    /// How long a request's head may take.
    pub header_timeout: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

impl RelayOptions {
    /// A relay on 127.0.0.1 with defaults; port 0 takes a free one.
    pub fn loopback(port: u16, data_dir: impl Into<PathBuf>) -> RelayOptions {
        RelayOptions {
            listen: SocketAddr::from(([127, 0, 0, 1], port)),
            public_url: None,
            exposure: Exposure::Loopback,
            data_dir: data_dir.into(),
            identity: Identity::holdfast(env!("CARGO_PKG_VERSION")),
            allowed_origins: Vec::new(),
            body_max: limits::MCP_BODY_MAX,
            patience: limits::PATIENCE,
            extra_tools: Vec::new(),
            header_timeout: limits::HTTP_HEADER_TIMEOUT,
            clock: Arc::new(SystemClock::default()),
        }
    }

    fn check(&self) -> Result<(), StartError> {
        let local = self.listen.ip().is_loopback();
        if self.exposure == Exposure::Loopback && !local {
            return Err(StartError::NeedsTls(self.listen));
        }
        match &self.public_url {
            None if self.listen.ip().is_unspecified() => return Err(StartError::NeedsPublicUrl),
            Some(url) => {
                let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
                let plain = url.username().is_empty() && url.password().is_none();
                if !matches!(url.scheme(), "http" | "https") || url.host().is_none() || !bare || !plain {
                    return Err(StartError::BadPublicUrl);
                }
            }
            None => {}
        }
        if self.body_max > limits::MCP_BODY_MAX_CONFIGURED {
            return Err(StartError::BodyLimit);
        }
        Ok(())
    }
}

/// Why a relay did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Secrets would travel in the clear.
    #[error("{0} is not a loopback address: give --tls-cert and --tls-key, or --behind-proxy")]
    NeedsTls(SocketAddr),
    /// Listening on every address says nothing about the name clients use.
    #[error("listening on every address needs --public-url")]
    NeedsPublicUrl,
    /// Not an origin.
    #[error("the public URL must be http(s)://host[:port], without path or credentials")]
    BadPublicUrl,
    /// Above the highest.
    #[error("the body limit is at most 16 MiB")]
    BodyLimit,
    /// The address is taken or not ours.
    #[error("cannot listen on {addr}: {error}")]
    Bind {
        /// The address asked for.
        addr: SocketAddr,
        /// The system's words.
        error: std::io::Error,
    },
    /// The store did not open.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The certificate is unusable.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A running relay. Dropping it stops at once; [`RelayHandle::shutdown`] lets calls finish.
#[derive(Debug)]
pub struct RelayHandle {
    /// The bound address.
    pub addr: SocketAddr,
    /// Administration.
    pub admin: Admin,
    state: Arc<AppState>,
    stop: CancellationToken,
    abort: CancellationToken,
    tasks: TaskTracker,
}

impl RelayHandle {
    /// What the handlers share; for the engines that embed the relay.
    pub fn state(&self) -> &Arc<AppState> {
        &self.state
    }

    /// The URL of the MCP endpoint.
    pub fn mcp_url(&self) -> String {
        self.state.site.mcp_url()
    }

    /// Stops: new requests are refused, devices are told, calls get [`limits::RELAY_STOP_WAIT`], then their answers are written and the
    /// store closes.
    pub async fn shutdown(self) {
        self.stop.cancel();
        // Bounded by the machines. After it every call has its end, which the connections still have to write.
        tokio::join!(self.state.devices.shutdown(), self.state.operations.shutdown());
        self.tasks.close();
        // What is not written by then is cut off below.
        drop(tokio::time::timeout(limits::CLOSE_WAIT, self.tasks.wait()).await);
        self.abort.cancel();
        let store = self.state.store.clone();
        drop(tokio::task::spawn_blocking(move || store.close()).await);
    }
}

impl Drop for RelayHandle {
    fn drop(&mut self) {
        self.stop.cancel();
        self.abort.cancel();
        self.state.operations.cut();
    }
}

/// Starts a relay.
pub async fn start(options: RelayOptions) -> Result<RelayHandle, StartError> {
    options.check()?;
    let bound = bind(options.listen).await.map_err(|error| StartError::Bind { addr: options.listen, error })?;
    let addr = match bound.first() {
        Some(first) => first.local_addr().map_err(|error| StartError::Bind { addr: options.listen, error })?,
        None => options.listen,
    };
    let (state, tls) = assemble(&options, addr).await?;
    forget_expired(&state).await;
    let (stop, abort, tasks) = (state.stop.clone(), CancellationToken::new(), TaskTracker::new());
    let server = Server {
        app: crate::http::app(&state),
        tls: tls.clone(),
        header_timeout: options.header_timeout,
        connections: Arc::new(Semaphore::new(limits::HTTP_CONNECTIONS_MAX)),
        stop: stop.clone(),
        abort: abort.clone(),
        tasks: tasks.clone(),
    };
    for listener in bound {
        tasks.spawn(server.clone().accept(listener));
    }
    if let Some(certificates) = tls {
        tasks.spawn(certificates.watch(stop.clone()));
    }
    tasks.spawn(crate::oauth::tell_approvals(state.clone()));
    tasks.spawn(housekeeping(state.clone(), stop.clone()));
    let admin = Admin { state: state.clone() };
    Ok(RelayHandle { addr, admin, state, stop, abort, tasks })
}

/// Administration of a relay that does not run: works on its store and listens on nothing.
#[derive(Debug)]
pub struct Offline {
    /// Administration.
    pub admin: Admin,
}

impl Offline {
    /// Opens the store. The caller holds the lock of its folder.
    pub async fn open(options: RelayOptions) -> Result<Offline, StartError> {
        let (state, _) = assemble(&options, options.listen).await?;
        Ok(Offline { admin: Admin { state } })
    }

    /// Closes the store; what was written stands on disk then.
    pub async fn close(self) {
        self.admin.state.operations.close().await;
        let store = self.admin.state.store.clone();
        drop(tokio::task::spawn_blocking(move || store.close()).await);
    }
}

async fn assemble(
    options: &RelayOptions,
    addr: SocketAddr,
) -> Result<(Arc<AppState>, Option<Arc<Certificates>>), StartError> {
    let site = Site::new(options, addr);
    let blocking = {
        let (options, site) = (options.clone(), site.clone());
        tokio::task::spawn_blocking(move || open(&options, &site)).await
    };
    let Opened { store, auth, devices, operations, tls } = blocking.map_err(|_| StoreError::Closed)??;
    let state = Arc::new(AppState {
        devices: Arc::new(devices),
        operations,
        store,
        auth,
        clock: options.clock.clone(),
        site,
        identity: options.identity.clone(),
        body_max: options.body_max,
        patience: options.patience,
        extra_tools: options.extra_tools.clone(),
        stop: CancellationToken::new(),
        people: Default::default(),
        oauth: Default::default(),
        enrolment: Default::default(),
        counters: Default::default(),
    });
    Ok((state, tls))
}

/// Forgets what expired, now and then.
async fn housekeeping(state: Arc<AppState>, stop: CancellationToken) {
    loop {
        // Not before the relay listens: after a long rest there can be many.
        // A store that is closed goes with the relay, or with a start that failed.
        if let Err(error) = state.operations.sweep().await
            && !matches!(error, StoreError::Closed)
        {
            tracing::warn!(%error, "operations that ended long ago could not be forgotten");
        }
        if stop.run_until_cancelled(tokio::time::sleep(limits::SWEEP_EVERY)).await.is_none() {
            return;
        }
        forget_expired(&state).await;
    }
}

/// What could not be forgotten counts for nothing all the same, so a full disk is no reason not to run.
async fn forget_expired(state: &AppState) {
    if let Err(error) = crate::oauth::sweep(state).await {
        tracing::warn!(%error, "what expired could not be forgotten");
    }
    if let Err(error) = state.devices.forget_expired().await {
        tracing::warn!(%error, "records of calls could not be forgotten");
    }
}

struct Opened {
    store: Store,
    auth: Auth,
    devices: Devices,
    operations: Operations,
    tls: Option<Arc<Certificates>>,
}

fn open(options: &RelayOptions, site: &Site) -> Result<Opened, StartError> {
    let tls = match &options.exposure {
        Exposure::Tls { cert, key } => Some(Arc::new(Certificates::load(cert, key)?)),
        _ => None,
    };
    let store = store::open(&options.data_dir)?;
    let auth = Auth::load(&store, &options.clock, site)?;
    let index = auth.clone();
    let check: DeviceCheck = Arc::new(move |credential| index.device(credential).map(|device| device.id.clone()));
    let devices = Devices::open(DevicesOptions {
        identity: options.identity.clone(),
        check: check.clone(),
        store: store.clone(),
        clock: options.clock.clone(),
    })?;
    let let_in = store.read_now(crate::people::devices::let_in)?;
    let operations = Operations::open(&options.data_dir, options.clock.clone(), check, let_in)?;
    Ok(Opened { store, auth, devices, operations, tls })
}
