use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::command::Command;
use crate::limits;

const SEAT_STATES: [SeatState; 7] = [
    SeatState::Off,
    SeatState::Claiming,
    SeatState::Connecting,
    SeatState::Serving,
    SeatState::Draining,
    SeatState::Standby,
    SeatState::Failed,
];

fn link() -> impl Strategy<Value = LinkState> {
    use LinkState::*;
    select(vec![Stopped, Connecting, Healthy, Blip, Outage, Recovering, SignInNeeded, Incompatible])
}

/// Any state that types allow, with texts from anywhere.
pub(in crate::desktop) fn any_snapshot() -> impl Strategy<Value = StatusSnapshot> {
    use EngineState::*;
    let text = || "\\PC{0,300}|[ -~\\x00-\\x1f\u{202e}\u{2066}]{0,30}";
    let engines = btree_map(select(Engine::ALL.to_vec()), select(vec![Running, Stopping, Stopped, Failed]), 0..=3);
    let app = (engines, option::of(text()), option::of(any::<bool>()));
    let relay = (link(), option::of(text()), option::of(text()));
    let calls = (0..70usize, 0..70usize, 0..70usize);
    let seat_of = (select(SEAT_STATES.to_vec()), option::of(text()), option::of(text()), option::of(any::<bool>()));
    let seats = option::of((seat_of, any::<bool>(), 0..3u64));
    let consents = vec((text(), text(), 0..3u64), 0..4);
    let questions = vec((0..5u8, option::of(text()), text(), 0..3u64), 0..4);
    let health = vec((select(WarningCode::ALL.to_vec()), text(), 0..3u64), 0..5);
    (app, relay, calls, seats, consents, questions, health).prop_map(
        |(app, relay, calls, seat_at, consents, questions, health)| {
            let mut s = remote();
            (s.app.engines, s.app.mcp, s.app.autostart) = app;
            (s.relay.state, s.relay.url, s.relay.cause) = relay;
            (s.calls.pending, s.calls.detached, s.calls.queued_results) = calls;
            s.seat = seat_at.map(|((state, reason, channel, this), frozen, generation)| SeatStatus {
                reason,
                channel,
                holder: this.map(holder),
                frozen,
                generation,
                ..seat(state)
            });
            s.consents = consents
                .into_iter()
                .map(|(client, redirect_host, left)| Consent {
                    redirect_host,
                    expires_at: NOW - 1 + left,
                    ..consent(&client)
                })
                .collect();
            s.questions = questions
                .into_iter()
                .map(|(id, client, tool, left)| Question {
                    tool: tool.into(),
                    expires_at: NOW - 1 + left,
                    ..question(&id.to_string(), client.as_deref())
                })
                .collect();
            s.health = health.into_iter().map(|(code, text, since)| code.warning(NOW + since, text)).collect();
            s
        },
    )
}

proptest! {
    #[test]
    fn any_state_is_drawn_within_the_bounds(snapshot in any_snapshot()) {
        let view = tray_view(NOW, &snapshot);
        for (item, id) in view.items.iter().zip(MenuId::ALL) {
            prop_assert_eq!(item.id, id);
            prop_assert!(!item.text.is_empty(), "{:?}", id);
            prop_assert!(item.text.chars().count() <= limits::TRAY_TEXT_MAX);
            let steers = item.text.contains(|c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
            prop_assert!(!steers, "{:?}", item.text);
            prop_assert!(!item.text.contains("tray-"), "{}", item.text);
            prop_assert!(!item.checked || id.is_check());
        }
        prop_assert_eq!(&view.tooltip, &view.item(MenuId::Status).text);
    }

    #[test]
    fn exactly_one_of_start_and_stop_can_be_chosen(snapshot in any_snapshot()) {
        let view = tray_view(NOW, &snapshot);
        prop_assert!(view.item(MenuId::Start).enabled != view.item(MenuId::Stop).enabled);
    }

    #[test]
    fn the_line_of_an_engine_offers_what_its_mark_does_not_show(snapshot in any_snapshot()) {
        for id in [MenuId::EngineRelay, MenuId::EngineLink, MenuId::EngineWorker, MenuId::EngineChannels] {
            let item = tray_view(NOW, &snapshot).item(id).clone();
            let engine = id.engine();
            let wanted = if item.checked { Command::Stop { engine } } else { Command::Start { engine } };
            prop_assert_eq!(id.command(&snapshot), Some(wanted));
            prop_assert_eq!(item.enabled, engine.is_some_and(|e| snapshot.app.engines.contains_key(&e)));
        }
    }
}

#[test]
fn a_line_is_found_by_its_name_and_only_the_shells_own_lines_ask_nothing_of_the_engines() {
    let snapshot = remote();
    let mut own = Vec::new();
    for id in MenuId::ALL {
        assert_eq!(MenuId::parse(id.as_str()), Some(id));
        if id.command(&snapshot).is_none() {
            own.push(id.as_str());
        }
    }
    assert_eq!(own, ["status", "open", "copy_mcp", "engines", "drill"]);
    assert_eq!(MenuId::parse("format_disk"), None);
    assert_eq!(MenuId::Autostart.command(&snapshot), Some(Command::Autostart { on: false }));
}
