//! Starting a runner that outlives this process.

use std::ffi::OsString;
use std::io;
use std::path::Path;

/// How runners are started.
#[derive(Debug, Clone)]
pub struct Starter {
    command: Vec<OsString>,
}

impl Starter {
    /// Runners are this program with the words `run <folder>`.
    pub fn of_this_program() -> io::Result<Starter> {
        let program = crate::autostart::program()?;
        Ok(Starter { command: vec![program.into(), "run".into()] })
    }

    /// Runners are this command with the folder behind it.
    pub fn of(command: Vec<OsString>) -> Starter {
        Starter { command }
    }

    /// Starts a runner on a prepared folder and waits until it has claimed it and listens, or has ended, at most
    /// [`RUNNER_START`](holdfast_core::limits::RUNNER_START). What came of it is found by [`look`](super::look), also after
    /// an error.
    pub async fn start(&self, folder: &Path) -> io::Result<()> {
        let _ = (folder, &self.command);
        Err(io::ErrorKind::Unsupported.into())
    }
}
