//! The loopback API: how commands, the window in a browser and scripts of this user reach the running process.
//!
//! It has its own listener on 127.0.0.1, never the relay's, so publishing the relay cannot publish it. Nothing is trusted
//! for coming from this machine: every request needs the token that stands in `api.json`, the right `Host`, and no
//! foreign `Origin`.

pub mod client;
mod guard;
mod routes;
mod serve;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::engines::{Running, StartError};
use crate::files::{self, FileError};
use crate::paths::Dirs;

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

/// The listening API.
#[derive(Debug)]
pub(crate) struct ApiServer {
    address: SocketAddr,
    dirs: Dirs,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl ApiServer {
    pub(crate) async fn start(running: Arc<Running>) -> Result<ApiServer, StartError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(StartError::Api)?;
        let address = listener.local_addr().map_err(StartError::Api)?;
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|_| StartError::Random)?;
        let token = URL_SAFE_NO_PAD.encode(random);
        let dirs = running.dirs.clone();
        let started_at = running.hub.snapshot().app.started_at;
        let file = ApiFile { address, token: token.clone(), pid: std::process::id(), started_at };
        let router = guard::guarded(routes::router(running), &token, address.port());
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
