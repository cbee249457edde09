//! Ending a run whose claim says nothing any more: its runner is looked for among all processes.

use std::io;
use std::path::Path;
use std::time::Duration;

use holdfast_core::limits;
use holdfast_core::run::{Identity, Signal};

use super::leftovers::{Leftovers, kill_leftovers};
use super::signal::signal;
use crate::identity;

/// How long a runner that was told to end its program has until it is killed.
const TO_END: Duration = limits::RUNNER_START.saturating_add(limits::TREE_KILL_WAIT.saturating_mul(2));

/// Ends whatever runs for a folder whose claim cannot be read, or is gone. A runner that still lives is told to end its
/// program, and killed if it does not; what is left of the program is ended as far as the folder says which it was.
pub async fn end_orphan(folder: &Path) -> io::Result<Leftovers> {
    let place = folder.to_path_buf();
    let runners = tokio::task::spawn_blocking(move || identity::runners_of(&place));
    for pid in runners.await.map_err(io::Error::other)? {
        let runner = nameless(pid);
        if tokio::time::timeout(TO_END, gone(&runner, Signal::Term)).await.is_err() {
            tokio::time::timeout(limits::TREE_KILL_WAIT, gone(&runner, Signal::Kill)).await?;
        }
    }
    kill_leftovers(folder, &nameless(0)).await
}

async fn gone(runner: &Identity, told: Signal) {
    while signal(runner, told) {
        tokio::time::sleep(limits::SHELL_TURN_MAX / 10).await;
    }
}

/// What is known of a runner without its claim.
fn nameless(pid: u32) -> Identity {
    Identity { pid, started: identity::started(pid), boot: identity::boot(), mark: String::new(), scope: None }
}
