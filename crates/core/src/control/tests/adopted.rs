//! What the store has lost and the worker still has.

use super::super::fake::Store;
use super::super::*;
use super::desk::*;
use crate::id::{OperationId, RunId};
use crate::operation::{Operation, Outcome, State, Stream, Streams};
use crate::wire::worker::{Report, WorkerFrame};

/// As an honest worker tells of what it was not asked for.
fn told(operation: &Operation, state: State) -> Report {
    let outline = Operation { request: operation.request.outline(), ..operation.clone() };
    let run_id = operation.run_id.clone();
    Report { run_id, operation: Some(Box::new(outline)), ..report(&operation.request_id, state) }
}

/// A worker runs something, and then the relay's store is set aside.
fn lost() -> (Desk, Operation) {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.output(socket, &run, 0, b"abc");
    let operation = Operation::clone(&desk.record(&id).operation);
    desk.store = Store::default();
    desk.crash();
    (desk, operation)
}

fn of(operation: &Operation) -> (OperationId, RunId) {
    (operation.request_id.clone(), operation.run_id.clone().unwrap())
}

fn says(desk: &mut Desk, socket: SocketId, run: &RunId, from: u64, to: u64) {
    let (run_id, stream) = (run.clone(), Stream::Stdout);
    desk.say(socket, WorkerFrame::ExecGap { run_id, stream, offset: from, next_offset: to });
}

#[test]
fn what_runs_is_taken_back_and_what_is_left_of_its_output_and_its_end_are_kept() {
    let (mut desk, operation) = lost();
    let (id, run) = of(&operation);
    let (socket, recovery, asked) = desk.greet(1);
    assert_eq!(asked, []);
    desk.state(socket, 1, &recovery, vec![told(&operation, State::Running)]);
    says(&mut desk, socket, &run, 0, 3);
    desk.output(socket, &run, 3, b"def");
    desk.say(socket, WorkerFrame::RecoveryComplete { recovery_id: recovery });
    assert_eq!(desk.told(socket), ["ready 120000", "stdout 6"]);
    let view = desk.control.view(&id).unwrap();
    assert_eq!((view.record.state, view.record.key), (State::Running, None));
    assert_eq!(desk.record(&id).sent_to, Some(ledger(1)));
    assert!(desk.notes.contains(&Note::Adopted { id: id.clone() }));

    desk.cancel(&id);
    assert_eq!(desk.told(socket), ["cancel"]);
    desk.crash();
    let socket = desk.live_knowing(1, &[(&id, State::Running)]);
    assert_eq!(desk.told(socket), ["ready 120000", "cancel"]);
    desk.output(socket, &run, 6, b"ghi");
    desk.exit(socket, &id, 9);
    assert_eq!((desk.outcome(&id), desk.bytes(&id)), (Some(done(0)), b"<0..3>defghi".to_vec()));
    assert_eq!(desk.told(socket), ["stdout 9", "terminal"]);
}

#[test]
fn an_end_that_was_not_acknowledged_is_taken_back_with_all_of_its_output() {
    let (mut desk, operation) = lost();
    let (id, run) = of(&operation);
    let (socket, recovery, _) = desk.greet(1);
    desk.state(socket, 1, &recovery, vec![told(&operation, State::Completed)]);
    let written = Streams::from([(Stream::Stdout, 3)]);
    let (request_id, run_id) = (id.clone(), run.clone());
    desk.say(socket, WorkerFrame::ExecExit { request_id, run_id, outcome: done(4), written });
    assert_eq!(desk.outcome(&id), None, "its output is on its way");
    desk.output(socket, &run, 0, b"abc");
    assert_eq!((desk.outcome(&id), desk.bytes(&id)), (Some(done(4)), b"abc".to_vec()));
    assert!(desk.told(socket).contains(&"terminal".to_owned()));
}

#[test]
fn nothing_is_acknowledged_before_the_store_has_taken_it_back() {
    let (mut desk, operation) = lost();
    let (id, run) = of(&operation);
    desk.mood = Mood::Full;
    let (socket, recovery, _) = desk.greet(1);
    desk.state(socket, 1, &recovery, vec![told(&operation, State::Completed)]);
    desk.output(socket, &run, 0, b"abc");
    let written = Streams::from([(Stream::Stdout, 3)]);
    let (request_id, run_id) = (id.clone(), run.clone());
    desk.say(socket, WorkerFrame::ExecExit { request_id, run_id, outcome: done(4), written });
    desk.say(socket, WorkerFrame::RecoveryComplete { recovery_id: recovery });
    assert_eq!(desk.told(socket), ["ready 120000"]);
    desk.mood = Mood::Prompt;
    desk.pass_alive(socket, crate::limits::CONTROL_RETRY);
    assert_eq!(desk.told(socket), ["stdout 3", "terminal"]);
    assert_eq!((desk.outcome(&id), desk.bytes(&id)), (Some(done(4)), b"abc".to_vec()));
}

#[test]
fn what_is_over_here_is_not_taken_back_and_the_worker_may_forget_it() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.output(socket, &run, 0, b"abc");
    desk.exit(socket, &id, 3);
    let operation = Operation::clone(&desk.record(&id).operation);
    // The acknowledgements are lost with the socket.
    desk.close(socket);
    let (socket, recovery, asked) = desk.greet(1);
    assert_eq!(asked, []);
    desk.mood = Mood::Slow;
    desk.state(socket, 1, &recovery, vec![told(&operation, State::Completed)]);
    desk.output(socket, &run, 0, b"abc");
    let written = Streams::from([(Stream::Stdout, 3)]);
    let (request_id, run_id) = (id.clone(), run.clone());
    desk.say(socket, WorkerFrame::ExecExit { request_id, run_id, outcome: done(9), written });
    desk.say(socket, WorkerFrame::RecoveryComplete { recovery_id: recovery });
    assert_eq!(desk.told(socket), ["ready 120000"]);
    desk.mood = Mood::Prompt;
    desk.answer_all();
    assert_eq!(desk.told(socket), ["stdout 3", "terminal"]);
    assert_eq!((desk.outcome(&id), desk.bytes(&id)), (Some(done(0)), b"abc".to_vec()));
    assert_eq!((desk.control.view(&id), desk.store.rows[&id].ends), (None, 1));
}

#[test]
fn a_second_operation_under_a_run_that_lives_here_is_not_taken() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, _) = desk.running(socket);
    let other = Operation { request_id: OperationId::mint([9; 16]), ..Operation::clone(&desk.record(&id).operation) };
    desk.close(socket);
    let (socket, recovery, _) = desk.greet(1);
    desk.state(socket, 1, &recovery, vec![report(&id, State::Running), told(&other, State::Running)]);
    assert_eq!(desk.control.view(&other.request_id), None);
    assert_eq!(desk.control.view(&id).unwrap().record.state, State::Running);
}

#[test]
fn a_new_ledger_makes_unknown_what_was_taken_back_from_the_old_one() {
    let (mut desk, operation) = lost();
    let (socket, recovery, _) = desk.greet(1);
    desk.state(socket, 1, &recovery, vec![told(&operation, State::Running)]);
    desk.close(socket);
    desk.live(2);
    assert!(matches!(desk.outcome(&operation.request_id), Some(Outcome::Unknown { .. })));
}
