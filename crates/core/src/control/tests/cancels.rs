use super::super::*;
use super::desk::*;
use crate::code::Code;
use crate::limits;
use crate::operation::{Failure, Outcome, State, Streams};
use crate::wire::close::REVOKED;
use crate::wire::worker::WorkerFrame;

fn not_started() -> Option<Outcome> {
    Some(Outcome::Cancelled { started: false, exit: None })
}

#[test]
fn what_was_never_sent_is_cancelled_here_and_never_sent() {
    let mut desk = Desk::new();
    let id = desk.start("one");
    desk.mood = Mood::Slow;
    let ask = desk.cancel(&id);
    let socket = desk.live_knowing(1, &[]);
    assert_eq!(desk.told(socket), ["ready 120000"]);
    assert_eq!(desk.answers.get(&ask), None, "answered before it was committed");
    desk.answer_all();
    assert_eq!((desk.id(ask), desk.outcome(&id)), (id, not_started()));
    assert_eq!(desk.told(socket), [""; 0]);
}

#[test]
fn of_what_was_sent_the_worker_tells_what_came_of_the_cancel() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run_id) = desk.running(socket);
    let ask = desk.cancel(&id);
    assert_eq!(desk.id(ask), id);
    assert_eq!(desk.told(socket), ["cancel"]);
    desk.say(socket, WorkerFrame::CancelResult { request_id: id.clone(), state: State::Running });
    assert_eq!((desk.outcome(&id), desk.record(&id).cancelled), (None, true));
    let outcome = Outcome::Cancelled { started: true, exit: None };
    let (request_id, written) = (id.clone(), Streams::new());
    desk.say(socket, WorkerFrame::ExecExit { request_id, run_id, outcome: outcome.clone(), written });
    assert_eq!(desk.outcome(&id), Some(outcome));
    // It came too late for this one.
    let again = desk.cancel(&id);
    assert_eq!(desk.id(again), id);
}

#[test]
fn a_cancel_given_while_the_worker_is_away_is_said_when_it_is_back_even_by_a_restarted_relay() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, _) = desk.running(socket);
    desk.close(socket);
    desk.cancel(&id);
    desk.crash();
    let socket = desk.live_knowing(1, &[(&id, State::Running)]);
    assert_eq!(desk.told(socket), ["ready 120000", "cancel"]);
}

#[test]
fn a_cancel_of_a_cancelled_one_is_answered_too() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, _) = desk.running(socket);
    desk.mood = Mood::Slow;
    let asks = [desk.cancel(&id), desk.cancel(&id)];
    desk.answer_all();
    let third = desk.cancel(&id);
    for ask in [asks[0], asks[1], third] {
        assert_eq!(desk.id(ask), id);
    }
}

#[test]
fn a_cancel_that_cannot_be_stored_is_said_to_the_worker_all_the_same_and_tried_again() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, _) = desk.running(socket);
    desk.mood = Mood::Full;
    let ask = desk.cancel(&id);
    // It is under way: nobody may take it for "nothing was done".
    let message = "the cancel is under way and could not be stored yet";
    assert_eq!(desk.answers[&ask], Err(Failure::new(Code::OutcomeUnknown, message)));
    assert_eq!(desk.told(socket), ["cancel"]);
    desk.mood = Mood::Prompt;
    desk.pass(S);
    assert!(desk.record(&id).cancelled);
}

#[test]
fn a_cancelled_session_ends_what_waits_and_admits_nothing_more() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let of_session = |start: &mut Start| start.session_id = Some("s".into());
    let sent = desk.start_with(of_session);
    desk.read(socket);
    desk.close(socket);
    let waits = desk.start_with(of_session);
    let other = desk.start("other");
    let ask = desk.cancel_session("s", "c1");
    assert_eq!(desk.answers[&ask], Ok(Accepted::Session));
    assert_eq!(desk.outcome(&desk.id(waits)), not_started());
    assert_eq!((desk.outcome(&desk.id(sent)), desk.outcome(&other)), (None, None));
    let late = desk.start_with(of_session);
    assert_eq!(desk.refusal(late), Code::Cancelled);
    let socket = desk.live_knowing(1, &[]);
    assert_eq!(desk.told(socket), ["ready 120000", "cancel", "session c1", "op other"]);
}

#[test]
fn a_cancelled_session_is_told_until_the_worker_has_it() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    desk.cancel_session("s", "c1");
    assert_eq!(desk.told(socket), ["session c1"]);
    desk.crash();
    let socket = desk.live_knowing(1, &[]);
    assert_eq!(desk.told(socket), ["ready 120000", "session c1"]);
    desk.say(socket, WorkerFrame::CancelSessionAck { cancellation_id: "c1".into() });
    desk.crash();
    let socket = desk.live_knowing(1, &[]);
    assert_eq!(desk.told(socket), ["ready 120000"]);
    // It stays cancelled for good.
    let late = desk.start_with(|start| start.session_id = Some("s".into()));
    assert_eq!(desk.refusal(late), Code::Cancelled);
}

#[test]
fn an_admission_that_is_overtaken_by_a_cancelled_session_is_cancelled() {
    let mut desk = Desk::new();
    desk.mood = Mood::Slow;
    let started = desk.start_with(|start| start.session_id = Some("s".into()));
    desk.cancel_session("s", "c1");
    desk.answer_all();
    assert_eq!(desk.outcome(&desk.id(started)), not_started());
}

#[test]
fn when_everything_is_cancelled_what_is_being_admitted_is_too_and_what_comes_later_is_not() {
    let mut desk = Desk::new();
    let queued = desk.start("queued");
    desk.mood = Mood::Slow;
    let admitting = desk.start_with(|_| {});
    desk.tell(Input::CancelAll);
    desk.answer_all();
    let admitted = desk.id(admitting);
    let later = desk.start_with(|_| {});
    desk.answer_all();
    assert_eq!((desk.outcome(&queued), desk.outcome(&admitted)), (not_started(), not_started()));
    assert_eq!(desk.outcome(&desk.id(later)), None);
}

#[test]
fn a_revoked_device_has_no_living_operations() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (sent, _) = desk.running(socket);
    desk.mood = Mood::Slow;
    let waits = desk.start_with(|_| {});
    desk.tell(Input::Revoke);
    desk.mood = Mood::Prompt;
    desk.answer_all();
    assert_eq!(desk.closes[&socket], REVOKED);
    let reason = "the device was revoked; what it was running may go on there".into();
    assert_eq!(desk.outcome(&sent), Some(Outcome::Unknown { reason, evidence: None }));
    assert_eq!(desk.outcome(&desk.id(waits)), not_started());
    let late = desk.start_with(|_| {});
    assert_eq!(desk.refusal(late), Code::Unavailable);
    let socket = desk.connect();
    assert_eq!(desk.closes[&socket], REVOKED);
}

#[test]
fn only_a_worker_that_says_cancelled_says_that_it_never_started() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let id = desk.start("one");
    desk.read(socket);
    desk.cancel(&id);
    for state in [State::Completed, State::Failed, State::Expired, State::Unknown, State::Running] {
        desk.say(socket, WorkerFrame::CancelResult { request_id: id.clone(), state });
        assert_eq!(desk.outcome(&id), None, "{state:?}");
    }
    desk.exit(socket, &id, 0);
    assert_eq!(desk.outcome(&id), Some(done(0)));
}

#[test]
fn a_session_that_is_cancelled_again_and_again_waits_for_the_worker_once() {
    let mut desk = Desk::new();
    for n in 0..=limits::SESSION_CANCELS_MAX {
        let ask = desk.cancel_session("s", &format!("c{n}"));
        assert_eq!(desk.answers[&ask], Ok(Accepted::Session));
    }
    let other = desk.cancel_session("other", "d");
    assert_eq!(desk.answers[&other], Ok(Accepted::Session));
    for _ in 0..2 {
        let socket = desk.live_knowing(1, &[]);
        assert_eq!(desk.told(socket), ["ready 120000", "session d", "session c0"]);
        desk.close(socket);
        desk.crash();
    }
    let socket = desk.live(1);
    desk.say(socket, WorkerFrame::CancelSessionAck { cancellation_id: "c0".into() });
    desk.close(socket);
    desk.crash();
    let socket = desk.live_knowing(1, &[]);
    assert_eq!(desk.told(socket), ["ready 120000", "session d"]);
}
