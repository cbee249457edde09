//! Noticing that a file was edited. The folder is watched, because editors replace files; an event is only a reason to
//! look, and a slow poll looks too, because events get lost on some file systems.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use holdfast_core::limits;
use notify::{RecursiveMode, Watcher as _};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

/// Identity of one state of the file.
#[derive(PartialEq, Eq)]
struct Seen(Option<(u64, Option<SystemTime>, u64)>);

fn look(path: &PathBuf) -> Seen {
    let Ok(meta) = std::fs::metadata(path) else { return Seen(None) };
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&meta);
    #[cfg(not(unix))]
    let inode = 0;
    Seen(Some((meta.len(), meta.modified().ok(), inode)))
}

/// Tells each time the file has changed, until `stop`. Of several quick edits one is told. Without events it looks so often.
pub async fn watch(path: PathBuf, poll: Duration, edited: mpsc::Sender<()>, stop: CancellationToken) {
    let woken = Arc::new(Notify::new());
    let wake = Arc::clone(&woken);
    let watcher = notify::recommended_watcher(move |_| wake.notify_one()).and_then(|mut watcher| {
        watcher.watch(path.parent().unwrap_or(&path), RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    if let Err(e) = &watcher {
        tracing::warn!("{} is polled, because its folder cannot be watched: {e}", path.display());
    }
    let mut seen = look(&path);
    // It may have changed between the reading at the start and this first look.
    if edited.send(()).await.is_err() {
        return;
    }
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = woken.notified() => {}
            () = tokio::time::sleep(poll) => {}
        }
        if look(&path) == seen {
            continue;
        }
        // An editor may write in several steps.
        tokio::time::sleep(limits::CONFIG_SETTLE).await;
        seen = look(&path);
        if edited.send(()).await.is_err() {
            return;
        }
    }
}
