//! Folders of runs that no operation knows: of earlier tries, or of a ledger that was set aside. What runs there is ended.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use holdfast_core::limits;
use holdfast_core::run::{Ask, Claim, Identity, Signal};

use super::tend::blocking;
use crate::run::{self, Found};
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

/// Ends what runs in these folders and removes them. What cannot be ended now is left for the next start.
pub(super) async fn end(strays: Vec<PathBuf>) {
    for folder in strays {
        match end_one(&folder).await {
            Ok(()) => tracing::info!("a run that no operation knows is over and removed"),
            Err(e) => tracing::warn!("a run that no operation knows could not be removed: {e}"),
        }
    }
}

async fn end_one(folder: &Path) -> io::Result<()> {
    let on = |work: fn(&Path) -> io::Result<()>| {
        let folder = folder.to_path_buf();
        blocking(move || work(&folder))
    };
    loop {
        let place = folder.to_path_buf();
        match blocking(move || run::look(&place)).await {
            Ok(Found::NotStarted) => on(|folder| run::claim(folder, &Claim::Void).map(drop)).await?,
            Ok(Found::Lives(identity)) => kill(folder, &identity).await?,
            Ok(Found::Gone { identity, .. }) => {
                run::kill_leftovers(folder, &identity).await?;
                return on(spool::remove).await;
            }
            Ok(Found::Void) => return on(spool::remove).await,
            // It is no run, or none of ours.
            Err(e) if e.kind() == io::ErrorKind::InvalidData => return on(spool::remove).await,
            Err(e) => return Err(e),
        }
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
