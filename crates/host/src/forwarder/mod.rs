//! What passes between agents and the channels of a bot while this process holds its seat: transcripts become messages, and
//! what people write reaches their agents.
//!
//! A [`Desk`] is there as long as the process; a forwarder from when the seat serves until it leaves or is cut off. It opens
//! the seat's store, makes the machines of [`holdfast_core::chat`] anew from it, and does what they say in one task (`run`).
//! The parts of that: `begin` is what comes before the first connection, `outputs` what the machines have done, `sources`
//! which transcripts are followed and what they say, `callers` whoever waits for an answer, `answers` what is answered to them
//! and to people in a channel, `report` what is shown.

mod access;
mod answers;
mod begin;
mod called;
mod callers;
mod choice;
mod desk;
mod outputs;
mod report;
mod run;
mod said;
mod sources;
mod store;
mod strangers;
#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use holdfast_core::code::Code;
use holdfast_core::limits;
use holdfast_core::seat::Unusable;
use holdfast_core::status::ChannelNotice;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::channel::{ChannelBackend, Event};
use crate::config::ChannelConfig;
use crate::transcript::Homes;
pub use desk::{Answered, CannotAsk, Desk, DeskError, Question};
pub(crate) use report::idle;
pub(crate) use sources::at_home;

/// What every forwarder of this process works with.
#[derive(Debug, Clone)]
pub(crate) struct Means {
    pub desk: Desk,
    /// Bindings and people, as they are edited.
    pub config: watch::Receiver<Arc<ChannelConfig>>,
    pub homes: Homes,
}

/// What one forwarder is for.
pub(crate) struct Post {
    pub backend: Arc<dyn ChannelBackend>,
    /// The seat's.
    pub folder: PathBuf,
    pub generation: u64,
    /// Whether the seat is still held, on disk: asked before each send.
    pub holds: Arc<dyn Fn() -> bool + Send + Sync>,
    pub told: Arc<dyn Fn(News) + Send + Sync>,
}

/// What a forwarder tells the seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// After [`Forwarder::leave`]: everything is finished or kept for the next holder. It has ended.
    Drained,
    /// What the seat keeps is open; it waits for the bot.
    Opened,
    /// It cannot begin or go on; why. It has ended.
    Broken(Unusable),
    /// The service does not know the bot any more; why. It has ended.
    Failed(String),
    /// There is a later holder. It has ended.
    Superseded(u64),
    /// The seat does not look as if it were held.
    Doubt,
    /// Somebody else posts as this bot.
    Stranger,
    /// Something happened that people shall find later; what.
    Noticed(ChannelNotice, String),
    /// The store was damaged and was begun anew.
    SetAside(SetAside),
}

/// A damaged store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SetAside {
    /// Where it is kept.
    pub to: PathBuf,
    /// Messages that waited to be posted, and those that waited for their agents; where that could still be read.
    pub waited: Option<(u64, u64)>,
}

/// Orders of the seat.
#[derive(Debug)]
enum Order {
    /// The connection is there, again.
    Connected(mpsc::Receiver<Event>),
    /// It is lost.
    Lost,
    /// Finish.
    Leave,
}

/// A forwarder's task.
#[derive(Debug)]
pub(crate) struct Forwarder {
    orders: mpsc::UnboundedSender<Order>,
    cut: CancellationToken,
    task: JoinHandle<()>,
}

impl Forwarder {
    /// Opens what the seat keeps, tells [`News::Opened`], and serves from the first connection on.
    pub(crate) fn open(post: Post, means: Means) -> Forwarder {
        let (orders, ordered) = mpsc::unbounded_channel();
        let cut = CancellationToken::new();
        let told = Arc::clone(&post.told);
        let serves = AssertUnwindSafe(run::run(post, means, ordered, cut.clone())).catch_unwind();
        let task = tokio::spawn(async move {
            if serves.await.is_err() {
                told(News::Broken(Unusable::for_now(Code::InternalError, "it failed unexpectedly")));
            }
        });
        Forwarder { orders, cut, task }
    }

    /// The bot hears, again perhaps.
    pub(crate) fn connected(&self, heard: mpsc::Receiver<Event>) {
        // It may have ended by itself, here and below.
        let _ = self.orders.send(Order::Connected(heard));
    }

    /// The bot hears nothing for a while.
    pub(crate) fn lost(&self) {
        let _ = self.orders.send(Order::Lost);
    }

    /// Takes in nothing more, finishes what is under way and tells [`News::Drained`].
    pub(crate) fn leave(&self) {
        let _ = self.orders.send(Order::Leave);
    }

    /// Ends at once: when it returns nothing is sent or stored any more. What hangs is not waited for: before it sends or stores
    /// anything it looks whether the seat is still its own.
    pub(crate) async fn cut(self) {
        self.cut.cancel();
        // It has ended either way.
        let _ = tokio::time::timeout(limits::FORWARDER_CUT, self.task).await;
    }
}
