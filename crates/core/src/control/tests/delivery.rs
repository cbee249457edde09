use std::time::Duration;

use super::desk::*;
use crate::code::Code;
use crate::id::OperationId;
use crate::limits;
use crate::operation::{Failure, Outcome, Request, State};
use crate::wire::worker::{ControlFrame, WorkerFrame};

#[test]
fn what_was_admitted_while_the_worker_was_away_is_sent_in_order_when_it_is_back() {
    let mut desk = Desk::new();
    for line in ["one", "two", "three"] {
        desk.start(line);
    }
    desk.pass(S * 600);
    let socket = desk.live_knowing(1, &[]);
    assert_eq!(desk.told(socket), ["ready 120000", "op one", "op two", "op three"]);
    assert_eq!(desk.told(socket), [""; 0]);
}

#[test]
fn nothing_is_sent_before_the_worker_said_what_it_has_and_a_replay_keeps_nothing_waiting() {
    let mut desk = Desk::new();
    desk.start("one");
    let (socket, recovery, _) = desk.greet(1);
    assert_eq!(desk.told(socket), [""; 0]);
    desk.state(socket, 1, &recovery, Vec::new());
    assert_eq!(desk.told(socket), ["lease 120000", "op one"]);
}

#[test]
fn an_operation_stands_as_sent_before_it_is_sent_and_nothing_overtakes_it() {
    let mut desk = Desk::new();
    let one = desk.start("one");
    let two = desk.start("two");
    desk.mood = Mood::Slow;
    let socket = desk.live_knowing(1, &[]);
    assert_eq!(desk.told(socket), ["ready 120000"]);
    assert!(desk.answer_one());
    assert_eq!(desk.committed.last().unwrap(), &format!("Sent({one}, {})", ledger(1)));
    assert_eq!(desk.told(socket), ["op one"]);
    assert_eq!(desk.record(&two).sent_to, None);
    desk.answer_all();
    assert_eq!(desk.told(socket), ["op two"]);
}

#[test]
fn a_store_that_refuses_to_note_the_sending_is_asked_again_each_second() {
    let mut desk = Desk::new();
    desk.start("one");
    desk.mood = Mood::Full;
    let socket = desk.live(1);
    desk.pass_alive(socket, S * 3);
    assert_eq!(desk.told(socket), ["lease 120000"; 0]);
    desk.mood = Mood::Prompt;
    desk.pass(S);
    assert_eq!(desk.told(socket), ["op one"]);
}

#[test]
fn only_what_was_never_sent_expires() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let sent = desk.start("sent");
    assert_eq!(desk.told(socket), ["op sent"]);
    desk.close(socket);
    let waits = desk.start("waits");
    desk.pass(TTL);
    assert_eq!(desk.outcome(&waits), Some(Outcome::Expired {}));
    assert_eq!((desk.outcome(&sent), desk.record(&sent).state), (None, State::Queued));
}

#[test]
fn the_time_to_live_counts_on_through_a_restart_of_the_relay_and_its_sleep() {
    let mut desk = Desk::new();
    let id = desk.start("one");
    desk.pass(S * 600);
    desk.crash();
    desk.pass(TTL - S * 601);
    assert_eq!(desk.outcome(&id), None);
    desk.now = desk.now.slept(S);
    desk.pass(Duration::ZERO);
    assert_eq!(desk.outcome(&id), Some(Outcome::Expired {}));
}

#[test]
fn an_operation_that_was_to_go_at_once_and_did_not_may_still_expire_or_go_to_another_ledger() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let one = desk.start_with(|start| start.ttl = Some(S * 60));
    let one = desk.id(one);
    let two = desk.start("two");
    desk.close(socket);
    assert_eq!(desk.record(&one).sent_to, Some(ledger(1)));
    desk.pass(S * 60);
    assert_eq!(desk.outcome(&one), Some(Outcome::Expired {}));
    let socket = desk.live_knowing(2, &[]);
    assert_eq!(desk.told(socket), ["ready 120000", "op two"]);
    assert_eq!(desk.record(&two).sent_to, Some(ledger(2)));
}

#[test]
fn a_relay_that_was_killed_sends_what_it_had_not_sent_in_the_old_order() {
    let mut desk = Desk::new();
    for line in ["one", "two", "three"] {
        desk.start(line);
    }
    desk.crash();
    desk.start("four");
    let socket = desk.live_knowing(1, &[]);
    assert_eq!(desk.told(socket), ["ready 120000", "op one", "op two", "op three", "op four"]);
}

#[test]
fn inputs_go_in_the_order_in_which_they_came_after_their_run() {
    let mut desk = Desk::new();
    let id = desk.start("cat");
    let run = desk.run(&id);
    for text in ["a", "b"] {
        desk.input(&run, text);
    }
    let socket = desk.live_knowing(1, &[]);
    desk.input(&run, "c");
    assert_eq!(desk.told(socket)[1..], ["op cat", "stdin a", "stdin b", "stdin c"]);
}

#[test]
fn cancels_and_acknowledgements_go_before_operations() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.start("big");
    desk.output(socket, &run, 0, b"abc");
    desk.cancel(&id);
    assert_eq!(desk.told(socket), ["cancel", "stdout 3", "op big"]);
}

#[test]
fn readers_are_told_of_every_change_of_what_they_see() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    let view = desk.control.view(&id).unwrap();
    assert_eq!((view.record.state, view.ending), (State::Running, false));
    desk.changed.clear();
    desk.output(socket, &run, 0, b"abc");
    assert_eq!(desk.changed, std::slice::from_ref(&id));
    let mut stalled = report(&id, State::Running);
    stalled.output_stalled = Some(7);
    stalled.written = [(crate::operation::Stream::Stdout, 10)].into();
    desk.say(socket, WorkerFrame::OperationState(stalled));
    let view = desk.control.view(&id).unwrap();
    assert_eq!((view.output_stalled, desk.control.snapshot().behind), (Some(7), 7));
    assert_eq!(desk.changed, [id.clone(), id.clone()]);
    desk.exit(socket, &id, 10);
    assert_eq!(desk.control.view(&id).map(|view| view.ending), Some(true));
}

#[test]
fn the_state_survives_a_restart_of_the_relay_while_the_worker_is_away() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, _) = desk.running(socket);
    desk.crash();
    assert_eq!(desk.control.view(&id).unwrap().record.state, State::Running);
    assert!(!desk.control.snapshot().live);
}

#[test]
fn a_worker_that_confirms_nothing_is_sent_only_a_few_and_the_rest_still_expires() {
    let mut desk = Desk::new();
    let ids: Vec<_> = (0..40).map(|n| desk.start(&n.to_string())).collect();
    let socket = desk.live_knowing(1, &[]);
    let later = desk.start("later");
    let few = limits::CONTROL_UNRECEIVED_MAX;
    let sent: Vec<String> = (0..few).map(|n| format!("op {n}")).collect();
    assert_eq!(desk.told(socket), [vec!["ready 120000".to_owned()], sent].concat());
    let stand_as_sent = |desk: &Desk| desk.store.rows.values().filter(|row| row.record.sent_to.is_some()).count();
    assert_eq!(stand_as_sent(&desk), few);
    // One for one, in order.
    desk.say(socket, WorkerFrame::OperationReceived { request_id: ids[3].clone() });
    assert_eq!(desk.told(socket), ["op 16"]);
    desk.say(socket, WorkerFrame::OperationState(report(&ids[5], State::Running)));
    assert_eq!(desk.told(socket), ["op 17"]);
    let failure = Failure::new(Code::PolicyDenied, "no");
    desk.say(socket, WorkerFrame::OperationRejected { request_id: ids[0].clone(), failure });
    assert_eq!(desk.told(socket), ["op 18"]);
    desk.close(socket);
    desk.pass(TTL);
    for id in ids[19..].iter().chain([&later]) {
        assert_eq!(desk.outcome(id), Some(Outcome::Expired {}));
    }
    desk.live(2);
    let unknown = desk.store.rows.values().filter(|row| row.record.state == State::Unknown).count();
    assert_eq!(unknown, few + 2, "those that were sent and have not ended");
}

#[test]
fn a_long_queue_comes_to_a_worker_in_the_order_of_its_admission() {
    let mut desk = Desk::new();
    let names: Vec<String> = (0..100).map(|n| format!("op {n}")).collect();
    (0..60).for_each(|n| drop(desk.start(&n.to_string())));
    let socket = desk.live_knowing(1, &[]);
    desk.mood = Mood::Slow;
    for n in 60..100 {
        desk.start_with(|start| start.request = exec(&n.to_string()));
    }
    desk.mood = Mood::Prompt;
    desk.answer_all();
    let mut told = Vec::new();
    loop {
        let frames = desk.read(socket);
        let received: Vec<_> = frames
            .iter()
            .filter_map(|frame| match frame {
                ControlFrame::Operation(operation) => Some(operation.request_id.clone()),
                _ => None,
            })
            .collect();
        told.extend(frames.iter().filter(|frame| matches!(frame, ControlFrame::Operation(_))).map(short));
        if received.is_empty() {
            break;
        }
        for request_id in received {
            desk.say(socket, WorkerFrame::OperationReceived { request_id });
        }
    }
    assert_eq!(told, names);
}

fn states(desk: &Desk, ids: &[OperationId]) -> Vec<State> {
    ids.iter().map(|id| desk.record(id).state).collect()
}

#[test]
fn input_that_expires_takes_what_was_written_after_it_with_it() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    let (other_id, other) = desk.running(socket);
    desk.close(socket);
    let first = desk.input(&run, "a");
    desk.pass(TTL / 2);
    let rest = ["b", "c"].map(|text| desk.input(&run, text));
    let elsewhere = desk.input(&other, "x");
    desk.pass(TTL / 2);
    assert_eq!(states(&desk, &[first, rest[0].clone(), rest[1].clone()]), [State::Expired; 3]);
    let socket = desk.live_knowing(1, &[(&id, State::Running), (&other_id, State::Running)]);
    assert_eq!(desk.told(socket), ["ready 120000", "stdin x"]);
    assert_eq!(desk.record(&elsewhere).state, State::Queued);
    // What is written from then on is another matter.
    desk.input(&run, "d");
    assert_eq!(desk.told(socket), ["stdin d"]);
}

#[test]
fn input_that_is_refused_leaves_no_hole_before_what_waits_or_is_being_admitted() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (_, run) = desk.running(socket);
    let first = desk.input(&run, "a");
    desk.read(socket);
    let second = desk.input(&run, "b");
    desk.mood = Mood::Slow;
    let request = Request::ExecStdin { data: bytes::Bytes::from_static(b"c"), close: false };
    let ask = desk.start_with(|start| (start.run_id, start.request) = (Some(run.clone()), request));
    let failure = Failure::nothing_done(Code::StorageFull, "full");
    desk.say(socket, WorkerFrame::OperationRejected { request_id: first.clone(), failure });
    desk.mood = Mood::Prompt;
    desk.answer_all();
    let third = desk.id(ask);
    assert_eq!(states(&desk, &[first.clone(), second.clone(), third]), [State::Failed; 3]);
    assert_eq!(desk.told(socket), [""; 0]);
    let Some(Outcome::Failed { error, started: false, .. }) = desk.outcome(&second) else { panic!() };
    assert_eq!((error.code, error.retryable), (Code::StorageFull, true));
    let ends: Vec<_> = desk.committed.iter().filter(|change| change.contains("failed")).cloned().collect();
    assert_eq!(ends[..2], [&second, &first].map(|id| format!("End({id}, failed, key freed)")), "the last first");
    desk.input(&run, "d");
    assert_eq!(desk.told(socket), ["stdin d"]);
}

#[test]
fn an_end_that_is_told_again_ends_nothing_that_was_written_since() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (_, run) = desk.running(socket);
    let first = desk.input(&run, "a");
    desk.read(socket);
    desk.mood = Mood::Slow;
    let error = Failure::nothing_done(Code::Unavailable, "not taken");
    let outcome = Outcome::Failed { error, started: false, evidence: None };
    let told = WorkerFrame::OperationCompleted { request_id: first, outcome };
    desk.say(socket, told.clone());
    let request = Request::ExecStdin { data: bytes::Bytes::from_static(b"b"), close: false };
    let ask = desk.start_with(|start| (start.run_id, start.request) = (Some(run.clone()), request));
    desk.say(socket, told);
    desk.mood = Mood::Prompt;
    desk.answer_all();
    assert_eq!(states(&desk, &[desk.id(ask)]), [State::Queued]);
    assert!(desk.told(socket).contains(&"stdin b".into()));
}

#[test]
fn input_names_the_one_before_it_as_long_as_that_may_still_fail() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (_, run) = desk.running(socket);
    let ids = ["a", "b"].map(|text| desk.input(&run, text));
    let after = |frames: Vec<ControlFrame>| -> Vec<Option<OperationId>> {
        let of = |frame| if let ControlFrame::Operation(operation) = frame { Some(operation.after) } else { None };
        frames.into_iter().filter_map(of).collect()
    };
    assert_eq!(after(desk.read(socket)), [None, Some(ids[0].clone())]);
    for id in &ids {
        let outcome = Outcome::Completed { exit: None, value: None };
        desk.say(socket, WorkerFrame::OperationReceived { request_id: id.clone() });
        desk.say(socket, WorkerFrame::OperationCompleted { request_id: id.clone(), outcome });
    }
    desk.input(&run, "c");
    desk.start("other");
    assert_eq!(after(desk.read(socket)), [None, None]);
}
