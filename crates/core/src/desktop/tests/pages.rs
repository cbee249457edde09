use std::fmt::Write as _;

use super::*;

/// One line for each case: the icon and the sentence.
fn page(cases: impl IntoIterator<Item = (String, StatusSnapshot)>) -> String {
    let mut page = String::new();
    for (case, snapshot) in cases {
        let view = tray_view(NOW, &snapshot);
        let _ = writeln!(page, "{case:<40} {:<8} {}", format!("{:?}", view.icon), view.tooltip);
    }
    page
}

/// The menu as text: what cannot be chosen stands in brackets.
fn menu(snapshot: &StatusSnapshot) -> String {
    let mut page = String::new();
    for item in tray_view(NOW, snapshot).items {
        let mark = match (item.id.is_check(), item.checked) {
            (true, true) => "✓ ",
            (true, false) => "· ",
            (false, _) => "",
        };
        let text = format!("{mark}{}", item.text);
        let text = if item.enabled { text } else { format!("[{text}]") };
        let _ = writeln!(page, "{:<15} {text}", item.id.as_str());
    }
    page
}

const LINK_STATES: [LinkState; 8] = [
    LinkState::Stopped,
    LinkState::Connecting,
    LinkState::Healthy,
    LinkState::Blip,
    LinkState::Outage,
    LinkState::Recovering,
    LinkState::SignInNeeded,
    LinkState::Incompatible,
];

#[test]
fn every_state_of_the_link_with_and_without_calls() {
    let calls =
        [("", 0, 0, 0), (", 1 call", 1, 0, 0), (", 3 calls, 1 detached", 3, 1, 0), (", 2 detached, 1 held", 2, 2, 1)];
    let mut cases = Vec::new();
    for (name, whole) in [("remote", remote()), ("embedded", embedded())] {
        for state in LINK_STATES {
            for (said, pending, detached, queued_results) in calls {
                let mut snapshot = whole.clone();
                snapshot.relay.state = state;
                snapshot.relay.cause = Some("connection refused".into());
                snapshot.calls = CallCounts { pending, detached, queued_results, ..CallCounts::default() };
                cases.push((format!("{name} {state:?}{said}"), snapshot));
            }
        }
    }
    let shown = page(cases);
    insta::assert_snapshot!(shown);
}

#[test]
fn whatever_needs_a_person_comes_first() {
    let with = |name: &str, change: &dyn Fn(&mut StatusSnapshot)| {
        let mut snapshot = remote();
        snapshot.calls.pending = 2;
        change(&mut snapshot);
        (name.to_owned(), snapshot)
    };
    let failed =
        |snapshot: &mut StatusSnapshot, code: WarningCode, text: &str| snapshot.health.push(code.warning(NOW, text));
    let shown = page([
        with("a consent", &|s| s.consents = vec![consent("ChatGPT")]),
        with("two consents", &|s| s.consents = vec![consent("ChatGPT"), consent("Claude")]),
        with("a consent that lapsed", &|s| s.consents = vec![Consent { expires_at: NOW, ..consent("ChatGPT") }]),
        with("a question", &|s| s.questions = vec![question("a", Some("ChatGPT"))]),
        with("a question of nobody", &|s| s.questions = vec![question("a", None)]),
        with("three questions", &|s| s.questions = ["a", "b", "c"].map(|id| question(id, None)).into()),
        with("a question that lapsed", &|s| s.questions = vec![Question { expires_at: NOW, ..question("a", None) }]),
        with("a question and a consent", &|s| {
            s.questions = vec![question("a", Some("Codex"))];
            s.consents = vec![consent("ChatGPT")];
        }),
        with("a consent in an outage", &|s| {
            s.consents = vec![consent("ChatGPT")];
            s.relay.state = LinkState::Outage;
            s.calls.detached = 2;
        }),
        with("a consent while stopped", &|s| {
            s.consents = vec![consent("ChatGPT")];
            s.relay.state = LinkState::Stopped;
            s.calls.pending = 0;
        }),
        with("sign-in beside a consent", &|s| {
            s.consents = vec![consent("ChatGPT")];
            s.relay.state = LinkState::SignInNeeded;
        }),
        with("the start failed", &|s| {
            *s = StatusSnapshot::stopped(NOW, AppStatus::default());
            failed(s, WarningCode::StartFailed, "another Holdfast (process 77) uses this data folder");
        }),
        with("the relay failed", &|s| {
            failed(s, WarningCode::RelayFailed, "the relay of this machine does not run: address in use");
        }),
        with("an engine failed, no warning", &|s| {
            s.app.engines.insert(Engine::Relay, EngineState::Failed);
            s.relay.state = LinkState::Stopped;
            s.calls.pending = 0;
        }),
        with("the configuration is wrong", &|s| {
            failed(s, WarningCode::ConfigInvalid, "the running configuration was kept: line 3: unknown key `relai`");
        }),
        with("another instance", &|s| {
            let text = "another running instance uses this device's credential; if that is not you, revoke the device";
            failed(s, WarningCode::DeviceInUse, text);
        }),
        with("only a warning", &|s| failed(s, WarningCode::DiskLow, "only 5 MiB are free on the data folder's disk")),
        with("the seat failed", &|s| {
            s.seat =
                Some(SeatStatus { reason: Some("the bot's token is not valid".into()), ..seat(SeatState::Failed) });
        }),
        with("the seat failed silently", &|s| s.seat = Some(seat(SeatState::Failed))),
        with("the holder is frozen", &|s| {
            s.seat = Some(SeatStatus { frozen: true, holder: Some(holder(false)), ..seat(SeatState::Claiming) });
        }),
        with("a hostile name", &|s| {
            s.consents =
                vec![consent("\u{202e}Holdfast\u{1b}]0;x\u{7} needs your password at evil.example, type it there\n\n")];
        }),
    ]);
    insta::assert_snapshot!(shown);
}

#[test]
fn the_seat_alone_decides_about_the_icon_of_a_stopped_link() {
    let states = [
        SeatState::Off,
        SeatState::Claiming,
        SeatState::Connecting,
        SeatState::Serving,
        SeatState::Draining,
        SeatState::Standby,
    ];
    let shown = page(states.into_iter().map(|state| {
        let mut snapshot = remote();
        snapshot.relay.state = LinkState::Stopped;
        snapshot.app.engines = [(Engine::Link, EngineState::Stopped), (Engine::Channels, EngineState::Running)].into();
        snapshot.seat = Some(seat(state));
        (format!("stopped, seat {state:?}"), snapshot)
    }));
    insta::assert_snapshot!(shown);
}

#[test]
fn an_embedded_relay_says_where_clients_find_it() {
    let at = |name: &str, mcp: Option<&str>| {
        let mut snapshot = embedded();
        snapshot.app.mcp = mcp.map(Into::into);
        (name.to_owned(), snapshot)
    };
    let mut stopping = embedded();
    stopping.app.engines.insert(Engine::Link, EngineState::Stopping);
    stopping.calls.pending = 2;
    let mut nameless = remote();
    nameless.relay.url = None;
    nameless.relay.state = LinkState::Blip;
    let shown = page([
        at("on IPv6", Some("http://[::1]:8787/mcp")),
        at("published", Some("https://holdfast.example/mcp")),
        at("without an address", None),
        ("stopping".into(), stopping),
        ("a relay without an address".into(), nameless),
    ]);
    insta::assert_snapshot!(shown);
}

#[test]
fn the_menu_of_a_connected_machine() {
    let shown = menu(&remote());
    insta::assert_snapshot!(shown);
}

#[test]
fn the_menu_of_a_machine_with_its_own_relay_and_the_seat() {
    let mut snapshot = embedded();
    snapshot.app.engines.insert(Engine::Channels, EngineState::Running);
    snapshot.calls.pending = 1;
    let serving =
        SeatStatus { holder: Some(holder(true)), channel: Some("#builds".into()), ..seat(SeatState::Serving) };
    snapshot.seat = Some(serving);
    let shown = menu(&snapshot);
    insta::assert_snapshot!(shown);
}

#[test]
fn the_menu_of_a_stopped_machine() {
    let mut snapshot = embedded();
    for state in snapshot.app.engines.values_mut() {
        *state = EngineState::Stopped;
    }
    snapshot.relay = RelayStatus::stopped(NOW);
    snapshot.app.autostart = Some(false);
    let shown = menu(&snapshot);
    insta::assert_snapshot!(shown);
}

#[test]
fn the_menu_after_a_failed_start() {
    let mut snapshot = StatusSnapshot::stopped(NOW, AppStatus::default());
    let text = "another Holdfast (process 77) uses this data folder";
    snapshot.health = vec![WarningCode::StartFailed.warning(NOW, text)];
    let shown = menu(&snapshot);
    insta::assert_snapshot!(shown);
}

#[test]
fn the_menu_in_an_outage_while_another_process_holds_the_seat() {
    let mut snapshot = remote();
    snapshot.relay.state = LinkState::Outage;
    snapshot.relay.cause = Some("connection refused".into());
    snapshot.calls = CallCounts { pending: 2, detached: 2, ..CallCounts::default() };
    snapshot.app.engines.insert(Engine::Channels, EngineState::Running);
    snapshot.seat = Some(SeatStatus { holder: Some(holder(false)), ..seat(SeatState::Standby) });
    let shown = menu(&snapshot);
    insta::assert_snapshot!(shown);
}

#[test]
fn the_lines_of_engines_and_seat_in_every_state() {
    let mut page = String::new();
    let mut note = |name: String, snapshot: &StatusSnapshot, ids: &[MenuId]| {
        let view = tray_view(NOW, snapshot);
        let line = |id: &MenuId| match view.item(*id) {
            item if item.enabled => item.text.clone(),
            item => format!("[{}]", item.text),
        };
        let _ = writeln!(page, "{name:<28} {}", ids.iter().map(line).collect::<Vec<_>>().join(" | "));
    };
    for state in LINK_STATES {
        let mut snapshot = remote();
        snapshot.relay.state = state;
        note(format!("link {state:?}"), &snapshot, &[MenuId::EngineLink, MenuId::Drill]);
    }
    for state in [EngineState::Running, EngineState::Stopping, EngineState::Stopped, EngineState::Failed] {
        let mut snapshot = embedded();
        snapshot.app.engines = Engine::ALL.map(|engine| (engine, state)).into();
        snapshot.seat = Some(seat(SeatState::Off));
        let engines = [
            MenuId::EngineRelay,
            MenuId::EngineLink,
            MenuId::EngineWorker,
            MenuId::EngineChannels,
            MenuId::Start,
            MenuId::Stop,
        ];
        note(format!("engines {state:?}"), &snapshot, &engines);
    }
    let states = [
        SeatState::Off,
        SeatState::Claiming,
        SeatState::Connecting,
        SeatState::Serving,
        SeatState::Draining,
        SeatState::Standby,
        SeatState::Failed,
    ];
    for (who, holder) in [("nobody's", None), ("ours", Some(holder(true))), ("theirs", Some(holder(false)))] {
        for state in states {
            let mut snapshot = remote();
            snapshot.app.engines.insert(Engine::Channels, EngineState::Running);
            snapshot.seat = Some(SeatStatus { holder: holder.clone(), ..seat(state) });
            let lines = [MenuId::EngineChannels, MenuId::SeatTake, MenuId::SeatRelease];
            note(format!("seat {state:?}, {who}"), &snapshot, &lines);
        }
    }
    insta::assert_snapshot!(page);
}
