//! A holder dies at any moment, and the next one goes on.

use std::time::Duration;

use super::super::*;
use super::world::*;
use crate::chat::{Scope, SendError};

#[test]
fn five_hundred_deaths_between_the_answer_and_the_commit_double_and_lose_nothing() {
    let mut world = World::new();
    for n in 0..500u64 {
        let text = if n % 3 == 0 { "Done.".to_owned() } else { format!("entry {n}") };
        // The commit of the message and then the request: the holder dies with the answer in its hands.
        world.dies_in = Some(3);
        world.entries(n, S, &[&text]);
        assert_eq!(world.outbox.snapshot(world.now).generation, n + 2, "it died");
        world.pass(Duration::from_secs(n % 200));
        assert_eq!(world.service.posts.len() as u64, n + 1);
    }
    world.pass(MIN * 10);
    assert_eq!(world.service.posts.len(), 500);
    assert_eq!(world.told, []);
    assert_eq!(world.outbox.snapshot(world.now).depth, 0);
}

#[test]
fn a_death_between_request_and_arrival_doubles_nothing() {
    let mut world = World::new();
    for n in 0..100u64 {
        world.fates.push_back(Fate::Late(Duration::from_millis(n * 37)));
        world.dies_in = Some(3);
        world.entries(n, S, &[&format!("entry {n}")]);
        world.pass(S * 10);
    }
    world.pass(MIN * 10);
    let texts: Vec<String> = (0..100).map(|n| format!("entry {n}")).collect();
    assert_eq!(world.service.texts(), texts);
}

#[test]
fn a_death_at_each_step_of_three_messages_doubles_and_loses_nothing() {
    for step in 0..16 {
        let mut world = World::new();
        world.dies_in = Some(step);
        world.entries(0, S, &["one", "two", "three"]);
        // A holder that died before the first commit is followed by one that reads the same again.
        world.entries(0, S, &["one", "two", "three"]);
        world.pass(MIN);
        assert_eq!(world.service.texts(), ["one", "two", "three"], "step {step}");
        assert_eq!(world.told, [], "step {step}");
    }
}

#[test]
fn a_long_text_that_was_half_sent_is_finished_by_the_next_holder() {
    let long: String = (0..300).map(|n| format!("line {n} of a long answer\n")).collect();
    let mut whole = World::new();
    whole.entries(0, S, &[&long]);
    let expected: Vec<String> = whole.service.texts().iter().map(|&t| t.to_owned()).collect();
    assert_eq!(expected.len(), 4);
    for step in 2..14 {
        let mut world = World::new();
        world.dies_in = Some(step);
        world.entries(0, S, &[&long]);
        world.pass(MIN);
        assert_eq!(world.service.texts(), expected, "step {step}");
    }
}

#[test]
fn a_channel_that_cannot_be_looked_at_is_asked_again_and_nothing_is_sent_blindly() {
    let mut world = World::new();
    world.dies_in = Some(3);
    world.looks.extend([Some(Err(SendError::Later("no route".to_owned()))), None]);
    world.entries(0, S, &["one", "two"]);
    world.pass(S * 100);
    assert_eq!((world.service.texts(), world.compares), (vec!["one"], 2));
    world.pass(MIN);
    assert!(world.seen.contains(&Output::Reset), "the second one hung");
    assert_eq!((world.service.texts(), world.compares), (vec!["one", "two"], 3));
    assert_eq!(world.told, []);
}

#[test]
fn where_the_bot_may_not_look_it_may_not_speak() {
    let mut world = World::new();
    world.dies_in = Some(3);
    let scope = Scope::Channel;
    let missing = SendError::Permanent { scope, code: "50001".to_owned(), text: "Missing Access".to_owned() };
    world.looks.push_back(Some(Err(missing)));
    world.entries(0, S, &["one", "two"]);
    assert_eq!(world.told, [Told::ChannelParked(channel("c1"), "Missing Access (50001)".to_owned())]);
    assert!(!world.outbox.speaks(&channel("c1")) && world.outbox.speaks(&channel("c2")));
    world.give(Input::Retry { channel: None, unknown: false });
    assert_eq!((world.service.texts(), world.compares), (vec!["one", "two"], 2));
}

#[test]
fn what_cannot_be_found_among_too_much_is_told_as_unknown() {
    let mut world = World::new();
    world.dies_in = Some(3);
    world.looks.push_back(Some(Ok(None)));
    world.entries(0, S, &["one", "two"]);
    let key = Key { source: source(), start: 0, end: 1, chunk: 0 };
    assert_eq!(
        world.told,
        [Told::Unknown(key, "it may have been posted, and the channel cannot be asked whether it was".to_owned())]
    );
    assert_eq!(world.service.texts(), ["one", "two"]);
}

#[test]
fn an_attempt_that_arrives_after_the_comparison_is_found_before_the_message_is_sent_anew() {
    let mut world = World::new();
    let refused = SendError::Permanent { scope: Scope::Channel, code: String::new(), text: "no".to_owned() };
    world.fates.extend([Fate::Late(S * 30), Fate::Refused(refused)]);
    world.dies_in = Some(3);
    world.entries(0, S, &["one", "two"]);
    assert_eq!((world.service.texts().len(), world.compares), (0, 1));
    // Longer than any service knows a nonce.
    world.pass(MIN * 10);
    world.give(Input::Retry { channel: None, unknown: false });
    assert_eq!((world.service.texts(), world.compares), (vec!["one", "two"], 2));
}
