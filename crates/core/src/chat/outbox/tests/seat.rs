//! The seat goes to another holder.

use super::super::*;
use super::world::*;
use crate::chat::{Scope, SendError};

#[test]
fn a_holder_that_sees_a_later_generation_stops_at_once() {
    let mut world = World::new();
    world.give(Input::Generation(1));
    world.store.generation = 2;
    world.entries(0, S, &["one"]);
    assert_eq!(world.seen.last(), Some(&Output::Superseded(2)));
    world.entries(1, S, &["two"]);
    world.pass(MIN);
    assert_eq!((world.service.texts(), world.store.rows.len()), (vec![], 0));
}

#[test]
fn nothing_that_was_about_to_happen_happens_after_a_later_generation_was_seen() {
    let mut outbox = Outbox::new(World::new().now, 3, 2000, Stored::default(), 1);
    let entry = Entry { start: 0, end: 1, age: S, text: "one".to_owned(), count: 1 };
    let now = World::new().now;
    let channel = channel("c1");
    outbox.handle(now, Input::Entries { source: source(), channel, entries: vec![entry], cursor: "1".into() });
    outbox.handle(now, Input::Generation(4));
    assert_eq!(outbox.poll_output(), Some(Output::Superseded(4)));
    assert_eq!((outbox.poll_output(), outbox.poll_timeout(now)), (None, None));
}

#[test]
fn an_outbox_with_nothing_to_do_is_drained_at_once() {
    let mut world = World::new();
    world.give(Input::Drain);
    assert_eq!(world.seen.last(), Some(&Output::Drained { left: 0 }));
}

#[test]
fn what_is_prepared_is_sent_before_the_seat_goes() {
    let mut world = World::new();
    world.fates.push_back(Fate::Refused(SendError::Later("no route".to_owned())));
    world.entries(0, S, &["one", "two"]);
    world.give(Input::Drain);
    world.entries(2, S, &["three"]);
    assert!(!world.seen.iter().any(|o| matches!(o, Output::Drained { .. })));
    world.pass(S);
    assert_eq!(world.service.texts(), ["one", "two\n\nthree"]);
    assert_eq!(world.seen.last(), Some(&Output::Drained { left: 0 }));
}

#[test]
fn a_hand_over_ends_in_four_seconds_and_begins_nothing_in_the_last_two() {
    let mut world = World::new();
    let texts: Vec<String> = (0..20).map(|n| format!("{n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    world.fates.extend([Fate::Good, Fate::Hangs(true)]);
    world.entries(0, S, &texts);
    world.give(Input::Drain);
    world.pass(S * 3);
    assert!(!world.seen.iter().any(|o| matches!(o, Output::Drained { .. })));
    world.pass(S);
    assert_eq!(world.seen.last(), Some(&Output::Drained { left: 19 }));
    world.die();
    world.pass(MIN);
    assert_eq!(world.service.texts(), texts, "the next holder finds what the last one had under way, and goes on");
    assert_eq!(world.told, []);
}

#[test]
fn what_a_service_wants_later_than_the_hand_over_is_left_to_the_next_holder() {
    let mut world = World::new();
    world.entries(0, S, &["1", "2", "3", "4", "5", "6"]);
    world.give(Input::Drain);
    assert_eq!(world.seen.last(), Some(&Output::Drained { left: 1 }));
    world.die();
    world.pass(S * 6);
    assert_eq!(world.service.texts(), ["1", "2", "3", "4", "5", "6"]);
}

#[test]
fn what_an_orderly_holder_never_sent_is_sent_by_the_next_one_which_asks_nobody() {
    let mut world = World::new();
    world.fates.extend(vec![Fate::Refused(SendError::Later("no route".to_owned())); 5]);
    world.entries(0, S, &["one", "two"]);
    world.give(Input::Drain);
    world.pass(S * 4);
    assert_eq!(world.seen.last(), Some(&Output::Drained { left: 2 }));
    world.fates.clear();
    // Some services cannot be asked.
    world.looks.push_back(Some(Ok(None)));
    world.die();
    world.pass(MIN);
    assert_eq!((world.service.texts(), world.compares), (vec!["one", "two"], 0));
    assert_eq!(world.told, []);
}

#[test]
fn what_a_parked_channel_holds_needs_no_question_after_an_orderly_hand_over() {
    let mut world = World::new();
    let scope = Scope::Channel;
    let refused = SendError::Permanent { scope, code: "50013".to_owned(), text: "Missing Permissions".to_owned() };
    world.fates.push_back(Fate::Refused(refused));
    world.entries(0, S, &["one"]);
    world.give(Input::Drain);
    world.looks.push_back(Some(Ok(None)));
    world.die();
    world.give(Input::Retry { channel: None, unknown: false });
    assert_eq!((world.service.texts(), world.compares), (vec!["one"], 0));
}

#[test]
fn what_one_holder_left_untouched_another_may_have_begun() {
    let mut world = World::new();
    world.fates.extend(vec![Fate::Refused(SendError::Later("no route".to_owned())); 5]);
    world.entries(0, S, &["one", "two"]);
    world.give(Input::Drain);
    world.pass(S * 4);
    world.fates.clear();
    world.fates.push_back(Fate::Hangs(true));
    world.die();
    world.pass(S);
    assert_eq!(world.service.texts(), ["one"]);
    world.now = world.now.plus(MIN * 5);
    world.die();
    world.pass(MIN);
    assert_eq!((world.service.texts(), world.compares), (vec!["one", "two"], 1));
}

#[test]
fn what_may_have_arrived_is_looked_for_after_an_orderly_hand_over_too() {
    let mut world = World::new();
    world.fates.push_back(Fate::AnswerLost);
    world.fates.extend(vec![Fate::Refused(SendError::Later("no route".to_owned())); 5]);
    world.entries(0, S, &["one", "two"]);
    world.give(Input::Drain);
    world.pass(S * 4);
    world.fates.clear();
    world.now = world.now.plus(MIN * 5);
    world.die();
    world.pass(MIN);
    assert_eq!((world.service.texts(), world.compares), (vec!["one", "two"], 1));
}
