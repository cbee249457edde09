//! A run starts once, is found again after a crash, is given its input in order, and ends once.

use super::*;
use crate::limits;

fn gone() -> RunNews {
    RunNews::Gone { written: streams(7), evidence: json!({"killed": 2}) }
}

#[test]
fn a_run_ends_with_its_exit_whatever_the_code() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    assert_eq!(rig.state(1), State::Running);
    rig.run(1, 1, RunNews::Ended(ended(137, 5)));
    assert_eq!(rig.outcome(1), completed(137));
    let frame =
        WorkerFrame::ExecExit { request_id: op(1), run_id: run(1), outcome: completed(137), written: streams(5) };
    assert_eq!(rig.written()[1..], [frame]);
    rig.run(1, 1, RunNews::Ended(ended(0, 5)));
    assert_eq!(rig.outcome(1), completed(137));
}

#[test]
fn an_end_is_told_only_when_it_is_committed_and_a_full_disk_delays_it() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.written();
    rig.failing = Some(LedgerError::Full);
    rig.run(1, 1, RunNews::Ended(ended(0, 0)));
    rig.pass(S * 3);
    assert_eq!(rig.kinds(), [""; 0]);
    rig.failing = None;
    rig.pass(S);
    assert_eq!(rig.kinds(), ["exec_exit"]);
}

#[test]
fn a_crash_between_the_try_and_its_claim_starts_under_the_next_try() {
    let mut rig = Rig::live();
    rig.send(exec(1));
    assert!(rig.launched().is_some());
    rig.restart();
    assert!(rig.has(&Output::Void(run(1), 1)));
    assert_eq!(rig.launched(), None, "the claim decides first");
    rig.run(1, 1, RunNews::Void(None));
    assert_eq!(rig.launched().unwrap().attempt, 2);
    assert!(rig.has(&Output::Remove(run(1), 1)));
    rig.run(1, 1, RunNews::Ended(ended(9, 0)));
    assert_eq!(rig.state(1), State::Starting, "news of an older try does not count");
    rig.attach(1, 2, 0);
    rig.run(1, 2, RunNews::Ended(ended(0, 0)));
    assert_eq!(rig.outcome(1), completed(0));
}

#[test]
fn a_crash_after_the_claim_finds_the_run_and_its_end() {
    let mut rig = Rig::live();
    rig.send(exec(1));
    rig.restart();
    rig.attach(1, 1, 40);
    assert_eq!(rig.state(1), State::Running);
    rig.restart();
    assert!(rig.has(&Output::Attach(run(1), 1)));
    rig.run(1, 1, RunNews::Ended(ended(1, 90)));
    assert_eq!(rig.outcome(1), completed(1));
    assert_eq!(rig.launched(), None);
}

#[test]
fn a_runner_that_is_gone_makes_it_unknown_for_good_with_what_is_known() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.restart();
    rig.run(1, 1, gone());
    let Outcome::Unknown { evidence, .. } = rig.outcome(1) else { panic!("{:?}", rig.outcome(1)) };
    assert_eq!(evidence, Some(json!({"killed": 2})));
    rig.run(1, 1, RunNews::Ended(ended(0, 7)));
    assert_eq!(rig.state(1), State::Unknown);
    rig.open();
    let kinds: Vec<_> = rig.recover(2, &[1], &[]).iter().map(kind).collect();
    assert_eq!(kinds, ["recovery_state", "exec_error", "exec_output", "recovery_complete"]);
}

#[test]
fn people_are_told_what_is_known_of_an_end_that_nobody_knows() {
    let gone = RunNews::Gone {
        written: streams(0),
        evidence: json!({"runner": "gone", "left": {"scope_ended": false, "group_ended": true, "ended": [], "living": [7, 8], "may_have_escaped": true}}),
    };
    let mut rig = Rig::live();
    rig.started(exec(2));
    rig.run(2, 1, gone);
    let told = "its runner is gone and left no word of how it ended; processes of it that still live: 7, 8; \
                a process that had left its group may run on";
    let snapshot = rig.worker.snapshot(rig.now);
    assert_eq!(snapshot.living.iter().find(|shown| shown.id == op(2)).unwrap().note.as_deref(), Some(told));
}

#[test]
fn what_never_started_is_failed_or_cancelled_and_never_unknown() {
    let mut rig = Rig::live();
    let failure = Failure::nothing_done(Code::Unavailable, "no runner");
    rig.send(exec(1));
    rig.run(1, 1, RunNews::Void(Some(failure.clone())));
    assert_eq!(rig.outcome(1), Outcome::Failed { error: failure, started: false, evidence: None });
    rig.started(exec(2));
    rig.run(2, 1, RunNews::Ended(End { exit: None, not_started: Some("no such file".into()), ..ended(0, 0) }));
    let error = Failure::new(Code::ExecutionFailed, "no such file");
    assert_eq!(rig.outcome(2), Outcome::Failed { error, started: false, evidence: None });
    rig.send(exec(3));
    rig.cancel(3);
    rig.restart();
    rig.run(3, 1, RunNews::Void(None));
    assert_eq!(rig.outcome(3), Outcome::Cancelled { started: false, exit: None });
    assert_eq!(rig.launched(), None);
}

#[test]
fn a_cancelled_run_that_ended_by_itself_is_completed() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.cancel(1);
    rig.run(1, 1, RunNews::Ended(ended(0, 0)));
    assert_eq!(rig.outcome(1), completed(0));
}

#[test]
fn a_run_that_something_else_ended_is_never_completed_whatever_its_program_said() {
    let killed = |code, interrupted| End { killed: true, interrupted, ..ended(code, 0) };
    for code in [0, 143] {
        let mut rig = Rig::live();
        rig.started(exec(1));
        rig.restart();
        rig.run(1, 1, RunNews::Ended(killed(code, true)));
        let Outcome::Failed { error, started: true, evidence: Some(evidence) } = rig.outcome(1) else {
            panic!("{:?}", rig.outcome(1))
        };
        assert_eq!((error.code, error.retryable), (Code::ExecutionFailed, false));
        assert_eq!((&evidence["interrupted"], &evidence["exit"]["code"]), (&json!(true), &json!(code)));
    }
    // A cancelled one whose runner could only be reached by a signal.
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.cancel(1);
    rig.run(1, 1, RunNews::Ended(killed(143, true)));
    assert_eq!(rig.outcome(1), Outcome::Cancelled { started: true, exit: Some(exit(143)) });
}

#[test]
fn a_cancel_that_reached_the_runner_and_not_the_ledger_is_one() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.holding = true;
    rig.cancel(1);
    assert_eq!(rig.asks(1), [Ask::Kill {}]);
    rig.restart();
    rig.run(1, 1, RunNews::Ended(End { killed: true, ..ended(0, 0) }));
    assert_eq!(rig.outcome(1), Outcome::Cancelled { started: true, exit: Some(exit(0)) });
}

#[test]
fn a_cancel_outlives_a_crash_and_is_told_to_the_runner_that_is_found() {
    let mut rig = Rig::live();
    rig.send(exec(1));
    rig.cancel(1);
    assert_eq!(rig.asks(1), [Ask::Kill {}]);
    rig.restart();
    assert_eq!(rig.asks(1), [Ask::Kill {}], "if it cannot be reached it is ended all the same");
    rig.attach(1, 1, 0);
    assert_eq!(rig.asks(1), [Ask::Kill {}]);
}

#[test]
fn its_time_is_over_and_processes_that_escaped_are_said() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.run(1, 1, RunNews::Ended(End { timed_out: true, ..ended(143, 0) }));
    let Outcome::Failed { error, started: true, .. } = rig.outcome(1) else { panic!("{:?}", rig.outcome(1)) };
    assert_eq!(error.code, Code::Timeout);
    rig.started(exec(2));
    rig.run(2, 1, RunNews::Ended(End { escaped: vec![77], ..ended(0, 0) }));
    let value = Some(json!({"escaped": [77]}));
    assert_eq!(rig.outcome(2), Outcome::Completed { exit: Some(exit(0)), value });
}

#[test]
fn runs_beyond_their_number_wait_for_a_place_in_the_order_of_admission() {
    let mut rig = Rig::live();
    for n in 0..limits::WORKER_RUNS_MAX as u8 + 2 {
        rig.send(exec(n));
    }
    let launched: Vec<_> = std::iter::from_fn(|| rig.launched()).map(|launch| launch.operation.request_id).collect();
    assert_eq!(launched, (0..limits::WORKER_RUNS_MAX as u8).map(op).collect::<Vec<_>>());
    rig.attach(7, 1, 0);
    rig.run(7, 1, RunNews::Ended(ended(0, 0)));
    assert_eq!(rig.launched().unwrap().operation.request_id, op(64));
    assert_eq!(rig.launched(), None);
}

#[test]
fn a_run_that_waits_for_room_is_promised_more_and_the_relay_hears_of_it() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.restart();
    rig.connect();
    rig.attach(1, 1, 0);
    let quota = |bytes| Output::Tell(run(1), 1, Ask::Quota { bytes });
    assert!(rig.has(&quota(limits::SPOOL_RUN_MIN)));
    rig.all_written();
    rig.run(1, 1, RunNews::Stalled(Some(99)));
    assert!(rig.has(&quota(limits::SPOOL_RUN_MAX)));
    let frames = rig.all_written();
    let [WorkerFrame::OperationState(report)] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!(report.output_stalled, Some(99));
    assert_eq!(rig.worker.snapshot(rig.now).stalled, 1);
}

#[test]
fn inputs_reach_their_run_in_order_once_it_is_connected() {
    let mut rig = Rig::live();
    rig.send(exec(1));
    rig.send(input(2, 1, "YQ=="));
    rig.send(input(3, 1, "Yg=="));
    assert_eq!(rig.asks(1), []);
    rig.attach(1, 1, 0);
    rig.send(input(4, 1, "Yw=="));
    let give =
        |n, data: &'static str| Ask::Input { id: op(n), data: Bytes::from_static(data.as_bytes()), close: false };
    assert_eq!(rig.asks(1), [give(2, "a"), give(3, "b"), give(4, "c")]);
    rig.run(1, 1, RunNews::Done(op(2), Ok(())));
    assert_eq!(rig.outcome(2), Outcome::Completed { exit: None, value: None });
    rig.run(1, 1, RunNews::Done(op(3), Err("its input is closed".into())));
    let error = Failure::new(Code::Conflict, "its input is closed");
    assert_eq!(rig.outcome(3), Outcome::Failed { error, started: true, evidence: None });
    rig.attach(1, 1, 0);
    assert_eq!(rig.asks(1), [give(4, "c")], "what was not confirmed is told again; the runner recognises it");
    rig.restart();
    rig.attach(1, 1, 0);
    assert_eq!(rig.asks(1), [give(4, "c")]);
}

#[test]
fn input_for_a_connected_run_waits_for_one_commit_and_is_not_told_before_it() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.written();
    rig.holding = true;
    rig.send(input(2, 1, "YQ=="));
    assert_eq!((rig.asks(1), rig.held.len()), (vec![], 1));
    rig.commit_next();
    rig.settle();
    assert_eq!((rig.asks(1).len(), rig.held.len()), (1, 0));
    assert_eq!(rig.kinds(), ["operation_received"]);
}

#[test]
fn input_that_was_never_told_failed_and_what_was_told_is_unknown_when_the_run_ends() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.send(input(2, 1, "YQ=="));
    rig.run(1, 1, RunNews::Ended(ended(0, 0)));
    assert_eq!(rig.state(2), State::Unknown);
    rig.send(input(3, 1, "YQ=="));
    let Outcome::Failed { error, started: false, .. } = rig.outcome(3) else { panic!("{:?}", rig.outcome(3)) };
    assert_eq!(error.code, Code::NotFound);
    rig.send(exec(4));
    rig.send(input(5, 4, "YQ=="));
    rig.run(4, 1, RunNews::Void(Some(Failure::nothing_done(Code::Unavailable, "no runner"))));
    assert!(matches!(rig.outcome(5), Outcome::Failed { started: false, .. }));
}

#[test]
fn input_whose_run_ended_while_it_was_being_committed_was_never_told_and_is_not_unknown() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.holding = true;
    rig.send(input(2, 1, "YQ=="));
    rig.run(1, 1, RunNews::Ended(ended(0, 0)));
    rig.release();
    assert_eq!(rig.asks(1), []);
    assert!(matches!(rig.outcome(2), Outcome::Failed { started: false, .. }), "{:?}", rig.outcome(2));
}

#[test]
fn a_runner_is_told_no_more_input_than_it_lets_wait_and_the_next_when_one_was_given() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    let most = limits::RUNNER_INPUT_WAITING as u8;
    for n in 2..most + 4 {
        rig.send(input(n, 1, "YQ=="));
    }
    let told: Vec<_> = rig.asks(1).iter().map(given).collect();
    assert_eq!(told, (2..most + 2).map(op).collect::<Vec<_>>());
    rig.run(1, 1, RunNews::Done(op(2), Ok(())));
    rig.run(1, 1, RunNews::Done(op(3), Ok(())));
    let told: Vec<_> = rig.asks(1).iter().map(given).collect();
    assert_eq!(told, [op(most + 2), op(most + 3)]);
}

fn given(ask: &Ask) -> OperationId {
    match ask {
        Ask::Input { id, .. } => id.clone(),
        other => panic!("no input: {other:?}"),
    }
}

#[test]
fn a_run_that_ran_is_never_run_again_even_if_its_folder_is_lost() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.restart();
    rig.run(1, 1, RunNews::Void(None));
    assert_eq!((rig.state(1), rig.launched()), (State::Unknown, None));
}

#[test]
fn a_run_that_may_give_its_middle_up_keeps_what_it_holds_when_it_is_found_again() {
    let mut rig = Rig::live();
    rig.started(asked(1, Some(1), &json!({"type": "exec", "command": {"argv": ["work"]}, "onFull": "drop_middle"})));
    rig.restart();
    rig.attach(1, 1, 100 << 20);
    assert!(rig.has(&Output::Tell(run(1), 1, Ask::Quota { bytes: limits::SPOOL_RUN_MAX })));
}

#[test]
fn closing_a_terminal_that_is_gone_is_done() {
    let mut rig = Rig::live();
    rig.started(asked(1, Some(1), &json!({"type": "pty_open", "cols": 80, "rows": 24})));
    rig.send(asked(2, Some(1), &json!({"type": "pty_close"})));
    assert_eq!(rig.asks(1), [Ask::Input { id: op(2), data: Bytes::new(), close: true }]);
    rig.run(1, 1, RunNews::Ended(ended(129, 0)));
    assert_eq!(rig.outcome(2), Outcome::Completed { exit: None, value: None });
}

#[test]
fn after_a_lost_connection_nothing_is_told_before_what_was_told_on_it_is_told_again() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.send(input(2, 1, "YQ=="));
    let given = |asks: Vec<Ask>| -> Vec<OperationId> {
        asks.into_iter().filter_map(|ask| if let Ask::Input { id, .. } = ask { Some(id) } else { None }).collect()
    };
    assert_eq!(given(rig.asks(1)), [op(2)]);
    rig.run(1, 1, RunNews::Detached);
    assert!(rig.has(&Output::Attach(run(1), 1)));
    rig.send(input(3, 1, "Yg=="));
    assert_eq!(rig.asks(1), [], "it would overtake the first");
    rig.attach(1, 1, 0);
    assert_eq!(given(rig.asks(1)), [op(2), op(3)]);
}

#[test]
fn a_cancel_is_told_again_whenever_a_runner_is_looked_for() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.cancel(1);
    assert_eq!(rig.asks(1), [Ask::Kill {}]);
    rig.run(1, 1, RunNews::Detached);
    assert_eq!(rig.asks(1), [Ask::Kill {}]);
    rig.restart();
    assert!(rig.has(&Output::Attach(run(1), 1)));
    assert_eq!(rig.asks(1), [Ask::Kill {}]);
}
