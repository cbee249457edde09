//! The lines of the tray's menu: text, enabled, checked.

use super::menu::{MenuId, TrayItem, is_running};
use super::words::{Arg, say};
use crate::command::Engine;
use crate::limits::TRAY_TEXT_MAX;
use crate::line::one_line;
use crate::status::{EngineState, LinkState, SeatState, StatusSnapshot, WarningCode};

/// How one line stands.
pub(super) fn line(id: MenuId, snapshot: &StatusSnapshot, tooltip: &str) -> TrayItem {
    let app = &snapshot.app;
    let runs = Engine::ALL.into_iter().any(|engine| is_running(snapshot, engine));
    let (text, enabled) = match id {
        MenuId::Status => (tooltip.to_owned(), false),
        MenuId::Open => (say("tray-open", &[]), true),
        MenuId::CopyMcp => (say("tray-copy-mcp", &[]), app.mcp.is_some()),
        MenuId::Start => (start(snapshot), !runs),
        MenuId::Stop => (say("tray-stop", &[]), runs),
        MenuId::Engines => (say("tray-engines", &[]), true),
        MenuId::EngineRelay | MenuId::EngineLink | MenuId::EngineWorker | MenuId::EngineChannels => {
            engine(id, snapshot)
        }
        MenuId::SeatTake => seat_take(snapshot),
        MenuId::SeatRelease => seat_release(snapshot),
        MenuId::Drill => (say("tray-drill", &[]), snapshot.relay.state == LinkState::Healthy),
        MenuId::Logs => (say("tray-logs", &[]), true),
        MenuId::Autostart => (say("tray-autostart", &[]), app.autostart.is_some()),
        MenuId::Quit => (quit(snapshot), true),
    };
    let checked = match id.engine() {
        Some(engine) => is_running(snapshot, engine),
        None => id == MenuId::Autostart && app.autostart == Some(true),
    };
    TrayItem { id, text: one_line(&text, TRAY_TEXT_MAX), enabled, checked }
}

fn start(snapshot: &StatusSnapshot) -> String {
    let failed = snapshot.health.iter().any(|w| w.code == WarningCode::StartFailed);
    say(if failed { "tray-start-again" } else { "tray-start" }, &[])
}

fn quit(snapshot: &StatusSnapshot) -> String {
    match snapshot.calls.pending as u64 {
        0 => say("tray-quit", &[]),
        calls => say("tray-quit-after", &[("count", Arg::Count(calls))]),
    }
}

/// The line of an engine, and whether this process hosts it.
fn engine(id: MenuId, snapshot: &StatusSnapshot) -> (String, bool) {
    let engines = &snapshot.app.engines;
    let state = id.engine().and_then(|engine| engines.get(&engine));
    let text = match (id, state) {
        (MenuId::EngineLink, Some(EngineState::Running)) => of("tray-link", link(snapshot.relay.state)),
        (MenuId::EngineLink, state) => of("tray-link", named(state)),
        // Without any engine nobody knows yet which relay is used.
        (MenuId::EngineRelay, None) if !engines.is_empty() => of("tray-relay", "elsewhere"),
        (MenuId::EngineRelay, state) => of("tray-relay", named(state)),
        (MenuId::EngineWorker, Some(EngineState::Running)) => worker(snapshot),
        (MenuId::EngineWorker, state) => of("tray-worker", named(state)),
        (_, Some(EngineState::Running)) => channels(snapshot),
        (_, state) => of("tray-channels", named(state)),
    };
    (text, state.is_some())
}

fn of(id: &str, state: &str) -> String {
    say(id, &[("state", Arg::Ours(state))])
}

const fn named(state: Option<&EngineState>) -> &'static str {
    match state {
        Some(EngineState::Running) => "running",
        Some(EngineState::Stopping) => "stopping",
        Some(EngineState::Stopped) => "stopped",
        Some(EngineState::Failed) => "failed",
        None => "absent",
    }
}

const fn link(state: LinkState) -> &'static str {
    match state {
        LinkState::Stopped => "stopped",
        LinkState::Connecting => "connecting",
        LinkState::Healthy => "connected",
        LinkState::Blip => "reconnecting",
        LinkState::Outage => "outage",
        LinkState::Recovering => "recovering",
        LinkState::SignInNeeded => "sign-in",
        LinkState::Incompatible => "incompatible",
    }
}

/// What it does, or that its connection is away.
fn worker(snapshot: &StatusSnapshot) -> String {
    let Some(worker) = &snapshot.worker else { return of("tray-worker", "running") };
    match (worker.state, worker.counts.running as u64) {
        (LinkState::Healthy, 0) => of("tray-worker", "connected"),
        (LinkState::Healthy, running) => say("tray-worker-busy", &[("count", Arg::Count(running))]),
        (state, _) => of("tray-worker", link(state)),
    }
}

fn channels(snapshot: &StatusSnapshot) -> String {
    let Some(seat) = &snapshot.seat else { return of("tray-channels", "absent") };
    match (seat.state, &seat.channel) {
        (SeatState::Serving, Some(channel)) => say("tray-channels-serving", &[("channel", Arg::Theirs(channel))]),
        (SeatState::Off, _) => of("tray-channels", "idle"),
        (SeatState::Claiming, _) => of("tray-channels", "claiming"),
        (SeatState::Connecting, _) => of("tray-channels", "connecting"),
        (SeatState::Serving, None) => of("tray-channels", "serving"),
        (SeatState::Draining, _) => of("tray-channels", "draining"),
        (SeatState::Standby, _) => of("tray-channels", "standby"),
        (SeatState::Failed, _) => of("tray-channels", "failed"),
    }
}

/// Says who holds the seat. It can be taken unless this process holds it or is about to.
fn seat_take(snapshot: &StatusSnapshot) -> (String, bool) {
    let Some(seat) = &snapshot.seat else { return (say("tray-seat-take", &[]), false) };
    let ours = seat.holder.as_ref().is_some_and(|holder| holder.this);
    let idle = matches!(seat.state, SeatState::Off | SeatState::Standby | SeatState::Failed);
    let text = match &seat.holder {
        Some(holder) if holder.this => say("tray-seat-take-ours", &[]),
        Some(holder) => {
            let id = if seat.frozen { "tray-seat-take-frozen" } else { "tray-seat-take-theirs" };
            say(id, &[("host", Arg::Theirs(&holder.host)), ("pid", Arg::Ours(&holder.pid.to_string()))])
        }
        None if seat.state == SeatState::Claiming => say("tray-seat-taking", &[]),
        None => say("tray-seat-take", &[]),
    };
    (text, !ours && (idle || seat.frozen))
}

/// Whatever this process does about the seat can be given up.
fn seat_release(snapshot: &StatusSnapshot) -> (String, bool) {
    let state = snapshot.seat.as_ref().map_or(SeatState::Off, |seat| seat.state);
    let id = match state {
        SeatState::Claiming | SeatState::Standby => "tray-seat-wait-no-more",
        SeatState::Failed => "tray-seat-give-up",
        SeatState::Off | SeatState::Connecting | SeatState::Serving | SeatState::Draining => "tray-seat-release",
    };
    (say(id, &[]), !matches!(state, SeatState::Off | SeatState::Draining))
}
