//! The one sentence of the tray: what needs a person, then the link, then the calls.

use super::words::{Arg, say};
use crate::command::Engine;
use crate::limits::TRAY_TEXT_MAX;
use crate::line::one_line;
use crate::status::{CallCounts, EngineState, LinkState, SeatState, Severity, StatusSnapshot, UnixMs, WarningCode};

/// What does not go on without a person; the worst of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Needs {
    Nobody,
    /// In words. What is said of the link beside it is still true.
    You(String),
    /// In words that are about the link itself.
    YouForTheLink(String),
}

impl Needs {
    pub(super) fn of(now: UnixMs, snapshot: &StatusSnapshot) -> Needs {
        let warned = |code| snapshot.health.iter().find(|w| w.code == code);
        let refused = match snapshot.relay.state {
            LinkState::SignInNeeded => Some("tray-sign-in"),
            LinkState::Incompatible => Some("tray-incompatible"),
            _ => None,
        };
        if let Some(failed) = warned(WarningCode::StartFailed) {
            return Needs::YouForTheLink(say("tray-start-failed", &[("cause", Arg::Sentence(&failed.text))]));
        }
        if let Some(id) = refused {
            return Needs::YouForTheLink(say(id, &[("relay", Arg::Theirs(&relay(snapshot)))]));
        }
        let asked = question(now, snapshot).or_else(|| consent(now, snapshot)).or_else(|| seat(snapshot));
        if let Some(asked) = asked {
            return Needs::You(asked);
        }
        if let Some(worst) = snapshot.health.iter().find(|w| w.severity == Severity::NeedsYou) {
            return Needs::You(capital(&worst.text));
        }
        let failed = snapshot.app.engines.iter().find(|(_, state)| **state == EngineState::Failed);
        match failed {
            Some((engine, _)) => Needs::You(say("tray-engine-failed", &[("engine", Arg::Ours(engine.as_str()))])),
            None => Needs::Nobody,
        }
    }
}

fn question(now: UnixMs, snapshot: &StatusSnapshot) -> Option<String> {
    let mut open = snapshot.questions.iter().filter(|q| q.expires_at > now);
    let first = open.next()?;
    Some(match open.count() {
        0 => match &first.client {
            Some(client) => {
                say("tray-question", &[("client", Arg::Theirs(client)), ("tool", Arg::Theirs(&first.tool))])
            }
            None => say("tray-question-nobody", &[("tool", Arg::Theirs(&first.tool))]),
        },
        more => say("tray-questions", &[("count", Arg::Count(1 + more as u64))]),
    })
}

fn consent(now: UnixMs, snapshot: &StatusSnapshot) -> Option<String> {
    let mut open = snapshot.consents.iter().filter(|c| c.expires_at > now);
    let first = open.next()?;
    Some(match open.count() {
        0 => say("tray-consent", &[("client", Arg::Theirs(&first.client))]),
        more => say("tray-consents", &[("count", Arg::Count(1 + more as u64))]),
    })
}

fn seat(snapshot: &StatusSnapshot) -> Option<String> {
    let seat = snapshot.seat.as_ref()?;
    if seat.state == SeatState::Failed {
        return Some(match &seat.reason {
            Some(reason) => say("tray-seat-failed", &[("reason", Arg::Sentence(reason))]),
            None => say("tray-seat-failed-bare", &[]),
        });
    }
    seat.frozen.then(|| say("tray-seat-frozen", &[]))
}

/// Within the bound; what comes first is kept.
pub(super) fn sentence(snapshot: &StatusSnapshot, needs: &Needs) -> String {
    let whole = match needs {
        Needs::Nobody => link_and_calls(snapshot),
        Needs::YouForTheLink(need) => need.clone(),
        Needs::You(need) => {
            say("tray-need-and-link", &[("need", Arg::Ours(need)), ("link", Arg::Ours(&link_and_calls(snapshot)))])
        }
    };
    one_line(&whole, TRAY_TEXT_MAX)
}

fn link_and_calls(snapshot: &StatusSnapshot) -> String {
    let link = link(snapshot);
    let mut work = calls(&snapshot.calls, snapshot.relay.state == LinkState::Healthy);
    work.extend(seat_work(snapshot));
    if work.is_empty() {
        return link;
    }
    say("tray-link-and-work", &[("link", Arg::Ours(&link)), ("work", Arg::Ours(&work.join(", ")))])
}

/// What explains the icon where the link does not.
fn seat_work(snapshot: &StatusSnapshot) -> Option<String> {
    let stopped = snapshot.relay.state == LinkState::Stopped;
    match snapshot.seat.as_ref()?.state {
        SeatState::Connecting => Some(say("tray-seat-connecting", &[])),
        SeatState::Serving | SeatState::Draining if stopped => Some(say("tray-seat-held", &[])),
        _ => None,
    }
}

fn link(snapshot: &StatusSnapshot) -> String {
    let stopping = snapshot.app.engines.get(&Engine::Link) == Some(&EngineState::Stopping);
    let cause = snapshot.relay.cause.as_deref();
    let id = match snapshot.relay.state {
        LinkState::Stopped => "tray-stopped",
        _ if stopping => "tray-stopping",
        LinkState::Connecting => "tray-connecting",
        LinkState::Healthy if is_embedded(snapshot) => return reachable_here(snapshot),
        LinkState::Healthy => "tray-connected",
        LinkState::Outage if cause.is_some() => "tray-outage",
        LinkState::Blip | LinkState::Outage => "tray-reconnecting",
        LinkState::Recovering => "tray-recovering",
        LinkState::SignInNeeded => "tray-sign-in",
        LinkState::Incompatible => "tray-incompatible",
    };
    say(id, &[("relay", Arg::Theirs(&relay(snapshot))), ("cause", Arg::Sentence(cause.unwrap_or_default()))])
}

fn is_embedded(snapshot: &StatusSnapshot) -> bool {
    snapshot.app.engines.contains_key(&Engine::Relay)
}

/// The embedded relay is as far away as its address says.
fn reachable_here(snapshot: &StatusSnapshot) -> String {
    let address = snapshot.app.mcp.as_deref().map(authority).unwrap_or_default();
    let loopback = ["127.", "localhost", "[::1]"].iter().any(|local| address.starts_with(local));
    if address.is_empty() || loopback {
        say("tray-connected-here", &[])
    } else {
        say("tray-connected-published", &[("address", Arg::Theirs(address))])
    }
}

/// Running calls, then those whose link is gone, then results that wait for a link that is not there.
fn calls(calls: &CallCounts, healthy: bool) -> Vec<String> {
    let running = calls.pending.saturating_sub(calls.detached) as u64;
    let detached = calls.detached as u64;
    let held = if healthy { 0 } else { calls.queued_results as u64 };
    let count = |id, count| say(id, &[("count", Arg::Count(count))]);
    let mut parts = Vec::new();
    if running > 0 {
        parts.push(count("tray-running", running));
    }
    if detached > 0 {
        parts.push(count(if running > 0 { "tray-also-detached" } else { "tray-detached" }, detached));
    }
    if held > 0 {
        parts.push(count("tray-held", held));
    }
    parts
}

/// The relay, as people name it in the middle of a sentence.
pub(super) fn relay(snapshot: &StatusSnapshot) -> String {
    if is_embedded(snapshot) {
        return say("tray-own-relay", &[]);
    }
    match snapshot.relay.url.as_deref().map(authority) {
        Some(host) if !host.is_empty() => host.to_owned(),
        _ => say("tray-some-relay", &[]),
    }
}

fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// A warning's text begins like a part of a sentence.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
