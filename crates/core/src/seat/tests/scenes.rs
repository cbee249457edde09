//! One story each.

use super::*;

pub(super) fn acquired(generation: u64) -> Told {
    Told::Acquired { generation }
}

fn superseded(generation: u64) -> Told {
    Told::Superseded { generation }
}

#[test]
fn a_vacant_seat_is_locked_stamped_connected_confirmed_and_only_then_served() {
    let mut world = World::new(1);
    world.smooth = false;
    world.input(0, Input::Want(Want::IfVacant));
    assert_eq!(world.state(0), SeatState::Connecting);
    assert_eq!((world.disk.record.generation, world.all[0].told.len()), (1, 0));
    let conn = world.all[0].trying.unwrap();
    let another = Look::Intact { generation: 1, connected: Some(ConnId(99)) };
    world.input(0, Input::Looked(another));
    assert_eq!(world.state(0), SeatState::Connecting, "only its own connection counts");
    world.input(0, Input::Connected(conn));
    assert_eq!((world.state(0), world.all[0].serving), (SeatState::Serving, Some((conn, 1))));
    assert_eq!(world.all[0].told, [acquired(1)]);
}

#[test]
fn a_start_never_takes_a_live_seat_and_never_claims_it_later_by_itself() {
    let mut world = World::new(2);
    world.take(0);
    world.input(1, Input::Want(Want::IfVacant));
    assert_eq!(world.state(1), SeatState::Standby);
    assert_eq!(world.view(1).reason.as_deref(), Some("another process holds the seat"));
    assert!(!world.view(1).waits);
    world.kill(0);
    world.pass(S * 3600);
    assert_eq!(world.state(1), SeatState::Standby, "its owner is gone: off, never a random survivor");
    assert_eq!(world.disk.record.generation, 1);
}

#[test]
fn one_that_was_told_to_wait_claims_the_seat_within_a_second_of_its_holders_death() {
    let mut world = World::new(2);
    world.take(0);
    world.input(1, Input::Want(Want::Wait));
    world.pass(S * 600);
    assert_eq!((world.state(0), world.state(1)), (SeatState::Serving, SeatState::Standby));
    assert!(world.view(1).waits && !world.view(0).waits);
    world.kill(0);
    world.pass(limits::SEAT_LOOK);
    assert_eq!((world.state(1), world.disk.record.generation), (SeatState::Serving, 2));
}

#[test]
fn a_take_is_drained_for_and_the_seat_kept_for_the_taker() {
    let mut world = World::new(3);
    world.take(0);
    world.input(2, Input::Want(Want::Wait));
    world.smooth = false;
    world.take(1);
    assert_eq!((world.state(0), world.state(1)), (SeatState::Draining, SeatState::Claiming));
    assert_eq!(world.all[0].told, [acquired(1)], "nothing is over before it is over");
    world.smooth = true;
    world.settle();
    assert_eq!(
        (world.state(0), world.state(1), world.state(2)),
        (SeatState::Off, SeatState::Serving, SeatState::Standby)
    );
    assert_eq!(world.all[0].told, [acquired(1), superseded(1)]);
    assert_eq!(world.view(0).reason.as_deref(), Some("process 1 took the seat"));
    assert_eq!(world.all[1].told, [acquired(2)]);
}

#[test]
fn a_seat_kept_for_a_taker_that_died_is_free_for_those_who_wait_after_ten_seconds() {
    let mut world = World::new(3);
    world.take(0);
    world.input(2, Input::Want(Want::Wait));
    world.smooth = false;
    world.take(1);
    world.kill(1);
    world.smooth = true;
    world.settle();
    assert_eq!(world.state(0), SeatState::Off);
    world.pass(limits::SEAT_RESERVED - S * 2);
    assert_eq!(world.state(2), SeatState::Standby);
    world.pass(S * 4);
    assert_eq!(world.state(2), SeatState::Serving);
}

#[test]
fn superseded_while_connecting_it_disconnects_and_never_serves() {
    let mut world = World::new(2);
    world.smooth = false;
    world.take(0);
    let conn = world.all[0].trying.unwrap();
    world.take(1);
    assert_eq!((world.state(0), world.all[0].leaving), (SeatState::Draining, Some(conn)));
    // It opens after all, too late.
    world.input(0, Input::Connected(conn));
    assert_eq!((world.state(0), world.all[0].serving), (SeatState::Draining, None));
    world.input(0, Input::Left(conn));
    assert_eq!((world.state(0), world.state(1)), (SeatState::Off, SeatState::Connecting));
    assert_eq!(world.all[0].told, [superseded(1)], "never acquired, so never told");
}

#[test]
fn what_does_not_finish_in_four_seconds_is_cut() {
    let mut world = World::new(2);
    world.take(0);
    world.smooth = false;
    world.take(1);
    world.pass(limits::SEAT_DRAIN - MS);
    assert_eq!(world.state(0), SeatState::Draining);
    world.pass(MS);
    assert_eq!((world.state(0), world.state(1)), (SeatState::Off, SeatState::Connecting));
}

#[test]
fn a_holder_whose_lock_file_was_replaced_stops_at_once() {
    let mut world = World::new(2);
    world.take(0);
    world.replace_lock();
    world.take(1);
    assert_eq!(world.state(1), SeatState::Serving, "the path names another file");
    world.pass(limits::SEAT_LOOK);
    assert_eq!((world.state(0), world.all[0].serving), (SeatState::Off, None));
    assert_eq!(world.all[0].told, [acquired(1), superseded(1)]);
    assert_eq!(world.disk.record.generation, 2, "it writes nothing any more");
}

#[test]
fn a_holder_that_sees_a_higher_generation_stops_at_once() {
    let mut world = World::new(1);
    world.take(0);
    world.disk.record.generation = 9;
    world.pass(limits::SEAT_LOOK);
    assert_eq!((world.state(0), world.all[0].serving), (SeatState::Off, None));
    world.take(0);
    assert_eq!(world.all[0].told, [acquired(1), superseded(1), acquired(10)]);
}

#[test]
fn a_bad_token_is_told_once_and_tried_once() {
    let mut world = World::new(2);
    world.smooth = false;
    world.take(0);
    let conn = world.all[0].trying.take().unwrap();
    world.input(0, Input::Lost(conn, Failed::ForGood("the token is not valid".into())));
    world.pass(S * 3600);
    assert_eq!((world.state(0), world.all[0].trying), (SeatState::Failed, None));
    assert_eq!(world.all[0].told, [Told::Failed { reason: "the token is not valid".into() }]);
    world.smooth = true;
    world.take(1);
    assert_eq!(world.state(1), SeatState::Serving, "the seat is free");
}

#[test]
fn tries_to_connect_come_two_to_sixty_seconds_apart_and_sooner_when_a_person_asks() {
    let mut world = World::new(1);
    world.smooth = false;
    world.take(0);
    let mut waits = Vec::new();
    for _ in 0..12 {
        let conn = world.all[0].trying.take().unwrap();
        let lost_at = world.now.boot;
        world.input(0, Input::Lost(conn, Failed::ForNow { reason: "no network".into(), after: None }));
        assert_eq!(world.view(0).reason.as_deref(), Some("no network"));
        while world.all[0].trying.is_none() {
            world.pass(MS * 100);
        }
        waits.push(world.now.boot - lost_at);
    }
    assert!(waits[0] >= S * 2 && waits[0] <= S * 4 + MS * 100, "{waits:?}");
    assert!(waits[11] >= S * 30 && waits[11] <= S * 60 + MS * 100, "{waits:?}");
    let conn = world.all[0].trying.take().unwrap();
    world.input(0, Input::Lost(conn, Failed::ForNow { reason: "wait".into(), after: Some(S * 300) }));
    world.pass(S * 299);
    assert_eq!(world.all[0].trying, None, "what the service asks for is honoured");
    world.take(0);
    assert!(world.all[0].trying.is_some());
    assert_eq!(world.all[0].told, [], "a try is nothing to tell");
}

#[test]
fn a_lost_connection_is_made_again_under_the_same_generation_and_acquired_is_not_told_again() {
    let mut world = World::new(1);
    world.take(0);
    let (conn, _) = world.all[0].serving.unwrap();
    world.disconnected(0);
    world.input(0, Input::Lost(conn, Failed::UsedElsewhere("terminated by another poll".into())));
    assert_eq!((world.state(0), world.view(0).used_elsewhere), (SeatState::Connecting, true));
    world.pass(S * 5);
    assert_eq!((world.state(0), world.view(0).generation), (SeatState::Serving, Some(1)));
    assert!(world.view(0).used_elsewhere, "it may happen again");
    world.pass(limits::SEAT_SETTLED);
    assert!(!world.view(0).used_elsewhere);
    assert_eq!(world.all[0].told, [acquired(1)]);
}

#[test]
fn off_ends_before_the_next_on_begins() {
    let mut world = World::new(1);
    world.take(0);
    world.smooth = false;
    world.input(0, Input::Release);
    world.take(0);
    assert_eq!((world.state(0), world.all[0].trying), (SeatState::Draining, None));
    world.smooth = true;
    world.settle();
    assert_eq!((world.state(0), world.disk.record.generation), (SeatState::Serving, 2));
    assert_eq!(world.all[0].told, [acquired(1), acquired(2)], "a person let go, so nobody is superseded");
}

#[test]
fn of_two_takers_the_second_stands_by_unless_the_first_does_not_come() {
    let mut world = World::new(3);
    world.take(0);
    world.smooth = false;
    world.take(1);
    world.take(2);
    assert_eq!((world.state(1), world.state(2)), (SeatState::Claiming, SeatState::Claiming));
    world.smooth = true;
    world.pass(S);
    assert_eq!((world.state(1), world.state(2)), (SeatState::Serving, SeatState::Standby));
    assert_eq!(world.view(2).reason.as_deref(), Some("another process took the seat"));
}

#[test]
fn a_folder_that_cannot_be_used_is_a_failure_with_its_reason() {
    let mut world = World::new(1);
    world.disk.record.generation = u64::MAX;
    world.take(0);
    assert_eq!(world.state(0), SeatState::Failed);
    assert_eq!(world.disk.locks.len(), 0);
    world.disk.record.generation = 3;
    world.take(0);
    assert_eq!(world.state(0), SeatState::Serving, "a failure does not poison the next try");
}

#[test]
fn a_lock_that_is_free_without_a_word_is_found_while_its_holder_is_asked_about() {
    let mut world = World::new(2);
    world.take(0);
    world.all[0].frozen = true;
    world.take(1);
    world.replace_lock();
    world.pass(limits::SEAT_RETRY);
    assert_eq!((world.state(1), world.disk.record.generation), (SeatState::Serving, 2));
    world.all[0].frozen = false;
    world.pass(limits::SEAT_LOOK);
    assert_eq!(world.state(0), SeatState::Off);
}

#[test]
fn a_full_disk_is_waited_for_two_to_sixty_seconds_at_a_time_and_the_seat_served_once_there_is_room() {
    let mut world = World::new(1);
    world.disk.full = true;
    world.take(0);
    let view = world.view(0);
    assert_eq!(
        (view.state, view.code, view.reason.as_deref()),
        (SeatState::Claiming, Some(Code::StorageFull), Some("the disk is full"))
    );
    let mut waits = Vec::new();
    for _ in 0..12 {
        let view = world.view(0);
        let wait = view.next_try.unwrap() - world.now.boot;
        waits.push(wait);
        world.pass(wait + MS);
    }
    assert!(waits[0] >= S * 2 && waits[0] <= S * 4, "{waits:?}");
    assert!(waits[11] >= S * 30 && waits[11] <= S * 60, "{waits:?}");
    world.disk.full = false;
    world.pass(S * 60);
    let view = world.view(0);
    assert_eq!((view.state, view.code, view.reason), (SeatState::Serving, None, None));
    assert_eq!(world.all[0].told, [acquired(1)], "nobody had given up");
}

#[test]
fn a_person_need_not_wait_for_the_next_look_at_a_full_disk_and_may_let_go_of_it() {
    let mut world = World::new(1);
    world.disk.full = true;
    world.take(0);
    world.pass(S * 600);
    world.disk.full = false;
    world.take(0);
    assert_eq!(world.state(0), SeatState::Serving);
    world.input(0, Input::Release);
    world.disk.full = true;
    world.take(0);
    world.input(0, Input::Release);
    world.disk.full = false;
    world.pass(S * 600);
    assert_eq!((world.state(0), world.view(0).next_try), (SeatState::Off, None));
}

#[test]
fn who_waits_for_a_seat_on_a_full_disk_still_waits_for_it_when_there_is_room() {
    let mut world = World::new(2);
    world.take(0);
    world.input(1, Input::Want(Want::Wait));
    world.disk.full = true;
    world.pass(S * 5);
    assert_eq!((world.state(1), world.view(1).code), (SeatState::Standby, Some(Code::StorageFull)));
    assert_eq!(world.state(0), SeatState::Serving, "who serves goes on");
    world.disk.full = false;
    world.pass(S * 60);
    let view = world.view(1);
    assert_eq!(
        (view.state, view.code, view.reason.as_deref()),
        (SeatState::Standby, None, Some("another process holds the seat"))
    );
    world.kill(0);
    world.pass(S * 2);
    assert_eq!(world.state(1), SeatState::Serving);
}

#[test]
fn with_a_store_that_cannot_be_opened_nobody_logs_in() {
    let mut world = World::new(2);
    world.smooth = false;
    world.take(0);
    let conn = world.all[0].trying.take().unwrap();
    world.disk.full = true;
    world.input(0, Input::Lost(conn, Failed::ForNow { reason: "no network".into(), after: None }));
    world.pass(S * 600);
    let view = world.view(0);
    assert_eq!((view.state, view.code), (SeatState::Connecting, Some(Code::StorageFull)));
    assert_eq!(world.all[0].logins, 1);
    assert!(view.next_try.unwrap() <= world.now.boot + S * 60);
    world.disk.full = false;
    world.pass(S * 60);
    assert_eq!((world.all[0].logins, world.view(0).code), (2, None));
    // Another process is let have it meanwhile.
    world.smooth = true;
    world.disk.full = true;
    let conn = world.all[0].trying.take().unwrap();
    world.input(0, Input::Lost(conn, Failed::ForNow { reason: "no network".into(), after: None }));
    world.pass(S * 10);
    world.disk.full = false;
    world.take(1);
    assert_eq!((world.state(0), world.state(1)), (SeatState::Off, SeatState::Serving));
}

#[test]
fn a_store_that_only_a_person_can_mend_ends_the_claim_with_its_code() {
    let mut world = World::new(1);
    let mut seat = std::mem::replace(&mut world.all[0].seat, Seat::new(world.now, 1));
    seat.handle(world.now, Input::Want(Want::IfVacant));
    seat.handle(world.now, Input::Lock(LockTry::Ours { last: 0 }));
    seat.handle(world.now, Input::Stamped(Ok(1)));
    let opens = std::iter::from_fn(|| seat.poll_output()).find_map(|output| match output {
        Output::Open(conn, 1) => Some(conn),
        _ => None,
    });
    let why = Unusable::for_good(Code::InternalError, "a newer Holdfast wrote it");
    seat.handle(world.now, Input::Opened(opens.unwrap(), Err(why)));
    let view = seat.snapshot(world.now);
    assert_eq!((view.state, view.code, view.next_try), (SeatState::Failed, Some(Code::InternalError), None));
    let rest: Vec<_> = std::iter::from_fn(|| seat.poll_output()).collect();
    assert!(rest.contains(&Output::Unlock(None)) && !rest.iter().any(|o| matches!(o, Output::Connect(_))), "{rest:?}");
}

#[test]
fn a_disk_that_does_not_answer_ends_nothing_and_confirms_nothing() {
    let mut world = World::new(1);
    world.smooth = false;
    world.take(0);
    world.disk.silent = true;
    let conn = world.all[0].trying.take().unwrap();
    world.input(0, Input::Connected(conn));
    assert_eq!((world.state(0), world.all[0].serving), (SeatState::Connecting, None));
    world.disk.silent = false;
    world.pass(limits::SEAT_LOOK);
    assert_eq!(world.state(0), SeatState::Serving);
    world.disk.silent = true;
    world.pass(S * 600);
    assert_eq!(world.state(0), SeatState::Serving);
}
