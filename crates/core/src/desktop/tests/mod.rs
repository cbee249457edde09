//! What the tray shows, as a person reads it: `snapshots/` holds the pages.

mod never;
pub(in crate::desktop) use never::any_snapshot;
mod pages;

use super::*;
use crate::command::Engine;
use crate::status::*;

pub(in crate::desktop) const NOW: UnixMs = 1_800_000_000_000;

/// A desktop whose relay is elsewhere: connected, idle, no channel set up.
pub(in crate::desktop) fn remote() -> StatusSnapshot {
    let mut snapshot = StatusSnapshot::stopped(NOW, AppStatus::default());
    snapshot.app.engines = [(Engine::Link, EngineState::Running)].into();
    snapshot.app.mcp = Some("https://relay.example/mcp".into());
    snapshot.app.autostart = Some(true);
    snapshot.relay.state = LinkState::Healthy;
    snapshot.relay.url = Some("wss://relay.example/daemon/ws".into());
    snapshot
}

/// A desktop with a relay of its own, on this machine only.
pub(in crate::desktop) fn embedded() -> StatusSnapshot {
    let mut snapshot = remote();
    snapshot.app.engines.insert(Engine::Relay, EngineState::Running);
    snapshot.app.mcp = Some("http://127.0.0.1:8787/mcp".into());
    snapshot.relay.url = Some("http://127.0.0.1:8787/".into());
    snapshot
}

pub(in crate::desktop) fn seat(state: SeatState) -> SeatStatus {
    SeatStatus {
        state,
        since: NOW,
        backend: "telegram".into(),
        bot: "4711".into(),
        holder: None,
        generation: 3,
        channel: None,
        transcript: None,
        waiting: 0,
        last_sent: None,
        reason: None,
        code: None,
        next_try_at: None,
        frozen: false,
        waits: false,
    }
}

pub(in crate::desktop) fn holder(this: bool) -> SeatHolder {
    SeatHolder { this, instance: "i".into(), pid: 4242, host: "laptop".into(), since: NOW }
}

pub(in crate::desktop) fn consent(client: &str) -> Consent {
    Consent {
        id: client.into(),
        client: client.into(),
        redirect_host: "chatgpt.com".into(),
        account: "ann".into(),
        scopes: "tools".into(),
        expires_at: NOW + 300_000,
    }
}

pub(in crate::desktop) fn question(id: &str, client: Option<&str>) -> Question {
    Question {
        id: id.into(),
        at: NOW,
        expires_at: NOW + 120_000,
        client: client.map(Into::into),
        tool: "run_process".into(),
        summary: Some("npm test".into()),
        text: Some("argv: [\"npm\",\"test\"]".into()),
        hidden: 0,
    }
}
