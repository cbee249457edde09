//! What goes into the machine, and what comes out.

use std::sync::Arc;
use std::time::Duration;

use super::gate::{Access, Adapter};
use super::record::{Change, Message};
use crate::chat::outbox::Key;
use crate::chat::{ChannelId, Click, CommitError, Draft, Incoming, MessageId, Ticket, UserId};

/// One delivery; what ends under an older number changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(pub u64);

/// Messages that were missed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Missed {
    /// Oldest first, without gaps.
    pub messages: Vec<Incoming>,
    /// There are more after these.
    pub more: bool,
}

/// A thread in which people can write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its own channel.
    pub channel: ChannelId,
    /// The channel whose thread it is.
    pub parent: ChannelId,
    /// Its newest message, as far as the service says.
    pub last: Option<MessageId>,
}

/// What became of a message's files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prepared {
    /// Where they are kept, for those that were fetched.
    pub files: Vec<Arc<str>>,
    /// What was heard in them, or why one is missing; goes below the text.
    pub note: String,
}

/// Why an agent has not a message; in plain words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undelivered {
    /// It certainly has it not: tried again for as long as that takes.
    Not(String),
    /// It began with it and failed: tried again [`crate::limits::INBOX_TRIES`] times in all.
    Failed(String),
    /// It may have it: its sender decides.
    Perhaps(String),
}

impl Undelivered {
    /// The words.
    pub fn why(&self) -> &str {
        match self {
            Undelivered::Not(why) | Undelivered::Failed(why) | Undelivered::Perhaps(why) => why,
        }
    }
}

impl From<String> for Undelivered {
    fn from(why: String) -> Undelivered {
        Undelivered::Not(why)
    }
}

/// What came of taking a message back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Back {
    /// The agent has it not, and does not get it any more.
    Safe,
    /// The agent has it.
    Taken,
    /// It may have it: its sender decides.
    Perhaps(String),
}

/// What a person asks of the bot itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// End what the agent does.
    Stop,
    /// Say how it goes.
    Status,
    /// Say who holds the seat.
    Seat,
}

/// Everything that happens to an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Somebody wrote.
    Message(Incoming),
    /// Somebody pressed a button.
    Click(Click),
    /// What is written from now on has later ids than this one. Comes at first and after [`Input::Access`], from services that
    /// are asked for what was missed.
    Moment(MessageId),
    /// The connection is there, or there again: messages may have been missed.
    Connected,
    /// Answers [`Output::FetchAfter`].
    Fetched(ChannelId, Result<Missed, String>),
    /// Answers [`Output::FindThreads`].
    Threads(Result<Vec<Thread>, String>),
    /// Answers [`Output::FindDirect`]. None: there is no such place now.
    Direct(Vec<(UserId, Option<ChannelId>)>),
    /// Answers [`Output::Prepare`].
    Prepared(u64, Result<Prepared, String>),
    /// Answers [`Output::Deliver`]: the agent has it, or why not.
    Delivered(Attempt, Result<(), Undelivered>),
    /// Answers [`Output::TakeBack`].
    TakenBack(Attempt, Back),
    /// Answers [`Output::Command`]: it was carried out; what its sender is told.
    Carried(u64, String),
    /// Answers [`Output::Commit`]: of the messages to take, the numbers of those that stood there already.
    Committed(Ticket, Result<Vec<u64>, CommitError>),
    /// Who may speak from now on.
    Access(Access),
    /// A person at this machine opens pairing.
    PairOpen,
    /// A person at this machine typed a code.
    PairTyped(String),
    /// A generation was seen.
    Generation(u64),
    /// The seat is let go: nothing further is taken or begun; what is on its way may end.
    Stop,
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
    /// Fetch what was written in a channel after this message.
    FetchAfter(ChannelId, MessageId),
    /// Find the threads of these channels that are not closed.
    FindThreads(Vec<ChannelId>),
    /// Find where the bot is alone with each of these people.
    FindDirect(Vec<UserId>),
    /// Fetch the files of a message and listen to its voice.
    Prepare(Box<Message>),
    /// Give a message to the agent of its binding.
    Deliver {
        /// Answers name it.
        attempt: Attempt,
        /// Which.
        message: Box<Message>,
        /// Its files.
        prepared: Prepared,
    },
    /// End this delivery, if it is under way, and then take back what was offered to an agent by that adapter.
    TakeBack {
        /// Answers name it.
        attempt: Attempt,
        /// What was offered, perhaps by an earlier holder.
        message: Box<Message>,
        /// How.
        by: Adapter,
    },
    /// Carry out what a stored message asks of the bot. After a crash it may come again.
    Command {
        /// What.
        command: Command,
        /// The message.
        message: Box<Message>,
    },
    /// Have the outbox say this.
    Say(Key, Draft),
    /// Answer a click, or a command that came as something else than a message, so that only that person sees it.
    Answer {
        /// [`Click::id`], or that of the command.
        click: String,
        /// In plain words.
        text: String,
    },
    /// A click of somebody who may, on a button that is not the inbox's.
    Clicked(Click),
    /// A message is stored, or not wanted: whoever brought it need not bring it again.
    Kept(ChannelId, MessageId),
    /// A message was taken for an agent.
    Taken(ChannelId, MessageId),
    /// From now on this person may speak: keep it.
    Admit(UserId, String),
    /// For the log and for people.
    Told(Told),
    /// There is a later holder.
    Superseded(u64),
    /// [`super::Inbox::snapshot`] differs.
    Changed,
}

/// What people at this machine should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// This code is nobody's.
    WrongCode,
    /// A delivery failed; the message stays queued.
    NotDelivered(u64, String),
    /// Missed messages of a channel could not be fetched; it is tried again.
    NotFetched(ChannelId, String),
    /// Threads could not be looked for; it is tried again.
    NotFound(String),
}

/// Everything about an inbox that people see.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InboxView {
    /// The queues.
    pub queues: Vec<QueueView>,
    /// Messages that are perhaps delivered.
    pub perhaps: usize,
    /// The store refuses; why.
    pub stuck: Option<CommitError>,
    /// Boot time until which pairing is open.
    pub pairing: Option<Duration>,
}

/// Messages for one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueView {
    /// Its binding.
    pub binding: Arc<str>,
    /// How many wait or are on their way.
    pub waiting: usize,
    /// Why the first is not delivered yet.
    pub why: Option<String>,
}
