//! After a cut.

use super::*;
use crate::code::Code;
use crate::limits;
use crate::status::Step;

impl Rig {
    /// Steps told since, as id and step.
    fn steps(&self) -> Vec<(CallId, Step)> {
        let step = |o: &Output| if let Output::Step(s) = o { Some((s.id.clone(), s.step)) } else { None };
        self.out.iter().filter_map(step).collect()
    }

    /// The dial that is due, opened.
    pub(super) fn daemon_dials(&mut self) -> SocketId {
        let socket = self.out.iter().rev().find_map(|o| if let Output::Dial(s) = o { Some(*s) } else { None });
        let socket = socket.expect("a dial");
        self.out.clear();
        self.input(Input::Opened(socket));
        socket
    }

    /// Cuts the link without a word and opens the next one.
    fn cut(&mut self, socket: SocketId) -> SocketId {
        self.pass(S * 2);
        self.input(Input::Closed(socket, None));
        self.pass(S);
        self.daemon_dials()
    }
}

#[test]
fn a_call_across_a_cut_is_reported_and_its_result_follows_readiness() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    for n in 1..=3 {
        rig.call(socket, n);
    }
    rig.say(socket, &RelayFrame::CancelCall(wire::CancelCall { id: call_id(3) }));
    let new = rig.cut(socket);
    rig.finish(1, "1");
    rig.probe(new);
    let ids: Vec<CallId> = (1..=4).map(call_id).collect();
    let report = rig.resume(new, &ids).expect("a report");
    assert_eq!(report.done, [call_id(1)]);
    assert_eq!(report.running, [call_id(2)]);
    assert_eq!(report.lost, [call_id(3)]);
    assert_eq!(report.unknown, [call_id(4)]);
    rig.finish(2, "2");
    assert!(rig.written(new).is_empty(), "nothing before ready_ack");
    rig.ready_ack(new);
    assert_eq!(rig.results(new), [(call_id(1), "1".into()), (call_id(2), "2".into())]);
    rig.call(new, 4);
    assert_eq!(rig.run(), Some(call_id(4)), "never seen: it may run now");
}

#[test]
fn what_the_relay_no_longer_names_is_stopped_or_dropped() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.call(socket, 1);
    rig.call(socket, 2);
    rig.finish(2, "2");
    let new = rig.cut(socket);
    rig.out.clear();
    rig.handshake(new, &[]);
    assert_eq!(rig.cancelled(), [(call_id(1), CancelReason::CallerNoLongerWaiting)]);
    rig.finish(1, "1");
    assert!(rig.results(new).is_empty());
    assert_eq!(rig.daemon.snapshot(rig.now).calls.pending, 0);
}

#[test]
fn results_are_replayed_in_the_order_the_calls_ended() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    for n in 1..=3 {
        rig.call(socket, n);
    }
    for n in [3, 1, 2] {
        rig.finish(n, "0");
    }
    rig.written(socket);
    let new = rig.cut(socket);
    rig.handshake(new, &[call_id(1), call_id(2), call_id(3)]);
    let order: Vec<CallId> = rig.results(new).into_iter().map(|(id, _)| id).collect();
    assert_eq!(order, [call_id(3), call_id(1), call_id(2)]);
}

#[test]
fn the_grace_is_the_relays_and_15_s_in_awake_time_and_its_end_stops_what_runs() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.call_of(socket, 1, "echo", 600_000);
    rig.call_of(socket, 2, "echo", 600_000);
    rig.finish(2, "2");
    rig.input(Input::Closed(socket, None));
    rig.pass(S * 134);
    assert_eq!(rig.cancelled(), []);
    rig.pass(S);
    assert!(rig.told().contains(&&Told::GraceExpired { stopped: 1, held: 1 }));
    assert_eq!(rig.cancelled(), [(call_id(1), CancelReason::GraceExpired)]);
    let snapshot = rig.daemon.snapshot(rig.now);
    assert_eq!((snapshot.lost, snapshot.calls.queued_results), (1, 1));
}

#[test]
fn while_results_wait_it_dials_every_second_also_after_the_grace() {
    for (compat, waits) in [(Compat::Holdfast, true), (Compat::Holdfast, false), (Compat::Base, true)] {
        let (mut rig, socket) = Rig::ready(compat);
        rig.call_of(socket, 1, "echo", 600_000);
        if waits {
            rig.call(socket, 2);
            rig.finish(2, "2");
        }
        rig.input(Input::Closed(socket, None));
        let mut tries = 0;
        for second in 0..600 {
            rig.pass(S);
            let refused = rig.dial();
            tries += usize::from(second >= 300 && refused.is_some());
            if let Some(socket) = refused {
                rig.input(Input::Refused(socket, DialError::Transport("no route".into())));
            }
        }
        let urgent = waits && compat == Compat::Holdfast;
        assert_eq!(tries == 300, urgent, "{compat:?} {waits} {tries}");
    }
}

#[test]
fn a_wake_restarts_the_grace_at_60_s_and_kills_nothing_before() {
    let (mut rig, socket) = Rig::ready(Compat::Base);
    rig.call_of(socket, 1, "echo", 600_000);
    rig.input(Input::Closed(socket, None));
    rig.pass(S * 29);
    rig.now = rig.now.slept(S * 3600);
    rig.settle();
    assert_eq!(rig.cancelled(), []);
    rig.pass(S * 59);
    assert_eq!(rig.cancelled(), []);
    rig.pass(S);
    assert_eq!(rig.cancelled(), [(call_id(1), CancelReason::GraceExpired)]);
}

#[test]
fn while_calls_are_detached_it_dials_four_times_a_second() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.call(socket, 1);
    rig.pass(S * 2);
    rig.out.clear();
    rig.input(Input::Closed(socket, None));
    let mut dials = 0;
    let end = rig.now.boot + S * 3;
    while rig.now.boot < end {
        while let Some(socket) = rig.dial() {
            dials += 1;
            rig.input(Input::Refused(socket, DialError::Transport("refused".into())));
        }
        rig.pass(Duration::from_millis(10));
    }
    assert_eq!(dials, 12);
}

#[test]
fn a_candidate_that_dies_while_it_resumes_takes_the_older_connection_with_it() {
    let (mut rig, old) = Rig::ready(Compat::Holdfast);
    rig.call(old, 1);
    rig.now = rig.now.slept(S * 20);
    rig.settle();
    let new = rig.daemon_dials();
    rig.probe(new);
    rig.resume(new, &[call_id(1)]);
    rig.out.clear();
    rig.input(Input::Closed(new, None));
    assert_eq!(rig.closed(), Some((old, 1000, "stale daemon connection")));
    assert_eq!(rig.state(), LinkState::Blip);
    rig.pass(S);
    let third = rig.daemon_dials();
    rig.handshake(third, &[call_id(1)]);
    rig.finish(1, "1");
    assert_eq!(rig.results(third), [(call_id(1), "1".into())]);
}

#[test]
fn a_candidate_that_dies_earlier_changes_nothing() {
    let (mut rig, old) = Rig::ready(Compat::Holdfast);
    rig.now = rig.now.slept(S * 20);
    rig.settle();
    let new = rig.daemon_dials();
    rig.probe(new);
    rig.input(Input::Closed(new, None));
    assert_eq!(rig.state(), LinkState::Healthy);
    rig.call(old, 1);
    assert_eq!(rig.run(), Some(call_id(1)));
}

#[test]
fn a_link_is_not_called_healthy_while_only_an_unproven_connection_is_open() {
    let (mut rig, old) = Rig::ready(Compat::Holdfast);
    rig.now = rig.now.slept(S * 20);
    rig.settle();
    let new = rig.daemon_dials();
    rig.input(Input::Closed(old, None));
    assert_eq!(rig.state(), LinkState::Blip);
    rig.handshake(new, &[]);
}

#[test]
fn a_late_close_of_an_older_connection_touches_nothing() {
    let (mut rig, old) = Rig::ready(Compat::Holdfast);
    let new = rig.cut(old);
    rig.handshake(new, &[]);
    rig.input(Input::Closed(old, Some((1001, "moved to a newer connection".into()))));
    rig.input(Input::Closed(old, Some((1012, "replaced by verified daemon".into()))));
    assert_eq!(rig.state(), LinkState::Healthy);
    assert_eq!(rig.daemon.snapshot(rig.now).device_in_use, None);
}

#[test]
fn the_relays_word_that_another_instance_came_is_a_warning_while_it_holds() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    for (in_use, since) in [(true, Some(rig.now.boot)), (true, Some(rig.now.boot)), (false, None)] {
        rig.say(socket, &RelayFrame::Pong(wire::Pong { ts: None, in_use }));
        assert_eq!(rig.daemon.snapshot(rig.now).device_in_use, since);
        rig.pass(S);
    }
    assert_eq!(rig.told().iter().filter(|told| ***told == Told::DeviceInUse).count(), 1, "told once");
    assert_eq!(rig.state(), LinkState::Healthy);
}

#[test]
fn on_the_base_wire_an_empty_list_after_an_unclean_end_is_not_believed_the_first_time() {
    let (mut rig, socket) = Rig::ready(Compat::Base);
    rig.call(socket, 1);
    let second = rig.cut(socket);
    rig.probe(second);
    rig.resume(second, &[]);
    assert_eq!(rig.cancelled(), []);
    rig.settle();
    let third = SocketId(second.0 + 1);
    rig.input(Input::Opened(third));
    rig.probe(third);
    rig.resume(third, &[call_id(1)]);
    rig.ready_ack(third);
    assert_eq!(rig.cancelled(), []);
    rig.finish(1, "1");
    assert_eq!(rig.results(third), [(call_id(1), "1".into())]);
}

#[test]
fn on_the_base_wire_the_second_empty_list_is_believed() {
    let (mut rig, socket) = Rig::ready(Compat::Base);
    rig.call(socket, 1);
    let second = rig.cut(socket);
    rig.probe(second);
    rig.resume(second, &[]);
    let third = SocketId(second.0 + 1);
    rig.input(Input::Opened(third));
    rig.out.clear();
    rig.handshake(third, &[]);
    assert_eq!(rig.cancelled(), [(call_id(1), CancelReason::CallerNoLongerWaiting)]);
}

#[test]
fn on_the_base_wire_lost_and_never_seen_ids_are_answered_by_results() {
    let (mut rig, socket) = Rig::ready(Compat::Base);
    rig.call(socket, 1);
    rig.say(socket, &RelayFrame::CancelCall(wire::CancelCall { id: call_id(1) }));
    let new = rig.cut(socket);
    rig.handshake(new, &[call_id(1), call_id(2)]);
    assert_eq!(rig.results(new), [(call_id(1), "execution_failed".into()), (call_id(2), "unavailable".into())]);
    rig.call(new, 2);
    assert_eq!(rig.run(), None, "it was answered as not started and must not start");
}

#[test]
fn on_the_base_wire_a_result_that_a_pong_answered_for_is_never_said_not_to_have_run() {
    let (mut rig, socket) = Rig::ready(Compat::Base);
    rig.call(socket, 1);
    rig.finish(1, "1");
    assert_eq!(rig.results(socket).len(), 1);
    rig.pass(S * 25);
    let frames = rig.written(socket);
    let DaemonFrame::Heartbeat(beat) = &frames[0].frame else { panic!() };
    rig.say(socket, &RelayFrame::Pong(wire::Pong { ts: beat.ts.clone(), in_use: false }));
    let new = rig.cut(socket);
    rig.handshake(new, &[call_id(1)]);
    assert_eq!(rig.results(new), [(call_id(1), "execution_failed".into())]);
}

#[test]
fn a_list_with_a_repeated_or_bad_id_is_a_protocol_error() {
    for ids in [r#"["call_abcdefgh","call_abcdefgh"]"#, r#"["nope"]"#, "7"] {
        let mut rig = Rig::new(Compat::Base);
        rig.input(Input::Start);
        let socket = rig.dialled();
        rig.probe(socket);
        rig.input(Input::Frame(socket, &format!(r#"{{"type":"resume_calls","ids":{ids}}}"#)));
        assert!(matches!(rig.closed(), Some((_, 1002, _))), "{ids}");
    }
}

#[test]
fn a_result_that_cannot_be_read_back_is_told_as_unknown() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.call(socket, 1);
    rig.input(Input::Closed(socket, None));
    rig.finish(1, &format!("\"{}\"", "x".repeat(limits::OUTBOX_SPILL_ABOVE)));
    rig.input(Input::Stored(call_id(1), true));
    rig.pass(S);
    let new = rig.daemon_dials();
    rig.handshake(new, &[call_id(1)]);
    assert!(rig.results(new).is_empty());
    rig.input(Input::Loaded(call_id(1), None));
    assert_eq!(rig.results(new), [(call_id(1), Code::OutcomeUnknown.as_str().into())]);
}

#[test]
fn what_nobody_waits_for_any_more_is_told_and_counted() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    for n in 1..=4 {
        rig.call(socket, n);
    }
    rig.finish(1, "1");
    assert_eq!(rig.results(socket).len(), 1);
    rig.say(socket, &RelayFrame::CancelCall(wire::CancelCall { id: call_id(3) }));
    rig.finish(4, "4");
    rig.say(socket, &RelayFrame::CancelCall(wire::CancelCall { id: call_id(4) }));
    rig.call(socket, 5);
    let new = rig.cut(socket);
    rig.finish(2, "2");
    rig.out.clear();
    rig.handshake(new, &[]);
    assert!(rig.told().contains(&&Told::Resumed {
        running: 0,
        replayed: 0,
        stopped: 1,
        dropped: 2,
        unknown: 0,
        lost: 0
    }));
    assert_eq!(rig.steps(), [(call_id(5), Step::Lost), (call_id(1), Step::Lost), (call_id(2), Step::Lost)]);
    let snapshot = rig.daemon.snapshot(rig.now);
    assert_eq!((snapshot.lost, snapshot.delivered), (3, 0), "two were cancelled by who asked");
    assert_eq!(
        (snapshot.calls.pending, snapshot.calls.queued_results),
        (0, 0),
        "what is being stopped did not come through"
    );
}

#[test]
fn a_result_that_was_read_and_is_not_named_arrived() {
    for (compat, answered) in [(Compat::Holdfast, true), (Compat::Base, false)] {
        let (mut rig, socket) = Rig::ready(compat);
        rig.call(socket, 1);
        rig.finish(1, "1");
        assert_eq!(rig.results(socket).len(), 1);
        if answered {
            rig.live(socket, S * 6);
            let beats = rig.written(socket);
            let ts =
                beats.iter().find_map(|f| if let DaemonFrame::Heartbeat(b) = &f.frame { b.ts.clone() } else { None });
            rig.say(socket, &RelayFrame::Pong(wire::Pong { ts, in_use: false }));
        }
        let mut new = rig.cut(socket);
        if compat == Compat::Base {
            rig.probe(new);
            rig.resume(new, &[]);
            new = SocketId(new.0 + 1);
            rig.input(Input::Opened(new));
        }
        rig.out.clear();
        rig.handshake(new, &[]);
        assert_eq!(rig.steps(), [(call_id(1), Step::Delivered)], "{compat:?}");
        let snapshot = rig.daemon.snapshot(rig.now);
        assert_eq!((snapshot.lost, snapshot.delivered), (0, 1), "{compat:?}");
    }
}

#[test]
fn a_result_whose_acknowledgement_may_be_on_the_older_connection_is_not_lost() {
    let (mut rig, old) = Rig::ready(Compat::Holdfast);
    rig.call(old, 1);
    rig.finish(1, "1");
    rig.written(old);
    rig.input(Input::NetworkChanged);
    rig.pass(S);
    let new = rig.daemon_dials();
    rig.handshake(new, &[]);
    let snapshot = rig.daemon.snapshot(rig.now);
    assert_eq!((snapshot.lost, snapshot.delivered), (0, 1));
}

#[test]
fn a_finished_call_that_is_not_wanted_ends_its_row() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    for n in 1..=2 {
        rig.call(socket, n);
        rig.finish(n, "0");
    }
    rig.written(socket);
    rig.out.clear();
    rig.say(socket, &RelayFrame::CancelCall(wire::CancelCall { id: call_id(1) }));
    rig.say(socket, &RelayFrame::ToolResultAck(wire::ToolResultAck { id: call_id(2), matched: false }));
    assert_eq!(rig.steps(), [(call_id(1), Step::Cancelled), (call_id(2), Step::Lost)]);
    assert_eq!(rig.daemon.snapshot(rig.now).lost, 0, "who asked had left");
}
