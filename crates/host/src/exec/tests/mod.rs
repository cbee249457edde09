//! Tools through the executor's own seam, with real files and processes in temporary folders.

mod ask;
mod bodies;
mod dispatch;
mod files;
#[cfg(unix)]
mod git;
mod orient;
#[cfg(unix)]
mod processes;
mod writes;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::id::{AccountId, CallId};
use holdfast_core::policy::{Policy, Profile, Role};
use holdfast_core::wire::Authorization;
use serde_json::Value;
use serde_json::value::to_raw_value;
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::*;

/// An executor over a workspace and a data folder of its own.
struct Bench {
    workspace: TempDir,
    data: TempDir,
    executor: Arc<LocalExecutor>,
}

/// A call under way.
struct Started {
    id: CallId,
    end: oneshot::Receiver<Outcome>,
}

fn client(account: u8, client: &str, role: Role) -> Authorization {
    Authorization {
        account_id: AccountId::mint([account; 18]),
        account_version: 1,
        role,
        client: Some(client.into()),
        client_name: None,
    }
}

fn owner() -> Authorization {
    client(1, "client", Role::Owner)
}

impl Bench {
    fn new(profile: Profile) -> Bench {
        Bench::with(profile, Vec::new())
    }

    fn with(profile: Profile, extra: Vec<Extra>) -> Bench {
        Bench::adjusted(profile, |options| options.extra = extra)
    }

    fn adjusted(profile: Profile, adjust: impl FnOnce(&mut ExecOptions)) -> Bench {
        let (workspace, data) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let mut options =
            ExecOptions::new(workspace.path().into(), data.path().into(), Policy::of(profile, "explicit"));
        adjust(&mut options);
        let executor = LocalExecutor::open(options).unwrap();
        Bench { workspace, data, executor }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.workspace.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn start_as(&self, who: Authorization, tool: &str, arguments: Value) -> Started {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = CallId::parse(&format!("call_{:08}", NEXT.fetch_add(1, Ordering::Relaxed))).unwrap();
        let (to, end) = oneshot::channel();
        let to = parking_lot::Mutex::new(Some(to));
        let sink = CallSink::new(
            id.clone(),
            Arc::new(move |_, update| {
                if let Update::Finished(outcome) = update {
                    let _ = to.lock().take().unwrap().send(outcome);
                }
            }),
        );
        let run = Run {
            id: id.clone(),
            tool: tool.into(),
            arguments: to_raw_value(&arguments).unwrap(),
            budget: Duration::from_secs(60),
            authorization: who,
            progress: false,
        };
        self.executor.start(run, sink);
        Started { id, end }
    }

    fn start(&self, tool: &str, arguments: Value) -> Started {
        self.start_as(owner(), tool, arguments)
    }

    async fn call_as(&self, who: Authorization, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        self.start_as(who, tool, arguments).end().await
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        self.call_as(owner(), tool, arguments).await
    }

    async fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.unwrap()
    }

    async fn code(&self, tool: &str, arguments: Value) -> Code {
        self.call(tool, arguments).await.unwrap_err().code
    }
}

impl Started {
    async fn end(self) -> Result<Value, ToolError> {
        self.end.await.unwrap().map(|raw| serde_json::from_str(raw.get()).unwrap())
    }
}

fn open(workspace: &Path, data: &Path, profile: Profile, extra: Vec<Extra>) -> Arc<LocalExecutor> {
    let mut options = ExecOptions::new(workspace.into(), data.into(), Policy::of(profile, "explicit"));
    options.extra = extra;
    LocalExecutor::open(options).unwrap()
}

/// The details of an error, as JSON.
fn details(error: &ToolError) -> Value {
    serde_json::from_str(error.details.as_ref().unwrap().get()).unwrap()
}
