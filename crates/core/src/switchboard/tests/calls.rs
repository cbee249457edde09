use super::super::*;
use super::desk::*;
use crate::code::Code;
use crate::limits;
use crate::wire::*;

#[test]
fn a_call_goes_out_and_its_result_comes_back_byte_identical_and_is_acknowledged_after_commit() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    let Some(RelayFrame::ToolCall(sent)) = desk.frames[&socket].last() else { panic!() };
    assert_eq!((sent.id.clone(), sent.tool.as_str(), sent.timeout_ms), (call.clone(), "run_process", 60_000));
    assert_eq!(sent.arguments.get(), r#"{"argv":["make"]}"#);
    let raw = r#"{"z":1,"big":123456789012345678901234567890,"a":[1.10]}"#;
    desk.finish(socket, &call, raw);
    assert_eq!(desk.got(waiter), Some(raw));
    desk.pass_alive(socket, S * 4);
    assert!(desk.acks(socket).is_empty(), "nobody has it safe yet");
    assert_eq!(desk.pending().uncommitted, 1);
    desk.commit(waiter);
    desk.pass(limits::ACK_DELAY);
    assert_eq!(desk.acks(socket), [(call, true)]);
    assert_eq!(desk.pending().active, 0);
}

#[test]
fn an_acknowledgement_travels_with_the_next_frame_if_one_comes() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let first = desk.open();
    let call = desk.id(first);
    desk.finish(socket, &call, "1");
    desk.commit(first);
    assert_eq!(desk.acks(socket), []);
    desk.open();
    assert_eq!(desk.kinds(socket)[5..], ["tool_call", "tool_result_ack", "tool_call"]);
}

#[test]
fn a_result_nobody_waits_for_is_acknowledged_as_unmatched() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let stranger = crate::id::CallId::mint([9; 32]);
    desk.finish(socket, &stranger, "1");
    desk.pass(limits::ACK_DELAY);
    assert_eq!(desk.acks(socket), [(stranger, false)]);
    assert!(desk.notes.contains(&Note::Unmatched));
}

#[test]
fn a_base_daemon_is_sent_nothing_but_base_frames() {
    let mut desk = Desk::with(Identity::base());
    let socket = desk.ready(&base(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    desk.finish(socket, &call, "1");
    desk.commit(waiter);
    desk.pass(S);
    assert_eq!(desk.kinds(socket)[5..], ["tool_call"]);
    assert_eq!(desk.pending().active, 0);
}

#[test]
fn a_result_handed_over_and_not_taken_is_acknowledged_as_unmatched() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    desk.finish(socket, &call, "1");
    desk.leave(waiter);
    desk.pass(limits::ACK_DELAY);
    assert_eq!(desk.acks(socket), [(call.clone(), false)]);
    assert!(desk.notes.contains(&Note::Undelivered { call }));
    assert!(desk.cancels(socket).is_empty());
}

#[test]
fn a_second_result_of_a_call_is_not_delivered_and_is_acknowledged_with_the_first() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    desk.finish(socket, &call, "1");
    desk.finish(socket, &call, "1");
    desk.commit(waiter);
    desk.pass(limits::ACK_DELAY);
    assert_eq!(desk.acks(socket), [(call, true)]);
}

#[test]
fn the_daemons_error_is_passed_on_and_a_timeout_is_retryable_only_for_tools_that_read() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let runs = desk.open();
    let reads = desk.open_with(|call| call.tool = "list_dir".into());
    for waiter in [runs, reads] {
        let call = desk.id(waiter);
        desk.fail(socket, &call, Code::Timeout);
    }
    assert_eq!(desk.error(runs), Some((Code::Timeout, false)));
    assert_eq!(desk.error(reads), Some((Code::Timeout, true)));
}

#[test]
fn no_word_within_deadline_and_settlement_is_unknown_and_leaves_the_socket_alone() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = desk.open_with(|call| call.budget = S * 7);
    let call = desk.id(waiter);
    desk.pass_alive(socket, S * 12 - MS);
    assert_eq!(desk.error(waiter), None);
    desk.pass(MS);
    assert_eq!(desk.error(waiter), Some((Code::OutcomeUnknown, false)));
    assert_eq!(desk.cancels(socket), [call]);
    assert!(desk.board.is_ready());
}

#[test]
fn the_deadline_of_big_arguments_counts_from_their_arrival() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = desk.open_with(|call| {
        let text = format!("{{\"x\":\"{}\"}}", "a".repeat(5_000_000));
        call.arguments = serde_json::value::RawValue::from_string(text).expect("json");
    });
    let (asked, nonce) = *desk.pings.last().expect("a ping behind the arguments");
    assert_eq!(asked, socket);
    desk.pass_alive(socket, S * 80);
    desk.tell(Input::Ponged { socket, nonce });
    desk.pass_alive(socket, S * 65 - MS);
    assert_eq!(desk.error(waiter), None);
    desk.pass(MS);
    assert_eq!(desk.error(waiter), Some((Code::OutcomeUnknown, false)));
}

#[test]
fn the_deadline_waits_while_a_frame_is_being_received() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = desk.open_with(|call| call.budget = S);
    let call = desk.id(waiter);
    for _ in 0..20 {
        desk.pass(S);
        let at = desk.now.boot;
        desk.tell(Input::Heard { socket, at, mid_frame: true });
    }
    desk.finish(socket, &call, "1");
    assert_eq!(desk.got(waiter), Some("1"));
}

#[test]
fn a_frozen_relay_does_not_run_a_deadline_out() {
    let mut desk = Desk::new();
    let socket = desk.ready(&base(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    desk.now = desk.now.slept(S * 80);
    desk.pass(S);
    desk.finish(socket, &call, "1");
    assert_eq!(desk.got(waiter), Some("1"));
}

#[test]
fn a_new_call_waits_fifteen_seconds_for_a_device_and_then_was_not_started() {
    let mut desk = Desk::new();
    let waiter = desk.open();
    desk.pass(S * 15 - MS);
    assert_eq!(desk.error(waiter), None);
    desk.pass(MS);
    assert_eq!(desk.error(waiter), Some((Code::Unavailable, true)));
    let waiter = desk.open();
    desk.pass(S * 14);
    let socket = desk.ready(&holdfast(1));
    assert_eq!(desk.calls(socket), [desk.id(waiter)]);
}

#[test]
fn ordinary_calls_stop_at_sixty_held_and_control_calls_at_sixty_four() {
    let mut desk = Desk::new();
    let ordinary: Vec<_> = (0..61).map(|_| desk.open()).collect();
    assert_eq!(desk.error(ordinary[59]), None);
    assert_eq!(desk.error(ordinary[60]), Some((Code::Busy, true)));
    let control: Vec<_> = (0..5).map(|_| desk.open_with(|call| call.control = true)).collect();
    assert_eq!(desk.error(control[3]), None);
    assert_eq!(desk.error(control[4]), Some((Code::Busy, true)));
    assert_eq!(desk.pending().active, limits::DEVICE_CALLS_MAX);
}

#[test]
fn a_base_daemon_gets_sixteen_calls_at_most_two_of_them_for_control_and_the_rest_wait() {
    let mut desk = Desk::with(Identity::base());
    let socket = desk.ready(&base(1));
    let ordinary: Vec<_> = (0..20).map(|_| desk.open()).collect();
    assert_eq!(desk.calls(socket).len(), 14);
    let control: Vec<_> = (0..3).map(|_| desk.open_with(|call| call.control = true)).collect();
    assert_eq!(desk.calls(socket).len(), 16);
    assert!(desk.calls(socket).contains(&desk.id(control[1])), "a control call passes those that find no place");
    let done = desk.id(ordinary[0]);
    desk.finish(socket, &done, "1");
    assert!(desk.calls(socket).contains(&desk.id(control[2])), "control calls go first");
    let done = desk.id(ordinary[1]);
    desk.finish(socket, &done, "1");
    assert_eq!(desk.calls(socket).len(), 18);
    desk.pass(S * 15);
    assert_eq!(desk.error(ordinary[19]), Some((Code::LimitExceeded, true)), "the base wire's word for busy");
    assert_eq!(desk.error(ordinary[2]), None, "a sent call does not wait for a place");
}

#[test]
fn a_device_that_takes_few_calls_gets_few() {
    let mut desk = Desk::new();
    let socket = desk.ready(&Speaker { max_calls: Some(5), ..holdfast(1) });
    desk.open();
    desk.open();
    assert_eq!(desk.calls(socket).len(), 1);
    for _ in 0..5 {
        desk.open_with(|call| call.control = true);
    }
    assert_eq!(desk.calls(socket).len(), 5);
}

#[test]
fn arguments_are_bounded_one_by_one_and_all_together() {
    let mut desk = Desk::new();
    let big = |bytes: usize| {
        move |call: &mut OpenCall| {
            let text = format!("{{\"x\":\"{}\"}}", "a".repeat(bytes));
            call.arguments = serde_json::value::RawValue::from_string(text).expect("json");
        }
    };
    let waiter = desk.open_with(big(limits::FRAME_MAX));
    assert_eq!(desk.error(waiter), Some((Code::InvalidRequest, false)));
    let held: Vec<_> = (0..9).map(|_| desk.open_with(big(limits::ARGUMENTS_MAX - 100))).collect();
    assert_eq!(desk.error(held[7]), None);
    assert_eq!(desk.error(held[8]), Some((Code::Busy, true)));
}

#[test]
fn the_last_waiter_that_leaves_cancels_and_an_explicit_cancel_counts_for_all() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    desk.leave(waiter);
    assert_eq!(desk.cancels(socket), std::slice::from_ref(&call));
    assert!(!desk.ends.contains_key(&waiter), "who left hears nothing");
    desk.finish(socket, &call, "1");
    assert!(desk.notes.contains(&Note::Unmatched));
    let waiter = desk.open();
    let call = desk.id(waiter);
    desk.tell(Input::Cancel { call: call.clone() });
    assert_eq!(desk.error(waiter), Some((Code::Cancelled, false)));
    assert_eq!(desk.cancels(socket).last(), Some(&call));
    desk.tell(Input::Cancel { call });
}

#[test]
fn a_cancelled_call_that_still_waits_is_never_sent() {
    let mut desk = Desk::new();
    let waiter = desk.open();
    let call = desk.id(waiter);
    desk.tell(Input::Cancel { call });
    let socket = desk.ready(&holdfast(1));
    assert!(desk.calls(socket).is_empty() && desk.cancels(socket).is_empty());
}

#[test]
fn progress_reaches_the_waiters_that_want_it() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let wants = desk.open_with(|call| call.wants_progress = true);
    let plain = desk.open();
    for waiter in [wants, plain] {
        let id = desk.id(waiter);
        desk.say(socket, DaemonFrame::ToolProgress(ToolProgress { id, progress: 0.5, total: None, message: None }));
    }
    assert_eq!(desk.progress, [(wants, 0.5)]);
}

fn chunk(call: &crate::id::CallId, offset: u64) -> DaemonFrame {
    let (sha256, data) = ("00".repeat(32), "YWJj".into());
    DaemonFrame::ToolResultChunk(ToolResultChunk { id: call.clone(), offset, total: 1_000_000, sha256, data })
}

#[test]
fn the_first_piece_of_a_result_stops_the_deadline_and_a_stalled_transfer_kills_the_link() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = desk.open_with(|call| call.budget = S);
    let call = desk.id(waiter);
    let mut intake = Intake::default();
    for i in 0..40 {
        let text = chunk(&call, i * 3).encode(Some(i + 4));
        let arrival = intake.read(&text);
        desk.tell(Input::Arrived { socket, arrival });
        desk.pass_alive(socket, S);
    }
    assert_eq!(desk.error(waiter), None);
    desk.pass_alive(socket, limits::TRANSFER_WINDOW);
    assert_eq!(desk.closes[&socket], close::LIVENESS);
    assert_eq!(desk.pending().detached, 1, "the transfer starts again on the next link");
    let socket = desk.ready(&holdfast(1));
    desk.finish(socket, &call, "1");
    assert_eq!(desk.got(waiter), Some("1"));
}

#[test]
fn a_call_cancelled_in_the_middle_of_its_transfer_leaves_the_link_alone() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    desk.say(socket, chunk(&call, 0));
    desk.leave(waiter);
    assert_eq!(desk.cancels(socket), [call]);
    desk.pass_alive(socket, limits::TRANSFER_WINDOW * 2);
    assert_eq!(desk.closes.get(&socket), None);
}

#[test]
fn a_result_whose_digest_never_fits_fails_after_three_transfers() {
    let mut desk = Desk::new();
    let waiter = desk.open();
    let call = desk.id(waiter);
    for attempt in 1..=3 {
        let socket = desk.ready(&holdfast(1));
        let bad = ToolResultChunk { id: call.clone(), offset: 0, total: 3, sha256: "00".into(), data: "YWJj".into() };
        desk.say(socket, DaemonFrame::ToolResultChunk(bad));
        assert_eq!(desk.closes.get(&socket), (attempt < 3).then_some(&close::BAD_CHUNK));
    }
    assert_eq!(desk.error(waiter), Some((Code::IntegrityError, false)));
}

#[test]
fn a_stopping_relay_refuses_new_calls_waits_for_the_others_and_closes_with_1012() {
    let mut desk = Desk::new();
    let socket = desk.ready(&Speaker { max_calls: Some(1), ..holdfast(1) });
    let (runs, waits) = (desk.open(), desk.open());
    desk.tell(Input::Stop);
    assert_eq!(desk.error(waits), Some((Code::Unavailable, true)));
    let late = desk.open();
    assert_eq!(desk.error(late), Some((Code::Unavailable, true)));
    desk.pass_alive(socket, S * 9);
    assert_eq!(desk.stopped, 0);
    let call = desk.id(runs);
    desk.finish(socket, &call, "1");
    assert_eq!(desk.stopped, 0, "not before it is safe");
    desk.commit(runs);
    assert_eq!((desk.stopped, desk.closes[&socket]), (1, close::RELAY_STOPS));
    assert_eq!(desk.acks(socket), [(call, true)]);
    let newcomer = desk.connect();
    assert_eq!(desk.closes[&newcomer], close::RELAY_STOPS);
}

#[test]
fn a_stopping_relay_gives_up_after_ten_seconds() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = desk.open();
    desk.tell(Input::Stop);
    desk.tell(Input::Stop);
    desk.pass_alive(socket, S * 10);
    assert_eq!(desk.error(waiter), Some((Code::OutcomeUnknown, false)));
    assert_eq!((desk.stopped, desk.closes[&socket]), (1, close::RELAY_STOPS));
    assert_eq!(desk.board.poll_timeout(desk.now), None, "nothing runs any more");
}

#[test]
fn a_revoked_device_is_asked_to_cancel_and_closed() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = desk.open();
    desk.tell(Input::Revoke);
    assert_eq!(desk.cancels(socket), [desk.id(waiter)]);
    assert_eq!(desk.error(waiter), Some((Code::OutcomeUnknown, false)));
    assert_eq!(desk.closes[&socket], close::REVOKED);
    assert_eq!(desk.pending().active, 0);
    let again = desk.connect();
    assert_eq!(desk.closes[&again], close::REVOKED, "also of an upgrade that was under way");
}
