//! Operations that are no run: file sync, git projects, the workspace's configuration.

mod address;
mod again;
mod download;
mod fetch;
mod file_sync;
mod forward;
mod git;
mod locks;
mod projects;
mod workspace;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_core::code::Code;
use holdfast_core::operation::{Failure, Operation, Request};
use secrecy::SecretString;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::config::SyncConfig;
use crate::exec::LocalExecutor;
use download::blocking;
use fetch::{Fetch, Network};
use file_sync::FileSync;
use projects::Projects;

pub(crate) use forward::forward_allowed;
pub(crate) use workspace::kept;

/// What operations that are no run are done with.
pub(crate) struct PerformOptions {
    /// The rules of this device: its policy now, its workspace, its programs.
    pub(crate) executor: Arc<LocalExecutor>,
    /// The relay's origin, which file sync may always read from.
    pub(crate) relay: Url,
    /// The device's credential, which only the relay sees.
    pub(crate) token: SecretString,
    /// Certificate authorities that count beside the system's at the relay.
    pub(crate) ca_file: Option<PathBuf>,
    /// From where else files may be fetched, as it is configured now.
    pub(crate) sync: watch::Receiver<SyncConfig>,
    /// The worker's own folder; `workspace.json` in it is the performer's.
    pub(crate) dir: PathBuf,
}

/// Does operations that are no run. One of it serves all of them, side by side.
pub(crate) struct Performer {
    options: PerformOptions,
    network: Network,
    /// What git may talk with.
    transports: &'static str,
    at_work: git::AtWork,
}

impl Performer {
    /// Nothing is done yet.
    pub(crate) fn new(options: PerformOptions) -> Performer {
        let at_work = git::AtWork::new(options.dir.join("git"));
        Performer { options, network: Network::system(), transports: "https:ssh", at_work }
    }

    /// Does one operation to its end. What fails on the network is tried again for
    /// [`holdfast_core::limits::SYNC_RETRY_FOR`] in here. Soon after `stop` it ends with [`Code::Cancelled`], unless its work was done.
    pub(crate) async fn perform(&self, operation: &Operation, stop: &CancellationToken) -> Result<Value, Failure> {
        let policy = self.options.executor.policy_for(operation.role);
        let env = self.options.executor.env();
        let projects = || Projects { env, policy: &policy, stop, transports: self.transports, at_work: &self.at_work };
        match &operation.request {
            Request::FileSync { target, manifest_url, files } => {
                let (fetch, id) = (self.fetch().await?, &operation.request_id);
                let sync = FileSync { env, policy: policy.clone(), fetch, id, stop };
                sync.run(target, manifest_url.as_deref(), files).await
            }
            Request::SyncWorkspace { projects: wanted } => projects().sync(wanted).await,
            Request::CreateProjectBranch { path, branch, from } => {
                projects().branch(path, branch, from.as_deref()).await
            }
            Request::WorkspaceConfig { config } => workspace::put(&self.options.dir, &self.options.token, config).await,
            _ => Err(Failure::new(Code::InvalidRequest, "this kind of operation is a run's")),
        }
    }

    async fn fetch(&self) -> Result<Fetch, Failure> {
        let PerformOptions { relay, token, ca_file, sync, .. } = &self.options;
        let (relay, token, ca_file) = (relay.clone(), token.clone(), ca_file.clone());
        let (listed, network) = (sync.borrow().clone(), self.network.clone());
        blocking(move || Fetch::new(relay, token, ca_file.as_deref(), listed, network)).await
    }
}
