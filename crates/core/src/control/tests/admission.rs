use bytes::Bytes;

use super::super::*;
use super::desk::*;
use crate::code::Code;
use crate::id::RunId;
use crate::limits;
use crate::operation::{Failure, Outcome, Request, State};
use crate::wire::worker::WorkerFrame;

#[test]
fn an_operation_is_committed_before_it_is_answered_or_sent() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    desk.mood = Mood::Slow;
    let ask = desk.start_with(|_| {});
    assert_eq!(desk.answers.get(&ask), None);
    assert_eq!(desk.told(socket), [""; 0]);
    desk.answer_all();
    let id = desk.id(ask);
    assert_eq!(desk.told(socket), ["op true"]);
    assert_eq!((desk.record(&id).state, desk.record(&id).sent_to.clone()), (State::Queued, Some(ledger(1))));
}

#[test]
fn the_same_key_and_request_is_the_same_operation_living_or_ended() {
    let mut desk = Desk::new();
    let keyed = |start: &mut Start| start.key = Some(arc("k"));
    let first = desk.start_with(keyed);
    let again = desk.start_with(keyed);
    assert_eq!(desk.id(first), desk.id(again));
    let socket = desk.live_knowing(1, &[]);
    assert_eq!(desk.told(socket), ["ready 120000", "op true"]);
    let id = desk.id(first);
    desk.say(socket, WorkerFrame::OperationReceived { request_id: id.clone() });
    desk.exit(socket, &id, 0);
    assert_eq!(desk.control.view(&id), None);
    let ended = desk.start_with(keyed);
    assert_eq!(desk.id(ended), id);
    assert_eq!(desk.store.rows.len(), 1);
}

#[test]
fn the_same_key_with_another_request_is_a_conflict_and_another_principals_key_is_not() {
    let mut desk = Desk::new();
    let first = desk.start_with(|start| start.key = Some(arc("k")));
    let other = desk.start_with(|start| (start.key, start.request) = (Some(arc("k")), exec("false")));
    assert_eq!(desk.refusal(other), Code::Conflict);
    let bob = desk.start_with(|start| (start.key, start.principal) = (Some(arc("k")), arc("bob")));
    assert_ne!(desk.id(bob), desk.id(first));
}

#[test]
fn a_rejected_operation_frees_its_key() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let first = desk.start_with(|start| start.key = Some(arc("k")));
    let id = desk.id(first);
    desk.read(socket);
    let failure = Failure::nothing_done(Code::StorageFull, "the disk is full");
    desk.say(socket, WorkerFrame::OperationRejected { request_id: id.clone(), failure: failure.clone() });
    assert_eq!(desk.outcome(&id), Some(Outcome::Failed { error: failure, started: false, evidence: None }));
    let second = desk.start_with(|start| start.key = Some(arc("k")));
    assert_ne!(desk.id(second), id);
    assert_eq!(desk.told(socket), ["op true"]);
}

#[test]
fn an_expired_operation_frees_its_key() {
    let mut desk = Desk::new();
    let first = desk.start_with(|start| (start.key, start.ttl) = (Some(arc("k")), Some(S * 60)));
    let id = desk.id(first);
    desk.pass(S * 59);
    assert_eq!(desk.outcome(&id), None);
    desk.pass(S);
    assert_eq!(desk.outcome(&id), Some(Outcome::Expired {}));
    let second = desk.start_with(|start| start.key = Some(arc("k")));
    assert_ne!(desk.id(second), id);
}

#[test]
fn a_full_store_refuses_admission_and_admits_again_by_itself() {
    let mut desk = Desk::new();
    desk.mood = Mood::Full;
    let refused = desk.start_with(|start| start.key = Some(arc("k")));
    assert_eq!(desk.answers[&refused], Err(Failure::nothing_done(Code::StorageFull, "the relay could not store it")));
    assert_eq!(desk.control.views(), []);
    desk.mood = Mood::Prompt;
    let admitted = desk.start_with(|start| start.key = Some(arc("k")));
    desk.id(admitted);
}

#[test]
fn more_than_the_device_holds_is_refused_but_a_repetition_is_still_answered() {
    let mut desk = Desk::new();
    let first = desk.start_with(|start| start.key = Some(arc("k")));
    // Half of them still on their way to the store.
    for _ in 0..(limits::OPERATIONS_HELD_MAX / 2) - 1 {
        desk.start("true");
    }
    desk.mood = Mood::Slow;
    for _ in 0..limits::OPERATIONS_HELD_MAX / 2 {
        desk.start_with(|_| {});
    }
    let more = desk.start_with(|_| {});
    assert_eq!(desk.refusal(more), Code::LimitExceeded);
    let again = desk.start_with(|start| start.key = Some(arc("k")));
    let new_key = desk.start_with(|start| start.key = Some(arc("l")));
    desk.mood = Mood::Prompt;
    desk.answer_all();
    assert_eq!(desk.id(again), desk.id(first));
    assert_eq!(desk.refusal(new_key), Code::LimitExceeded);
    assert_eq!(desk.control.snapshot().held, limits::OPERATIONS_HELD_MAX);
}

#[test]
fn input_beyond_what_a_run_lets_wait_is_refused_before_it_is_admitted_and_admitted_once_some_was_taken() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (_, run) = desk.running(socket);
    let (_, other) = desk.running(socket);
    let first = desk.input(&run, "0");
    for _ in 1..limits::WORKER_RUN_INPUTS_MAX / 2 {
        desk.input(&run, "more");
    }
    // Half of them still on their way to the store.
    desk.mood = Mood::Slow;
    let input = |start: &mut Start, run: &RunId| {
        let request = Request::ExecStdin { data: Bytes::from_static(b"x"), close: false };
        (start.run_id, start.request) = (Some(run.clone()), request);
    };
    for _ in 0..limits::WORKER_RUN_INPUTS_MAX / 2 {
        desk.start_with(|start| input(start, &run));
    }
    let refused = desk.start_with(|start| input(start, &run));
    let answer = desk.answers[&refused].clone().unwrap_err();
    assert_eq!((answer.code, answer.retryable), (Code::Busy, true));
    let elsewhere = desk.start_with(|start| input(start, &other));
    desk.mood = Mood::Prompt;
    desk.answer_all();
    desk.id(elsewhere);
    let keyed = desk.start_with(|start| {
        input(start, &run);
        start.key = Some(arc("k"));
    });
    assert_eq!(desk.refusal(keyed), Code::Busy);
    desk.read(socket);
    let outcome = Outcome::Completed { exit: None, value: None };
    desk.say(socket, WorkerFrame::OperationReceived { request_id: first.clone() });
    desk.say(socket, WorkerFrame::OperationCompleted { request_id: first, outcome });
    let again = desk.start_with(|start| {
        input(start, &run);
        start.key = Some(arc("k"));
    });
    desk.id(again);
    let full = desk.start_with(|start| input(start, &run));
    assert_eq!(desk.refusal(full), Code::Busy);
}

#[test]
fn what_nobody_could_admit_is_refused_without_asking_the_store() {
    let mut desk = Desk::new();
    desk.mood = Mood::Slow;
    let empty = desk.start_with(|start| start.request = exec(""));
    let key = desk.start_with(|start| start.key = Some("k".repeat(129).into()));
    let nothing = desk.start_with(|start| start.key = Some(arc("")));
    let session = desk.start_with(|start| start.session_id = Some("s".repeat(129)));
    let run = desk.start_with(|start| start.request = Request::PtyClose {});
    // Each file within its bounds, all of them no frame.
    let file = serde_json::json!({"filename": "f", "sha256": "0".repeat(64), "size": 1, "url": "u".repeat(4096)});
    let files = serde_json::json!({"type": "file_sync", "target": ".", "files": vec![file; 200]});
    let large = desk.start_with(|start| start.request = serde_json::from_value(files).unwrap());
    for ask in [empty, key, nothing, session, run, large] {
        assert_eq!(desk.refusal(ask), Code::InvalidRequest);
    }
    assert_eq!(desk.waiting.len(), 0);
}

#[test]
fn input_is_admitted_only_for_a_living_run() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.input(&run, "a");
    desk.exit(socket, &id, 0);
    let close = Request::ExecStdin { data: bytes::Bytes::new(), close: true };
    let late = desk.start_with(|start| (start.run_id, start.request) = (Some(run.clone()), close));
    assert_eq!(desk.refusal(late), Code::NotFound);
}

#[test]
fn what_a_devices_operations_ask_is_bounded_together() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let large = || {
        let file = serde_json::json!({"filename": "f", "sha256": "0".repeat(64), "size": 1, "url": "u".repeat(4096)});
        let files = serde_json::json!({"type": "file_sync", "target": ".", "files": vec![file; 120]});
        serde_json::from_value::<Request>(files).unwrap()
    };
    let size = serde_json::to_vec(&large()).unwrap().len();
    let fit = limits::OPERATIONS_HELD_BYTES / size;
    let mut first = None;
    // The last of them is still on its way to the store.
    for n in 0..fit {
        desk.mood = if n + 1 == fit { Mood::Slow } else { Mood::Prompt };
        let ask = desk.start_with(|start| start.request = large());
        first = first.or_else(|| Some(desk.id(ask)));
    }
    let more = desk.start_with(|start| start.request = large());
    assert_eq!(desk.refusal(more), Code::LimitExceeded);
    desk.mood = Mood::Prompt;
    desk.answer_all();
    let more = desk.start_with(|start| start.request = large());
    assert_eq!(desk.refusal(more), Code::LimitExceeded);
    desk.start("a small one has room");
    desk.read(socket);
    let outcome = Outcome::Completed { exit: None, value: None };
    desk.say(socket, WorkerFrame::OperationCompleted { request_id: first.unwrap(), outcome });
    let again = desk.start_with(|start| start.request = large());
    desk.id(again);
}
