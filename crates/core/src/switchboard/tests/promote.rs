use super::super::*;
use super::desk::*;
use crate::code::Code;
use crate::id::{CallId, KeptId};
use crate::limits;
use crate::wire::*;

/// A client that takes tasks.
fn task(desk: &mut Desk) -> WaiterId {
    after(desk, limits::PROMOTE_AFTER, true)
}

fn after(desk: &mut Desk, after: Duration, when_away: bool) -> WaiterId {
    desk.open_with(|call| call.outlives = Some(Outlives { after, when_away, grant: "grant".into() }))
}

fn keyed_task(desk: &mut Desk) -> WaiterId {
    desk.open_with(|call| {
        call.key = Some(IdempotencyKey { key: "k".into(), digest: [1; 32] });
        call.outlives = Some(Outlives { after: limits::PROMOTE_AFTER, when_away: true, grant: "grant".into() });
    })
}

fn answer(desk: &mut Desk, call: &CallId, answer: StoreAnswer) {
    desk.tell(Input::Stored { call: call.clone(), answer });
}

fn asked(desk: &Desk) -> Vec<&'static str> {
    let name = |request: &StoreRequest| match request {
        StoreRequest::Reserve { .. } => "reserve",
        StoreRequest::Keep { .. } => "keep",
        StoreRequest::Assign { .. } => "assign",
        StoreRequest::Finish { frees_key: false, .. } => "finish",
        StoreRequest::Finish { frees_key: true, .. } => "finish and free",
        StoreRequest::Forget { .. } => "forget",
        StoreRequest::Hold { .. } => "hold",
    };
    desk.store.iter().map(name).collect()
}

fn end(desk: &Desk) -> Result<&str, Code> {
    match desk
        .store
        .iter()
        .rev()
        .find_map(|r| if let StoreRequest::Finish { outcome, .. } = r { Some(outcome) } else { None })
    {
        Some(Ok(raw)) => Ok(raw.get()),
        Some(Err(error)) => Err(error.code),
        None => panic!("no end in the store"),
    }
}

/// Opens a call and promotes it on a ready link.
fn promoted(desk: &mut Desk, socket: SocketId) -> (CallId, KeptId) {
    let waiter = task(desk);
    let call = desk.id(waiter);
    desk.pass_alive(socket, limits::PROMOTE_AFTER);
    answer(desk, &call, StoreAnswer::Kept);
    (call, desk.kept[&waiter].clone())
}

#[test]
fn a_call_that_lasts_is_promoted_after_its_time_and_its_handle_is_told_only_when_it_is_committed() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = task(&mut desk);
    let call = desk.id(waiter);
    assert_eq!(desk.calls(socket), std::slice::from_ref(&call));
    desk.pass_alive(socket, limits::PROMOTE_AFTER - MS);
    assert!(desk.store.is_empty());
    desk.pass_alive(socket, MS);
    assert_eq!((asked(&desk), desk.kept.len()), (vec!["keep"], 0));
    let Some(StoreRequest::Keep { handle, grant, record, .. }) = desk.store.last() else { panic!() };
    assert_eq!((&**grant, record.instance.clone()), ("grant", Some(holdfast(1).instance)));
    let handle = handle.clone();
    answer(&mut desk, &call, StoreAnswer::Kept);
    assert_eq!(desk.kept[&waiter], handle);
    assert_eq!(desk.pending().promoted, 1);
}

#[test]
fn a_client_that_leaves_before_the_handle_is_told_cancels_and_one_that_leaves_after_it_does_not() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let early = task(&mut desk);
    desk.pass_alive(socket, limits::PROMOTE_AFTER);
    desk.leave(early);
    assert_eq!(desk.cancels(socket), [desk.id(early)]);
    assert_eq!(asked(&desk), ["keep", "forget"]);
    let call = desk.id(early);
    answer(&mut desk, &call, StoreAnswer::Kept);
    assert!(desk.kept.is_empty());

    let waiter = task(&mut desk);
    let call = desk.id(waiter);
    desk.pass_alive(socket, limits::PROMOTE_AFTER);
    answer(&mut desk, &call, StoreAnswer::Kept);
    desk.leave(waiter);
    assert_eq!(desk.cancels(socket).len(), 1);
    desk.finish(socket, &call, "[1.10]");
    assert_eq!(end(&desk), Ok("[1.10]"));
    desk.pass(limits::ACK_DELAY);
    assert!(!desk.acks(socket).contains(&(call.clone(), true)), "not before it is committed");
    answer(&mut desk, &call, StoreAnswer::Committed);
    desk.pass(limits::ACK_DELAY);
    assert!(desk.acks(socket).contains(&(call, true)));
    assert_eq!(desk.pending().active, 0);
}

#[test]
fn a_result_that_comes_while_the_handle_is_written_is_the_answer_and_the_record_goes() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = task(&mut desk);
    let call = desk.id(waiter);
    desk.pass_alive(socket, limits::PROMOTE_AFTER);
    desk.finish(socket, &call, "1");
    assert_eq!((desk.got(waiter), asked(&desk)), (Some("1"), vec!["keep", "forget"]));
    answer(&mut desk, &call, StoreAnswer::Kept);
    desk.commit(waiter);
    assert_eq!((desk.kept.len(), desk.pending().active), (0, 0));
}

#[test]
fn a_handle_that_cannot_be_committed_leaves_the_call_a_plain_one_and_is_tried_again() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = task(&mut desk);
    let call = desk.id(waiter);
    desk.pass_alive(socket, limits::PROMOTE_AFTER);
    answer(&mut desk, &call, StoreAnswer::NotKept);
    assert!(desk.kept.is_empty() && desk.cancels(socket).is_empty());
    desk.pass_alive(socket, limits::PROMOTE_AGAIN);
    assert_eq!(asked(&desk), ["keep", "keep"]);
    answer(&mut desk, &call, StoreAnswer::NotKept);
    desk.finish(socket, &call, "1");
    assert_eq!((desk.got(waiter), desk.store.len()), (Some("1"), 2));
}

#[test]
fn while_the_device_is_away_a_task_is_made_at_once_and_waits_an_hour() {
    let mut desk = Desk::new();
    let waiter = task(&mut desk);
    let call = desk.id(waiter);
    answer(&mut desk, &call, StoreAnswer::Kept);
    assert!(desk.kept.contains_key(&waiter));
    desk.pass(limits::QUEUE_TTL - MS);
    assert_eq!(desk.pending().queued, 1);
    desk.pass(MS);
    assert_eq!((end(&desk), desk.pending().active), (Err(Code::Unavailable), 0));
}

#[test]
fn a_task_that_waited_for_its_device_is_told_to_the_record_before_it_is_sent() {
    let mut desk = Desk::new();
    let waiter = task(&mut desk);
    let call = desk.id(waiter);
    answer(&mut desk, &call, StoreAnswer::Kept);
    desk.pass(S * 1800);
    let socket = desk.ready(&holdfast(1));
    assert_eq!((desk.calls(socket).len(), asked(&desk)), (0, vec!["keep", "assign"]));
    answer(&mut desk, &call, StoreAnswer::Committed);
    assert_eq!(desk.calls(socket), [call]);
}

#[test]
fn a_task_that_a_busy_store_could_not_assign_is_assigned_later_and_keeps_its_hour() {
    let mut desk = Desk::new();
    let waiter = task(&mut desk);
    let call = desk.id(waiter);
    answer(&mut desk, &call, StoreAnswer::Kept);
    let socket = desk.ready(&holdfast(1));
    answer(&mut desk, &call, StoreAnswer::Refused);
    desk.pass_alive(socket, limits::PROMOTE_AGAIN - MS);
    assert_eq!((asked(&desk), desk.pending().active), (vec!["keep", "assign"], 1));
    desk.pass_alive(socket, MS);
    assert_eq!(asked(&desk), ["keep", "assign", "assign"]);
    answer(&mut desk, &call, StoreAnswer::Committed);
    assert_eq!(desk.calls(socket), [call]);

    // As long as it may wait and no longer.
    let mut desk = Desk::new();
    let waiter = task(&mut desk);
    let call = desk.id(waiter);
    answer(&mut desk, &call, StoreAnswer::Kept);
    let socket = desk.ready(&holdfast(1));
    for _ in 0..limits::QUEUE_TTL.as_secs() / limits::PROMOTE_AGAIN.as_secs() {
        answer(&mut desk, &call, StoreAnswer::Refused);
        desk.pass_alive(socket, limits::PROMOTE_AGAIN);
    }
    assert_eq!((end(&desk), desk.pending().active), (Err(Code::Busy), 0));
}

#[test]
fn a_call_that_was_not_kept_while_it_was_assigned_goes_on_as_a_plain_one() {
    let mut desk = Desk::new();
    let waiter = task(&mut desk);
    let call = desk.id(waiter);
    let socket = desk.ready(&holdfast(1));
    assert_eq!(asked(&desk), ["keep", "assign"]);
    answer(&mut desk, &call, StoreAnswer::NotKept);
    answer(&mut desk, &call, StoreAnswer::Refused);
    assert_eq!(desk.calls(socket), std::slice::from_ref(&call));
    desk.finish(socket, &call, "1");
    assert_eq!((desk.got(waiter), desk.store.len()), (Some("1"), 2));
}

#[test]
fn a_link_that_is_lost_under_a_call_makes_it_a_task_at_once_and_grace_ends_it_as_unknown() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let (waiter, patient) = (task(&mut desk), after(&mut desk, S * 45, false));
    desk.lose(socket);
    assert_eq!(asked(&desk), ["keep"]);
    let call = desk.id(waiter);
    answer(&mut desk, &call, StoreAnswer::Kept);
    assert!(desk.kept.contains_key(&waiter) && !desk.kept.contains_key(&patient));
    desk.pass(limits::GRACE);
    assert_eq!(end(&desk), Err(Code::OutcomeUnknown));
    assert_eq!(
        asked(&desk),
        ["keep", "keep", "finish", "forget"],
        "whoever only waits longer takes a handle in time too"
    );
}

#[test]
fn promoted_calls_that_wait_for_their_device_have_their_own_places() {
    let mut desk = Desk::new();
    for _ in 0..limits::PROMOTED_WAITING_MAX {
        let waiter = task(&mut desk);
        let call = desk.id(waiter);
        answer(&mut desk, &call, StoreAnswer::Kept);
    }
    let beyond = task(&mut desk);
    assert_eq!(desk.store.len(), limits::PROMOTED_WAITING_MAX, "one more waits as a plain call does");
    let ordinary = limits::DEVICE_CALLS_MAX - limits::CONTROL_RESERVE;
    let plain: Vec<_> = (1..ordinary).map(|_| desk.open()).collect();
    assert!(plain.iter().all(|waiter| desk.error(*waiter).is_none()));
    let refused = desk.open();
    assert_eq!(desk.error(refused), Some((Code::Busy, true)));
    desk.pass(limits::QUEUE_WAIT);
    assert_eq!(desk.error(beyond), Some((Code::Unavailable, true)));
    assert_eq!(desk.pending().active, limits::PROMOTED_WAITING_MAX);
}

#[test]
fn what_was_sent_and_is_not_committed_fits_one_resume_calls_however_many_tasks_wait() {
    let mut desk = Desk::new();
    let mut waiters = Vec::new();
    for _ in 0..limits::PROMOTED_WAITING_MAX {
        let waiter = task(&mut desk);
        let call = desk.id(waiter);
        answer(&mut desk, &call, StoreAnswer::Kept);
        waiters.push(waiter);
    }
    let socket = desk.ready(&holdfast(1));
    for waiter in &waiters {
        let call = desk.id(*waiter);
        answer(&mut desk, &call, StoreAnswer::Committed);
    }
    let ordinary = limits::DAEMON_CALLS_MAX - limits::CONTROL_RESERVE;
    assert_eq!(desk.calls(socket).len(), ordinary);
    // Results that the store has not committed keep their places.
    for call in desk.calls(socket) {
        desk.finish(socket, &call, "1");
    }
    for waiter in &waiters {
        let call = desk.id(*waiter);
        if !desk.calls(socket).contains(&call) {
            answer(&mut desk, &call, StoreAnswer::Committed);
        }
    }
    let plain = desk.open();
    assert_eq!(desk.calls(socket).len(), limits::RESUME_IDS_MAX);
    desk.lose(socket);
    let socket = desk.prove(&holdfast(1));
    let named = desk.named(socket);
    assert_eq!((named.len(), named.contains(&desk.id(plain))), (limits::RESUME_IDS_MAX, false));
}

#[test]
fn a_keyed_call_is_reserved_first_and_then_promoted_and_a_retry_takes_the_same_handle() {
    let mut desk = Desk::new();
    let waiter = keyed_task(&mut desk);
    let call = desk.id(waiter);
    assert_eq!(asked(&desk), ["reserve"]);
    answer(&mut desk, &call, StoreAnswer::Committed);
    assert_eq!(asked(&desk), ["reserve", "keep"]);
    answer(&mut desk, &call, StoreAnswer::Kept);
    let retry = keyed_task(&mut desk);
    assert_eq!((desk.id(retry), &desk.kept[&retry]), (call.clone(), &desk.kept[&waiter]));
    desk.tell(Input::Cancel { call });
    assert_eq!(asked(&desk), ["reserve", "keep", "finish and free"]);
    assert_eq!(end(&desk), Err(Code::Cancelled));
}

#[test]
fn whoever_reads_a_promoted_call_waits_for_its_end_and_leaving_does_not_stop_it() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let (call, _) = promoted(&mut desk, socket);
    assert!(desk.board.holds(&call));
    let (reader, hasty) = (WaiterId(1000), WaiterId(1001));
    for waiter in [reader, hasty] {
        desk.tell(Input::Attend { waiter, call: call.clone() });
    }
    desk.leave(hasty);
    assert!(desk.cancels(socket).is_empty());
    desk.finish(socket, &call, "1");
    assert_eq!(desk.got(reader), None);
    answer(&mut desk, &call, StoreAnswer::Committed);
    assert_eq!(desk.got(reader), Some("1"));
    assert!(!desk.board.holds(&call));
}

#[test]
fn a_promoted_call_is_cancelled_by_word_only() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let (call, _) = promoted(&mut desk, socket);
    desk.tell(Input::Cancel { call: call.clone() });
    assert_eq!(desk.cancels(socket), [call]);
    assert_eq!((asked(&desk), end(&desk)), (vec!["keep", "finish"], Err(Code::Cancelled)));
}

#[test]
fn the_result_of_a_promoted_call_is_kept_whole() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let (call, _) = promoted(&mut desk, socket);
    let raw = format!("\"{}\"", "a".repeat(limits::KEPT_RESULT_MAX));
    desk.finish(socket, &call, &raw);
    assert_eq!(end(&desk), Ok(raw.as_str()));
}

#[test]
fn after_a_crash_a_promoted_call_is_detached_and_its_result_goes_to_its_record() {
    let mut desk = Desk::new();
    let restored = RestoredCall {
        id: CallId::mint([3; 32]),
        principal: "anna".into(),
        tool: "run_process".into(),
        key: None,
        handle: Some(KeptId::mint([4; 18])),
        instance: Some(holdfast(1).instance),
        budget: S * 60,
        control: false,
        hold_left: None,
    };
    let call = restored.id.clone();
    desk.tell(Input::Restore { calls: vec![restored] });
    assert_eq!((desk.pending().detached, desk.pending().promoted), (1, 1));
    let socket = desk.ready(&holdfast(1));
    desk.finish(socket, &call, "1");
    answer(&mut desk, &call, StoreAnswer::Committed);
    assert_eq!(end(&desk), Ok("1"));
    desk.pass(limits::ACK_DELAY);
    assert_eq!(desk.acks(socket), [(call, true)]);
}

#[test]
fn a_stopping_relay_ends_tasks_that_were_not_sent_and_leaves_the_others_to_the_next_start() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    promoted(&mut desk, socket);
    desk.lose(socket);
    let waiter = task(&mut desk);
    let call = desk.id(waiter);
    answer(&mut desk, &call, StoreAnswer::Kept);
    desk.tell(Input::Stop);
    assert_eq!(end(&desk), Err(Code::Unavailable));
    desk.pass(limits::RELAY_STOP_WAIT);
    assert_eq!(asked(&desk), ["keep", "keep", "finish and free"]);
    assert_eq!((desk.stopped, desk.board.poll_timeout(desk.now)), (1, None));
}

#[test]
fn a_call_promoted_while_its_device_falls_asleep_is_held_like_the_others() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = task(&mut desk);
    let call = desk.id(waiter);
    desk.say(socket, DaemonFrame::Suspending(Suspending {}));
    assert!(desk.store.is_empty());
    desk.lose(socket);
    answer(&mut desk, &call, StoreAnswer::Kept);
    let Some(StoreRequest::Hold { hold, .. }) = desk.store.last() else { panic!() };
    assert_eq!(*hold, Some(limits::SUSPEND_HOLD));
}

#[test]
fn a_request_that_never_gives_up_sets_no_timer_and_one_that_does_leaves_none_behind() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = after(&mut desk, S * 45, false);
    let call = desk.id(waiter);
    desk.finish(socket, &call, "1");
    desk.commit(waiter);
    desk.pass_alive(socket, S * 50);
    assert!(desk.store.is_empty());
    desk.lose(socket);
    desk.pass(limits::GRACE);
    assert_eq!(desk.board.poll_timeout(desk.now), None);
}
