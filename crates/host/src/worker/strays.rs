//! Folders of runs that no operation knows: of earlier tries, or of a ledger that was set aside. What runs there is ended.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_core::limits;
use holdfast_core::run::{Ask, Claim, Identity, Signal};

use super::tend::blocking;
use crate::run::{self, Found, Leftovers};
use crate::spool;

/// The folders in `runs` that are not among the known names. Blocks.
pub(super) fn find(runs: &Path, known: &HashSet<OsString>) -> io::Result<Vec<PathBuf>> {
    let mut strays = Vec::new();
    for entry in std::fs::read_dir(runs)? {
        let entry = entry?;
        if !known.contains(&entry.file_name()) {
            strays.push(entry.path());
        }
    }
    Ok(strays)
}

/// Ends what runs in these folders, side by side, and removes them. Returns when all of it is over, or has had its time; what
/// is not over then is tried again, for as long as this process lives.
pub(super) async fn end(strays: Vec<PathBuf>) {
    let ending: Vec<_> = strays.into_iter().map(|folder| tokio::spawn(end_one(folder))).collect();
    // Whatever is still at it goes on by itself.
    let _ = tokio::time::timeout(HAS, futures_util::future::join_all(ending)).await;
}

/// For a runner to be asked, to be ended, and for what it left to go.
const HAS: Duration = limits::RUNNER_START.saturating_add(limits::TREE_KILL_WAIT.saturating_mul(6));

async fn end_one(folder: PathBuf) {
    while let Err(e) = over(&folder).await {
        tracing::warn!("a run that no operation knows could not be ended yet: {e}");
        tokio::time::sleep(limits::RUNNER_LOOK).await;
    }
    let place = folder.clone();
    match blocking(move || spool::remove(&place)).await {
        Ok(()) => tracing::info!("a run that no operation knows is over and removed"),
        // The next start finds it again.
        Err(e) => tracing::warn!("the folder of a run that no operation knows stays: {e}"),
    }
}

/// Sees to it that nothing of a folder runs, nor ever will.
async fn over(folder: &Path) -> io::Result<()> {
    loop {
        let place = folder.to_path_buf();
        match blocking(move || run::look(&place)).await {
            Ok(Found::NotStarted) => {
                let place = folder.to_path_buf();
                blocking(move || run::claim(&place, &Claim::Void)).await?;
            }
            Ok(Found::Lives(identity)) => {
                if kill(folder, &identity).await.is_err() {
                    put_down(&identity).await?;
                }
            }
            Ok(Found::Gone { identity, .. }) => {
                return none_left(&run::kill_leftovers(folder, &identity).await?);
            }
            Ok(Found::Void) => return Ok(()),
            // It is no run, or one of which nobody can say what it is.
            Err(e) if e.kind() == io::ErrorKind::InvalidData => return none_left(&run::end_orphan(folder).await?),
            Err(e) => return Err(e),
        }
    }
}

fn none_left(left: &Leftovers) -> io::Result<()> {
    match left.living.is_empty() {
        true => Ok(()),
        false => Err(io::Error::other("processes of it that were killed still live")),
    }
}

/// Makes a runner end its program, and waits until it is gone.
async fn kill(folder: &Path, identity: &Identity) -> io::Result<()> {
    let killing = async {
        match run::attach(folder).await {
            Ok(mut attached) => {
                attached.asker().ask(&Ask::Kill {}).await?;
                while attached.next().await.is_some() {}
            }
            // Its socket's name is gone, say.
            Err(_) => {
                while run::signal(identity, Signal::Term) {
                    tokio::time::sleep(limits::SPOOL_RETRY).await;
                }
            }
        }
        Ok(())
    };
    tokio::time::timeout(limits::RUNNER_START + limits::TREE_KILL_WAIT * 2, killing).await?
}

/// Ends a runner that does not do what it is asked; what it leaves is ended after it.
async fn put_down(identity: &Identity) -> io::Result<()> {
    let dying = async {
        while run::signal(identity, Signal::Kill) {
            tokio::time::sleep(limits::SHELL_TURN_MAX / 10).await;
        }
    };
    Ok(tokio::time::timeout(limits::TREE_KILL_WAIT, dying).await?)
}
