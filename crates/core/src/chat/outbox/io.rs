//! What goes into the machine, and what comes out.

use std::sync::Arc;
use std::time::Duration;

use super::record::{Change, Key};
use crate::chat::{ChannelId, CommitError, Draft, MessageId, SendError, Ticket};

/// One send or comparison; what ends under an older number changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(pub u64);

/// What a transcript says at one place. Those of one input are not joined to each other any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// First byte.
    pub start: u64,
    /// After the last byte.
    pub end: u64,
    /// How long ago it was written, by its own date; zero if it has none.
    pub age: Duration,
    /// Cleaned, without secrets, of any length.
    pub text: String,
    /// How many entries of the transcript it is, because they were read together and fit one message; what people are told
    /// when it is left out.
    pub count: u64,
}

/// A message of our bot that a channel has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// Its name.
    pub id: MessageId,
    /// As the service gives it back.
    pub text: String,
}

/// Everything that happens to an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A transcript was read further. Only while [`super::Outbox::takes`] says so.
    Entries {
        /// Its identity.
        source: Arc<str>,
        /// Where it is said.
        channel: ChannelId,
        /// In the order of the transcript.
        entries: Vec<Entry>,
        /// Up to where it was read.
        cursor: Arc<str>,
    },
    /// Something else is to be said: a prompt, an answer, a reply of the agent.
    Say {
        /// Names it; the same again is not said again.
        key: Key,
        /// The nonce is the key's, whatever stands here.
        draft: Draft,
    },
    /// What was said by this key is not wanted any more: it is not sent, if nothing of it ever was.
    TakeBack(Key),
    /// Answers [`Output::Send`].
    Sent(Attempt, Result<MessageId, SendError>),
    /// Answers [`Output::Compare`]: what our bot posted there since, oldest first. Nothing, if there is more than
    /// [`crate::limits::OUTBOX_COMPARED`].
    Compared(Attempt, Result<Option<Vec<Posted>>, SendError>),
    /// Answers [`Output::Commit`]: of the messages to prepare, those whose key stood there already.
    Committed(Ticket, Result<Vec<Key>, CommitError>),
    /// A generation was seen.
    Generation(u64),
    /// A person lets a channel, or all, be tried again: it is not parked any more, what was refused goes to the end of the
    /// queue, and nothing there counts as too old.
    Retry {
        /// None: every channel.
        channel: Option<ChannelId>,
        /// What is unknown is sent as well, although it may be there already.
        unknown: bool,
    },
    /// The network or the service is back: what waits for that need not wait longer.
    Online,
    /// The seat is let go: what is prepared is sent as far as time allows.
    Drain,
}

/// What the shell does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Make these changes, all or none, if the store's generation is still this one.
    Commit {
        /// Answers name it.
        ticket: Ticket,
        /// Ours.
        generation: u64,
        /// In this order.
        changes: Vec<Change>,
    },
    /// Send this.
    Send {
        /// Answers name it.
        attempt: Attempt,
        /// Ours.
        generation: u64,
        /// With its nonce, which is to be enforced.
        draft: Draft,
    },
    /// Fetch what our bot posted in a channel.
    Compare {
        /// Answers name it.
        attempt: Attempt,
        /// Where.
        channel: ChannelId,
        /// After this message.
        after: Option<MessageId>,
        /// If no message is known: since that long ago.
        since: Duration,
    },
    /// A send hangs: make the client anew, so that it ends.
    Reset,
    /// The service has this message.
    Posted {
        /// Which.
        key: Key,
        /// As it is named there.
        message: MessageId,
    },
    /// For the log and for people, once each.
    Told(Told),
    /// Nothing further is sent for this hand-over.
    Drained {
        /// What the next holder finds.
        left: usize,
    },
    /// The service does not know the bot any more; in plain words. Nothing further is sent.
    Failed(String),
    /// There is a later holder. Nothing further is sent or stored.
    Superseded(u64),
    /// [`super::Outbox::snapshot`] differs.
    Changed,
}

/// What people should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Nothing is sent in this channel until a person lets it; why.
    ChannelParked(ChannelId, String),
    /// This message is refused; why.
    Parked(Key, String),
    /// Whether this message was posted cannot be found out; why.
    Unknown(Key, String),
    /// So many entries for a channel are not posted, because they are too old or too many. A line there says so.
    Skipped(ChannelId, u64),
    /// Nothing of this channel can be taken: there are too many channels at work.
    NoLane(ChannelId),
}

/// Everything about an outbox that people see.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutboxView {
    /// The holder's.
    pub generation: u64,
    /// Messages that wait.
    pub depth: usize,
    /// Boot time when the service took the last one in this holder's life.
    pub last_sent: Option<Duration>,
    /// The store refuses; why.
    pub stuck: Option<CommitError>,
    /// Channels with something to say about.
    pub lanes: Vec<LaneView>,
    /// What a person may let be sent again, oldest first.
    pub troubles: Vec<Trouble>,
}

/// A channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneView {
    /// Which.
    pub channel: ChannelId,
    /// Messages that wait.
    pub waiting: usize,
    /// Why nothing is sent.
    pub parked: Option<String>,
    /// Why the first message is not sent yet.
    pub why: Option<String>,
    /// Boot time of its next try.
    pub next_try: Option<Duration>,
}

/// A message that was refused or is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Which.
    pub key: Key,
    /// Where.
    pub channel: ChannelId,
    /// Whether the service may have it.
    pub unknown: bool,
    /// Why.
    pub reason: String,
    /// Its beginning, on one line.
    pub text: String,
}
