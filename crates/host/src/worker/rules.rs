//! What this device's owner allows, asked of every operation when it comes and again when it begins.

use std::sync::Arc;

use holdfast_core::operation::{Failure, Operation, Request};
use holdfast_core::policy::Role;
use holdfast_core::wire::worker::HostInfo;
use tokio::sync::watch;

use super::perform::forward_allowed;
use super::types::WorkerOptions;
use crate::api;
use crate::config::ForwardConfig;
use crate::engines::machine_name;
use crate::exec::LocalExecutor;
use crate::paths::Dirs;

/// See the module.
pub(super) struct Rules {
    pub(super) executor: Arc<LocalExecutor>,
    forward: watch::Receiver<ForwardConfig>,
    /// Where the relay in this process listens.
    relay_port: watch::Receiver<Option<u16>>,
    /// There the local API says where it listens.
    dirs: Dirs,
}

impl Rules {
    pub(super) fn new(options: &WorkerOptions) -> Rules {
        Rules {
            executor: Arc::clone(&options.executor),
            forward: options.forward.clone(),
            relay_port: options.relay_port.clone(),
            dirs: options.dirs.clone(),
        }
    }

    /// Whether this device does an operation.
    pub(super) fn judge(&self, operation: &Operation) -> Result<(), Failure> {
        self.executor.judge(operation)?;
        match operation.request {
            Request::PortForwardConnect { port } => {
                let relay = *self.relay_port.borrow();
                let own: Vec<u16> = relay.into_iter().chain(api::port(&self.dirs)).collect();
                forward_allowed(port, &self.forward.borrow(), &own)
            }
            _ => Ok(()),
        }
    }

    /// What the relay is told of this machine. Its folders are nobody's business unless the policy says otherwise.
    pub(super) fn host(&self) -> HostInfo {
        let policy = self.executor.policy_for(Role::Owner);
        let root = self.executor.env().files.root();
        HostInfo {
            hostname: machine_name(),
            platform: std::env::consts::OS.into(),
            root: if policy.expose_absolute_paths { root.display().to_string() } else { String::new() },
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}
