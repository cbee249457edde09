//! Starting a runner that outlives this process.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use holdfast_core::limits;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::look::{Found, look};
use super::runner::READY;

/// What the names of the systemd scopes of runners begin with.
pub(super) const SCOPE: &str = "holdfast-run-";

/// How runners are started.
#[derive(Debug, Clone, Default)]
pub struct Starter {
    /// Nothing: this program.
    command: Vec<OsString>,
}

impl Starter {
    /// Runners are this program with the words `run <folder>`.
    pub fn of_this_program() -> Starter {
        Starter::default()
    }

    /// Runners are this command with the folder behind it.
    pub fn of(command: Vec<OsString>) -> Starter {
        Starter { command }
    }

    /// Starts a runner on a prepared folder and waits until it has claimed it and listens, or has ended, at most
    /// [`limits::RUNNER_START`]. What came of it is found by [`look`], also after an error.
    ///
    /// Where the user's systemd answers, the runner gets a scope of its own there, so that a restart of this process's unit
    /// leaves it alone and everything it starts can be ended together.
    pub async fn start(&self, folder: &Path) -> io::Result<()> {
        let mut words = match &self.command[..] {
            [] => vec![program()?.into(), "run".into()],
            given => given.to_vec(),
        };
        words.push(folder.into());
        if let Some(scope) = scope(folder) {
            let in_scope: Vec<OsString> = scope.into_iter().map(Into::into).chain(words.iter().cloned()).collect();
            let ready = ready(spawn(&in_scope)?).await;
            // Otherwise there is no scope to be had after all.
            if ready? || look(folder)? != Found::NotStarted {
                return Ok(());
            }
        }
        match ready(spawn(&words)?).await? || look(folder)? != Found::NotStarted {
            true => Ok(()),
            false => Err(io::Error::other("the runner ended before it claimed the run")),
        }
    }
}

/// It is reaped by the runtime, and neither ended with this process nor by it.
fn spawn(words: &[OsString]) -> io::Result<Child> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // Ours can hold credentials.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"HOLDFAST_")) {
        command.env_remove(name);
    }
    #[cfg(unix)]
    command.current_dir("/");
    #[cfg(windows)]
    command.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP);
    command.spawn()
}

/// Whether a runner says that it is ready, before it ends.
async fn ready(mut child: Child) -> io::Result<bool> {
    let Some(out) = child.stdout.take() else { return Ok(false) };
    let mut lines = BufReader::new(out.take(limits::RUNNER_LINE_MAX as u64)).lines();
    let said = async {
        while let Some(line) = lines.next_line().await? {
            if line == READY {
                return Ok(true);
            }
        }
        Ok(false)
    };
    tokio::time::timeout(limits::RUNNER_START, said).await?
}

/// The program that is this one after an update, too.
fn program() -> io::Result<PathBuf> {
    let program = crate::autostart::program()?;
    if program.exists() {
        return Ok(program);
    }
    // Linux says so of a file that was replaced. The old one can still be started by way of this process.
    let replaced = program.to_str().and_then(|name| name.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(replaced.filter(|new| new.exists()).unwrap_or_else(|| format!("/proc/{}/exe", std::process::id()).into()))
}

/// The words before a command that give it a scope of its own, where the user's systemd answers.
fn scope(folder: &Path) -> Option<Vec<String>> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|_| cfg!(target_os = "linux"))?;
    Path::new(&runtime).join("systemd/private").exists().then_some(())?;
    let unit = format!("--unit={SCOPE}{}", folder.file_name()?.to_str()?);
    Some(["systemd-run", "--user", "--scope", "--collect", "--quiet", &unit, "--"].map(String::from).into())
}

#[cfg(windows)]
const DETACHED_PROCESS: u32 = 0x0000_0008;
#[cfg(windows)]
const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;
