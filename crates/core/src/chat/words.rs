//! What is said at a chat service, and by whom.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use crate::id::BadId;
use crate::limits;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[cfg_attr(feature = "ts", derive(ts_rs::TS))]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a text from outside: 1 to [`limits::CHAT_ID_MAX`] bytes of printable ASCII without spaces.
            pub fn parse(text: &str) -> Result<Self, BadId> {
                let fits = (1..=limits::CHAT_ID_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
                if fits { Ok($name(text.into())) } else { Err(BadId(stringify!($name))) }
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(de)?;
                $name::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    )+};
}

names! {
    /// A channel, a thread or a conversation, as its service names it.
    ChannelId;
    /// One message. Only its service knows whether ids are unique beyond their channel; here they never stand alone.
    MessageId;
    /// A person or a bot.
    UserId;
}

/// Something to press under a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Button {
    /// Comes back with the click; at most 64 bytes, so that every service takes it.
    pub id: String,
    /// What stands on it.
    pub label: String,
    /// How it looks.
    pub look: Look,
}

/// How a button looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// Go on.
    Good,
    /// One more possibility.
    Plain,
    /// Do not.
    Bad,
}

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Where.
    pub channel: ChannelId,
    /// What; never above the service's limit. Nobody is mentioned by it.
    pub text: String,
    /// The same for each attempt at the same message: a service that knows nonces posts it once.
    pub nonce: String,
    /// The message it answers; it is sent as well if that one is gone.
    pub reply_to: Option<MessageId>,
    /// One row of buttons.
    pub buttons: Vec<Button>,
}

/// How much is lost by an error that will not go away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// This message: its body is refused.
    Message,
    /// Everything in this channel: it is unknown or not for us.
    Channel,
    /// Everything: the token does not hold any more.
    Seat,
}

/// Why a message was not sent, or may not have been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendError {
    /// It was refused, and would be again.
    Permanent {
        /// What else would be refused.
        scope: Scope,
        /// As the service names it.
        code: String,
        /// In plain words.
        text: String,
    },
    /// It was refused because there were too many.
    Limited {
        /// How long the service asks us to wait.
        after: Duration,
    },
    /// It may be there or not; in plain words.
    Unknown(String),
    /// It may be there or not, and the service neither knows it again nor can be asked; in plain words.
    Lost(String),
    /// It is certainly not there and may go later; in plain words.
    Later(String),
}

/// A message of somebody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incoming {
    /// Its name.
    pub id: MessageId,
    /// Where.
    pub channel: ChannelId,
    /// The channel to which that thread belongs. None: a channel of its own.
    pub parent: Option<ChannelId>,
    /// Whether it came to the bot alone.
    pub direct: bool,
    /// Who.
    pub author: UserId,
    /// What people call them.
    pub author_name: String,
    /// Whether a program wrote it, the bot itself among them.
    pub bot: bool,
    /// What.
    pub text: String,
    /// Whether it names the bot or answers it.
    pub mentions_us: bool,
    /// Files.
    pub attachments: Vec<Attachment>,
    /// By the service's calendar, in milliseconds since 1970.
    pub at: u64,
    /// How late it was heard: nothing for what is heard as it is said, whatever the two clocks show; otherwise how long ago it
    /// was said. A store keeps the date.
    #[serde(skip)]
    pub age: Duration,
}

/// A file of a message. Its address stays with the backend, which fetches it by message and id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Its name within the message.
    pub id: String,
    /// As its sender named it; of no use as a path.
    pub name: String,
    /// As its sender's program named its kind; may be wrong.
    pub kind: String,
    /// In bytes, as the service says.
    pub size: u64,
}

/// Somebody pressed a button.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Click {
    /// Answers to it carry this.
    pub id: String,
    /// Under which message.
    pub message: MessageId,
    /// Where.
    pub channel: ChannelId,
    /// The channel to which that thread belongs.
    pub parent: Option<ChannelId>,
    /// Whether it was pressed where the bot is alone with that person.
    pub direct: bool,
    /// Who.
    pub user: UserId,
    /// What people call them.
    pub name: String,
    /// [`Button::id`].
    pub button: String,
}
