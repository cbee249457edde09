//! What the seat's store keeps of messages, and the words in which the machine tells it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::chat::commits::Step;
use crate::chat::{Button, ChannelId, MessageId};

/// Names a message for ever: where its text came from, which bytes, and which piece of them. The store's primary key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Identity of a transcript, or of another origin of messages such as a prompt's request id.
    pub source: Arc<str>,
    /// First byte.
    pub start: u64,
    /// After the last byte.
    pub end: u64,
    /// From 0.
    pub chunk: u32,
}

impl Key {
    /// A message that comes from no transcript; `source` alone names it.
    pub fn single(source: impl Into<Arc<str>>) -> Key {
        Key { source: source.into(), start: 0, end: 0, chunk: 0 }
    }

    /// What a service knows the message by while it is new: 24 characters, always the same for the same key.
    pub fn nonce(&self) -> String {
        let mut hash = Sha256::new();
        hash.update((self.source.len() as u64).to_be_bytes());
        hash.update(self.source.as_bytes());
        hash.update(self.start.to_be_bytes());
        hash.update(self.end.to_be_bytes());
        hash.update(self.chunk.to_be_bytes());
        let mut text = URL_SAFE_NO_PAD.encode(hash.finalize());
        text.truncate(24);
        text
    }

    /// Whether both are pieces of one entry.
    pub fn same_entry(&self, other: &Key) -> bool {
        (self.start, self.end) == (other.start, other.end) && self.source == other.source
    }

    /// Whether all of that one's bytes are this one's: the same piece of the same entry, or one that was joined into it.
    pub fn covers(&self, other: &Key) -> bool {
        let within = self.source == other.source && self.start <= other.start && other.end <= self.end;
        within && (self.chunk == other.chunk || !self.same_entry(other))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}-{}#{}", self.source, self.start, self.end, self.chunk)
    }
}

/// A message in custody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its name.
    pub key: Key,
    /// Where.
    pub channel: ChannelId,
    /// Its place: messages of a channel are sent by growing numbers. A line that stands for left out entries has the place
    /// of the first of them.
    pub seq: u64,
    /// What is sent, to the letter.
    pub text: String,
    /// What it answers.
    pub reply_to: Option<MessageId>,
    /// What can be pressed under it.
    pub buttons: Vec<Button>,
    /// How old what it says was when this value was made, by its own date. The store keeps the date.
    pub age: Duration,
    /// For a line that stands for entries that were left out: how many. 0: it says something itself.
    pub skips: u64,
    /// Entries of a transcript that it holds; the pieces of one entry say the same. 1 for what comes from none.
    pub entries: u64,
    /// Of the holder that prepared it.
    pub generation: u64,
}

/// How a message stands. Each but the first is an end, and none is left for another except parked and unknown by a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// To be sent, or perhaps sent: the first of its channel after a crash.
    Prepared,
    /// The service has it.
    Sent(MessageId),
    /// The service refuses it; why.
    Parked(String),
    /// Whether the service has it cannot be found out; why.
    Unknown(String),
}

/// One step of a commit. A commit is carried out as a whole or not at all, and only while the store's generation is its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Inserts a prepared message. If its key stands there already, or one that covers it, however that ended, nothing changes,
    /// and the commit's answer names it unless it is this very record (same generation and place): then the commit is made
    /// again.
    Prepare(Box<Record>),
    /// The message ended so.
    Ended {
        /// Which.
        key: Key,
        /// Never prepared.
        standing: Standing,
        /// Of the holder that sent it.
        generation: u64,
    },
    /// A prepared message is not sent any more: it is too old, and the line that says so is prepared beside, or it was taken
    /// back.
    Skipped(Key),
    /// A prepared message that was never sent is gone: what it said is in one that covers it, which is prepared beside.
    Joined(Key),
    /// A parked or unknown message is prepared again, at this place.
    Again {
        /// Which.
        key: Key,
        /// See [`Record::seq`].
        seq: u64,
    },
    /// What is known about a channel from now on.
    Lane(LaneRow),
    /// Nothing is known about a channel any more.
    Forget(ChannelId),
    /// Its holder leaves, and the service has nothing of what is prepared for this channel: the next holder need not ask.
    Settled(ChannelId),
    /// Up to where a transcript was read, in the words of whoever reads it.
    Cursor {
        /// Whose.
        source: Arc<str>,
        /// See above.
        state: Arc<str>,
    },
    /// Removes ended messages that are older than [`crate::limits::OUTBOX_KEPT`] or beyond
    /// [`crate::limits::OUTBOX_KEPT_MAX`], the oldest first.
    Prune,
}

/// A channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneRow {
    /// Which.
    pub channel: ChannelId,
    /// The newest message there that need not be looked at when it is asked what was sent.
    pub last: Option<MessageId>,
    /// Why nothing is sent there.
    pub parked: Option<String>,
}

impl Step for Change {
    fn waits(&self) -> Option<&str> {
        match self {
            Change::Cursor { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// What a holder begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// What is prepared, by place.
    pub prepared: Vec<Record>,
    /// What is parked or unknown, the newest [`crate::limits::OUTBOX_TROUBLES`].
    pub troubles: Vec<(Record, Standing)>,
    /// Channels, the one that was used last at the end.
    pub lanes: Vec<LaneRow>,
    /// Of which the last holder said, as it left, that the service has nothing of what is prepared.
    pub settled: BTreeSet<ChannelId>,
    /// The highest place that was ever given.
    pub seq: u64,
}
