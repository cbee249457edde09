use super::desk::*;
use crate::code::Code;
use crate::id::{OperationId, RunId};
use crate::limits;
use crate::operation::{Failure, Outcome, Request, State, Stream, Streams};
use crate::wire::worker::WorkerFrame;

#[test]
fn an_end_counts_when_all_of_its_output_is_here_and_is_acknowledged_when_it_is_committed() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.output(socket, &run, 0, b"abc");
    desk.exit(socket, &id, 5);
    assert_eq!(desk.told(socket), ["stdout 3"]);
    assert_eq!(desk.outcome(&id), None);
    assert!(desk.control.view(&id).unwrap().ending);
    desk.mood = Mood::Slow;
    desk.output(socket, &run, 3, b"de");
    assert_eq!(desk.told(socket), [""; 0]);
    desk.answer_all();
    assert_eq!(desk.told(socket), ["stdout 5", "terminal"]);
    assert_eq!(desk.outcome(&id), Some(done(0)));
    assert_eq!(desk.record(&id).written, [(Stream::Stdout, 5), (Stream::Stderr, 0)].into());
    // The last bytes and the end are one commit.
    let count = desk.committed.len();
    let last = [format!("Output({id}, stdout, 3+2)"), format!("End({id}, completed)")];
    assert_eq!(desk.committed[count - 2..], last);
    assert_eq!(desk.control.views(), []);
}

#[test]
fn a_gap_that_is_told_completes_the_output() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.exit(socket, &id, 8);
    let (run_id, stream) = (run, Stream::Stdout);
    desk.say(socket, WorkerFrame::ExecGap { run_id, stream, offset: 0, next_offset: 8 });
    assert_eq!(desk.outcome(&id), Some(done(0)));
    assert_eq!(desk.bytes(&id), b"<0..8>");
}

#[test]
fn a_relay_killed_before_the_end_was_committed_hears_it_again() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, _) = desk.running(socket);
    desk.mood = Mood::Slow;
    desk.exit(socket, &id, 0);
    desk.crash();
    desk.mood = Mood::Prompt;
    assert_eq!(desk.outcome(&id), None);
    let socket = desk.live_knowing(1, &[(&id, State::Completed)]);
    desk.exit(socket, &id, 0);
    assert_eq!(desk.told(socket), ["ready 120000", "terminal"]);
    assert_eq!(desk.store.rows[&id].ends, 1);
}

#[test]
fn the_end_of_what_is_no_run_is_acknowledged_as_a_result() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let config = Request::WorkspaceConfig { config: serde_json::json!({}) };
    let ask = desk.start_with(|start| start.request = config);
    let id = desk.id(ask);
    desk.read(socket);
    let outcome = Outcome::Completed { exit: None, value: Some(serde_json::json!({"reused": true})) };
    desk.say(socket, WorkerFrame::OperationReceived { request_id: id.clone() });
    desk.say(socket, WorkerFrame::OperationCompleted { request_id: id.clone(), outcome: outcome.clone() });
    assert_eq!(desk.told(socket), ["result"]);
    assert_eq!(desk.outcome(&id), Some(outcome));
}

#[test]
fn an_end_told_again_is_acknowledged_again_and_changes_nothing() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.exit(socket, &id, 0);
    desk.read(socket);
    let (request_id, run_id) = (id.clone(), run);
    let outcome = Outcome::Unknown { reason: "other".into(), evidence: None };
    desk.say(socket, WorkerFrame::ExecError { request_id, run_id, outcome, written: Streams::new() });
    assert_eq!(desk.told(socket), ["terminal"]);
    assert_eq!((desk.outcome(&id), desk.store.rows[&id].ends), (Some(done(0)), 1));
}

#[test]
fn a_late_result_of_an_unknown_operation_is_evidence_and_never_success() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.close(socket);
    let socket = desk.live(2);
    assert_eq!(desk.record(&id).state, State::Unknown);
    desk.close(socket);
    let socket = desk.live(1);
    let exit = |code| WorkerFrame::ExecExit {
        request_id: id.clone(),
        run_id: run.clone(),
        outcome: done(code),
        written: Streams::from([(Stream::Stdout, 9)]),
    };
    desk.say(socket, exit(3));
    assert_eq!(desk.told(socket), ["terminal"]);
    desk.say(socket, exit(4));
    assert_eq!(desk.told(socket), ["terminal"]);
    let Some(Outcome::Unknown { evidence: Some(evidence), .. }) = desk.outcome(&id) else { panic!() };
    assert_eq!(evidence["exit"]["code"], 3);
    assert_eq!(desk.record(&id).state, State::Unknown);
}

#[test]
fn a_late_result_is_acknowledged_only_when_the_evidence_is_committed() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, _) = desk.running(socket);
    desk.close(socket);
    let socket = desk.live(2);
    desk.close(socket);
    let socket = desk.live(1);
    desk.mood = Mood::Full;
    desk.exit(socket, &id, 0);
    desk.mood = Mood::Slow;
    desk.exit(socket, &id, 0);
    assert_eq!(desk.told(socket), [""; 0]);
    desk.answer_all();
    assert_eq!(desk.told(socket), ["terminal"]);
}

#[test]
fn results_of_nobody_are_acknowledged_so_that_the_worker_forgets_them() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let request_id = OperationId::mint([9; 16]);
    let outcome = Outcome::Cancelled { started: false, exit: None };
    let completed = WorkerFrame::OperationCompleted { request_id: request_id.clone(), outcome: outcome.clone() };
    desk.say(socket, completed);
    let (run_id, written) = (RunId::mint([9; 16]), Streams::from([(Stream::Stdout, 9)]));
    desk.say(socket, WorkerFrame::ExecError { request_id, run_id, outcome, written });
    assert_eq!(desk.told(socket), ["terminal", "result"]);
    assert_eq!(desk.store.rows.len(), 0);
}

#[test]
fn answers_about_results_of_nobody_are_bounded() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    for n in 0..=u16::try_from(limits::CONTROL_LATE_MAX).unwrap() {
        let mut random = [9; 16];
        random[..2].copy_from_slice(&n.to_be_bytes());
        let (request_id, outcome) = (OperationId::mint(random), done(0));
        desk.say(socket, WorkerFrame::OperationCompleted { request_id, outcome });
    }
    assert_eq!(desk.told(socket).len(), limits::CONTROL_LATE_MAX);
}

#[test]
fn a_full_store_acknowledges_no_end_and_commits_it_once_there_is_room() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, _) = desk.running(socket);
    desk.mood = Mood::Full;
    desk.exit(socket, &id, 0);
    desk.pass_alive(socket, S * 5);
    assert_eq!(desk.told(socket), [""; 0]);
    desk.mood = Mood::Prompt;
    desk.pass(S);
    assert_eq!(desk.told(socket), ["terminal"]);
    assert_eq!(desk.outcome(&id), Some(done(0)));
}

#[test]
fn a_failure_is_told_as_the_worker_told_it() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run_id) = desk.running(socket);
    let outcome =
        Outcome::Failed { error: Failure::new(Code::NotFound, "no such program"), started: false, evidence: None };
    let (request_id, written) = (id.clone(), Streams::new());
    desk.say(socket, WorkerFrame::ExecError { request_id, run_id, outcome: outcome.clone(), written });
    assert_eq!((desk.outcome(&id), desk.told(socket)), (Some(outcome), vec!["terminal".to_owned()]));
}

#[test]
fn a_conflict_or_a_refusal_of_what_was_received_says_nothing_about_whether_it_ran() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let conflict = desk.start("one");
    let (received, _) = desk.running(socket);
    for (id, code) in [(&conflict, Code::Conflict), (&received, Code::PolicyDenied)] {
        let failure = Failure::new(code, "no");
        desk.say(socket, WorkerFrame::OperationRejected { request_id: id.clone(), failure });
        assert_eq!(desk.record(id).state, State::Unknown);
    }
}

#[test]
fn words_about_an_operation_that_was_not_sent_change_nothing() {
    let mut desk = Desk::new();
    desk.mood = Mood::Slow;
    let socket = desk.live(1);
    let ask = desk.start_with(|_| {});
    desk.mood = Mood::Prompt;
    desk.answer_all();
    let id = desk.id(ask);
    desk.exit(socket, &id, 0);
    desk.say(socket, WorkerFrame::CancelResult { request_id: id.clone(), state: State::Cancelled });
    let failure = Failure::new(Code::PolicyDenied, "no");
    desk.say(socket, WorkerFrame::OperationRejected { request_id: id.clone(), failure });
    assert_eq!(desk.outcome(&id), None);
    assert_eq!(desk.told(socket), ["op true"]);
}

#[test]
fn an_outcome_is_kept_within_its_bounds_and_says_what_was_left_out() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let mut tell = |outcome| {
        let config = Request::WorkspaceConfig { config: serde_json::json!({}) };
        let ask = desk.start_with(|start| start.request = config);
        let request_id = desk.id(ask);
        desk.read(socket);
        desk.say(socket, WorkerFrame::OperationCompleted { request_id: request_id.clone(), outcome });
        desk.outcome(&request_id).unwrap()
    };
    let value = |bytes: usize| Some(serde_json::json!("v".repeat(bytes - 2)));
    let left_out = Some(serde_json::json!({"omittedBytes": limits::OPERATION_OUTCOME_MAX + 1}));
    let most = Outcome::Completed { exit: None, value: value(limits::OPERATION_OUTCOME_MAX) };
    assert_eq!(tell(most.clone()), most);
    let more = Outcome::Completed { exit: None, value: value(limits::OPERATION_OUTCOME_MAX + 1) };
    assert_eq!(tell(more), Outcome::Completed { exit: None, value: left_out.clone() });
    let long = "\u{fc}".repeat(limits::ERROR_MESSAGE_MAX + 1);
    let cut = "\u{fc}".repeat(limits::ERROR_MESSAGE_MAX);
    let evidence = value(limits::OPERATION_OUTCOME_MAX + 1);
    assert_eq!(
        tell(Outcome::Unknown { reason: long.clone(), evidence: evidence.clone() }),
        Outcome::Unknown { reason: cut.clone(), evidence: left_out.clone() }
    );
    let failed = |message: &str, evidence| Outcome::Failed {
        error: Failure::new(Code::InternalError, message),
        started: true,
        evidence,
    };
    assert_eq!(tell(failed(&long, evidence)), failed(&cut, left_out));
}

#[test]
fn the_reason_of_a_refusal_is_kept_within_its_bound() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let id = desk.start("one");
    desk.read(socket);
    let failure = |chars: usize| Failure::nothing_done(Code::PolicyDenied, "n".repeat(chars));
    let refused = failure(limits::ERROR_MESSAGE_MAX + 1);
    desk.say(socket, WorkerFrame::OperationRejected { request_id: id.clone(), failure: refused });
    let error = failure(limits::ERROR_MESSAGE_MAX);
    assert_eq!(desk.outcome(&id), Some(Outcome::Failed { error, started: false, evidence: None }));
}

#[test]
fn late_evidence_is_kept_within_its_bound() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, _) = desk.running(socket);
    desk.close(socket);
    let socket = desk.live(2);
    let value = Some(serde_json::json!("v".repeat(limits::OPERATION_OUTCOME_MAX)));
    let outcome = Outcome::Completed { exit: None, value };
    desk.say(socket, WorkerFrame::OperationCompleted { request_id: id.clone(), outcome });
    let Some(Outcome::Unknown { evidence: Some(evidence), .. }) = desk.outcome(&id) else { panic!() };
    assert_eq!(evidence["value"], serde_json::json!({"omittedBytes": limits::OPERATION_OUTCOME_MAX + 2}));
}
