//! Admitted once, known again, refused, cancelled before it came.

use super::*;
use crate::limits;
use crate::wire::worker::CLOSE_PROTOCOL;

#[test]
fn an_operation_is_received_only_when_it_stands_in_the_ledger_and_starts_after_that() {
    let mut rig = Rig::live();
    rig.holding = true;
    rig.send(exec(1));
    assert_eq!(rig.kinds(), [""; 0]);
    assert_eq!(rig.launched(), None);
    rig.commit_next();
    rig.settle();
    assert_eq!(rig.kinds(), ["operation_received"]);
    assert_eq!(rig.launched(), None, "the try is not committed yet");
    rig.release();
    let launch = rig.launched().unwrap();
    assert_eq!((launch.operation, launch.attempt, launch.lease), (exec(1), 1, None));
    assert_eq!(launch.quota, limits::SPOOL_RUN_MAX);
    assert_eq!(rig.state(1), State::Starting);
}

#[test]
fn the_same_again_is_answered_and_never_started_again() {
    let mut rig = Rig::live();
    rig.holding = true;
    rig.send(exec(1));
    rig.send(exec(1));
    rig.release();
    rig.send(exec(1));
    assert_eq!(rig.kinds(), ["operation_received", "operation_received"]);
    assert!(rig.launched().is_some());
    assert_eq!(rig.launched(), None);
    rig.attach(1, 1, 0);
    rig.run(1, 1, RunNews::Ended(ended(3, 0)));
    assert_eq!(rig.kinds(), ["exec_exit"]);
    rig.say(ControlFrame::ExecTerminalAck { run_id: run(1) });
    assert!(rig.has(&Output::Remove(run(1), 1)));
    rig.send(exec(1));
    let answer =
        WorkerFrame::ExecExit { request_id: op(1), run_id: run(1), outcome: completed(3), written: streams(0) };
    assert_eq!(rig.written(), [WorkerFrame::OperationReceived { request_id: op(1) }, answer]);
    assert_eq!(rig.launched(), None);
}

#[test]
fn another_operation_under_a_known_id_is_a_conflict_and_the_socket_stays() {
    let mut rig = Rig::live();
    let other = asked(1, Some(1), &json!({"type": "exec", "command": {"argv": ["other"]}}));
    rig.holding = true;
    rig.send(exec(1));
    rig.send(other.clone());
    assert_eq!(refusal(&rig.written()), Code::Conflict);
    rig.release();
    rig.send(other.clone());
    let frames = rig.written();
    assert_eq!(refusal(&frames[1..]), Code::Conflict);
    rig.attach(1, 1, 0);
    rig.run(1, 1, RunNews::Ended(ended(0, 0)));
    rig.say(ControlFrame::ExecTerminalAck { run_id: run(1) });
    rig.written();
    rig.send(other);
    assert_eq!(refusal(&rig.written()), Code::Conflict);
    assert_eq!(rig.worker.state(), LinkState::Healthy);
}

#[test]
fn what_the_policy_refuses_is_refused_only_when_it_is_new() {
    let mut rig = Rig::live();
    let denied = || Err(Failure::new(Code::PolicyDenied, "not here"));
    let frame = ControlFrame::Operation(exec(1));
    rig.tell(Input::Frame(rig.socket, frame.clone(), denied()));
    assert_eq!(refusal(&rig.written()), Code::PolicyDenied);
    assert_eq!(rig.ledger.rows, []);
    rig.tell(Input::Frame(rig.socket, frame.clone(), Ok(())));
    rig.tell(Input::Frame(rig.socket, frame, denied()));
    assert_eq!(rig.kinds(), ["operation_received", "operation_received"]);
}

#[test]
fn a_full_disk_refuses_what_is_new_knows_what_is_old_and_opens_again_by_itself() {
    let mut rig = Rig::live();
    rig.send(exec(1));
    rig.written();
    rig.failing = Some(LedgerError::Full);
    rig.send(exec(2));
    assert_eq!(refusal(&rig.written()), Code::StorageFull);
    rig.failing = None;
    rig.send(exec(2));
    assert_eq!(refusal(&rig.written()), Code::StorageFull, "not tried again at once");
    rig.send(exec(1));
    assert_eq!(rig.kinds(), ["operation_received"]);
    assert!(rig.worker.snapshot(rig.now).full_since.is_some());
    rig.pass(S);
    rig.send(exec(2));
    assert_eq!(rig.kinds(), ["operation_received"]);
    rig.tell(Input::Storage { full: true, free: Some(0) });
    rig.send(exec(3));
    assert_eq!(refusal(&rig.written()), Code::StorageFull);
    rig.tell(Input::Storage { full: false, free: None });
    rig.send(exec(3));
    assert_eq!(rig.kinds(), ["operation_received"]);
}

#[test]
fn what_the_relay_has_everything_of_takes_no_place_from_what_it_sends_next() {
    let mut rig = Rig::live();
    for n in 0..=255 {
        rig.send(exec(n));
        rig.run(n, 1, RunNews::Void(Some(Failure::new(Code::Unavailable, "no runner"))));
    }
    rig.written();
    rig.send(other());
    assert_eq!(refusal(&rig.written()), Code::LimitExceeded);
    rig.holding = true;
    rig.say(ControlFrame::ExecTerminalAck { run_id: run(0) });
    rig.send(other());
    rig.release();
    assert_eq!(rig.kinds(), ["operation_received"], "the first is leaving");
}

/// One more than there are numbers.
fn other() -> Operation {
    let mut name = [0; 16];
    name[0] = 1;
    Operation { request_id: OperationId::mint(name), run_id: Some(RunId::mint(name)), ..exec(0) }
}

#[test]
fn a_refusal_for_want_of_room_looks_whether_it_stood_there_before() {
    let mut rig = Rig::live();
    rig.send(exec(1));
    rig.attach(1, 1, 0);
    rig.run(1, 1, RunNews::Ended(ended(0, 0)));
    rig.say(ControlFrame::ExecTerminalAck { run_id: run(1) });
    rig.written();
    rig.failing = Some(LedgerError::Full);
    rig.send(exec(1));
    assert_eq!(rig.kinds(), ["operation_received", "exec_exit"]);
}

#[test]
fn more_than_it_may_hold_is_refused() {
    let mut rig = Rig::live();
    for n in 0..limits::OPERATIONS_HELD_MAX {
        let id = OperationId::mint([&[7; 14][..], &(n as u16).to_be_bytes()].concat().try_into().unwrap());
        let run_id = RunId::mint([&[7; 14][..], &(n as u16).to_be_bytes()].concat().try_into().unwrap());
        rig.send(Operation { request_id: id, run_id: Some(run_id), ..exec(1) });
    }
    rig.written();
    rig.send(exec(1));
    assert_eq!(refusal(&rig.written()), Code::LimitExceeded);
    let launches = std::iter::from_fn(|| rig.launched()).count();
    assert_eq!(launches, limits::WORKER_RUNS_MAX);
}

#[test]
fn a_malformed_operation_is_refused_and_an_unreadable_one_too() {
    let mut rig = Rig::live();
    rig.send(Operation { run_id: None, ..exec(1) });
    assert_eq!(refusal(&rig.written()), Code::InvalidRequest);
    let text = format!(r#"{{"type":"exec","requestId":"{}","command":7}}"#, op(2));
    let error = ControlFrame::decode(&text).unwrap_err();
    rig.tell(Input::Unreadable(rig.socket, error, ControlFrame::request_id(&text)));
    assert_eq!(refusal(&rig.written()), Code::InvalidRequest);
    rig.tell(Input::Unreadable(rig.socket, error, None));
    assert!(rig.has(&Output::Close(rig.socket, CLOSE_PROTOCOL.0, CLOSE_PROTOCOL.1)));
}

#[test]
fn a_cancel_that_comes_before_its_operation_keeps_it_from_ever_starting() {
    let mut rig = Rig::live();
    rig.cancel(1);
    assert_eq!(rig.written(), [WorkerFrame::CancelResult { request_id: op(1), state: State::Cancelled }]);
    rig.restart();
    rig.connect();
    rig.send(exec(1));
    assert_eq!(rig.kinds(), ["operation_received", "exec_exit"]);
    assert_eq!(rig.outcome(1), Outcome::Cancelled { started: false, exit: None });
    assert_eq!(rig.launched(), None);
    rig.say(ControlFrame::ExecTerminalAck { run_id: run(1) });
    assert!(rig.ledger.rows[0].acked);
}

#[test]
fn a_cancel_is_answered_only_when_it_stands_in_the_ledger() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.written();
    rig.failing = Some(LedgerError::Full);
    rig.cancel(1);
    assert_eq!(rig.asks(1), [Ask::Kill {}], "but it takes effect at once");
    assert_eq!(rig.kinds(), [""; 0]);
    rig.failing = None;
    rig.pass(S);
    assert_eq!(rig.written(), [WorkerFrame::CancelResult { request_id: op(1), state: State::Running }]);
    rig.run(1, 1, RunNews::Ended(End { killed: true, ..ended(143, 0) }));
    assert_eq!(rig.outcome(1), Outcome::Cancelled { started: true, exit: Some(exit(143)) });
    rig.cancel(1);
    let frames = rig.written();
    assert_eq!(frames[0], WorkerFrame::CancelResult { request_id: op(1), state: State::Cancelled });
}

#[test]
fn a_cancel_that_overtakes_the_start_leaves_it_not_started() {
    let mut rig = Rig::live();
    rig.holding = true;
    rig.send(exec(1));
    rig.cancel(1);
    rig.release();
    assert_eq!(rig.kinds(), ["operation_received", "cancel_result", "exec_exit"]);
    rig.holding = true;
    rig.send(exec(2));
    rig.commit_next();
    rig.settle();
    rig.cancel(2);
    rig.release();
    assert_eq!(rig.outcome(2), Outcome::Cancelled { started: false, exit: None });
    assert_eq!(rig.launched(), None);
}

#[test]
fn a_cancelled_session_ends_what_runs_and_what_would_come() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    let other = Operation { session_id: Some("other".into()), ..exec(2) };
    rig.started(other);
    rig.written();
    rig.say(ControlFrame::CancelSession { session_id: "s".into(), cancellation_id: "c".into() });
    assert_eq!(rig.written(), [WorkerFrame::CancelSessionAck { cancellation_id: "c".into() }]);
    assert_eq!((rig.asks(1), rig.asks(2)), (vec![Ask::Kill {}], vec![]));
    rig.send(exec(3));
    assert_eq!(rig.kinds(), ["operation_received", "exec_exit"]);
    assert_eq!(rig.outcome(3), Outcome::Cancelled { started: false, exit: None });
    assert_eq!(rig.launched(), None);
}

#[test]
fn a_refusal_of_what_came_on_an_earlier_connection_is_not_said_on_the_next_one() {
    let mut rig = Rig::live();
    rig.holding = true;
    rig.send(exec(1));
    rig.lose();
    rig.open();
    rig.request(2, &[1], &[]);
    assert_eq!(rig.held.len(), 2, "the admission, and what the relay asks");
    rig.failing = Some(LedgerError::Full);
    rig.commit_next();
    rig.failing = None;
    rig.release();
    assert_eq!(rig.kinds(), ["recovery_state", "recovery_complete"], "that it is not there says enough");
    rig.pass(S);
    rig.send(exec(1));
    assert_eq!(rig.kinds(), ["operation_received"]);
}

#[test]
fn whoever_cancels_everything_cancels_what_is_being_admitted_too() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.holding = true;
    rig.send(exec(2));
    rig.tell(Input::CancelAll);
    rig.tell(Input::Stop);
    rig.release();
    assert_eq!((rig.asks(1), rig.launched()), (vec![Ask::Kill {}], None));
    rig.restart();
    assert_eq!(rig.launched(), None);
    assert_eq!(rig.outcome(2), Outcome::Cancelled { started: false, exit: None });
}

#[test]
fn a_worker_that_stops_takes_nothing_more_and_hears_of_it_again_when_it_is_wanted() {
    let mut rig = Rig::live();
    rig.send(asked(3, None, &json!({"type": "create_project_branch", "path": "p", "branch": "b"})));
    rig.tell(Input::Stop);
    rig.send(exec(1));
    assert_eq!(
        rig.kinds().iter().filter(|kind| **kind != "operation_state").collect::<Vec<_>>(),
        [&"operation_received"]
    );
    assert!(rig.ledger.row(&op(1)).is_none());
    let socket = rig.socket;
    rig.tell(Input::Start);
    assert!(rig.has(&Output::Drop(socket)), "the relay takes it for sent");
    rig.open();
    let frames = rig.recover(2, &[1, 3], &[]);
    let WorkerFrame::RecoveryState { operations, .. } = &frames[0] else { panic!("{frames:?}") };
    assert_eq!(operations.iter().map(|report| report.request_id.clone()).collect::<Vec<_>>(), [op(3)]);
    rig.send(exec(1));
    assert!(rig.launched().is_some());
}

#[test]
fn input_behind_one_that_was_not_taken_is_not_taken_either() {
    let behind = |n: u8| Operation { after: Some(op(n - 1)), ..input(n, 1, "YQ==") };
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.asks(1);
    // Both on their way to the ledger, which has room again for the second one.
    rig.holding = true;
    rig.send(input(2, 1, "YQ=="));
    rig.send(behind(3));
    rig.failing = Some(LedgerError::Full);
    rig.commit_next();
    rig.failing = None;
    rig.commit_next();
    rig.settle();
    // That one's end is not committed yet when the next one comes.
    rig.send(behind(4));
    rig.release();
    assert_eq!(rig.asks(1), []);
    assert!(matches!(rig.outcome(3), Outcome::Failed { started: false, .. }), "{:?}", rig.outcome(3));
    rig.written();
    // And what comes behind that.
    rig.pass(S);
    rig.send(behind(4));
    assert_eq!(refusal(&rig.written()), Code::Unavailable);
    // One that was not sent, or was sent to another ledger.
    rig.send(behind(9));
    assert_eq!(refusal(&rig.written()), Code::Unavailable);
    rig.send(input(5, 1, "YQ=="));
    rig.send(behind(6));
    assert_eq!(rig.asks(1).len(), 2);
}
