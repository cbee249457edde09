//! The runner: a process of its own that starts a program, keeps its output, and says how it ended.
//!
//! It has one thread. Its decisions are [`holdfast_core::run::Runner`]'s.

mod interrupts;
mod own;
#[cfg(unix)]
#[path = "program_unix.rs"]
mod program;
#[cfg(windows)]
#[path = "program_windows.rs"]
mod program;
mod rest;
mod talk;
#[cfg(unix)]
#[path = "terminal_unix.rs"]
mod terminal;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use holdfast_core::run::{Claim, Identity};

use super::claim::claim;
use super::folder::spec;
use crate::{identity, local_socket};

/// What a runner prints once it has claimed its folder and listens.
pub(super) const READY: &str = "ready";

/// Is a runner, if this process was started as one: with the words `run <folder>` and no others. Called before anything
/// else is set up that a runner does not need.
pub fn asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    match (words.next()?.to_str()?, words.next()?, words.next()) {
        ("run", folder, None) => Some(main(Path::new(&folder))),
        _ => None,
    }
}

/// The whole life of the runner of a prepared folder.
pub fn main(folder: &Path) -> ExitCode {
    let rest = rest::Rest::default();
    let waits = rest.clone();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().on_thread_park(move || waits.waits()).build();
    match runtime.and_then(|runtime| runtime.block_on(run(folder, rest))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            // Whoever started it may be gone already.
            let _ = writeln!(io::stderr(), "holdfast run: {e}");
            ExitCode::FAILURE
        }
    }
}

async fn run(folder: &Path, rest: rest::Rest) -> io::Result<()> {
    // A session of its own, so that no terminal and no log-out of its starter ends it.
    #[cfg(unix)]
    let _ = rustix::process::setsid();
    // Whoever reads the claim may signal from then on.
    let interrupts = interrupts::Interrupts::new()?;
    let spec = spec(folder)?;
    let pid = std::process::id();
    let identity =
        Identity { pid, started: identity::started(pid), boot: identity::boot(), mark: mark()?, scope: scope() };
    // Before anything else of this run exists: somebody else's claim means that it is not ours to start.
    if claim(folder, &Claim::Runner(identity.clone()))? != Claim::Runner(identity.clone()) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the run is claimed"));
    }
    let listener = local_socket::listen(Path::new(&spec.socket));
    let _ = writeln!(io::stdout(), "{READY}").and_then(|()| io::stdout().flush());
    own::Own::new(folder, spec, identity, own::Doors::new(listener, interrupts), rest).run().await;
    Ok(())
}

fn mark() -> io::Result<String> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(|e| io::Error::other(e.to_string()))?;
    Ok(format!("run_{}", data_encoding::BASE64URL_NOPAD.encode(&bytes)))
}

/// The control group that was made for this runner.
fn scope() -> Option<String> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let name = path.rsplit('/').next()?;
    (name.starts_with(super::start::SCOPE) && name.ends_with(".scope")).then(|| path.to_owned())
}
