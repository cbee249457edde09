//! The loopback API: how commands, the window in a browser and scripts of this user reach the running process.
//!
//! It has its own listener on 127.0.0.1, never the relay's, so publishing the relay cannot publish it. Nothing is trusted
//! for coming from this machine: every request needs the token that stands in `api.json`, or one that a browser got for a
//! code, the right `Host`, and no foreign `Origin`.

pub mod channel;
pub mod client;
mod guard;
mod lines;
mod operations;
mod page;
mod routes;
mod serve;
mod session;

pub use lines::lines;

pub use guard::OpenAt;

use std::net::{Ipv4Addr, SocketAddr};

use axum::body::Body;
use axum::http::{Request, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_core::limits;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service as _;

use crate::engines::StartError;
use crate::files::{self, FileError};
use crate::paths::Dirs;
use crate::resident::Resident;

/// What `api.json` says.
#[derive(Clone, Serialize, Deserialize)]
pub struct ApiFile {
    /// `127.0.0.1:PORT`.
    pub address: SocketAddr,
    /// The bearer token.
    pub token: String,
    /// The holder's process.
    pub pid: u32,
    /// When it started, in milliseconds since 1970.
    pub started_at: u64,
}

impl std::fmt::Debug for ApiFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiFile").field("address", &self.address).field("pid", &self.pid).finish_non_exhaustive()
    }
}

/// Removes what a killed holder left. The caller holds the lock.
pub(crate) fn forget(dirs: &Dirs) -> Result<(), FileError> {
    files::remove(&dirs.api_file())
}

/// The port on which the API of the data folder's holder listens.
pub(crate) fn port(dirs: &Dirs) -> Option<u16> {
    let text = files::read(&dirs.api_file(), limits::API_BODY_MAX).ok()?;
    serde_json::from_str::<ApiFile>(&text).ok().map(|file| file.address.port())
}

/// Answers a request of this process's own shell.
pub(crate) async fn answer(resident: Resident, request: Request<Body>) -> Response<Body> {
    match guard::bounded(routes::router(resident)).call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// A new token or code: 256 random bits.
fn mint() -> Result<String, getrandom::Error> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}

/// The listening API.
#[derive(Debug)]
pub(crate) struct ApiServer {
    address: SocketAddr,
    dirs: Dirs,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl ApiServer {
    pub(crate) async fn start(resident: Resident) -> Result<ApiServer, StartError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(StartError::Api)?;
        let address = listener.local_addr().map_err(StartError::Api)?;
        let token = mint().map_err(|_| StartError::Random)?;
        let dirs = resident.dirs().clone();
        let started_at = resident.status().app.started_at;
        let file = ApiFile { address, token: token.clone(), pid: std::process::id(), started_at };
        let router = guard::guarded(routes::router(resident), &token, address.port());
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(serve::serve(listener, router, stop.clone(), tasks.clone()));
        let text = serde_json::to_vec(&file).map_err(|e| StartError::Api(e.into()))?;
        files::replace(&dirs.api_file(), &text)?;
        Ok(ApiServer { address, dirs, stop, tasks })
    }

    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) async fn stop(&self) {
        if let Err(e) = forget(&self.dirs) {
            tracing::warn!("{e}");
        }
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
