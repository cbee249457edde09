use super::super::*;
use super::desk::*;
use crate::code::Code;
use crate::limits;
use crate::wire::*;

fn report(running: &[&crate::id::CallId]) -> ResumeReport {
    ResumeReport { running: running.iter().map(|id| (*id).clone()).collect(), ..ResumeReport::default() }
}

#[test]
fn a_call_survives_the_loss_of_the_link_and_its_result_comes_over_the_next_one() {
    for who in [holdfast(1), base(1)] {
        let mut desk = Desk::new();
        let old = desk.ready(&who);
        let waiter = desk.open();
        let call = desk.id(waiter);
        desk.lose(old);
        assert_eq!(desk.pending().detached, 1);
        desk.pass(S * 20);
        let new = desk.ready(&who);
        assert_eq!(desk.named(new), std::slice::from_ref(&call));
        desk.finish(new, &call, "1");
        assert_eq!(desk.got(waiter), Some("1"));
    }
}

#[test]
fn while_detached_the_deadline_stands_still() {
    let mut desk = Desk::new();
    let old = desk.ready(&holdfast(1));
    let waiter = desk.open_with(|call| call.budget = S * 10);
    desk.pass_alive(old, S * 5);
    desk.lose(old);
    desk.pass(S * 100);
    let new = desk.ready(&holdfast(1));
    desk.pass_alive(new, S * 10 - MS);
    assert_eq!(desk.error(waiter), None);
    desk.pass(MS);
    assert_eq!(desk.error(waiter), Some((Code::OutcomeUnknown, false)));
}

#[test]
fn grace_ends_sent_calls_as_unknown_after_120_or_on_the_base_wire_30_seconds() {
    for (who, grace) in [(holdfast(1), S * 120), (base(1), S * 30)] {
        let mut desk = Desk::new();
        let socket = desk.ready(&who);
        let waiter = desk.open();
        desk.lose(socket);
        desk.pass(grace - MS);
        assert_eq!(desk.error(waiter), None);
        desk.pass(MS);
        assert_eq!(desk.error(waiter), Some((Code::OutcomeUnknown, false)));
        let back = desk.ready(&who);
        assert!(desk.named(back).is_empty());
    }
}

#[test]
fn calls_attached_to_the_old_socket_of_the_same_instance_are_named_and_moved_too() {
    let mut desk = Desk::with(Identity::base());
    let old = desk.ready(&base(1));
    let (first, second) = (desk.open(), desk.open());
    let new = desk.ready(&base(1));
    assert_eq!(desk.named(new), [desk.id(first), desk.id(second)], "in order of sending");
    assert_eq!(desk.closes[&old], close::MOVED);
    assert_eq!(desk.pending().sent, 2);
    let call = desk.id(first);
    desk.finish(new, &call, "1");
    assert_eq!(desk.got(first), Some("1"));
}

#[test]
fn a_candidate_that_dies_before_ready_ack_moves_nothing() {
    let mut desk = Desk::new();
    let old = desk.ready(&holdfast(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    let new = desk.prove(&holdfast(1));
    assert_eq!(desk.named(new), std::slice::from_ref(&call));
    let waits = desk.open();
    assert_eq!(desk.calls(old).len(), 1, "nothing is dispatched between resume_calls and ready_ack");
    desk.lose(new);
    assert_eq!(desk.calls(old), [call.clone(), desk.id(waits)], "the incumbent goes on");
    desk.finish(old, &call, "1");
    assert_eq!(desk.got(waiter), Some("1"));
}

#[test]
fn a_report_that_does_not_come_within_three_seconds_closes_the_candidate_and_the_incumbent_goes_on() {
    let mut desk = Desk::new();
    let old = desk.ready(&holdfast(1));
    let new = desk.prove(&holdfast(1));
    let waiter = desk.open();
    desk.pass(limits::REPORT_TIMEOUT - MS);
    assert!(desk.calls(old).is_empty());
    desk.pass(MS);
    assert_eq!(desk.closes[&new], close::READY_TIMEOUT);
    assert_eq!(desk.calls(old), [desk.id(waiter)]);
}

#[test]
fn the_reports_pause_does_not_count_toward_readiness() {
    let mut desk = Desk::new();
    let socket = desk.connect();
    desk.hello(socket, &holdfast(1));
    desk.pass(S * 15 - MS);
    desk.answer_probe(socket);
    desk.pass(S * 2);
    desk.say(socket, DaemonFrame::ResumeReport(ResumeReport::default()));
    assert!(desk.is_ready(socket));
}

#[test]
fn the_reports_pause_does_not_count_toward_the_wait_of_a_new_call() {
    let mut desk = Desk::new();
    let waiter = desk.open();
    desk.pass(limits::QUEUE_WAIT - S);
    let socket = desk.prove(&holdfast(1));
    desk.pass(S * 2);
    desk.say(socket, DaemonFrame::ResumeReport(ResumeReport::default()));
    assert_eq!(desk.calls(socket), [desk.id(waiter)]);
}

#[test]
fn what_the_daemon_lost_is_unknown_and_what_it_never_saw_is_sent_again_with_the_rest_of_its_budget() {
    let mut desk = Desk::new();
    let old = desk.ready(&holdfast(1));
    let (lost, unknown, runs) = (desk.open(), desk.open(), desk.open());
    desk.pass_alive(old, S * 20);
    desk.lose(old);
    let new = desk.prove(&holdfast(1));
    let report = ResumeReport {
        running: vec![desk.id(runs)],
        lost: vec![desk.id(lost)],
        unknown: vec![desk.id(unknown)],
        ..ResumeReport::default()
    };
    desk.say(new, DaemonFrame::ResumeReport(report));
    assert_eq!(desk.error(lost), Some((Code::OutcomeUnknown, false)));
    let Some(RelayFrame::ToolCall(again)) = desk.frames[&new].last() else { panic!() };
    assert_eq!((again.id.clone(), again.timeout_ms), (desk.id(unknown), 40_000));
    assert_eq!(desk.pending().sent, 2);
}

#[test]
fn a_call_never_seen_with_less_than_a_second_left_was_not_started() {
    let mut desk = Desk::new();
    let old = desk.ready(&holdfast(1));
    let waiter = desk.open_with(|call| call.budget = S * 5);
    desk.pass_alive(old, S * 4 + MS);
    desk.lose(old);
    let new = desk.prove(&holdfast(1));
    let unknown = vec![desk.id(waiter)];
    desk.say(new, DaemonFrame::ResumeReport(ResumeReport { unknown, ..ResumeReport::default() }));
    assert_eq!(desk.error(waiter), Some((Code::Unavailable, true)));
    assert!(desk.calls(new).is_empty());
}

#[test]
fn a_report_must_name_exactly_the_named_calls_each_once() {
    for wrong in 0..4 {
        let mut desk = Desk::new();
        let old = desk.ready(&holdfast(1));
        let (a, b) = (desk.open(), desk.open());
        let (a, b) = (desk.id(a), desk.id(b));
        desk.lose(old);
        let new = desk.prove(&holdfast(1));
        let foreign = crate::id::CallId::mint([9; 32]);
        let report = match wrong {
            0 => report(&[&a]),
            1 => report(&[&a, &b, &foreign]),
            2 => report(&[&a, &a]),
            _ => ResumeReport { done: vec![a.clone()], ..report(&[&a, &b]) },
        };
        desk.say(new, DaemonFrame::ResumeReport(report));
        assert_eq!(desk.closes[&new], close::BAD_REPORT, "{wrong}");
        assert_eq!(desk.pending().detached, 2, "nothing is lost");
    }
}

#[test]
fn a_call_cancelled_during_the_pause_is_cancelled_first_after_ready_ack() {
    let mut desk = Desk::new();
    let old = desk.ready(&holdfast(1));
    let (cancelled, waits) = (desk.open(), desk.open());
    desk.lose(old);
    let new = desk.prove(&holdfast(1));
    let (call, other) = (desk.id(cancelled), desk.id(waits));
    desk.leave(cancelled);
    desk.open();
    desk.say(new, DaemonFrame::ResumeReport(report(&[&call, &other])));
    assert_eq!(desk.kinds(new)[4..], ["ready_ack", "cancel_call", "tool_call"]);
    assert_eq!(desk.cancels(new), [call]);
}

#[test]
fn grace_that_runs_out_during_the_pause_cancels_right_after_ready_ack() {
    let mut desk = Desk::new();
    let old = desk.ready(&holdfast(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    desk.lose(old);
    desk.pass(limits::GRACE - S);
    let new = desk.prove(&holdfast(1));
    desk.pass(S);
    assert_eq!(desk.error(waiter), Some((Code::OutcomeUnknown, false)));
    desk.say(new, DaemonFrame::ResumeReport(report(&[&call])));
    assert_eq!(desk.kinds(new)[4..], ["ready_ack", "cancel_call"]);
}

#[test]
fn a_call_cancelled_while_the_link_is_down_is_not_named_again() {
    let mut desk = Desk::new();
    let old = desk.ready(&holdfast(1));
    let (left, stays) = (desk.open(), desk.open());
    desk.lose(old);
    desk.leave(left);
    let new = desk.ready(&holdfast(1));
    assert_eq!(desk.named(new), [desk.id(stays)]);
}

#[test]
fn a_result_stays_named_until_it_is_committed_and_is_not_delivered_again() {
    let mut desk = Desk::new();
    let old = desk.ready(&holdfast(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    desk.finish(old, &call, "1");
    desk.lose(old);
    let new = desk.prove(&holdfast(1));
    assert_eq!(desk.named(new), std::slice::from_ref(&call));
    desk.say(new, DaemonFrame::ResumeReport(ResumeReport { done: vec![call.clone()], ..ResumeReport::default() }));
    desk.finish(new, &call, "1");
    desk.commit(waiter);
    desk.pass(limits::ACK_DELAY);
    assert_eq!(desk.acks(new), [(call, true)]);
    let third = desk.ready(&holdfast(1));
    assert!(desk.named(third).is_empty());
}

#[test]
fn a_base_daemon_is_not_asked_for_a_result_that_is_here_already() {
    let mut desk = Desk::with(Identity::base());
    let old = desk.ready(&base(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    desk.finish(old, &call, "1");
    let new = desk.ready(&base(1));
    assert!(desk.named(new).is_empty());
    desk.commit(waiter);
    assert_eq!(desk.pending().active, 0);
}

#[test]
fn a_result_on_the_incumbent_counts_until_ready_ack() {
    let mut desk = Desk::new();
    let old = desk.ready(&holdfast(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    let new = desk.prove(&holdfast(1));
    desk.finish(old, &call, "1");
    desk.commit(waiter);
    desk.say(new, DaemonFrame::ResumeReport(report(&[&call])));
    assert!(desk.is_ready(new));
    assert_eq!(desk.got(waiter), Some("1"));
    assert_eq!(desk.pending().active, 0);
}

#[test]
fn a_result_on_a_socket_that_is_not_ready_is_a_violation() {
    let mut desk = Desk::new();
    let old = desk.ready(&holdfast(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    let new = desk.prove(&holdfast(1));
    desk.finish(new, &call, "1");
    assert_eq!(desk.closes[&new], close::UNKNOWN_TYPE);
    assert_eq!(desk.got(waiter), None);
    desk.finish(old, &call, "2");
    assert_eq!(desk.got(waiter), Some("2"));
}

#[test]
fn another_instance_ends_what_was_sent_and_gets_what_was_not() {
    let mut desk = Desk::new();
    let old = desk.ready(&Speaker { max_calls: Some(1), ..holdfast(1) });
    let (sent, queued) = (desk.open(), desk.open());
    desk.lose(old);
    let new = desk.ready(&holdfast(2));
    assert!(desk.named(new).is_empty());
    assert_eq!(desk.error(sent), Some((Code::OutcomeUnknown, false)));
    assert_eq!(desk.calls(new), [desk.id(queued)]);
}

#[test]
fn a_daemon_that_says_it_stops_ends_its_calls_at_once() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = desk.open();
    desk.tell(Input::Closed { socket, word: Some((1000, "daemon shutdown".into())) });
    assert_eq!(desk.error(waiter), Some((Code::OutcomeUnknown, false)));
    let socket = desk.ready(&holdfast(2));
    let waiter = desk.open();
    desk.tell(Input::Closed { socket, word: Some((1000, "stale daemon connection".into())) });
    assert_eq!(desk.error(waiter), None, "any other close leaves them detached");
}

#[test]
fn all_places_taken_a_cut_and_a_return_lose_nothing() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let mut waiters: Vec<_> = (0..60).map(|_| desk.open()).collect();
    waiters.extend((0..4).map(|_| desk.open_with(|call| call.control = true)));
    desk.lose(socket);
    let socket = desk.ready(&holdfast(1));
    assert_eq!(desk.named(socket).len(), 64);
    for waiter in &waiters {
        let call = desk.id(*waiter);
        desk.finish(socket, &call, "1");
        assert_eq!(desk.got(*waiter), Some("1"));
    }
}
