use super::super::*;
use super::desk::*;
use crate::id::RecoveryId;
use crate::operation::{Outcome, State, Stream};
use crate::wire::worker::{CLOSE_PROTOCOL, CLOSE_RECOVERY, ControlFrame, OutputOffset, WorkerFrame};

fn unknown(reason: &str) -> Option<Outcome> {
    Some(Outcome::Unknown { reason: reason.into(), evidence: None })
}

#[test]
fn a_recovery_names_what_was_sent_and_where_its_output_goes_on() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.output(socket, &run, 0, b"abc");
    let input = desk.input(&run, "x");
    desk.read(socket);
    desk.start("not sent");
    desk.crash();
    let socket = desk.connect();
    desk.hello(socket, 1);
    let frames = desk.read(socket);
    let Some(ControlFrame::RecoveryRequest { requests, output_offsets, .. }) = frames.first() else { panic!() };
    let mut sent = [id, input];
    sent.sort();
    // What was only about to be sent when the relay was killed may have been sent.
    assert_eq!(requests.len(), 3);
    assert!(sent.iter().all(|id| requests.contains(id)));
    let of_run: Vec<_> = output_offsets.iter().filter(|offset| offset.run_id == run).cloned().collect();
    let at = |stream, next_offset| OutputOffset { run_id: run.clone(), stream, next_offset };
    assert_eq!(of_run, [at(Stream::Stdout, 3), at(Stream::Stderr, 0), at(Stream::Pty, 0)]);
}

#[test]
fn what_the_same_ledger_never_received_is_sent_again_and_cancels_go_first() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let lost = desk.start("lost");
    let cancelled = desk.start("cancelled");
    assert_eq!(desk.told(socket), ["op lost", "op cancelled"]);
    desk.close(socket);
    desk.start("new");
    desk.cancel(&cancelled);
    let socket = desk.live_knowing(1, &[]);
    assert_eq!(desk.told(socket), ["ready 120000", "cancel", "op lost", "op new"]);
    // The tombstone's answer is the proof.
    assert_eq!(desk.outcome(&cancelled), None);
    desk.say(socket, WorkerFrame::CancelResult { request_id: cancelled.clone(), state: State::Cancelled });
    assert_eq!(desk.outcome(&cancelled), Some(Outcome::Cancelled { started: false, exit: None }));
    assert_eq!(desk.outcome(&lost), None);
}

#[test]
fn what_the_ledger_knows_is_not_sent_again() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let id = desk.start("one");
    desk.read(socket);
    desk.close(socket);
    let socket = desk.live_knowing(1, &[(&id, State::Starting)]);
    assert_eq!(desk.told(socket), ["ready 120000"]);
    assert_eq!(desk.control.view(&id).unwrap().record.state, State::Starting);
}

#[test]
fn a_lost_one_whose_time_is_over_is_called_off_and_expires_by_the_proof_that_it_never_started() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let id = desk.start("one");
    desk.read(socket);
    desk.close(socket);
    desk.pass(TTL);
    let socket = desk.live_knowing(1, &[]);
    assert_eq!(desk.told(socket), ["ready 120000", "cancel"]);
    desk.say(socket, WorkerFrame::CancelResult { request_id: id.clone(), state: State::Cancelled });
    assert_eq!(desk.outcome(&id), Some(Outcome::Expired {}));
}

#[test]
fn a_new_ledger_makes_unknown_only_what_was_sent_to_the_old_one() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (sent, _) = desk.running(socket);
    desk.close(socket);
    desk.start("queued");
    let socket = desk.live_knowing(2, &[]);
    assert_eq!(desk.outcome(&sent), unknown("the worker came back with another ledger than the one it was sent to"));
    assert_eq!(desk.told(socket), ["ready 120000", "op queued"]);
    assert!(desk.notes.contains(&Note::LedgerReplaced { unknown: 1 }));
}

#[test]
fn an_end_that_was_told_but_whose_output_is_lost_with_its_ledger_is_evidence() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.output(socket, &run, 0, b"abc");
    desk.exit(socket, &id, 5);
    desk.close(socket);
    desk.live(2);
    let Some(Outcome::Unknown { evidence: Some(evidence), .. }) = desk.outcome(&id) else { panic!() };
    assert_eq!((&evidence["state"], &evidence["exit"]["code"]), (&"completed".into(), &0.into()));
}

#[test]
fn an_end_that_was_told_but_whose_output_the_same_ledger_has_lost_is_evidence() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.output(socket, &run, 0, b"abc");
    desk.exit(socket, &id, 5);
    desk.close(socket);
    // As long as the ledger has it, the rest may come.
    let socket = desk.live_knowing(1, &[(&id, State::Completed)]);
    assert_eq!(desk.outcome(&id), None);
    desk.close(socket);
    desk.live(1);
    let Some(Outcome::Unknown { reason, evidence: Some(evidence) }) = desk.outcome(&id) else { panic!() };
    assert_eq!(reason, "the worker's ledger has lost the operation");
    assert_eq!((&evidence["state"], &evidence["exit"]["code"]), (&"completed".into(), &0.into()));
}

#[test]
fn an_end_that_is_here_with_all_of_its_output_does_not_need_the_ledger() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.output(socket, &run, 0, b"abc");
    desk.mood = Mood::Full;
    desk.exit(socket, &id, 3);
    desk.close(socket);
    desk.live(1);
    desk.mood = Mood::Prompt;
    desk.pass(S);
    assert_eq!(desk.outcome(&id), Some(done(0)));
}

#[test]
fn what_the_ledger_had_and_has_lost_is_unknown_and_never_sent_again() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, _) = desk.running(socket);
    desk.close(socket);
    let socket = desk.live_knowing(1, &[]);
    assert_eq!(desk.told(socket), ["ready 120000"]);
    assert_eq!(desk.outcome(&id), unknown("the worker's ledger has lost the operation"));
}

#[test]
fn words_of_another_recovery_are_ignored_and_one_out_of_turn_closes_the_socket() {
    let mut desk = Desk::new();
    let (socket, recovery, _) = desk.greet(1);
    let other = RecoveryId::mint([9; 16]);
    desk.state(socket, 1, &other, Vec::new());
    desk.say(socket, WorkerFrame::RecoveryComplete { recovery_id: other });
    assert_eq!((desk.control.is_live(), desk.closes.get(&socket)), (false, None));
    desk.say(socket, WorkerFrame::RecoveryComplete { recovery_id: recovery });
    assert_eq!(desk.closes[&socket], CLOSE_PROTOCOL);
}

#[test]
fn a_recovery_that_brings_nothing_is_given_up_and_one_that_brings_output_is_not() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.close(socket);
    let (socket, recovery, _) = desk.greet(1);
    desk.pass_alive(socket, S * 14);
    desk.state(socket, 1, &recovery, vec![report(&id, State::Running)]);
    for at in 0..10 {
        desk.pass_alive(socket, S * 14);
        desk.output(socket, &run, at, b"x");
    }
    assert_eq!(desk.closes.get(&socket), None);
    // The lease is renewed meanwhile.
    assert!(desk.told(socket).contains(&"lease 120000".into()));
    desk.pass_alive(socket, S * 15);
    assert_eq!(desk.closes[&socket], CLOSE_RECOVERY);
    assert_eq!(desk.bytes(&id), b"xxxxxxxxxx");
}

#[test]
fn a_relay_killed_between_sending_and_hearing_recovers_the_result() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let id = desk.start("one");
    desk.read(socket);
    desk.crash();
    let (socket, recovery, requests) = desk.greet(1);
    assert_eq!(requests, std::slice::from_ref(&id));
    desk.state(socket, 1, &recovery, vec![report(&id, State::Completed)]);
    desk.exit(socket, &id, 0);
    desk.say(socket, WorkerFrame::RecoveryComplete { recovery_id: recovery });
    assert_eq!(desk.told(socket), ["ready 120000", "terminal"]);
    assert_eq!(desk.outcome(&id), Some(done(0)));
}
