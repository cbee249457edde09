//! `inbox`: files in a folder, for agents that look there.
//!
//! `new/` has the message to be taken next, one at a time, as `<number>.json`: a [`Letter`]. It appears as a whole.
//! Whoever takes it moves or deletes the file; that is the acknowledgement, and the next message follows. After a power
//! failure a message may appear again under the same name. `stop` appears beside `new/` when somebody wants the agent
//! to stop; whoever obeys deletes it. `given` is ours: the id of the last message that was put there, so that one that
//! was taken while nobody looked is not put there again. A message that goes elsewhere from now on is moved out of `new/`:
//! what was only read there and could not be moved away by its reader was not taken.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::chat::inbox::{Back, Message, Prepared, Undelivered};
use holdfast_core::limits;
use notify::{RecursiveMode, Watcher as _};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Agent, Letter, Patience};
use crate::files;

/// Whoever puts a message there or takes it back does so alone.
pub(super) type Turn = Arc<Mutex<()>>;

/// An agent that looks into a folder.
#[derive(Debug)]
pub(super) struct InboxAgent {
    turn: Turn,
    folder: PathBuf,
    patience: Patience,
}

impl InboxAgent {
    /// Its folder is made, sooner or later: the disk may not answer.
    pub(super) fn new(turn: Turn, folder: PathBuf) -> InboxAgent {
        let (at, alone) = (folder.clone(), Arc::clone(&turn));
        tokio::task::spawn_blocking(move || {
            let _alone = alone.lock();
            if let Err(why) = ready(&at) {
                tracing::warn!("an agent's folder was not made: {why}");
            }
        });
        InboxAgent { turn, folder, patience: Patience::default() }
    }

    async fn give(&self, message: &Message, prepared: &Prepared) -> Result<(), String> {
        let new = self.folder.join("new");
        let (seq, letter) = (message.seq, Letter::of(&message.incoming, prepared));
        let gone = Arc::new(Notify::new());
        let wake = Arc::clone(&gone);
        // Gone with whoever waits: what was not begun by then is not put there any more.
        let wanted = Arc::new(());
        let (still, turn, folder) = (Arc::downgrade(&wanted), Arc::clone(&self.turn), self.folder.clone());
        let placing = tokio::task::spawn_blocking(move || {
            let _turn = turn.lock();
            if still.strong_count() == 0 {
                return Ok(None);
            }
            ready(&folder)?;
            // Before the file is there: whoever takes it at once must be noticed.
            let watcher = watch(&new, wake);
            place(&folder, seq, &letter).map(|()| watcher)
        });
        let _watcher = placing.await.map_err(|e| e.to_string())??;
        while !is_taken(&self.folder, seq).await? {
            drop(tokio::time::timeout(limits::INBOX_POLL, gone.notified()).await);
        }
        Ok(())
    }
}

/// Wakes whoever waits when something changes in a folder. None: it is looked at now and then.
fn watch(folder: &Path, wake: Arc<Notify>) -> Option<notify::RecommendedWatcher> {
    let watcher = notify::recommended_watcher(move |_| wake.notify_one()).and_then(|mut watcher| {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    watcher.inspect_err(|e| tracing::debug!("an inbox is polled, because its folder cannot be watched: {e}")).ok()
}

/// Whether somebody took a message. A folder that is gone or cannot be looked into does not say so.
async fn is_taken(folder: &Path, seq: u64) -> Result<bool, String> {
    let new = folder.join("new");
    let refused = |e: std::io::Error| format!("{}: {e}", new.display());
    if tokio::fs::try_exists(new.join(name(seq))).await.map_err(refused)? {
        return Ok(false);
    }
    let there = tokio::fs::try_exists(&new).await.map_err(refused)?;
    if there { Ok(true) } else { Err(format!("{}: it was removed", new.display())) }
}

/// Makes the folder where an agent looks, if it is gone. What was given with it was taken by nobody: that is forgotten first,
/// so that a crash in between loses nothing.
fn ready(folder: &Path) -> Result<(), String> {
    let (new, given) = (folder.join("new"), folder.join("given"));
    if !new.is_dir() && given.exists() {
        std::fs::remove_file(&given).map_err(|e| format!("{}: {e}", given.display()))?;
    }
    files::make_dir(&new).map_err(|e| e.to_string())
}

/// Puts a message where its agent looks, unless an earlier try did.
fn place(folder: &Path, seq: u64, letter: &Letter) -> Result<(), String> {
    let (made, file, given) = (folder.join(name(seq)), folder.join("new").join(name(seq)), folder.join("given"));
    let is_given = files::read(&given, limits::API_BODY_MAX).is_ok_and(|id| id == letter.id);
    // Made beside it: nobody sees a half of it, or a name that will go. It goes to its place in one step after it
    // is known as given, so whoever comes after a crash knows from whether it is still here what was done.
    if !is_given {
        let text = serde_json::to_vec_pretty(letter).map_err(|e| e.to_string())?;
        files::replace(&made, &text)
            .and_then(|()| files::replace(&given, letter.id.as_bytes()))
            .map_err(|e| e.to_string())?;
    }
    match std::fs::rename(&made, &file) {
        Err(e) if !(is_given && e.kind() == std::io::ErrorKind::NotFound) => Err(format!("{}: {e}", file.display())),
        _ => Ok(()),
    }
}

/// Takes back what was put, or was about to be put, into an agent's folder.
pub(super) async fn take_back(turn: Turn, folder: PathBuf, message: &Message) -> Back {
    let (seq, id) = (message.seq, Letter::id_of(&message.incoming));
    let taking = tokio::task::spawn_blocking(move || {
        let _turn = turn.lock();
        take_from(&folder, seq, &id)
    });
    let taken = taking.await.map_err(|e| e.to_string()).and_then(|taken| taken);
    taken.unwrap_or_else(|why| Back::Perhaps(format!("it could not be taken back from the agent's folder: {why}")))
}

/// One step decides between us and the agent: whoever moves the file away has the message.
fn take_from(folder: &Path, seq: u64, id: &str) -> Result<Back, String> {
    let absent = |done: std::io::Result<()>| match done {
        Ok(()) => Ok(false),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(e) => Err(e.to_string()),
    };
    let (made, given) = (folder.join(name(seq)), folder.join("given"));
    let is_given = files::read(&given, limits::API_BODY_MAX).is_ok_and(|known| known == id);
    let gone = absent(std::fs::rename(folder.join("new").join(name(seq)), &made))?;
    if gone && is_given && !made.exists() {
        if !folder.join("new").is_dir() {
            return Err("it was removed".to_owned());
        }
        return Ok(Back::Taken);
    }
    // In this order: what is left of it after a crash says that it was not taken.
    if is_given {
        absent(std::fs::remove_file(&given))?;
    }
    absent(std::fs::remove_file(&made))?;
    Ok(Back::Safe)
}

fn name(seq: u64) -> String {
    format!("{seq:012}.json")
}

/// Asks an agent to stop. Its folder may not be there yet, or any more.
async fn ask_to_stop(folder: PathBuf) -> Result<(), String> {
    let asking = tokio::task::spawn_blocking(move || {
        let asked = files::make_dir(&folder).and_then(|()| files::replace(&folder.join("stop"), b"{}\n"));
        asked.map_err(|e| e.to_string())
    });
    asking.await.map_err(|e| e.to_string())?
}

impl Agent for InboxAgent {
    fn deliver<'a>(&'a self, message: &'a Message, prepared: &'a Prepared) -> BoxFuture<'a, Result<(), Undelivered>> {
        async move {
            let given = self.patience.wait(message.seq, limits::INBOX_TAKEN, self.give(message, prepared)).await;
            let given = given.unwrap_or_else(|| Err("nobody took it from the agent's folder yet".to_owned()));
            given.map_err(Undelivered::Not)
        }
        .boxed()
    }

    fn stop(&self) -> BoxFuture<'_, Result<String, String>> {
        async move {
            ask_to_stop(self.folder.clone()).await?;
            Ok("Asked the agent to stop (file `stop` in its folder).".to_owned())
        }
        .boxed()
    }
}
