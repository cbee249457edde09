//! From a dial to live, and what is said on the way.

use super::*;
use crate::limits;
use crate::wire::worker::{CLOSE_IN_USE, CLOSE_RECOVERY};

#[test]
fn hello_then_state_then_complete_then_live() {
    let mut rig = Rig::new();
    assert_eq!(rig.worker.state(), LinkState::Connecting);
    rig.open();
    let frames = rig.recover(1, &[1], &[]);
    let state = WorkerFrame::RecoveryState {
        recovery_id: RecoveryId::mint([1; 16]),
        runtime_id: RuntimeId::mint([2; 16]),
        ledger_id: LedgerId::mint([1; 16]),
        operations: vec![],
    };
    assert_eq!(frames, [state, WorkerFrame::RecoveryComplete { recovery_id: RecoveryId::mint([1; 16]) }]);
    let snapshot = rig.worker.snapshot(rig.now);
    assert_eq!((snapshot.live, snapshot.lease_ends_at), (true, Some(rig.now.boot + S * 120)));
}

#[test]
fn a_ready_of_another_recovery_is_ignored() {
    let mut rig = Rig::new();
    rig.open();
    rig.request(1, &[], &[]);
    rig.written();
    rig.say(ControlFrame::RecoveryReady { recovery_id: RecoveryId::mint([9; 16]), lease_ms: 120_000 });
    assert!(!rig.worker.snapshot(rig.now).live);
    rig.request(2, &[], &[]);
    assert_eq!(rig.kinds(), ["recovery_state", "recovery_complete"]);
    rig.say(ControlFrame::RecoveryReady { recovery_id: RecoveryId::mint([1; 16]), lease_ms: 120_000 });
    assert!(!rig.worker.snapshot(rig.now).live);
    rig.say(ControlFrame::RecoveryReady { recovery_id: RecoveryId::mint([2; 16]), lease_ms: 120_000 });
    assert!(rig.worker.snapshot(rig.now).live);
}

#[test]
fn ends_are_kept_until_acknowledged_and_offered_after_each_reconnect() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.lose();
    rig.run(1, 1, RunNews::Ended(ended(4, 0)));
    for n in 2..5 {
        rig.open();
        let frames = rig.recover(n, &[1, 2], &[]);
        let kinds: Vec<_> = frames.iter().map(kind).collect();
        assert_eq!(kinds, ["recovery_state", "exec_exit", "recovery_complete"]);
        let WorkerFrame::RecoveryState { operations, .. } = &frames[0] else { panic!() };
        let report = Report {
            request_id: op(1),
            state: State::Completed,
            run_id: Some(run(1)),
            written: Streams::new(),
            output_stalled: None,
            operation: None,
        };
        assert_eq!(*operations, [report], "what was never received is not named");
        rig.lose();
        rig.restart();
    }
    rig.open();
    rig.recover(6, &[1], &[]);
    rig.say(ControlFrame::ExecTerminalAck { run_id: run(1) });
    rig.lose();
    rig.open();
    let frames = rig.recover(7, &[], &[]);
    assert_eq!(frames.len(), 2, "acknowledged is over: {frames:?}");
    rig.lose();
    rig.open();
    let kinds: Vec<_> = rig.recover(8, &[1], &[]).iter().map(kind).collect();
    assert_eq!(kinds, ["recovery_state", "exec_exit", "recovery_complete"], "but asked for it is told again");
}

#[test]
fn what_cannot_be_looked_up_is_not_told_as_never_received() {
    let mut rig = Rig::new();
    rig.open();
    rig.holding = true;
    rig.request(1, &[1], &[]);
    assert_eq!(rig.kinds(), [""; 0]);
    let (ticket, _) = rig.held.pop_front().unwrap();
    rig.tell(Input::Committed(ticket, Err(LedgerError::Failed)));
    assert!(rig.has(&Output::Close(rig.socket, CLOSE_RECOVERY.0, CLOSE_RECOVERY.1)));
}

#[test]
fn the_lease_is_renewed_while_a_replay_goes_on() {
    let mut rig = Rig::new();
    rig.open();
    let renew = ControlFrame::WorkerExecutionLease { lease_ms: 120_000 };
    rig.say(renew.clone());
    assert_eq!(rig.worker.snapshot(rig.now).lease_ends_at, None);
    rig.request(1, &[], &[]);
    rig.say(renew);
    assert_eq!(rig.worker.snapshot(rig.now).lease_ends_at, Some(rig.now.boot + S * 120));
}

#[test]
fn a_recovery_that_gets_nowhere_is_given_up_after_15_s() {
    let mut rig = Rig::new();
    rig.open();
    let socket = rig.socket;
    rig.pass_live(S * 14);
    assert!(!rig.has(&Output::Close(socket, CLOSE_RECOVERY.0, CLOSE_RECOVERY.1)));
    rig.pass(S);
    assert!(rig.has(&Output::Close(socket, CLOSE_RECOVERY.0, CLOSE_RECOVERY.1)));
    rig.pass(S);
    assert!(rig.dial().is_some());
}

#[test]
fn a_silent_socket_is_dead_after_10_s_and_dialled_again_at_once() {
    let mut rig = Rig::live();
    rig.pass_live(S * 60);
    assert!(rig.take(|output| matches!(output, Output::Ping(_)).then_some(())).is_some());
    let socket = rig.socket;
    rig.pass(limits::WORKER_SILENCE - MS);
    assert_eq!(rig.worker.state(), LinkState::Healthy);
    rig.pass(MS);
    assert!(rig.has(&Output::Drop(socket)));
    assert!(rig.dial().is_some());
    assert_eq!(rig.worker.state(), LinkState::Blip);
}

#[test]
fn after_a_change_of_network_a_second_socket_is_dialled_beside_a_silent_one() {
    let mut rig = Rig::live();
    rig.tell(Input::NetworkChanged);
    assert!(rig.has(&Output::Ping(rig.socket)));
    rig.life();
    rig.pass(limits::CHECK_TIMEOUT);
    assert_eq!(rig.dial(), None, "it lives");
    rig.tell(Input::NetworkChanged);
    rig.pass(limits::CHECK_TIMEOUT);
    let old = rig.socket;
    rig.open();
    assert!(rig.has(&Output::Drop(old)));
    rig.recover(2, &[], &[]);
    rig.tell(Input::Closed(old, None));
    assert_eq!(rig.worker.state(), LinkState::Healthy, "an end of an old socket says nothing");
}

#[test]
fn after_a_sleep_that_no_connection_survives_it_is_dialled_at_once() {
    let mut rig = Rig::live();
    rig.sleep(limits::WORKER_SILENCE);
    assert!(rig.dial().is_some());
    assert!(rig.has(&Output::Ping(rig.socket)), "and the old one is asked, in case nobody noticed");
}

#[test]
fn frames_of_a_socket_that_is_not_the_current_one_are_ignored() {
    let mut rig = Rig::live();
    let old = rig.socket;
    rig.lose();
    rig.connect();
    rig.tell(Input::Frame(old, ControlFrame::Operation(exec(1)), Ok(())));
    assert_eq!(rig.ledger.rows, []);
}

#[test]
fn a_copied_ledger_tries_rarely() {
    let mut rig = Rig::live();
    rig.tell(Input::Closed(rig.socket, Some((CLOSE_IN_USE.0, CLOSE_IN_USE.1.into()))));
    rig.pass(limits::IN_USE_RETRY - S);
    assert_eq!(rig.dial(), None);
    rig.pass(S);
    assert!(rig.dial().is_some());
}

#[test]
fn operations_that_come_while_recovering_are_recorded_answered_and_started() {
    let mut rig = Rig::new();
    rig.open();
    rig.send(exec(1));
    assert_eq!(rig.kinds(), ["operation_received"]);
    assert!(rig.launched().is_some());
    rig.request(1, &[1], &[]);
    let frames = rig.written();
    let WorkerFrame::RecoveryState { operations, .. } = &frames[0] else { panic!("{frames:?}") };
    assert_eq!(operations[0].state, State::Starting);
}

#[test]
fn stopping_closes_the_connection_and_leaves_runs_to_their_runners() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.tell(Input::Stop);
    assert!(rig.has(&Output::Close(rig.socket, 1000, "worker stops")) && rig.has(&Output::Stopped));
    assert_eq!((rig.asks(1), rig.state(1), rig.worker.state()), (vec![], State::Running, LinkState::Stopped));
    rig.restart();
    assert!(rig.has(&Output::Attach(run(1), 1)));
}

#[test]
fn a_relay_that_went_back_hears_that_the_output_of_what_is_over_is_gone_before_its_end() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.run(1, 1, RunNews::Ended(ended(0, 10)));
    assert_eq!(rig.output(), [(1, 0, 10)]);
    rig.ack(1, 10);
    rig.say(ControlFrame::ExecTerminalAck { run_id: run(1) });
    assert!(rig.has(&Output::Remove(run(1), 1)));
    rig.lose();
    rig.open();
    let frames = rig.recover(2, &[1], &[(1, 4)]);
    let gap = WorkerFrame::ExecGap { run_id: run(1), stream: Stream::Stdout, offset: 4, next_offset: 10 };
    assert_eq!(
        frames.iter().map(kind).collect::<Vec<_>>(),
        ["recovery_state", "exec_gap", "exec_exit", "recovery_complete"]
    );
    assert_eq!(frames[1], gap);
    rig.lose();
    rig.open();
    let kinds: Vec<_> = rig.recover(3, &[1], &[(1, 10)]).iter().map(kind).collect();
    assert_eq!(kinds, ["recovery_state", "exec_exit", "recovery_complete"], "all of it is there");
}

#[test]
fn what_the_relay_does_not_ask_for_it_learns_in_outline_and_gets_from_the_beginning() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.run(1, 1, RunNews::Grew(streams(900)));
    assert_eq!(rig.output(), [(1, 0, 900)]);
    rig.say(ControlFrame::ExecOutputAck { run_id: run(1), stream: Stream::Stdout, next_offset: 400 });
    rig.started(exec(2));
    rig.lose();

    rig.open();
    let frames = rig.recover(2, &[2], &[]);
    let WorkerFrame::RecoveryState { operations, .. } = &frames[0] else { panic!() };
    let outlines: Vec<_> = operations.iter().map(|report| report.operation.as_deref().cloned()).collect();
    let outline = Operation { request: exec(1).request.outline(), ..exec(1) };
    assert_eq!(outlines, [Some(outline), None]);
    let offered = frames.iter().find_map(|frame| match frame {
        WorkerFrame::ExecOutput { offset, .. } | WorkerFrame::ExecGap { offset, .. } => Some(*offset),
        _ => None,
    });
    assert_eq!(offered, Some(0));

    // A relay that asks has it, and says where it goes on.
    rig.lose();
    rig.open();
    let frames = rig.recover(3, &[1, 2], &[(1, 600)]);
    let WorkerFrame::RecoveryState { operations, .. } = &frames[0] else { panic!() };
    assert!(operations.iter().all(|report| report.operation.is_none()));
    let WorkerFrame::ExecOutput { offset, .. } = &frames[1] else { panic!("{frames:?}") };
    assert_eq!(*offset, 600);
}
