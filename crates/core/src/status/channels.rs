//! What passes between agents and their channels.

use serde::{Deserialize, Serialize};

use super::UnixMs;

/// Agents, their channels, and what waits between them. Only the process that holds the seat knows what waits; another one
/// shows the bindings alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct ForwarderStatus {
    /// In the order of the configuration.
    pub bindings: Vec<BindingStatus>,
    /// Messages that were refused or of which nobody knows whether they were posted, oldest first; at most
    /// [`crate::limits::OUTBOX_TROUBLES`].
    pub troubles: Vec<TroubleRow>,
    /// Messages to an agent that were perhaps delivered: their senders were asked whether to send them again.
    pub perhaps: usize,
    /// Who may talk to the agents.
    pub people: Vec<PersonRow>,
    /// Until when a person who writes to the bot gets a code.
    pub pairing_until: Option<UnixMs>,
    /// Messages that are being sent.
    pub in_flight: usize,
    /// Why nothing can be stored, and so nothing passes; in plain words.
    pub stuck: Option<String>,
}

/// An agent and its channel.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct BindingStatus {
    /// Its name in the configuration.
    pub name: String,
    /// The channel's id.
    pub channel: String,
    /// The channel as people call it, once the service has told.
    pub channel_name: Option<String>,
    /// The transcript that is followed; `None` while none was found.
    pub transcript: Option<String>,
    /// The session that writes it.
    pub session: Option<String>,
    /// How messages reach the agent; `None`: they do not, the channel only mirrors it.
    pub adapter: Option<String>,
    /// Messages of people that the agent does not have yet.
    pub waiting_in: usize,
    /// Messages of the agent that are not posted yet.
    pub waiting_out: usize,
    /// When one was last posted.
    pub last_sent: Option<UnixMs>,
    /// Why nothing is posted until a person lets it be tried again, in plain words.
    pub parked: Option<String>,
    /// Why what waits is not posted or delivered yet, in plain words.
    pub why: Option<String>,
    /// When that is tried again.
    pub next_try_at: Option<UnixMs>,
    /// Entries of the transcript that were not posted, because they were too old or too many.
    pub skipped: u64,
    /// Lines of its transcript that were too long or could not be read, since this holder began.
    pub unread: u64,
    /// How often since then a part of it may be missing.
    pub gaps: u64,
}

/// A message that a person may let be sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct TroubleRow {
    /// Names it, and nothing else.
    pub id: String,
    /// The channel's id.
    pub channel: String,
    /// Whether the service may have it: sent again it may stand there twice.
    pub unknown: bool,
    /// Why, in plain words.
    pub reason: String,
    /// Its beginning, on one line; at most [`crate::limits::OUTBOX_EXCERPT`] characters.
    pub text: String,
}

/// Somebody who may talk to the agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct PersonRow {
    /// As the service names them.
    pub id: String,
    /// What people call them, if they wrote or paired while this process held the seat.
    pub name: Option<String>,
}

/// A transcript that an agent on this machine writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct TranscriptRow {
    /// Its path.
    pub path: String,
    /// Which agent writes it.
    pub agent: String,
    /// Its session, where that is known.
    pub session: Option<String>,
    /// The folder the agent works in, where that is known.
    pub project: Option<String>,
    /// The agent still runs, as far as can be told.
    pub live: bool,
    /// When it was last written; `None` while there is no file.
    pub modified: Option<UnixMs>,
}
