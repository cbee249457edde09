//! A take from a holder that does not answer.

use super::scenes::acquired;
use super::*;

#[test]
fn a_holder_that_does_not_answer_is_a_question_to_a_person_after_six_seconds() {
    let mut world = World::new(2);
    world.take(0);
    world.all[0].frozen = true;
    world.take(1);
    world.pass(limits::SEAT_ANSWER - MS);
    assert!(!world.view(1).frozen);
    world.pass(MS);
    assert!(world.view(1).frozen);
    world.pass(S * 3600);
    assert!(world.view(1).frozen, "the question stands");
    assert_eq!((world.state(1), world.all[1].kills.len()), (SeatState::Standby, 0), "it waits for the person");
    world.input(1, Input::Want(Want::Take { force: true }));
    world.pass(limits::SEAT_RETRY);
    assert_eq!((world.state(1), &world.all[1].kills[..]), (SeatState::Serving, &[0][..]));
    assert_eq!(world.all[1].told, [acquired(2)]);
}

#[test]
fn a_take_that_was_refused_is_withdrawn_and_a_frozen_holder_that_thaws_keeps_its_seat() {
    let mut world = World::new(2);
    world.take(0);
    world.all[0].frozen = true;
    world.take(1);
    world.pass(S * 60);
    assert!(world.view(1).frozen);
    world.all[0].frozen = false;
    world.settle();
    assert_eq!((world.state(0), world.state(1)), (SeatState::Serving, SeatState::Standby));
    assert_eq!((world.all[0].told.as_slice(), world.all[0].logins), (&[acquired(1)][..], 1));
    let view = world.view(1);
    assert_eq!((view.frozen, view.reason.as_deref()), (false, Some("another process holds the seat")));
    world.pass(S * 3600);
    assert_eq!((world.state(0), world.disk.record.generation), (SeatState::Serving, 1));
    world.take(1);
    assert_eq!((world.state(0), world.state(1)), (SeatState::Off, SeatState::Serving), "who asks again is answered");
}

#[test]
fn a_holder_that_thaws_in_time_lets_go_and_one_moment_later_keeps_its_seat() {
    for (after, takes) in [(limits::SEAT_ANSWER - MS, true), (limits::SEAT_ANSWER, false)] {
        let mut world = World::new(2);
        world.take(0);
        world.all[0].frozen = true;
        world.take(1);
        world.pass(after);
        world.all[0].frozen = false;
        world.pass(S);
        let states = (world.state(0), world.state(1));
        let wanted =
            if takes { (SeatState::Off, SeatState::Serving) } else { (SeatState::Serving, SeatState::Standby) };
        assert_eq!(states, wanted, "after {after:?}");
    }
}

#[test]
fn a_second_take_from_a_frozen_holder_asks_anew_for_six_seconds_and_finds_one_that_thawed() {
    let mut world = World::new(2);
    world.take(0);
    world.all[0].frozen = true;
    world.take(1);
    world.pass(S * 60);
    world.take(1);
    assert_eq!((world.state(1), world.view(1).frozen), (SeatState::Claiming, false), "it is asked about again");
    world.pass(limits::SEAT_ANSWER - MS);
    assert_eq!(world.state(1), SeatState::Claiming);
    world.pass(MS);
    assert_eq!((world.state(1), world.view(1).frozen), (SeatState::Standby, true));
    world.take(1);
    world.pass(S * 3);
    world.all[0].frozen = false;
    world.settle();
    assert_eq!((world.state(0), world.state(1)), (SeatState::Off, SeatState::Serving));
}

#[test]
fn a_refused_take_claims_nothing_when_its_frozen_holder_dies_and_the_question_ends() {
    let mut world = World::new(2);
    world.take(0);
    world.all[0].frozen = true;
    world.take(1);
    world.pass(S * 60);
    world.kill(0);
    world.pass(S * 60);
    let view = world.view(1);
    assert_eq!((view.state, view.frozen), (SeatState::Standby, false));
    assert_eq!(view.reason.as_deref(), Some("the process that held the seat is gone"));
    assert_eq!(world.disk.record.generation, 1, "the person was told no");
}

#[test]
fn a_holder_that_has_a_seat_but_cannot_be_asked_is_no_question_about_ending_it() {
    let mut world = World::new(2);
    world.take(0);
    world.disk.listens = None;
    world.take(1);
    world.pass(limits::SEAT_ANSWER + S);
    let view = world.view(1);
    assert_eq!((view.state, view.frozen), (SeatState::Standby, false));
    assert_eq!(view.reason.as_deref(), Some("another process holds the seat and cannot be asked for it"));
    world.pass(S * 3600);
    assert_eq!(world.state(0), SeatState::Serving);
}

#[test]
fn a_promise_gives_the_holder_its_time_anew_and_one_that_freezes_after_it_is_a_question_too() {
    let mut world = World::new(2);
    world.take(0);
    world.smooth = false;
    world.all[0].frozen = true;
    world.take(1);
    world.pass(S * 5);
    world.all[0].frozen = false;
    world.settle();
    assert_eq!(world.state(0), SeatState::Draining);
    world.all[0].frozen = true;
    world.pass(limits::SEAT_HANDOVER - MS);
    assert!(!world.view(1).frozen);
    world.pass(MS * 2);
    let view = world.view(1);
    assert_eq!((view.state, view.frozen), (SeatState::Claiming, true), "the holder is bound, so the take stands");
    world.take(1);
    assert!(!world.view(1).frozen);
    world.pass(limits::SEAT_ANSWER);
    assert!(world.view(1).frozen);
    (world.smooth, world.all[0].frozen) = (true, false);
    world.settle();
    assert_eq!((world.state(0), world.state(1)), (SeatState::Off, SeatState::Serving));
}

#[test]
fn a_question_ends_when_the_person_lets_go() {
    let mut world = World::new(2);
    world.take(0);
    world.all[0].frozen = true;
    world.take(1);
    world.pass(S * 10);
    world.input(1, Input::Release);
    assert_eq!((world.state(1), world.view(1).frozen), (SeatState::Off, false));
}
