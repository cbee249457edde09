//! Dial, handshake, liveness, ends, sleep.

use super::*;
use crate::limits;

#[test]
fn a_base_daemon_says_exactly_the_four_fields_of_hello_at_once() {
    let mut rig = Rig::new(Compat::Base);
    rig.input(Input::Start);
    let socket = rig.dialled();
    let text = rig.daemon.poll_transmit(rig.now, socket).expect("hello before welcome");
    assert_eq!(
        text,
        concat!(
            r#"{"type":"hello","instance_id":"daemon_CQkJCQkJCQkJCQkJCQkJCQkJ","tools":["echo"],"#,
            r#""policy":{"profile":"agent"},"protocol_versions":["2025-11-25"]}"#
        )
    );
}

#[test]
fn a_holdfast_daemon_answers_welcome_with_the_common_features_and_numbers_from_one() {
    let mut rig = Rig::new(Compat::Holdfast);
    rig.input(Input::Start);
    let socket = rig.dialled();
    assert!(rig.written(socket).is_empty());
    let common = Features::NONE.with(wire::Feature::Seq).with(wire::Feature::Ack);
    let welcome = wire::Welcome {
        server: "other".into(),
        version: "9".into(),
        link: Some(LinkRange { min: 1, max: 7 }),
        features: Some(common),
    };
    rig.say(socket, &RelayFrame::Welcome(welcome));
    let hello = rig.written(socket).remove(0);
    assert_eq!(hello.n, Some(1));
    let DaemonFrame::Hello(hello) = hello.frame else { panic!() };
    assert_eq!((hello.features, hello.max_calls, hello.link), (Some(common), Some(64), Some(LinkRange::OURS)));
    assert_eq!(hello.tools, ["echo", "start_operation"], "which a base relay is not told");
}

#[test]
fn a_peer_without_a_common_link_version_is_incompatible_until_it_has_one() {
    for (compat, server, version, link) in [
        (Compat::Holdfast, "holdfast", "2", Some(LinkRange { min: 2, max: 3 })),
        (Compat::Holdfast, wire::BASE_SERVER, wire::BASE_VERSION, None),
        (Compat::Base, wire::BASE_SERVER, "1.2.11", None),
        (Compat::Base, "holdfast", wire::BASE_VERSION, Some(LinkRange::OURS)),
    ] {
        let mut rig = Rig::new(compat);
        rig.input(Input::Start);
        let socket = rig.dialled();
        let welcome = wire::Welcome { server: server.into(), version: version.into(), link, features: None };
        rig.say(socket, &RelayFrame::Welcome(welcome));
        assert_eq!(rig.state(), LinkState::Incompatible, "{server} {version}");
        assert_eq!(rig.daemon.poll_timeout(rig.now), Some(S * 10), "told as an outage after 10 s");
        rig.pass(limits::IN_USE_RETRY);
        let socket = rig.dialled();
        rig.handshake(socket, &[]);
    }
}

#[test]
fn a_bad_credential_is_shown_tried_again_on_a_network_change_and_recovers() {
    let mut rig = Rig::new(Compat::Holdfast);
    rig.input(Input::Start);
    let socket = rig.dial().expect("a dial");
    rig.input(Input::Refused(socket, DialError::SignIn(SignIn::Revoked)));
    assert_eq!(rig.state(), LinkState::SignInNeeded);
    rig.pass(S * 299);
    assert_eq!(rig.dial(), None);
    rig.input(Input::NetworkChanged);
    let socket = rig.dial().expect("a dial");
    rig.input(Input::Refused(socket, DialError::Transport("no route".into())));
    assert_eq!(rig.state(), LinkState::SignInNeeded);
    rig.pass(limits::IN_USE_RETRY);
    let socket = rig.dialled();
    rig.handshake(socket, &[]);
}

#[test]
fn each_deadline_of_the_handshake_ends_the_socket() {
    let mut rig = Rig::new(Compat::Holdfast);
    rig.input(Input::Start);
    let socket = rig.dial().expect("a dial");
    rig.pass(limits::DIAL_TIMEOUT);
    assert!(rig.out.iter().any(|o| matches!(o, Output::Drop(s) if *s == socket)));
    rig.pass(S);
    let socket = rig.dialled();
    rig.pass(limits::HANDSHAKE_TIMEOUT);
    assert_eq!(rig.closed(), Some((socket, 1000, "stale daemon connection")));
    rig.pass(S * 2);
    let socket = rig.dialled();
    rig.welcome(socket);
    rig.hello_ack(socket);
    rig.say(socket, &RelayFrame::RelayProbe(wire::RelayProbe { id: ProbeId::mint([3; 32]) }));
    // The executor is stuck: the probe is never answered.
    rig.live(socket, limits::READINESS_TIMEOUT);
    assert_eq!(rig.closed(), Some((socket, 1000, "stale daemon connection")));
    assert_ne!(rig.state(), LinkState::Healthy);
}

#[test]
fn ten_seconds_without_a_byte_are_the_end_whatever_is_sent() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.live(socket, S * 60);
    assert_eq!(rig.closed(), None);
    for _ in 0..9 {
        rig.pass(S);
        rig.written(socket);
    }
    assert_eq!(rig.closed(), None);
    rig.pass(S);
    assert_eq!(rig.closed(), Some((socket, 1000, "stale daemon connection")));
    assert!(rig.dial().is_some(), "and a new dial at once");
    assert_eq!(rig.state(), LinkState::Blip);
}

#[test]
fn a_live_daemon_writes_every_five_seconds_by_its_own_timer() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.written(socket);
    let mut beats = 0;
    for _ in 0..30 {
        rig.live(socket, S);
        beats += rig.kinds(socket).iter().filter(|k| **k == "heartbeat").count();
    }
    assert_eq!(beats, 6);
}

#[test]
fn on_the_base_wire_it_beats_every_25_s_and_gives_up_after_75_s_of_silence() {
    let (mut rig, socket) = Rig::ready(Compat::Base);
    rig.pass(S * 74);
    assert_eq!(rig.kinds(socket), ["heartbeat", "heartbeat"]);
    assert_eq!(rig.closed(), None);
    rig.pass(S * 26);
    assert_eq!(rig.closed(), Some((socket, 1000, "stale daemon connection")));
}

#[test]
fn bytes_that_make_no_frame_keep_a_link_alive_only_at_4_kib_per_second() {
    for (per_second, alive) in [(4 * 1024, true), (4 * 1024 - 1, false)] {
        let (mut rig, socket) = Rig::ready(Compat::Holdfast);
        for _ in 0..31 {
            rig.pass(S);
            rig.input(Input::Traffic(socket, Traffic { read: per_second, written: 0, drained: true }));
        }
        assert_eq!(rig.closed().is_none(), alive);
    }
}

#[test]
fn a_write_that_does_not_move_ends_the_link() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.call(socket, 1);
    rig.finish(1, "1");
    assert_eq!(rig.kinds(socket), ["tool_result"]);
    for _ in 0..31 {
        rig.pass(S);
        rig.input(Input::Traffic(socket, Traffic { read: 9, written: 9, drained: false }));
        rig.input(Input::Control(socket));
    }
    assert_eq!(rig.closed(), Some((socket, 1000, "stale daemon connection")));
}

#[test]
fn a_missing_frame_closes_with_frame_gap_and_dials_at_once() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.pass(S * 2);
    *rig.n.get_mut(&socket).expect("a socket") += 1;
    rig.call(socket, 1);
    assert_eq!(rig.closed(), Some((socket, 1012, "frame gap")));
    assert_eq!(rig.dial(), Some(SocketId(2)));
    assert_eq!(rig.run(), None);
}

#[test]
fn three_protocol_errors_in_ten_minutes_are_told_once() {
    let (mut rig, mut socket) = Rig::ready(Compat::Base);
    let mut told = 0;
    for bad in ["{", "[]", r#"{"type":"tool_result_ack","id":"x"}"#, r#"{"type":"weird"}"#] {
        rig.input(Input::Frame(socket, bad));
        assert!(rig.out.iter().any(|o| matches!(o, Output::Close(s, ..) if *s == socket)), "{bad}");
        told += rig.told().iter().filter(|t| ***t == Told::ProtocolErrors).count();
        rig.out.clear();
        while !rig.out.iter().any(|o| matches!(o, Output::Dial(_))) {
            rig.pass(Duration::from_millis(100));
        }
        socket = rig.dialled();
        rig.handshake(socket, &[]);
    }
    assert_eq!(told, 1);
    assert!(rig.daemon.snapshot(rig.now).protocol_errors.is_some());
}

/// What a base daemon takes as final is none to us: every end is followed by another try, and only two of them wait.
#[test]
fn every_close_of_the_base_relay_is_followed_by_another_try() {
    for (code, reason, longest) in [
        (1000, "bye", Duration::ZERO),
        (1001, "", limits::RESTART_JITTER),
        (1002, "unknown daemon message type", limits::BACKOFF_MAX),
        (1006, "", Duration::ZERO),
        (1007, "invalid JSON", limits::BACKOFF_MAX),
        (1008, "daemon hello timeout", limits::BACKOFF_MAX),
        (1008, "daemon ready timeout", limits::BACKOFF_MAX),
        (1008, "daemon liveness timeout", limits::BACKOFF_MAX),
        (1008, "stale daemon candidate", limits::BACKOFF_MAX),
        (1008, "device_revoked", limits::BACKOFF_MAX),
        (1009, "message too large", limits::BACKOFF_MAX),
        (1011, "daemon readiness probe failed", limits::BACKOFF_MAX),
        (1012, "relay shutting down", limits::RESTART_JITTER),
        (1012, "replaced by newer daemon candidate", limits::RESTART_JITTER),
        (1012, "replaced by verified daemon", limits::IN_USE_RETRY),
        (1012, "frame gap", Duration::ZERO),
        (1013, "device_in_use", limits::IN_USE_RETRY),
        (1013, "try later", limits::RESTART_JITTER),
        (3999, "own", limits::BACKOFF_MAX),
    ] {
        let (mut rig, socket) = Rig::ready(Compat::Base);
        rig.pass(S * 2);
        rig.input(Input::Closed(socket, Some((code, reason.into()))));
        let in_use = longest == limits::IN_USE_RETRY;
        assert_eq!(rig.told().contains(&&Told::DeviceInUse), in_use, "{code} {reason}");
        if in_use {
            rig.pass(limits::IN_USE_RETRY - S);
            assert_eq!(rig.dial(), None, "{code} {reason}");
        }
        rig.pass(longest);
        assert!(rig.dial().is_some(), "{code} {reason}");
    }
}

#[test]
fn a_relay_that_finds_no_common_version_makes_the_link_incompatible_too() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.input(Input::Closed(socket, Some((1002, "no common link version".into()))));
    assert_eq!(rig.state(), LinkState::Incompatible);
}

#[test]
fn an_error_frame_ends_the_socket_because_its_close_may_never_come() {
    let mut rig = Rig::new(Compat::Base);
    rig.input(Input::Start);
    let socket = rig.dialled();
    let error = wire::ErrorFrame { error: "daemon_hello_timeout".into() };
    rig.say(socket, &RelayFrame::Error(error));
    assert!(rig.out.iter().any(|o| matches!(o, Output::Drop(s) if *s == socket)));
    rig.pass(S);
    assert!(rig.dial().is_some());
}

#[test]
fn a_wake_dials_at_once_beside_the_old_connection() {
    let (mut rig, old) = Rig::ready(Compat::Holdfast);
    rig.call(old, 1);
    rig.now = rig.now.slept(S * 100);
    rig.settle();
    let new = rig.dialled();
    assert_eq!(rig.state(), LinkState::Healthy);
    rig.probe(new);
    // Until the list comes the old connection counts.
    rig.call(old, 2);
    assert_eq!(rig.run(), Some(call_id(2)));
    rig.resume(new, &[call_id(1), call_id(2)]);
    rig.call(old, 3);
    assert_eq!(rig.run(), None, "read no more");
    rig.ready_ack(new);
    assert_eq!(rig.closed(), Some((old, 1000, "stale daemon connection")));
    rig.call(new, 3);
    assert_eq!(rig.run(), Some(call_id(3)));
}

#[test]
fn a_base_relay_hears_the_end_of_the_old_connection_before_a_new_one_is_dialled() {
    let (mut rig, old) = Rig::ready(Compat::Base);
    rig.now = rig.now.slept(S * 20);
    rig.settle();
    assert_eq!(rig.closed(), Some((old, 1000, "stale daemon connection")));
    assert!(rig.dial().is_some());
}

#[test]
fn a_network_change_proves_the_link_within_a_second_or_dials() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.input(Input::NetworkChanged);
    assert_eq!(rig.kinds(socket), ["heartbeat"]);
    rig.pass(Duration::from_millis(500));
    rig.input(Input::Traffic(socket, Traffic { read: 9, written: 0, drained: true }));
    rig.pass(S);
    assert_eq!(rig.dial(), None);
    rig.input(Input::NetworkChanged);
    rig.pass(S);
    assert!(rig.dial().is_some());
}

#[test]
fn sleep_is_announced_ahead_of_everything_and_nothing_follows_until_it_is_over() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    for n in 1..=3 {
        rig.call(socket, n);
    }
    rig.finish(1, "1");
    rig.input(Input::SleepAnnounced);
    rig.finish(2, "2");
    assert_eq!(rig.kinds(socket), ["suspending"]);
    assert!(!rig.out.iter().any(|o| matches!(o, Output::AllowSleep)));
    rig.say(socket, &RelayFrame::SuspendingAck(wire::SuspendingAck { hold_ms: 1 }));
    assert!(rig.out.iter().any(|o| matches!(o, Output::AllowSleep)));
    rig.pass(S * 3);
    assert!(rig.kinds(socket).is_empty());
    rig.input(Input::Wake);
    assert_eq!(rig.kinds(socket), ["heartbeat", "tool_result", "tool_result"]);
}

#[test]
fn sleep_is_not_delayed_longer_than_4_s_nor_without_a_link() {
    let (mut rig, _) = Rig::ready(Compat::Holdfast);
    rig.input(Input::SleepAnnounced);
    rig.pass(limits::SUSPEND_ACK_WAIT);
    assert!(rig.out.iter().any(|o| matches!(o, Output::AllowSleep)));
    let mut rig = Rig::new(Compat::Holdfast);
    rig.input(Input::SleepAnnounced);
    assert!(rig.out.iter().any(|o| matches!(o, Output::AllowSleep)));
}

#[test]
fn a_drill_cuts_the_link_and_dials_when_it_is_over() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.call(socket, 1);
    rig.input(Input::Cut(S * 5));
    assert!(rig.out.iter().any(|o| matches!(o, Output::Drop(s) if *s == socket)));
    assert_eq!(rig.state(), LinkState::Blip);
    rig.pass(S * 5 - Duration::from_millis(1));
    assert_eq!(rig.dial(), None);
    rig.pass(Duration::from_millis(1));
    assert!(rig.dial().is_some());
}
