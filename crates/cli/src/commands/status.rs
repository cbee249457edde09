//! `status`: how it is now.

use std::process::ExitCode;

use futures_util::StreamExt as _;
use holdfast_core::status::{
    AppStatus, BindingStatus, LinkState, SeatState, StatusSnapshot, Warning, WarningCode, WorkerCounts, WorkerStatus,
};
use holdfast_host::status_hub::unix_ms;

use crate::args::Folders;
use crate::ask::running;
use crate::failure::Failure;
use crate::print;

pub async fn status(folders: &Folders, watch: bool) -> Result<ExitCode, Failure> {
    let Some(holder) = running(&folders.dirs()?).await? else {
        let app = AppStatus { version: env!("CARGO_PKG_VERSION").into(), ..AppStatus::default() };
        show(folders, &StatusSnapshot::stopped(unix_ms(), app))?;
        return Err(Failure::not_running());
    };
    if !watch {
        show(folders, &holder.get("/api/status").await?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut snapshots = Box::pin(holder.events::<StatusSnapshot>("/api/status/stream").await?);
    while let Some(snapshot) = snapshots.next().await {
        show(folders, &snapshot)?;
    }
    Err(Failure::not_running())
}

fn show(folders: &Folders, snapshot: &StatusSnapshot) -> Result<(), Failure> {
    if folders.json {
        return print::json(snapshot);
    }
    let now = snapshot.taken_at;
    print::line(&format!("{}  {}", print::moment(now), sentence(snapshot)));
    for fact in facts(&snapshot.app) {
        print::line(&format!("  {}", print::shown(&fact)));
    }
    for warning in warnings(snapshot) {
        print::line(&format!("  ! {}", print::shown(&warning.text)));
    }
    for consent in &snapshot.consents {
        let left = consent.expires_at.saturating_sub(now) / 1000;
        let asks = format!("{} ({}) wants access as {}", consent.client, consent.redirect_host, consent.account);
        print::line(&format!(
            "  ? {} ({left} s left: holdfast approve, with the code its page shows)",
            print::shown(&asks)
        ));
    }
    for question in &snapshot.questions {
        let client = question.client.as_deref().map_or("a client", |client| client);
        let what = question.summary.as_deref().unwrap_or_default();
        let asks = format!("{client} asks to run {} {what}", question.tool);
        let left = question.expires_at.saturating_sub(now) / 1000;
        let how = format!("holdfast answer {} yes|no", question.id);
        print::line(&format!("  ? {} ({left} s left: {how})", print::shown(asks.trim_end())));
        for line in question.text.as_deref().unwrap_or_default().lines() {
            print::line(&format!("      {}", print::shown(line)));
        }
        if question.hidden > 0 {
            print::line(&format!("      … {} characters are not shown", question.hidden));
        }
    }
    if let Some(worker) = &snapshot.worker {
        for line in operations(worker) {
            print::line(&format!("  {line}"));
        }
    }
    for line in channels(snapshot) {
        print::line(&format!("  {}", print::shown(&line)));
    }
    if let Some(last) = snapshot.outages.last() {
        let end = last.ended_at.unwrap_or(now);
        let seconds = end.saturating_sub(last.started_at) / 1000;
        let kept = format!("{} kept, {} lost", print::count(last.calls_saved, "call", "calls"), last.calls_lost);
        let outages = print::count(snapshot.outages.len() as u64, "outage", "outages");
        let at = print::moment(last.started_at);
        print::line(&format!("  {outages} in 24 h; the last at {at} for {seconds} s, {kept}"));
    }
    Ok(())
}

/// What somebody looks for who has to connect a client, or wonders what one may do here.
fn facts(app: &AppStatus) -> Vec<String> {
    let facts = [("MCP address", &app.mcp), ("policy", &app.policy), ("workspace", &app.workspace)];
    let known: Vec<_> =
        facts.iter().filter_map(|(what, value)| Some(format!("{what} {}", value.as_deref()?))).collect();
    if known.is_empty() { known } else { vec![known.join(" · ")] }
}

/// What is wrong, without what the channel's lines below say more exactly.
fn warnings(snapshot: &StatusSnapshot) -> impl Iterator<Item = &Warning> {
    let parked = snapshot.channels.iter().any(|channels| channels.bindings.iter().any(|b| b.parked.is_some()));
    snapshot.health.iter().filter(move |warning| !(parked && warning.code == WarningCode::ChannelParked))
}

/// Durable operations: nothing while there is nothing to say.
fn operations(worker: &WorkerStatus) -> Vec<String> {
    let WorkerCounts { waiting, running, stalled, unknown } = worker.counts;
    let mut parts = Vec::new();
    let mut count = |n: usize, one: &str, many: &str| {
        if n > 0 {
            parts.push(print::count(n as u64, one, many));
        }
    };
    count(running, "operation runs", "operations run");
    count(waiting, "operation waits", "operations wait");
    count(stalled, "waits for room for its output", "wait for room for their output");
    count(worker.results_waiting, "result not yet at the relay", "results not yet at the relay");
    count(unknown, "outcome unknown", "outcomes unknown");
    let mut lines = Vec::new();
    if !parts.is_empty() {
        lines.push(parts.join(", "));
    }
    if worker.admission_closed.is_some() {
        lines.push("! the disk is full: new operations are refused until there is room".into());
    }
    lines
}

/// The bot's channels, and what does not pass.
fn channels(snapshot: &StatusSnapshot) -> Vec<String> {
    let (Some(seat), Some(channels)) = (&snapshot.seat, &snapshot.channels) else { return Vec::new() };
    let mut parts = vec![match (seat.state, &seat.holder) {
        (SeatState::Serving, _) => format!("speaks for the {} bot", seat.backend),
        (_, Some(holder)) if !holder.this => format!("process {} speaks for the {} bot", holder.pid, seat.backend),
        _ => format!("nobody speaks for the {} bot", seat.backend),
    }];
    parts.push(print::count(channels.bindings.len() as u64, "agent", "agents"));
    let sum = |of: fn(&BindingStatus) -> usize| channels.bindings.iter().map(of).sum::<usize>();
    for (waiting, what) in [(sum(|b| b.waiting_out), "to be posted"), (sum(|b| b.waiting_in), "to be delivered")] {
        if waiting > 0 {
            parts.push(format!("{waiting} {what}"));
        }
    }
    let mut lines = vec![format!("channel: {}", parts.join(", "))];
    for binding in &channels.bindings {
        if let Some(why) = &binding.parked {
            lines.push(format!("! {} is stopped: {why}; `holdfast channel retry {}`", binding.name, binding.name));
        }
    }
    for trouble in &channels.troubles {
        let how = if trouble.unknown { "may not have been posted" } else { "was refused" };
        lines.push(format!("! “{}” {how}: {}", trouble.text, trouble.reason));
    }
    lines
}

/// The status as one sentence.
fn sentence(s: &StatusSnapshot) -> String {
    if s.app.pid == 0 {
        return "Nothing runs on this data folder".into();
    }
    if s.app.workspace.is_none() {
        return format!("Relay at {}", s.app.mcp.as_deref().unwrap_or("(stopped)"));
    }
    let relay = s.relay.url.as_deref().unwrap_or("the relay");
    let state = match s.relay.state {
        LinkState::Stopped => "Stopped".into(),
        LinkState::Connecting => format!("Connecting to {relay}"),
        LinkState::Healthy => format!("Connected to {relay}"),
        LinkState::Blip | LinkState::Outage => format!("Away from {relay} since {}", print::moment(s.relay.since)),
        LinkState::Recovering => format!("Connecting again to {relay}"),
        LinkState::SignInNeeded => format!("Not enrolled at {relay}"),
        LinkState::Incompatible => format!("{relay} speaks another version"),
    };
    let c = &s.calls;
    let mut parts = vec![state];
    if c.pending > c.detached {
        parts.push(print::count((c.pending - c.detached) as u64, "call running", "calls running"));
    }
    if c.detached > 0 {
        parts.push(format!("{} detached", c.detached));
    }
    if c.queued_results > 0 {
        parts.push(print::count(c.queued_results as u64, "result waits", "results wait"));
    }
    if let Some(next) = s.relay.next_try_at {
        parts.push(format!("next try in {} s", next.saturating_sub(s.taken_at).div_ceil(1000)));
    }
    match parts.split_first() {
        Some((state, rest)) if !rest.is_empty() => format!("{state} — {}", rest.join(", ")),
        _ => parts.concat(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use holdfast_core::status::{ForwarderStatus, SeatStatus, TroubleRow};

    use super::*;

    #[test]
    fn the_channel_says_who_speaks_and_what_does_not_pass() {
        let binding = |name: &str, parked: Option<&str>| BindingStatus {
            name: name.into(),
            parked: parked.map(str::to_owned),
            waiting_out: 2,
            ..BindingStatus::default()
        };
        let trouble = |unknown, text: &str| TroubleRow {
            id: text.into(),
            channel: "12".into(),
            unknown,
            reason: "no answer".into(),
            text: text.into(),
        };
        let mut s = StatusSnapshot::stopped(0, AppStatus::default());
        assert_eq!(channels(&s), Vec::<String>::new());
        s.channels = Some(Arc::new(ForwarderStatus {
            bindings: vec![binding("app", None), binding("log", Some("it is gone"))],
            troubles: vec![trouble(true, "hello"), trouble(false, "world")],
            ..ForwarderStatus::default()
        }));
        s.seat = Some(SeatStatus {
            state: SeatState::Serving,
            since: 0,
            backend: "discord".into(),
            bot: "7".into(),
            holder: None,
            generation: 1,
            channel: None,
            transcript: None,
            waiting: 0,
            last_sent: None,
            reason: None,
            code: None,
            next_try_at: None,
            frozen: false,
            waits: false,
        });
        s.health = [WarningCode::ChannelParked, WarningCode::ChannelStuck].map(|code| code.warning(0, "why")).into();
        let codes: Vec<_> = warnings(&s).map(|warning| warning.code).collect();
        assert_eq!(codes, [WarningCode::ChannelStuck], "a parked channel is said once, below");
        assert_eq!(
            channels(&s),
            [
                "channel: speaks for the discord bot, 2 agents, 4 to be posted",
                "! log is stopped: it is gone; `holdfast channel retry log`",
                "! “hello” may not have been posted: no answer",
                "! “world” was refused: no answer",
            ]
        );
    }

    #[test]
    fn one_call_is_a_call_and_two_are_calls() {
        let mut s =
            StatusSnapshot::stopped(0, AppStatus { pid: 1, workspace: Some("w".into()), ..AppStatus::default() });
        s.relay.state = LinkState::Healthy;
        assert_eq!(sentence(&s), "Connected to the relay");
        (s.calls.pending, s.calls.detached, s.calls.queued_results) = (2, 1, 1);
        assert_eq!(sentence(&s), "Connected to the relay — 1 call running, 1 detached, 1 result waits");
        (s.calls.pending, s.calls.queued_results) = (3, 2);
        assert_eq!(sentence(&s), "Connected to the relay — 2 calls running, 1 detached, 2 results wait");
    }
}
