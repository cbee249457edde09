//! `inbox`: files in a folder, for agents that look there.
//!
//! `new/` has the message to be taken next, one at a time, as `<number>.json`: a [`Letter`]. It appears as a whole.
//! Whoever takes it moves or deletes the file; that is the acknowledgement, and the next message follows. After a power
//! failure a message may appear again under the same name. `stop` appears beside `new/` when somebody wants the agent
//! to stop; whoever obeys deletes it. `given` is ours: the id of the last message that was put there, so that one that
//! was taken while nobody looked is not put there again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::chat::inbox::{Message, Prepared, Undelivered};
use holdfast_core::limits;
use notify::{RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use super::{Agent, Letter, Patience};
use crate::files;

/// An agent that looks into a folder.
#[derive(Debug)]
pub(super) struct InboxAgent {
    folder: PathBuf,
    patience: Patience,
}

impl InboxAgent {
    pub(super) fn new(folder: PathBuf) -> Result<InboxAgent, String> {
        files::make_dir(&folder.join("new")).map_err(|e| e.to_string())?;
        Ok(InboxAgent { folder, patience: Patience::default() })
    }

    async fn give(&self, message: &Message, prepared: &Prepared) -> Result<(), String> {
        let new = self.folder.join("new");
        let name = format!("{:012}.json", message.seq);
        let (file, given) = (new.join(&name), self.folder.join("given"));
        let letter = Letter::of(&message.incoming, prepared);
        let is_given = files::read(&given, limits::API_BODY_MAX).is_ok_and(|id| id == letter.id);
        // Before the file is there: whoever takes it at once must be noticed.
        let gone = Arc::new(Notify::new());
        let wake = Arc::clone(&gone);
        let watcher = notify::recommended_watcher(move |_| wake.notify_one()).and_then(|mut watcher| {
            watcher.watch(&new, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        if let Err(e) = &watcher {
            tracing::debug!("an inbox is polled, because its folder cannot be watched: {e}");
        }
        // Made beside it: nobody sees a half of it, or a name that will go. It goes to its place in one step after it
        // is known as given, so whoever comes after a crash knows from whether it is still here what was done.
        let made = self.folder.join(name);
        if !is_given {
            let (id, text) = (letter.id.clone(), serde_json::to_vec_pretty(&letter).map_err(|e| e.to_string())?);
            put(&made, text).await?;
            put(&given, id.into_bytes()).await?;
        }
        match tokio::fs::rename(&made, &file).await {
            Err(e) if !(is_given && e.kind() == std::io::ErrorKind::NotFound) => {
                return Err(format!("{}: {e}", file.display()));
            }
            _ => {}
        }
        while file.exists() {
            drop(tokio::time::timeout(limits::INBOX_POLL, gone.notified()).await);
        }
        Ok(())
    }
}

async fn put(path: &Path, content: Vec<u8>) -> Result<(), String> {
    let path = path.to_owned();
    let put = tokio::task::spawn_blocking(move || files::replace(&path, &content).map_err(|e| e.to_string()));
    put.await.map_err(|e| e.to_string())?
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
            put(&self.folder.join("stop"), b"{}\n".to_vec()).await?;
            Ok("The agent finds the wish to stop in its folder.".to_owned())
        }
        .boxed()
    }
}
