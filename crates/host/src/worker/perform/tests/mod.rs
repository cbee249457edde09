//! Operations that are no run, with real files, real git and a scripted server on 127.0.0.1.

mod paths;
#[cfg(unix)]
mod projects;
mod server;
mod sync;
mod workspace;

use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt as _;
use holdfast_core::id::OperationId;
use holdfast_core::policy::{Policy, Profile, Role};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::*;
use crate::config::AllowedHost;
use crate::exec::ExecOptions;

const TOKEN: &str = "device-credential";

/// Longer than anything here may take; what fails wrongly on the network would be tried for longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A performer over a workspace and a data folder of its own.
struct Stage {
    workspace: TempDir,
    data: TempDir,
    performer: Performer,
    listed: watch::Sender<SyncConfig>,
    stop: CancellationToken,
}

impl Stage {
    fn new(relay: &str) -> Stage {
        Stage::with(relay, Profile::Agent)
    }

    fn with(relay: &str, profile: Profile) -> Stage {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (workspace, data) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let policy = Policy::of(profile, "explicit");
        let executor =
            LocalExecutor::open(ExecOptions::new(workspace.path().into(), data.path().into(), policy)).unwrap();
        let listed = watch::Sender::new(SyncConfig::default());
        let mut performer = Performer::new(PerformOptions {
            executor,
            relay: relay.parse().unwrap(),
            token: TOKEN.into(),
            ca_file: None,
            sync: listed.subscribe(),
            dir: data.path().into(),
        });
        performer.transports = "file";
        Stage { workspace, data, performer, listed, stop: CancellationToken::new() }
    }

    fn allow(&self, host: &str) {
        self.listed.send_modify(|listed| listed.allow_hosts.push(AllowedHost::try_from(host).unwrap()));
    }

    async fn perform(&self, request: Value) -> Result<Value, Failure> {
        let request: Request = serde_json::from_value(request).unwrap();
        request.check().unwrap();
        let operation = Operation {
            request_id: OperationId::mint([1; 16]),
            run_id: None,
            session_id: None,
            role: Role::Owner,
            client: None,
            after: None,
            request,
        };
        // Whoever performs does so in a task.
        let performing = self.performer.perform(&operation, &self.stop).boxed();
        tokio::time::timeout(PATIENCE, performing).await.expect("in time")
    }

    async fn sync(&self, files: &[Value]) -> Result<Value, Failure> {
        self.perform(json!({"type": "file_sync", "target": "out", "files": files})).await
    }

    async fn code(&self, files: &[Value]) -> Code {
        self.sync(files).await.unwrap_err().code
    }

    fn path(&self, name: &str) -> PathBuf {
        self.workspace.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Names of everything in a folder.
    fn names(&self, folder: &str) -> Vec<String> {
        let Ok(all) = std::fs::read_dir(self.path(folder)) else { return Vec::new() };
        let mut names: Vec<_> = all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// An entry of a list of files.
fn file(filename: &str, content: &str, url: &str) -> Value {
    let sha256 = data_encoding::HEXLOWER.encode(&Sha256::digest(content));
    json!({"filename": filename, "sha256": sha256, "size": content.len(), "url": url})
}
