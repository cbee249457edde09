//! What a refusal of Discord's means.

use std::time::Duration;

use holdfast_core::chat::{Scope, SendError};
use holdfast_core::seat::Failed;

use crate::channel::http::Lost;

/// A request that did not work.
#[derive(Debug)]
pub(super) enum Refused {
    Lost(Lost),
    /// Too many, on this route or at all.
    Limited(Duration),
    Said {
        status: u16,
        code: u64,
        said: String,
    },
    /// Something else than Discord's API answered, with this status.
    Strange(u16),
}

pub(super) const BAD_TOKEN: &str = "Discord does not accept the bot's token; reset it in the Developer Portal under Bot, and \
                                    run `holdfast channel setup` with the new one";
pub(super) const NO_CONTENT: &str = "Discord does not let the bot read messages; switch on Message Content Intent in the \
                                     Developer Portal under Bot";

impl Refused {
    pub(super) fn reason(&self) -> String {
        match self {
            Refused::Lost(lost) => lost.clone().reason(),
            Refused::Limited(_) => "Discord asks for a pause".into(),
            Refused::Said { status, code: 0, said } => format!("Discord answered {status}: {said}"),
            Refused::Said { status, code, said } => format!("Discord answered {status}: {said} ({code})"),
            Refused::Strange(status) => format!("what answers there ({status}) is not Discord's API"),
        }
    }

    /// What it means for the connection.
    pub(super) fn failed(self) -> Failed {
        match self {
            Refused::Said { status: 401, .. } => Failed::ForGood(format!("{BAD_TOKEN} (401)")),
            Refused::Limited(after) => Failed::ForNow { reason: self.reason(), after: Some(after) },
            _ => Failed::ForNow { reason: self.reason(), after: None },
        }
    }

    /// What it means for a message, or for a question about a channel.
    pub(super) fn not_sent(self) -> SendError {
        let (status, code, said) = match self {
            Refused::Lost(Lost::NotSent(reason)) => return SendError::Later(reason),
            Refused::Lost(Lost::Unanswered(reason)) => return SendError::Unknown(reason),
            Refused::Limited(after) => return SendError::Limited { after },
            // Discord did not refuse it; whether it did more, nobody knows.
            Refused::Said { status: 500.., .. } | Refused::Strange(..400 | 500..) => {
                return SendError::Unknown(self.reason());
            }
            // Something before Discord did.
            Refused::Strange(_) => return SendError::Later(self.reason()),
            Refused::Said { status, code, said } => (status, code, said),
        };
        let scope = match (status, code) {
            (401, _) => Scope::Seat,
            // A message that is gone, or another's; a text that a filter of that server refuses.
            (_, 10008 | 50005 | 200_000 | 200_001 | 240_000) => Scope::Message,
            // A thread that is closed, a place without text, a person who takes no messages.
            (403 | 404, _) | (_, 10003 | 50001 | 50007 | 50008 | 50013 | 50024 | 50083 | 160_005) => Scope::Channel,
            _ => Scope::Message,
        };
        let code = if code == 0 { u64::from(status) } else { code };
        SendError::Permanent { scope, code: code.to_string(), text: said }
    }
}

/// What it means that the gateway closed with this code.
pub(super) fn closed(code: u16, reason: &str) -> Failed {
    match code {
        4004 => Failed::ForGood(format!("{BAD_TOKEN} (4004)")),
        4014 => Failed::ForGood(format!("{NO_CONTENT} (4014)")),
        4013 => Failed::ForGood("Discord rejected the bot's intents (4013); update Holdfast".into()),
        4011 => Failed::ForGood("the bot is in too many servers for one connection (4011)".into()),
        _ => {
            let said: String = reason.chars().filter(|c| !c.is_control()).take(200).collect();
            Failed::ForNow {
                reason: format!("Discord closed the connection ({code}) {said}").trim().into(),
                after: None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: u16, code: u64) -> SendError {
        Refused::Said { status, code, said: "x".into() }.not_sent()
    }

    #[test]
    fn what_else_is_lost_is_told_by_the_code() {
        for (status, code, scope, named) in [
            (401, 0, Scope::Seat, "401"),
            (404, 10003, Scope::Channel, "10003"),
            (403, 50001, Scope::Channel, "50001"),
            (403, 50013, Scope::Channel, "50013"),
            (400, 50083, Scope::Channel, "50083"),
            (400, 50035, Scope::Message, "50035"),
            (404, 10008, Scope::Message, "10008"),
            (403, 50005, Scope::Message, "50005"),
            (400, 240_000, Scope::Message, "240000"),
        ] {
            let expected = SendError::Permanent { scope, code: named.into(), text: "x".into() };
            assert_eq!(said(status, code), expected, "{status} {code}");
        }
    }

    #[test]
    fn only_what_may_have_arrived_is_unknown() {
        assert_eq!(said(502, 0), SendError::Unknown("Discord answered 502: x".into()));
        assert!(matches!(Refused::Strange(200).not_sent(), SendError::Unknown(_)));
        assert!(matches!(Refused::Strange(503).not_sent(), SendError::Unknown(_)));
        assert!(matches!(Refused::Strange(403).not_sent(), SendError::Later(_)));
        assert_eq!(Refused::Lost(Lost::NotSent("x".into())).not_sent(), SendError::Later("x".into()));
        assert_eq!(Refused::Lost(Lost::Unanswered("x".into())).not_sent(), SendError::Unknown("x".into()));
        let after = Duration::from_secs(3);
        assert_eq!(Refused::Limited(after).not_sent(), SendError::Limited { after });
    }

    #[test]
    fn a_bad_token_and_a_missing_intent_are_for_good_and_say_what_to_do() {
        for (code, part) in
            [(4004, "channel setup"), (4014, "Message Content Intent"), (4013, "update"), (4011, "servers")]
        {
            let Failed::ForGood(text) = closed(code, "") else { panic!("{code}") };
            assert!(text.contains(part) && text.contains(&code.to_string()), "{text}");
        }
        assert_eq!(
            closed(4008, "slow\u{7} down"),
            Failed::ForNow { reason: "Discord closed the connection (4008) slow down".into(), after: None }
        );
    }
}
