//! The leave to execute: what needs it waits for it, and its runner is told.

use super::*;
use crate::limits;
use crate::run::Lease;

fn renew(rig: &mut Rig) {
    rig.say(ControlFrame::WorkerExecutionLease { lease_ms: 120_000 });
}

fn lease(rig: &Rig, generation: u64, left: Duration) -> Lease {
    Lease { generation, until: Some(rig.now.boot + left) }
}

fn renewed(rig: &Rig, generation: u64, left: Duration) -> Ask {
    Ask::Lease { lease: lease(rig, generation, left) }
}

#[test]
fn work_that_must_not_run_unsupervised_starts_only_under_a_lease_and_other_work_needs_none() {
    let mut rig = Rig::new();
    rig.open();
    rig.send(supervised(1));
    rig.send(exec(2));
    let launch = rig.launched().unwrap();
    assert_eq!((launch.operation.request_id, launch.lease), (op(2), None));
    assert_eq!(rig.launched(), None);
    rig.recover(1, &[], &[]);
    let launch = rig.launched().unwrap();
    assert_eq!((launch.operation.request_id, launch.lease), (op(1), Some(lease(&rig, 0, S * 120))));
}

#[test]
fn each_renewal_is_told_to_the_runner_that_enforces_it() {
    let mut rig = Rig::live();
    rig.started(supervised(1));
    rig.started(exec(2));
    rig.asks(1);
    rig.pass_live(S * 20);
    renew(&mut rig);
    assert_eq!(rig.asks(1), [renewed(&rig, 0, S * 120)]);
    assert_eq!(rig.asks(2), []);
}

#[test]
fn an_expired_lease_leaves_running_work_to_its_runner_and_is_never_renewed_under_its_generation() {
    let mut rig = Rig::live();
    rig.started(supervised(1));
    rig.started(exec(2));
    rig.lose();
    rig.pass(limits::WORKER_LEASE);
    assert_eq!((rig.ledger.generation, rig.worker.snapshot(rig.now).generation), (1, 1));
    assert_eq!(rig.worker.snapshot(rig.now).lease_ends_at, None);
    rig.asks(1);
    rig.send(exec(3));
    rig.connect();
    assert_eq!(rig.asks(1), [], "its lease is over for good");
    rig.run(1, 1, RunNews::Ended(End { killed: true, lease_expired: Some(0), ..ended(143, 0) }));
    let Outcome::Failed { error, started: true, evidence } = rig.outcome(1) else { panic!("{:?}", rig.outcome(1)) };
    assert_eq!(error.code, Code::LeaseExpired);
    assert_eq!(evidence.unwrap()["leaseGeneration"], 0);
    rig.run(2, 1, RunNews::Ended(ended(0, 0)));
    assert_eq!(rig.outcome(2), completed(0), "what may go on alone ended with its result");
    rig.send(supervised(4));
    assert_eq!(rig.launched().unwrap().lease, Some(lease(&rig, 1, S * 120)));
}

#[test]
fn what_a_supervised_run_came_to_after_its_lease_is_evidence_and_no_result() {
    let mut rig = Rig::live();
    rig.started(supervised(1));
    rig.run(1, 1, RunNews::Ended(End { lease_expired: Some(0), ..ended(0, 0) }));
    assert_eq!(rig.state(1), State::Failed);
}

#[test]
fn a_reconnect_and_a_new_process_life_keep_the_generation_while_the_lease_can_be_in_force() {
    let mut rig = Rig::live();
    rig.started(supervised(1));
    rig.pass_live(S * 30);
    rig.lose();
    rig.connect();
    assert_eq!(rig.worker.snapshot(rig.now).generation, 0);
    rig.restart();
    rig.attach(1, 1, 0);
    assert_eq!(rig.asks(1), [], "a new life knows of no lease");
    rig.open();
    rig.recover(3, &[1], &[]);
    assert_eq!(rig.asks(1), [renewed(&rig, 0, S * 120)]);
}

#[test]
fn an_announced_sleep_holds_the_lease_and_the_runner_hears_of_both_ends() {
    let mut rig = Rig::live();
    rig.started(supervised(1));
    rig.asks(1);
    rig.pass_live(S * 20);
    rig.tell(Input::SleepAnnounced);
    assert_eq!(rig.asks(1), [Ask::Lease { lease: Lease { generation: 0, until: None } }]);
    assert!(rig.has(&Output::AllowSleep));
    rig.sleep(S * 3600);
    assert_eq!(rig.asks(1), [renewed(&rig, 0, S * 100)]);
    assert_eq!(rig.worker.snapshot(rig.now).generation, 0);
}

#[test]
fn a_sleep_that_was_announced_and_never_came_holds_the_lease_no_longer_than_it_may() {
    let mut rig = Rig::live();
    rig.started(supervised(1));
    rig.tell(Input::SleepAnnounced);
    rig.asks(1);
    rig.pass(limits::WORKER_NO_SLEEP);
    assert_eq!(rig.asks(1), [renewed(&rig, 0, S * 120)]);
}

#[test]
fn an_unannounced_sleep_past_the_lease_has_ended_it_before_anything_else_happens() {
    let mut rig = Rig::live();
    rig.started(supervised(1));
    rig.asks(1);
    rig.now = rig.now.slept(S * 200);
    renew(&mut rig);
    assert_eq!(rig.worker.snapshot(rig.now).generation, 1);
    assert_eq!(rig.asks(1), []);
}

#[test]
fn a_lease_that_ends_while_a_start_is_committed_stops_the_start() {
    let mut rig = Rig::live();
    rig.holding = true;
    rig.send(supervised(1));
    rig.commit_next();
    rig.settle();
    assert_eq!(rig.held.len(), 1, "the try");
    rig.now = rig.now.slept(S * 200);
    rig.settle();
    rig.release();
    assert_eq!((rig.launched(), rig.state(1)), (None, State::Starting));
    rig.open();
    rig.recover(2, &[1], &[]);
    let launch = rig.launched().unwrap();
    assert_eq!((launch.attempt, launch.lease), (2, Some(lease(&rig, 1, S * 120))));
}

#[test]
fn what_its_lease_left_no_time_to_start_waits_for_the_next_one() {
    for attached in [false, true] {
        let mut rig = Rig::live();
        rig.send(supervised(1));
        assert_eq!(rig.launched().unwrap().attempt, 1);
        rig.sleep(S * 200);
        if attached {
            rig.attach(1, 1, 0);
        }
        let end = End { exit: None, not_started: Some("no lease".into()), lease_expired: Some(0), ..ended(0, 0) };
        rig.run(1, 1, RunNews::Ended(end));
        assert_eq!(rig.launched(), None);
        rig.lose();
        rig.open();
        rig.recover(2, &[1], &[]);
        let launch = rig.launched().unwrap();
        assert_eq!((launch.attempt, launch.lease), (2, Some(lease(&rig, 1, S * 120))));
        assert!(rig.has(&Output::Remove(run(1), 1)));
        rig.attach(1, 2, 0);
        rig.run(1, 2, RunNews::Ended(ended(0, 0)));
        assert_eq!(rig.outcome(1), completed(0));
    }
    // Cancelled meanwhile, it never starts.
    let mut rig = Rig::live();
    rig.send(supervised(1));
    rig.sleep(S * 200);
    rig.cancel(1);
    let end = End { exit: None, not_started: Some("no lease".into()), lease_expired: Some(0), ..ended(0, 0) };
    rig.run(1, 1, RunNews::Ended(end));
    assert_eq!(rig.outcome(1), Outcome::Cancelled { started: false, exit: None });
}
