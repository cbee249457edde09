//! What a refusal of Telegram's means.

use std::time::Duration;

use holdfast_core::chat::{Scope, SendError};
use holdfast_core::seat::Failed;

use crate::channel::http::Lost;

/// A request that did not work.
#[derive(Debug)]
pub(super) enum Refused {
    Lost(Lost),
    /// With a code that means what HTTP's do.
    Said {
        code: u16,
        said: String,
        after: Option<Duration>,
    },
    /// Something else than the Bot API answered, with this status.
    Strange(u16),
}

/// Parts of refusals (400) that concern the whole conversation.
const NO_CHANNEL: [&str; 11] = [
    "chat not found",
    "chat_id is empty",
    "group chat was upgraded",
    "group chat was deactivated",
    "not enough rights",
    "have no rights",
    "need administrator rights",
    "chat_write_forbidden",
    "peer_id_invalid",
    "thread not found",
    "topic_closed",
];

impl Refused {
    pub(super) fn reason(self) -> String {
        match self {
            Refused::Lost(lost) => lost.reason(),
            Refused::Said { code, said, .. } => format!("Telegram answered {code}: {said}"),
            Refused::Strange(status) => format!("what answers there ({status}) is not Telegram's Bot API"),
        }
    }

    /// What it means for the connection.
    pub(super) fn failed(self) -> Failed {
        match self {
            Refused::Said { code: code @ (401 | 403 | 404), .. } => {
                Failed::ForGood(format!("Telegram does not accept the bot's token ({code})"))
            }
            Refused::Said { code: 409, said, .. } if said.contains("webhook") => {
                let why = "Telegram gives the bot's messages to a webhook; remove it with deleteWebhook";
                Failed::UsedElsewhere(why.into())
            }
            Refused::Said { code: 409, said, .. } => {
                Failed::UsedElsewhere(format!("the bot is used elsewhere: {said}"))
            }
            Refused::Said { after, .. } => Failed::ForNow { reason: self.reason(), after },
            Refused::Lost(_) | Refused::Strange(_) => Failed::ForNow { reason: self.reason(), after: None },
        }
    }

    /// What it means for a message.
    pub(super) fn not_sent(self) -> SendError {
        let (code, said, after) = match self {
            Refused::Lost(Lost::NotSent(reason)) => return SendError::Later(reason),
            Refused::Lost(Lost::Unanswered(reason)) => return SendError::Unknown(reason),
            // Something between here and there answered, and nobody knows before or after Telegram did.
            Refused::Strange(_) | Refused::Said { code: 500.., .. } => return SendError::Unknown(self.reason()),
            Refused::Said { code, said, after } => (code, said, after),
        };
        let lower = said.to_lowercase();
        let scope = match code {
            429 => return SendError::Limited { after: after.unwrap_or(Duration::from_secs(1)) },
            401 | 404 => Scope::Seat,
            403 => Scope::Channel,
            400 if NO_CHANNEL.iter().any(|part| lower.contains(part)) => Scope::Channel,
            _ => Scope::Message,
        };
        SendError::Permanent { scope, code: code.to_string(), text: said }
    }
}

/// A channel or message that cannot be Telegram's.
pub(super) fn no_place(text: &str) -> SendError {
    SendError::Permanent { scope: Scope::Channel, code: String::new(), text: text.to_owned() }
}
