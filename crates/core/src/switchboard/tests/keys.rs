use super::super::*;
use super::desk::*;
use crate::code::{Code, ToolError};
use crate::id::CallId;
use crate::limits;
use crate::wire::*;
use serde_json::value::RawValue;

fn keyed(desk: &mut Desk, digest: u8) -> WaiterId {
    desk.open_with(|call| call.key = Some(IdempotencyKey { key: "k1".into(), digest: [digest; 32] }))
}

fn answer(desk: &mut Desk, waiter: WaiterId, answer: StoreAnswer) {
    let call = desk.id(waiter);
    desk.tell(Input::Stored { call, answer });
}

fn committed(desk: &mut Desk, waiter: WaiterId) {
    answer(desk, waiter, StoreAnswer::Committed);
}

fn last(desk: &Desk) -> &'static str {
    match desk.store.last().expect("a request") {
        StoreRequest::Reserve { .. } => "reserve",
        StoreRequest::Keep { .. } => "keep",
        StoreRequest::Assign { .. } => "assign",
        StoreRequest::Finish { .. } => "finish",
        StoreRequest::Forget { .. } => "forget",
        StoreRequest::Hold { .. } => "hold",
    }
}

#[test]
fn the_record_is_committed_before_the_call_is_sent_and_its_end_before_the_acknowledgement() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = keyed(&mut desk, 1);
    assert!(desk.calls(socket).is_empty());
    committed(&mut desk, waiter);
    assert_eq!(desk.calls(socket), [desk.id(waiter)]);
    assert_eq!(desk.store.len(), 1, "one write before it is sent");
    let call = desk.id(waiter);
    desk.finish(socket, &call, "1");
    assert_eq!((last(&desk), desk.got(waiter)), ("finish", None));
    committed(&mut desk, waiter);
    assert_eq!(desk.got(waiter), Some("1"));
    desk.pass(limits::ACK_DELAY);
    assert_eq!(desk.acks(socket), [(call, true)]);
    assert_eq!(desk.pending().active, 0);
}

#[test]
fn a_plain_call_touches_no_store() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    desk.finish(socket, &call, "1");
    desk.commit(waiter);
    assert!(desk.store.is_empty());
}

#[test]
fn a_store_that_refuses_the_record_means_nothing_was_done() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    for (no, want) in [(StoreAnswer::Refused, Code::StorageFull), (StoreAnswer::Bound, Code::LimitExceeded)] {
        let waiter = keyed(&mut desk, 1);
        answer(&mut desk, waiter, no);
        assert_eq!(desk.error(waiter), Some((want, true)));
    }
    assert!(desk.calls(socket).is_empty());
}

#[test]
fn a_store_that_refuses_the_end_gets_it_again_with_the_daemons_next_try_and_only_then_is_it_acknowledged() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = keyed(&mut desk, 1);
    committed(&mut desk, waiter);
    let call = desk.id(waiter);
    desk.finish(socket, &call, "1");
    answer(&mut desk, waiter, StoreAnswer::Refused);
    assert_eq!(desk.got(waiter), Some("1"), "the client need not wait for a disk");
    desk.pass(S);
    assert!(desk.acks(socket).is_empty());
    let late = keyed(&mut desk, 1);
    assert_eq!(desk.got(late), Some("1"));
    desk.finish(socket, &call, "1");
    assert_eq!(desk.store.len(), 3);
    committed(&mut desk, waiter);
    desk.pass(limits::ACK_DELAY);
    assert_eq!(desk.acks(socket), [(call, true)]);
    assert_eq!(desk.pending().active, 0);
}

#[test]
fn the_same_key_and_digest_joins_and_another_digest_is_a_conflict() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let first = keyed(&mut desk, 1);
    let early = keyed(&mut desk, 1);
    let other = keyed(&mut desk, 2);
    assert_eq!(desk.error(other), Some((Code::Conflict, false)));
    committed(&mut desk, first);
    let late = keyed(&mut desk, 1);
    let call = desk.id(first);
    assert_eq!((desk.id(early), desk.id(late)), (call.clone(), call.clone()));
    assert_eq!(desk.calls(socket), std::slice::from_ref(&call), "executed once");
    desk.leave(first);
    desk.leave(early);
    assert!(desk.cancels(socket).is_empty(), "somebody still waits");
    desk.finish(socket, &call, "1");
    committed(&mut desk, first);
    assert_eq!(desk.got(late), Some("1"));
    assert!(!desk.ends.contains_key(&first));
}

#[test]
fn keys_of_other_principals_and_tools_are_other_keys() {
    let mut desk = Desk::new();
    let waiter = keyed(&mut desk, 1);
    let key = IdempotencyKey { key: "k1".into(), digest: [1; 32] };
    let bob = desk.open_with(|call| (call.principal, call.key) = ("bob".into(), Some(key.clone())));
    let tool = desk.open_with(|call| (call.tool, call.key) = ("list_dir".into(), Some(key.clone())));
    assert!(desk.id(waiter) != desk.id(bob) && desk.id(waiter) != desk.id(tool));
}

#[test]
fn the_last_of_several_waiters_that_leaves_cancels() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let (first, second) = (keyed(&mut desk, 1), keyed(&mut desk, 1));
    committed(&mut desk, first);
    desk.leave(second);
    desk.leave(second);
    assert!(desk.cancels(socket).is_empty());
    desk.leave(first);
    assert_eq!(desk.cancels(socket), [desk.id(first)]);
    assert_eq!(last(&desk), "finish", "it may have run: the key stays used");
}

#[test]
fn waiters_of_one_call_are_bounded() {
    let mut desk = Desk::new();
    let waiters: Vec<_> = (0..=limits::CALL_WAITERS_MAX).map(|_| keyed(&mut desk, 1)).collect();
    assert_eq!(desk.error(*waiters.last().expect("one")), Some((Code::Busy, true)));
}

#[test]
fn a_known_key_answers_with_its_end_without_a_second_run() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let raw = RawValue::from_string("[1.10]".into()).expect("json");
    let waiter = keyed(&mut desk, 1);
    answer(&mut desk, waiter, StoreAnswer::Known(Ok(raw)));
    assert_eq!(desk.got(waiter), Some("[1.10]"));
    let waiter = keyed(&mut desk, 1);
    answer(&mut desk, waiter, StoreAnswer::Known(Err(ToolError::new(Code::Timeout, "late"))));
    assert_eq!(desk.error(waiter), Some((Code::Timeout, false)));
    let waiter = keyed(&mut desk, 1);
    answer(&mut desk, waiter, StoreAnswer::Unfinished);
    assert_eq!(desk.error(waiter), Some((Code::OutcomeUnknown, false)));
    let waiter = keyed(&mut desk, 2);
    answer(&mut desk, waiter, StoreAnswer::Conflict);
    assert_eq!(desk.error(waiter), Some((Code::Conflict, false)));
    assert!(desk.calls(socket).is_empty());
    assert_eq!(desk.store.len(), 4, "an end read from the store is not written to it");
}

#[test]
fn an_end_that_means_nothing_was_done_deletes_the_record() {
    let mut desk = Desk::new();
    let waiter = keyed(&mut desk, 1);
    committed(&mut desk, waiter);
    desk.pass(limits::QUEUE_WAIT);
    assert_eq!((desk.error(waiter), last(&desk)), (Some((Code::Unavailable, true)), "forget"));
    let waiter = keyed(&mut desk, 1);
    committed(&mut desk, waiter);
    desk.leave(waiter);
    assert_eq!(last(&desk), "forget", "cancelled before it was sent");
}

#[test]
fn a_call_reserved_without_a_device_is_assigned_before_it_is_sent() {
    let mut desk = Desk::new();
    let waiter = keyed(&mut desk, 1);
    committed(&mut desk, waiter);
    let socket = desk.ready(&holdfast(1));
    assert!(desk.calls(socket).is_empty());
    assert_eq!(last(&desk), "assign");
    committed(&mut desk, waiter);
    assert_eq!(desk.calls(socket), [desk.id(waiter)]);
}

#[test]
fn a_call_assigned_to_an_instance_that_went_away_is_assigned_anew_and_still_waits_its_time() {
    let mut desk = Desk::new();
    let waiter = keyed(&mut desk, 1);
    committed(&mut desk, waiter);
    let socket = desk.ready(&holdfast(1));
    desk.lose(socket);
    committed(&mut desk, waiter);
    let socket = desk.ready(&holdfast(2));
    assert!(desk.calls(socket).is_empty());
    committed(&mut desk, waiter);
    assert_eq!(desk.calls(socket), [desk.id(waiter)]);
}

fn restored(instance: Option<InstanceId>, hold_left: Option<Duration>) -> RestoredCall {
    RestoredCall {
        id: CallId::mint([3; 32]),
        principal: "anna".into(),
        tool: "run_process".into(),
        key: Some(IdempotencyKey { key: "k1".into(), digest: [1; 32] }),
        handle: None,
        instance,
        budget: S * 60,
        control: false,
        hold_left,
    }
}

#[test]
fn after_a_crash_a_keyed_call_is_detached_named_to_its_instance_and_joined_by_its_key() {
    let mut desk = Desk::new();
    let call = restored(Some(holdfast(1).instance), None);
    desk.tell(Input::Restore { calls: vec![call.clone()] });
    assert_eq!(desk.pending().detached, 1);
    let joiner = keyed(&mut desk, 1);
    assert_eq!(desk.id(joiner), call.id);
    let socket = desk.ready(&holdfast(1));
    assert_eq!(desk.named(socket), std::slice::from_ref(&call.id));
    desk.finish(socket, &call.id, "1");
    committed(&mut desk, joiner);
    assert_eq!(desk.got(joiner), Some("1"));
}

#[test]
fn after_a_crash_a_keyed_call_nobody_waits_for_still_ends_in_the_store() {
    let mut desk = Desk::new();
    let call = restored(Some(holdfast(1).instance), None);
    desk.tell(Input::Restore { calls: vec![call.clone()] });
    let socket = desk.ready(&holdfast(1));
    desk.finish(socket, &call.id, "1");
    assert_eq!(last(&desk), "finish");
    desk.tell(Input::Stored { call: call.id.clone(), answer: StoreAnswer::Committed });
    desk.pass(limits::ACK_DELAY);
    assert_eq!(desk.acks(socket), [(call.id, true)]);
}

#[test]
fn after_a_crash_a_call_its_instance_never_saw_was_not_done() {
    let mut desk = Desk::new();
    let call = restored(Some(holdfast(1).instance), None);
    desk.tell(Input::Restore { calls: vec![call.clone()] });
    let socket = desk.prove(&holdfast(1));
    let unknown = vec![call.id];
    desk.say(socket, DaemonFrame::ResumeReport(ResumeReport { unknown, ..ResumeReport::default() }));
    assert!(desk.calls(socket).is_empty());
    assert_eq!(last(&desk), "forget");
}

#[test]
fn after_a_crash_a_call_its_instance_never_saw_is_not_sent_without_arguments_whoever_waits_again() {
    let mut desk = Desk::new();
    let call = restored(Some(holdfast(1).instance), None);
    desk.tell(Input::Restore { calls: vec![call.clone()] });
    let joiner = keyed(&mut desk, 1);
    let socket = desk.prove(&holdfast(1));
    let unknown = vec![call.id];
    desk.say(socket, DaemonFrame::ResumeReport(ResumeReport { unknown, ..ResumeReport::default() }));
    assert!(desk.calls(socket).is_empty());
    assert_eq!(desk.error(joiner), Some((Code::Unavailable, true)));
}

#[test]
fn after_a_crash_grace_or_what_is_left_of_the_hold_ends_a_call_as_unknown() {
    for (hold, wait) in [(None, limits::GRACE), (Some(S * 3600), S * 3600)] {
        let mut desk = Desk::new();
        desk.tell(Input::Restore { calls: vec![restored(Some(holdfast(1).instance), hold)] });
        desk.pass(wait - MS);
        assert!(desk.store.is_empty());
        desk.pass(MS);
        let Some(StoreRequest::Finish { outcome, .. }) = desk.store.last() else { panic!() };
        assert_eq!(outcome.as_ref().unwrap_err().code, Code::OutcomeUnknown);
    }
}

#[test]
fn a_stopping_relay_leaves_the_records_of_running_keyed_calls_as_they_are() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = keyed(&mut desk, 1);
    committed(&mut desk, waiter);
    desk.tell(Input::Stop);
    desk.pass_alive(socket, limits::RELAY_STOP_WAIT);
    assert_eq!(desk.error(waiter), Some((Code::OutcomeUnknown, false)));
    assert_eq!((desk.store.len(), last(&desk)), (1, "reserve"));
}

#[test]
fn a_sleep_is_told_to_the_records_of_keyed_calls() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = keyed(&mut desk, 1);
    committed(&mut desk, waiter);
    desk.say(socket, DaemonFrame::Suspending(Suspending {}));
    let Some(StoreRequest::Hold { hold, .. }) = desk.store.last() else { panic!() };
    assert_eq!(*hold, Some(limits::SUSPEND_HOLD));
    desk.lose(socket);
    desk.ready(&holdfast(1));
    let Some(StoreRequest::Hold { hold, .. }) = desk.store.last() else { panic!() };
    assert_eq!(*hold, None);
}

#[test]
fn a_result_too_large_to_keep_is_remembered_as_such_and_answered_whole() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = keyed(&mut desk, 1);
    committed(&mut desk, waiter);
    let raw = format!("\"{}\"", "a".repeat(limits::KEPT_RESULT_MAX));
    let call = desk.id(waiter);
    desk.finish(socket, &call, &raw);
    let Some(StoreRequest::Finish { outcome, .. }) = desk.store.last() else { panic!() };
    assert_eq!(outcome.as_ref().unwrap_err().code, Code::ResultTooLarge);
    committed(&mut desk, waiter);
    assert_eq!(desk.got(waiter), Some(raw.as_str()));
}
