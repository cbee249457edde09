//! The last step of a message to its agent: four ways to give it, and what becomes of its files before.
//!
//! A [`Courier`] lives as long as one holder serves; its agents are made from the bindings of the configuration.
//! `command` and `tmux` have given a message when they say so; with `mcp` and `inbox` the agent's side says that it has it,
//! by the message's id, and gets it again where that was not heard.

mod command;
mod files;
mod grants;
mod inbox;
mod letter;
mod mcp;
mod offers;
mod programs;
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod tmux;
mod voice;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use holdfast_core::chat::inbox::{Adapter, Back, Message, Prepared, Undelivered};

use crate::channel::ChannelBackend;
use crate::config::{BindingConfig, Delivery};
use crate::files as private;
pub use grants::Grants;
pub use letter::Letter;
pub use offers::{Listener, Offer, Offers};
use parking_lot::Mutex;
use programs::Programs;

/// An agent, as messages reach it.
pub trait Agent: fmt::Debug + Send + Sync {
    /// Gives it a message; returns when the agent has it. Dropped before, nothing is known of that.
    ///
    /// # Errors
    /// Why it has it not, or perhaps not.
    fn deliver<'a>(&'a self, message: &'a Message, prepared: &'a Prepared) -> BoxFuture<'a, Result<(), Undelivered>>;

    /// Makes it stop what it does; says what was done, in words for whoever asked. A delivery that ends by it ends well:
    /// the agent had the message.
    fn stop(&self) -> BoxFuture<'_, Result<String, String>>;
}

/// Which session the transcript of a binding belongs to, at this moment.
pub type Session = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// What one holder delivers with: the programs it starts, the files it keeps. Clones are handles of the same one.
#[derive(Debug, Clone)]
pub struct Courier {
    seat: PathBuf,
    programs: Arc<Programs>,
    files: Arc<files::Files>,
    offers: Offers,
    inboxes: inbox::Turn,
    /// By the names of bindings.
    running: Arc<Mutex<BTreeMap<Arc<str>, command::Running>>>,
}

impl Courier {
    /// For the holder of this seat's folder, after it holds the lock. What a killed holder left running is ended.
    ///
    /// # Errors
    /// The folder cannot be used, in plain words.
    pub fn open(seat: &Path, offers: Offers) -> Result<Courier, String> {
        let folder = |name: &str| {
            let path = seat.join(name);
            private::make_dir(&path).map(|()| path).map_err(|e| e.to_string())
        };
        let programs = Arc::new(Programs::open(folder("programs")?)?);
        let files = Arc::new(files::Files::open(folder("files")?));
        Ok(Courier { seat: seat.to_owned(), programs, files, offers, inboxes: Arc::default(), running: Arc::default() })
    }

    /// The agent of a binding. None: nothing is delivered there, its channel only mirrors it.
    ///
    /// # Errors
    /// The configuration of the binding is not complete, in plain words.
    pub fn agent(&self, config: &BindingConfig, session: Session) -> Result<Option<Arc<dyn Agent>>, String> {
        Ok(Some(match config.deliver {
            None => return Ok(None),
            Some(Delivery::Command) => {
                let running = self.running.lock().entry(config.name.as_str().into()).or_default().clone();
                Arc::new(command::CommandAgent::new(Arc::clone(&self.programs), running, config, session)?)
            }
            Some(Delivery::Tmux) => Arc::new(tmux::TmuxAgent::new(Arc::clone(&self.programs), config)?),
            Some(Delivery::Mcp) => Arc::new(mcp::McpAgent::new(self.offers.clone(), config.name.as_str().into())),
            Some(Delivery::Inbox) => {
                Arc::new(inbox::InboxAgent::new(self.inboxes.clone(), inbox_folder(&self.seat, &config.name)))
            }
        }))
    }

    /// Makes the agent of a binding stop what it does; a program that works on a message under an earlier configuration first.
    ///
    /// # Errors
    /// It does not stop, in plain words.
    pub async fn stop(&self, binding: &str, agent: Option<Arc<dyn Agent>>) -> Result<String, String> {
        let running = self.running.lock().get(binding).cloned();
        if let Some(running) = running
            && let Some(ended) = running.end().await
        {
            return ended;
        }
        match agent {
            Some(agent) => agent.stop().await,
            None => Err("no agent is bound here".to_owned()),
        }
    }

    /// Takes back what was offered to the agent of the message's binding in this way, perhaps by an earlier holder. Nothing
    /// offers it at this moment.
    pub async fn take_back(&self, by: Adapter, message: &Message) -> Back {
        match by {
            Adapter::Inbox => {
                let folder = inbox_folder(&self.seat, &message.binding);
                inbox::take_back(self.inboxes.clone(), folder, message).await
            }
            Adapter::Mcp => self.offers.take_back(&message.binding, &Letter::id_of(&message.incoming)).await,
            // What these were given they have.
            Adapter::Command | Adapter::Tmux | Adapter::Mirror => {
                Back::Perhaps("its agent was given it before.".into())
            }
        }
    }

    /// Fetches the files of a message and listens to its voice; `voice` is `channel.voice` of the configuration. What could
    /// not be had stands in the note.
    pub async fn prepare(&self, backend: &dyn ChannelBackend, voice: &[String], message: &Message) -> Prepared {
        self.files.prepare(backend, &self.programs, voice, message).await
    }

    /// Removes files of messages that had their time, now and then, and beside everything else.
    pub fn sweep(&self) {
        self.files.sweep();
    }

    /// Ends every program it started, and waits for that.
    pub async fn close(&self) {
        self.programs.close().await;
    }
}

/// Where the `inbox` adapter puts the messages of a binding; `new/` has one file at a time.
pub fn inbox_folder(seat: &Path, binding: &str) -> PathBuf {
    seat.join("inbox").join(binding)
}

/// The first try of a message tells soon that nobody takes it; later ones have all the time.
#[derive(Debug, Default)]
struct Patience(parking_lot::Mutex<Option<u64>>);

impl Patience {
    /// Waits for a delivery, the first time no longer than `first`. None: that is over, and the sender is to know.
    async fn wait<T>(&self, seq: u64, first: std::time::Duration, work: impl Future<Output = T>) -> Option<T> {
        if self.0.lock().replace(seq) == Some(seq) {
            return Some(work.await);
        }
        tokio::time::timeout(first, work).await.ok()
    }
}
