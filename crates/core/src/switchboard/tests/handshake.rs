use super::super::*;
use super::desk::*;
use crate::limits;
use crate::wire::*;

#[test]
fn the_frames_of_a_handshake_come_in_the_base_wires_order() {
    let mut desk = Desk::with(Identity::base());
    let socket = desk.ready(&base(1));
    assert_eq!(desk.kinds(socket), ["welcome", "hello_ack", "relay_probe", "resume_calls", "ready_ack"]);
    assert!(desk.named(socket).is_empty(), "resume_calls comes even when it names nothing");
    assert!(desk.numbers[&socket].iter().all(Option::is_none));
    let RelayFrame::Welcome(welcome) = &desk.frames[&socket][0] else { panic!() };
    assert_eq!((welcome.server.as_str(), welcome.version.as_str()), (BASE_SERVER, BASE_VERSION));
    assert!(welcome.link.is_none() && welcome.features.is_none());
}

#[test]
fn two_holdfasts_use_what_both_offer_and_number_every_frame() {
    let mut desk = Desk::new();
    let some = Features::NONE.with(Feature::Seq).with(Feature::Grace);
    let socket = desk.ready(&Speaker { features: Some(some), ..holdfast(1) });
    assert_eq!(desk.board.snapshot(desk.now).features, some);
    assert_eq!(desk.numbers[&socket], [Some(1), Some(2), Some(3), Some(4), Some(5)]);
    let RelayFrame::HelloAck(ack) = &desk.frames[&socket][1] else { panic!() };
    assert_eq!(ack.grace_ms, Some(120_000));
}

#[test]
fn a_daemon_without_link_versions_gets_the_base_wire_from_a_holdfast_relay() {
    let mut desk = Desk::new();
    let socket = desk.ready(&base(1));
    assert_eq!(desk.board.snapshot(desk.now).features, Features::NONE);
    assert_eq!(desk.numbers[&socket], [Some(1), None, None, None, None], "only the offer is numbered");
}

#[test]
fn link_ranges_that_do_not_meet_close_the_socket() {
    let mut desk = Desk::new();
    let socket = desk.connect();
    let text = r#"{"type":"hello","instance_id":"daemon_0123456789abcdef","link":{"min":9,"max":9},"features":[]}"#;
    desk.say_text(socket, text);
    assert_eq!(desk.closes[&socket], close::INCOMPATIBLE);
}

#[test]
fn a_hello_that_does_not_come_is_told_and_closed_after_ten_seconds() {
    let mut desk = Desk::new();
    let socket = desk.connect();
    desk.pass(S * 10 - MS);
    assert!(!desk.closes.contains_key(&socket));
    desk.pass(MS);
    assert_eq!(desk.closes[&socket], close::HELLO_TIMEOUT);
    let Some(RelayFrame::Error(error)) = desk.frames[&socket].last() else { panic!() };
    assert_eq!(error.error, "daemon_hello_timeout");
}

#[test]
fn a_probe_that_is_not_answered_is_told_and_closed_after_fifteen_seconds() {
    let mut desk = Desk::new();
    let socket = desk.connect();
    desk.hello(socket, &base(1));
    desk.pass(S * 15 - MS);
    assert!(!desk.closes.contains_key(&socket));
    desk.pass(MS);
    assert_eq!(desk.closes[&socket], close::READY_TIMEOUT);
    let Some(RelayFrame::Error(error)) = desk.frames[&socket].last() else { panic!() };
    assert_eq!(error.error, "daemon_ready_timeout");
}

#[test]
fn a_newer_candidate_ends_an_unproven_one_and_not_the_one_in_service() {
    let mut desk = Desk::new();
    let incumbent = desk.ready(&holdfast(1));
    let first = desk.connect();
    let second = desk.connect();
    assert_eq!(desk.closes[&first], close::NEWER_CANDIDATE);
    assert!(!desk.closes.contains_key(&incumbent) && !desk.closes.contains_key(&second));
}

#[test]
fn every_bad_frame_closes_with_the_base_wires_code_and_reason() {
    let hello = r#"{"type":"hello","instance_id":"daemon_0123456789abcdef"}"#;
    let heartbeat = r#"{"type":"heartbeat","ts":1}"#;
    let candidate: &[(&str, close::Close)] = &[
        ("{", close::INVALID_JSON),
        ("[]", close::NOT_AN_OBJECT),
        ("{}", close::NOT_AN_OBJECT),
        (heartbeat, close::HELLO_REQUIRED),
        (r#"{"type":"weird"}"#, close::HELLO_REQUIRED),
        (r#"{"type":"hello"}"#, close::INSTANCE_REQUIRED),
        (r#"{"type":"hello","instance_id":"daemon_short"}"#, close::INSTANCE_REQUIRED),
        (r#"{"type":"relay_probe_result","id":"probe_abcdefgh"}"#, close::HELLO_REQUIRED),
    ];
    for (text, close) in candidate {
        let mut desk = Desk::with(Identity::base());
        let socket = desk.connect();
        desk.say_text(socket, text);
        assert_eq!(desk.closes[&socket], *close, "{text}");
        assert!(!desk.kinds(socket).contains(&"error"), "any other error code ends a base daemon for good");
    }
    let probing: &[(&str, close::Close)] = &[
        (hello, close::DUPLICATE_HELLO),
        (r#"{"type":"relay_probe_result","id":"probe_abcdefgh"}"#, close::BAD_PROBE),
        (r#"{"type":"relay_probe_result"}"#, close::BAD_PROBE),
        (r#"{"type":"weird"}"#, close::BAD_PROBE),
        (r#"{"type":"tool_result","id":"call_abcdefgh","ok":true,"result":1}"#, close::BAD_PROBE),
    ];
    for (text, close) in probing {
        let mut desk = Desk::with(Identity::base());
        let socket = desk.connect();
        desk.hello(socket, &base(1));
        desk.say_text(socket, heartbeat);
        assert_eq!(desk.kinds(socket).last(), Some(&"pong"), "a heartbeat while probing is fine");
        desk.say_text(socket, text);
        assert_eq!(desk.closes[&socket], *close, "{text}");
    }
    let ready: &[(&str, close::Close)] = &[
        (hello, close::DUPLICATE_HELLO),
        (r#"{"type":"weird"}"#, close::UNKNOWN_TYPE),
        (r#"{"type":"tool_result"}"#, close::UNKNOWN_TYPE),
        (r#"{"type":"tool_progress","id":"call_abcdefgh","progress":1}"#, close::UNKNOWN_TYPE),
        (r#"{"type":"suspending"}"#, close::UNKNOWN_TYPE),
        (r#"{"type":"resume_report","running":[],"done":[],"lost":[],"unknown":[]}"#, close::UNKNOWN_TYPE),
        (r#"{"type":"relay_probe_result","id":"probe_abcdefgh"}"#, close::UNKNOWN_TYPE),
        ("7", close::NOT_AN_OBJECT),
    ];
    for (text, close) in ready {
        let mut desk = Desk::with(Identity::base());
        let socket = desk.ready(&base(1));
        desk.say_text(socket, text);
        assert_eq!(desk.closes[&socket], *close, "{text}");
    }
    let mut desk = Desk::new();
    for (error, close) in [(WireError::TooLarge, close::TOO_LARGE), (WireError::InvalidUtf8, close::INVALID_UTF8)] {
        let socket = desk.connect();
        desk.tell(Input::Arrived { socket, arrival: error.into() });
        assert_eq!(desk.closes[&socket], close);
    }
}

#[test]
fn a_gap_in_the_numbers_closes_the_link_and_detaches_its_calls() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    desk.open();
    desk.say_text(socket, r#"{"type":"heartbeat","n":5}"#);
    assert_eq!(desk.closes[&socket], close::FRAME_GAP);
    assert_eq!(desk.pending().detached, 1);
    let socket = desk.ready(&holdfast(1));
    desk.say_text(socket, r#"{"type":"heartbeat"}"#);
    assert_eq!(desk.closes[&socket], close::FRAME_GAP, "a frame without a number hides a gap");
}

#[test]
fn a_heartbeat_may_repeat_the_last_number() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    desk.say_text(socket, r#"{"type":"heartbeat","n":3}"#);
    desk.say_text(socket, r#"{"type":"heartbeat","n":4}"#);
    desk.say_text(socket, r#"{"type":"heartbeat","n":4}"#);
    assert!(desk.closes.is_empty());
}

#[test]
fn a_heartbeat_is_answered_with_its_own_time() {
    let mut desk = Desk::new();
    let socket = desk.ready(&base(1));
    desk.say_text(socket, r#"{"type":"heartbeat","ts":12345}"#);
    desk.say_text(socket, r#"{"type":"ping","ts":99}"#);
    let pongs = desk.frames[&socket].iter().filter_map(|f| match f {
        RelayFrame::Pong(pong) => pong.ts.clone(),
        _ => None,
    });
    let pongs: Vec<_> = pongs.map(|ts| ts.to_string()).collect();
    assert_eq!(pongs, ["12345", "99"]);
}

#[test]
fn a_silent_base_daemon_is_dead_after_ninety_seconds_and_gets_no_error() {
    let mut desk = Desk::with(Identity::base());
    let socket = desk.ready(&base(1));
    desk.pass(S * 60);
    desk.heartbeat(socket);
    desk.pass(limits::BASE_RELAY_SILENCE - MS);
    assert!(desk.closes.is_empty());
    desk.pass(MS);
    assert_eq!(desk.closes[&socket], close::LIVENESS);
    assert!(!desk.kinds(socket).contains(&"error"));
    assert!(desk.pings.is_empty(), "a base daemon is not pinged");
}

#[test]
fn with_live_ten_silent_seconds_are_death_and_bytes_alone_are_life() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let from = desk.now.boot;
    desk.pass_alive(socket, S * 30);
    assert!(desk.closes.is_empty(), "bytes came, frames or not");
    assert_eq!(desk.pings.len(), 6, "one ping every 5 s");
    desk.pass(S * 10 - MS);
    assert!(desk.closes.is_empty());
    desk.pass(MS);
    assert_eq!(desk.closes[&socket], close::LIVENESS);
    assert_eq!(desk.now.boot - from, S * 40);
}

#[test]
fn another_instance_is_refused_while_the_incumbent_answers() {
    let mut desk = Desk::new();
    let incumbent = desk.ready(&holdfast(1));
    let waiter = desk.open();
    let newcomer = desk.connect();
    desk.hello(newcomer, &holdfast(2));
    assert_eq!(desk.kinds(newcomer), ["welcome"], "nothing is acknowledged before the incumbent had its say");
    let (asked, nonce) = *desk.pings.last().expect("a ping");
    assert_eq!(asked, incumbent);
    desk.tell(Input::Ponged { socket: incumbent, nonce: nonce ^ 1 });
    assert!(!desk.closes.contains_key(&newcomer), "an older pong proves nothing");
    desk.tell(Input::Ponged { socket: incumbent, nonce });
    assert_eq!(desk.closes[&newcomer], close::IN_USE);
    assert!(desk.notes.contains(&Note::InUse));
    assert_eq!(desk.board.snapshot(desk.now).in_use_at, Some(desk.now.boot));
    let call = desk.id(waiter);
    desk.finish(incumbent, &call, "1");
    assert_eq!(desk.got(waiter), Some("1"), "nothing of the incumbent changed");
    for (after, told) in [(S * 5, true), (limits::IN_USE_TOLD - S * 5, false)] {
        desk.pass_alive(incumbent, after);
        desk.heartbeat(incumbent);
        let Some(RelayFrame::Pong(pong)) = desk.frames[&incumbent].last() else { panic!("no pong") };
        assert_eq!(pong.in_use, told, "the incumbent is told while the other keeps trying");
    }
}

#[test]
fn a_refused_instance_stays_refused_while_the_others_grace_runs() {
    let mut desk = Desk::new();
    let incumbent = desk.ready(&holdfast(1));
    let clone = desk.connect();
    desk.hello(clone, &holdfast(2));
    let nonce = desk.pings.last().expect("a ping").1;
    desk.tell(Input::Ponged { socket: incumbent, nonce });
    desk.lose(incumbent);
    let again = desk.connect();
    desk.hello(again, &holdfast(2));
    assert_eq!(desk.closes[&again], close::IN_USE);
    desk.pass(limits::GRACE);
    desk.ready(&holdfast(2));
}

#[test]
fn an_incumbent_that_does_not_answer_makes_way_for_a_restart() {
    let mut desk = Desk::new();
    let incumbent = desk.ready(&holdfast(1));
    let waiter = desk.open();
    let newcomer = desk.connect();
    desk.hello(newcomer, &holdfast(2));
    desk.pass(limits::INCUMBENT_PING - MS);
    assert_eq!(desk.kinds(newcomer), ["welcome"]);
    desk.pass(MS);
    desk.answer_probe(newcomer);
    assert!(desk.named(newcomer).is_empty(), "another instance's call is never named to it");
    desk.say(newcomer, DaemonFrame::ResumeReport(ResumeReport::default()));
    assert!(desk.is_ready(newcomer));
    assert_eq!(desk.closes[&incumbent], close::REPLACED);
    assert_eq!(desk.error(waiter), Some((crate::code::Code::OutcomeUnknown, false)));
    let details = desk.ends[&waiter].as_ref().unwrap_err().details.as_ref().expect("a reason").get();
    assert_eq!(details, r#"{"reason":"daemon_restarted"}"#);
}

#[test]
fn an_incumbent_whose_socket_breaks_meanwhile_is_not_waited_for() {
    let mut desk = Desk::new();
    let incumbent = desk.ready(&holdfast(1));
    let newcomer = desk.connect();
    desk.hello(newcomer, &holdfast(2));
    desk.lose(incumbent);
    assert_eq!(desk.kinds(newcomer), ["welcome", "hello_ack", "relay_probe"]);
}

#[test]
fn a_second_hello_while_the_incumbent_is_asked_closes_the_newcomer() {
    let mut desk = Desk::new();
    desk.ready(&holdfast(1));
    let newcomer = desk.connect();
    desk.hello(newcomer, &holdfast(2));
    desk.heartbeat(newcomer);
    assert!(!desk.closes.contains_key(&newcomer));
    desk.hello(newcomer, &holdfast(2));
    assert_eq!(desk.closes[&newcomer], close::DUPLICATE_HELLO);
}

#[test]
fn late_frames_and_closes_of_an_old_socket_touch_nothing() {
    let mut desk = Desk::new();
    let old = desk.ready(&holdfast(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    let new = desk.ready(&holdfast(1));
    assert_eq!(desk.closes[&old], close::MOVED);
    desk.finish(old, &call, "\"forged\"");
    desk.lose(old);
    desk.lose(old);
    assert_eq!(desk.pending().sent, 1);
    assert!(desk.board.is_ready());
    desk.finish(new, &call, "\"real\"");
    assert_eq!(desk.got(waiter), Some("\"real\""));
}

#[test]
fn the_catalogue_of_a_hello_is_told_when_the_device_is_ready_and_only_when_it_changed() {
    let mut desk = Desk::new();
    let socket = desk.connect();
    desk.hello(socket, &holdfast(1));
    assert!(desk.catalogues.is_empty(), "an unproven device changes nothing");
    desk.answer_probe(socket);
    desk.say(socket, DaemonFrame::ResumeReport(ResumeReport::default()));
    desk.ready(&holdfast(1));
    assert_eq!(desk.catalogues.len(), 1);
    assert_eq!(desk.catalogues[0].tools.iter().map(|t| &**t).collect::<Vec<_>>(), ["list_dir", "run_process"]);
    assert_eq!(desk.catalogues[0].policy.profile, "agent");
}
