//! What the seat's store keeps of messages to the bot.

use std::sync::Arc;

use super::gate::Adapter;
use crate::chat::commits::Step;
use crate::chat::{ChannelId, Incoming, MessageId};

/// A message that was taken. Its channel and id are its identity; the number is how everything else names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Grows with each message.
    pub seq: u64,
    /// Cleaned.
    pub incoming: Incoming,
    /// The agent for which it was taken.
    pub binding: Arc<str>,
    /// How it stands.
    pub standing: Standing,
}

/// How a message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// To be delivered.
    Stored,
    /// On its way to the agent by this adapter. One that acknowledges may still have it between two tries.
    Delivering(Adapter),
    /// A holder died while it was on its way; a person decides.
    Perhaps,
    /// The agent has it, or a command was carried out.
    Done,
}

/// One step of a commit; carried out as a whole or not at all, and only while the store's generation is its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Inserts a message. If one of its channel and id stands there under another number, nothing changes, and the commit's
    /// answer names this number.
    Take(Box<Message>),
    /// The message stands so.
    Stands(u64, Standing),
    /// The message is for the agent of this binding now.
    Rebound(u64, Arc<str>),
    /// The message goes on under another number, stored: a person wants it delivered again.
    Again {
        /// Its number so far.
        seq: u64,
        /// From now on.
        next: u64,
    },
    /// Everything in this channel up to this message was seen.
    Seen {
        /// Which channel.
        channel: ChannelId,
        /// The newest.
        message: MessageId,
    },
    /// What was seen in this channel is forgotten.
    Forget(ChannelId),
    /// Removes messages that were done longer ago than [`crate::limits::INBOX_KEPT`].
    Prune,
}

impl Step for Change {
    fn waits(&self) -> Option<&str> {
        match self {
            Change::Seen { channel, .. } => Some(channel.as_str()),
            _ => None,
        }
    }
}

/// What a holder begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// Every message that is not done, by number.
    pub messages: Vec<Message>,
    /// The newest message that was seen, of each channel.
    pub seen: Vec<(ChannelId, MessageId)>,
    /// The highest number that was ever given.
    pub seq: u64,
}
