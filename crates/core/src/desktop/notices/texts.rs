//! The words of the notices.

use std::time::Duration;

use crate::desktop::durations::duration;
use crate::desktop::sentence::{capital, relay};
use crate::desktop::words::{Arg, say};
use crate::status::{Consent, LinkState, Question, SeatStatus, StatusSnapshot, Warning, WarningCode};

/// Title and body.
pub(super) type Words = (String, String);

pub(super) fn away(snapshot: &StatusSnapshot) -> Words {
    let relay = relay(snapshot);
    let relay = [("relay", Arg::Theirs(&relay))];
    match snapshot.relay.state {
        LinkState::SignInNeeded => (say("notice-sign-in-title", &relay), sign_in(snapshot)),
        LinkState::Incompatible => (say("notice-incompatible-title", &[]), say("notice-incompatible-body", &relay)),
        _ => (say("notice-outage-title", &relay), outage(snapshot)),
    }
}

fn sign_in(snapshot: &StatusSnapshot) -> String {
    match &snapshot.relay.cause {
        Some(cause) => say("notice-sign-in-body", &[("cause", Arg::Sentence(&capital(cause)))]),
        None => say("notice-sign-in-body-bare", &[]),
    }
}

fn outage(snapshot: &StatusSnapshot) -> String {
    let mut body = match &snapshot.relay.cause {
        Some(cause) => say("notice-outage-body", &[("cause", Arg::Sentence(&capital(cause)))]),
        None => say("notice-outage-body-bare", &[]),
    };
    if snapshot.calls.detached > 0 {
        body.push(' ');
        body.push_str(&say("notice-outage-kept", &[("count", Arg::Count(snapshot.calls.detached as u64))]));
    }
    body
}

pub(super) fn recovered(snapshot: &StatusSnapshot, lasted: Duration) -> Words {
    let title = say("notice-recovered-title", &[("relay", Arg::Theirs(&relay(snapshot)))]);
    let mut body = say("notice-recovered-body", &[("lasted", Arg::Ours(&duration(lasted)))]);
    let saved = snapshot.outages.last().filter(|o| o.ended_at.is_some()).map_or(0, |o| o.calls_saved);
    if saved > 0 {
        body.push(' ');
        body.push_str(&say("notice-recovered-saved", &[("count", Arg::Count(saved))]));
    }
    (title, body)
}

/// One loss in its own words; of several, none says what is true of all.
pub(super) fn losses(only: Option<&String>) -> Words {
    let body = match only {
        Some(text) => say("notice-calls-lost-body", &[("text", Arg::Sentence(&capital(text)))]),
        None => say("notice-calls-lost-several", &[]),
    };
    (say("notice-calls-lost-title", &[]), body)
}

pub(super) fn failure(warning: &Warning) -> Option<Words> {
    let title = match warning.code {
        WarningCode::StartFailed => "notice-start-failed-title",
        WarningCode::RelayFailed => "notice-relay-failed-title",
        _ => return None,
    };
    let body = say("notice-failed-body", &[("text", Arg::Sentence(&capital(&warning.text)))]);
    Some((say(title, &[]), body))
}

pub(super) fn consents<'a>(mut asks: impl Iterator<Item = &'a Consent>) -> Option<Words> {
    let first = asks.next()?;
    Some(match asks.count() {
        0 => (
            say("notice-consent-title", &[("client", Arg::Theirs(&first.client))]),
            say("notice-consent-body", &[("host", Arg::Theirs(&first.redirect_host))]),
        ),
        more => {
            (say("notice-consents-title", &[("count", Arg::Count(1 + more as u64))]), say("notice-consents-body", &[]))
        }
    })
}

pub(super) fn questions<'a>(mut asks: impl Iterator<Item = &'a Question>) -> Option<Words> {
    let first = asks.next()?;
    let more = asks.count() as u64;
    let tool = ("tool", Arg::Theirs(&first.tool));
    let title = match &first.client {
        _ if more > 0 => say("notice-questions-title", &[("count", Arg::Count(1 + more))]),
        Some(client) => say("notice-question-title", &[("client", Arg::Theirs(client)), tool]),
        None => say("notice-question-title-nobody", &[tool]),
    };
    // Notices stand on locked screens and are kept by others: not what would run.
    let body = if more == 0 { "notice-question-body" } else { "notice-questions-body" };
    Some((title, say(body, &[])))
}

pub(super) fn seat_acquired(seat: &SeatStatus) -> Words {
    let body = match &seat.channel {
        Some(channel) => say("notice-seat-acquired-channel", &[("channel", Arg::Theirs(channel))]),
        None => say("notice-seat-acquired-body", &[]),
    };
    (say("notice-seat-acquired-title", &[]), body)
}

pub(super) fn seat_superseded(seat: &SeatStatus) -> Words {
    (say("notice-seat-superseded-title", &[]), because(seat))
}

pub(super) fn seat_failed(seat: &SeatStatus) -> Words {
    (say("notice-seat-failed-title", &[]), because(seat))
}

pub(super) fn seat_frozen() -> Words {
    (say("notice-seat-frozen-title", &[]), say("notice-seat-frozen-body", &[]))
}

fn because(seat: &SeatStatus) -> String {
    match &seat.reason {
        Some(reason) => say("notice-seat-because", &[("reason", Arg::Sentence(&capital(reason)))]),
        None => say("notice-seat-silent", &[]),
    }
}

pub(super) fn still_running() -> Words {
    (say("notice-still-running-title", &[]), say("notice-still-running-body", &[]))
}
