//! What tools work with: one of each per executor.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Mutex;

use super::ask::Asking;
use super::bodies::Bodies;
use super::files::Workspace;
use super::process::{Sessions, Trees};
use super::results::Results;
use super::{ExecOptions, OpenError};

pub(crate) struct Env {
    pub(crate) files: Workspace,
    pub(super) trees: Arc<Trees>,
    pub(super) sessions: Sessions,
    pub(super) results: Results,
    pub(super) asking: Asking,
    pub(super) bodies: Bodies,
    /// Home of programs under a minimal environment.
    pub(super) home: PathBuf,
    /// Changes of files happen one after the other.
    pub(crate) mutations: Arc<Mutex<()>>,
    pub(super) diagnose: Arc<dyn Fn() -> serde_json::Value + Send + Sync>,
    pub(super) running: Box<dyn Fn() -> usize + Send + Sync>,
    pub(super) started: Instant,
}

impl Env {
    pub(super) fn open(options: ExecOptions, running: Box<dyn Fn() -> usize + Send + Sync>) -> Result<Env, OpenError> {
        let ExecOptions { workspace, data_dir, mut private, diagnose, ask, questions, .. } = options;
        let folder = |name: &str| {
            let path = data_dir.join(name);
            crate::files::make_dir(&path).map(|()| path).map_err(|e| OpenError::Data(std::io::Error::other(e)))
        };
        let (calls, results, home) = (folder("calls")?, folder("results")?, folder("home")?);
        folder("home/tmp")?;
        private.push(data_dir.clone());
        Ok(Env {
            files: Workspace::open(&workspace, &private).map_err(OpenError::Workspace)?,
            trees: Trees::open(calls).map_err(OpenError::Data)?,
            sessions: Sessions::default(),
            results: Results::open(results).map_err(OpenError::Data)?,
            asking: Asking::new(ask, questions),
            bodies: Bodies::default(),
            home,
            mutations: Arc::default(),
            diagnose,
            running,
            started: Instant::now(),
        })
    }
}
