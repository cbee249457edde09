//! Work that is no run: files, projects, the workspace's configuration.

use super::*;
use crate::limits;

fn files(n: u8) -> Operation {
    asked(n, None, &json!({"type": "file_sync", "target": "in", "manifestUrl": "https://relay/m"}))
}

fn branch(n: u8) -> Operation {
    asked(n, None, &json!({"type": "create_project_branch", "path": "p", "branch": "b"}))
}

fn config(n: u8, value: i32) -> Operation {
    asked(n, None, &json!({"type": "workspace_config", "config": {"a": value}}))
}

fn performed(rig: &mut Rig) -> Vec<OperationId> {
    let work = |output: &Output| match output {
        Output::Perform(operation) => Some(operation.request_id.clone()),
        _ => None,
    };
    std::iter::from_fn(|| rig.take(work)).collect()
}

fn done(rig: &mut Rig, n: u8) {
    rig.tell(Input::Performed(op(n), Ok(json!({"n": n}))));
}

fn value(n: u8) -> Outcome {
    Outcome::Completed { exit: None, value: Some(json!({"n": n})) }
}

#[test]
fn work_is_done_once_and_its_result_offered_until_acknowledged() {
    let mut rig = Rig::live();
    rig.send(files(1));
    assert_eq!((performed(&mut rig), rig.state(1)), (vec![op(1)], State::Running));
    done(&mut rig, 1);
    let result = WorkerFrame::OperationCompleted { request_id: op(1), outcome: value(1) };
    assert_eq!(rig.written(), [WorkerFrame::OperationReceived { request_id: op(1) }, result]);
    rig.say(ControlFrame::OperationResultAck { request_id: op(1) });
    assert!(rig.ledger.rows[0].acked);
}

#[test]
fn a_failure_of_the_network_is_a_failure_and_closes_no_socket() {
    let mut rig = Rig::live();
    rig.send(files(1));
    let failure = Failure::nothing_done(Code::NetworkError, "the host is away");
    rig.tell(Input::Performed(op(1), Err(failure.clone())));
    assert_eq!(rig.outcome(1), Outcome::Failed { error: failure, started: true, evidence: None });
    assert_eq!(rig.worker.state(), LinkState::Healthy);
}

#[test]
fn after_a_crash_what_comes_to_the_same_is_done_again_and_the_rest_is_unknown() {
    let mut rig = Rig::live();
    rig.send(files(1));
    rig.send(branch(2));
    performed(&mut rig);
    rig.restart();
    assert_eq!(performed(&mut rig), [op(1)]);
    assert_eq!(rig.state(2), State::Unknown);
    done(&mut rig, 1);
    assert_eq!(rig.outcome(1), value(1));
}

#[test]
fn what_was_only_received_is_begun_after_a_crash() {
    let mut rig = Rig::live();
    rig.holding = true;
    rig.send(branch(1));
    rig.commit_next();
    rig.settle();
    rig.restart();
    assert_eq!(performed(&mut rig), [op(1)]);
}

#[test]
fn cancelled_work_is_abandoned_and_cancelled_unless_it_was_done() {
    let mut rig = Rig::live();
    rig.send(files(1));
    rig.send(files(2));
    rig.cancel(1);
    rig.cancel(2);
    assert!(rig.has(&Output::Abandon(op(1))) && rig.has(&Output::Abandon(op(2))));
    rig.tell(Input::Performed(op(1), Err(Failure::new(Code::Cancelled, "stopped"))));
    done(&mut rig, 2);
    assert_eq!(rig.outcome(1), Outcome::Cancelled { started: true, exit: None });
    assert_eq!(rig.outcome(2), value(2));
}

#[test]
fn work_that_was_cancelled_before_a_crash_is_not_done_again() {
    let mut rig = Rig::live();
    rig.send(files(1));
    rig.cancel(1);
    rig.restart();
    assert_eq!((performed(&mut rig), rig.outcome(1)), (vec![], Outcome::Cancelled { started: true, exit: None }));
}

#[test]
fn only_so_much_is_done_at_once() {
    let mut rig = Rig::live();
    for n in 0..limits::WORKER_PERFORMS_MAX as u8 + 1 {
        rig.send(files(n));
    }
    assert_eq!(performed(&mut rig).len(), limits::WORKER_PERFORMS_MAX);
    done(&mut rig, 3);
    assert_eq!(performed(&mut rig), [op(limits::WORKER_PERFORMS_MAX as u8)]);
}

#[test]
fn the_same_configuration_again_changes_nothing_in_this_life_or_the_next() {
    let mut rig = Rig::live();
    rig.send(config(1, 7));
    assert_eq!(performed(&mut rig), [op(1)]);
    done(&mut rig, 1);
    let unchanged = Outcome::Completed { exit: None, value: Some(json!({"reused": true})) };
    rig.send(config(2, 7));
    assert_eq!((performed(&mut rig), rig.outcome(2)), (vec![], unchanged.clone()));
    rig.restart();
    rig.connect();
    rig.send(config(3, 7));
    assert_eq!((performed(&mut rig), rig.outcome(3)), (vec![], unchanged));
    rig.send(config(4, 8));
    assert_eq!(performed(&mut rig), [op(4)]);
}

#[test]
fn what_comes_after_a_configuration_waits_for_it_and_what_came_before_has_begun() {
    let mut rig = Rig::live();
    for n in 0..limits::WORKER_RUNS_MAX as u8 + 1 {
        rig.send(exec(n));
    }
    let launched = std::iter::from_fn(|| rig.launched()).count();
    assert_eq!(launched, limits::WORKER_RUNS_MAX);
    rig.send(config(100, 7));
    rig.send(files(101));
    assert_eq!(performed(&mut rig), []);
    rig.attach(0, 1, 0);
    rig.send(input(102, 0, "YQ=="));
    assert_eq!(rig.asks(0).len(), 1, "input is no new work");
    rig.run(0, 1, RunNews::Ended(ended(0, 0)));
    assert!(rig.launched().is_some());
    assert_eq!(performed(&mut rig), [op(100)]);
    done(&mut rig, 100);
    assert_eq!(performed(&mut rig), [op(101)]);
}

#[test]
fn a_stop_waits_for_what_must_not_be_cut_off_and_begins_nothing_more() {
    let mut rig = Rig::live();
    rig.send(branch(1));
    rig.send(files(2));
    performed(&mut rig);
    rig.tell(Input::Stop);
    rig.send(files(3));
    assert!(rig.has(&Output::Abandon(op(2))) && !rig.has(&Output::Abandon(op(1))));
    rig.tell(Input::Performed(op(2), Err(Failure::new(Code::Cancelled, "stopped"))));
    assert!(!rig.has(&Output::Stopped));
    done(&mut rig, 1);
    assert!(rig.has(&Output::Stopped));
    assert_eq!((rig.state(1), rig.state(2)), (State::Completed, State::Running));
    assert!(rig.ledger.row(&op(3)).is_none(), "the relay keeps it until the worker is wanted again");
    rig.restart();
    assert_eq!(performed(&mut rig), [op(2)]);
}

#[test]
fn a_stop_waits_no_longer_than_it_may() {
    let mut rig = Rig::live();
    rig.send(branch(1));
    rig.tell(Input::Stop);
    rig.pass(limits::STOP_WAIT);
    assert!(rig.has(&Output::Stopped));
}
