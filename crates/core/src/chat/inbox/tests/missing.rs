//! What was written while nobody listened.

use super::super::*;
use super::world::*;
use crate::chat::{ChannelId, CommitError, Incoming};
use crate::limits;

/// A program's message.
fn bots(n: u64, at: &ChannelId) -> Incoming {
    Incoming { channel: at.clone(), bot: true, ..message(n, "built") }
}

#[test]
fn where_nobody_is_heard_a_programs_message_leaves_nothing_behind() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(bots(1, &channel("general")));
    world.pass(S * 2);
    assert_eq!((world.seen_ids.len(), world.kept.clone()), (0, vec![id(1)]));
    world.give(Input::Connected);
    assert_eq!(world.fetches, []);
}

#[test]
fn a_channel_that_is_bound_begins_with_that_moment_so_that_its_first_message_can_be_missed() {
    let mut world = World::new(Adapter::Inbox);
    world.posted.push(message(3, "before the bot came"));
    world.give(Input::Moment(id(5)));
    world.pass(S * 2);
    world.die();
    world.posted.push(message(6, "continue please"));
    // Later moments change nothing.
    world.give(Input::Moment(id(9)));
    world.give(Input::Connected);
    world.fetch(9);
    assert_eq!(world.texts(), ["continue please"]);
}

#[test]
fn a_channel_that_is_bound_later_begins_then() {
    let mut world = World::new(Adapter::Inbox);
    world.give(Input::Moment(id(5)));
    let mut access = world.access.clone();
    access.rules.insert(channel("c2"), access.rules[&channel("c1")].clone());
    world.give(Input::Access(access));
    world.give(Input::Moment(id(8)));
    world.give(Input::Connected);
    assert_eq!(world.fetches, [(channel("c1"), id(5)), (channel("c2"), id(8))]);
}

#[test]
fn what_was_seen_in_a_channel_counts_no_longer_once_it_is_not_bound() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(message(1, "hello"));
    world.pass(S * 2);
    let bound = world.access.clone();
    world.give(Input::Access(Access::default()));
    assert_eq!(world.seen_ids.len(), 0);
    world.give(Input::Access(bound));
    world.give(Input::Moment(id(7)));
    world.give(Input::Connected);
    assert_eq!(world.fetches, [(channel("c1"), id(7))], "not what was written meanwhile");
}

#[test]
fn a_thread_that_is_not_heard_any_more_is_asked_for_once() {
    let mut world = World::new(Adapter::Inbox);
    let at = |n: u64, parent: &str| Incoming {
        channel: channel("t1"),
        parent: Some(channel(parent)),
        ..message(n, &n.to_string())
    };
    world.hear(at(1, "c1"));
    world.pass(S * 2);
    for n in 2..300 {
        world.posted.push(at(n, "c2"));
    }
    world.give(Input::Connected);
    world.give(Input::Message(at(300, "c2")));
    world.fetch(100);
    world.pass(S * 2);
    assert_eq!((world.fetches.len(), world.seen_ids.len(), world.rows.len()), (0, 0, 1));
    assert_eq!(world.kept, [id(1), id(300)]);
    world.give(Input::Connected);
    assert_eq!(world.fetches, []);
}

#[test]
fn a_page_that_brings_nothing_new_is_the_last() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(message(1, "hello"));
    world.give(Input::Connected);
    let (at, _) = world.fetches.pop_front().unwrap();
    for _ in 0..2 {
        let missed = Missed { messages: vec![message(2, "two")], more: true };
        world.give(Input::Fetched(at.clone(), Ok(missed)));
    }
    assert_eq!(world.fetches.len(), 1, "the first brought something");
    world.hear(message(3, "three"));
    world.pass(S * 2);
    assert_eq!(world.seen_ids[&at], id(3));
}

#[test]
fn of_too_many_channels_the_one_that_was_quiet_for_longest_is_forgotten_but_none_that_is_bound() {
    let mut world = World::new(Adapter::Inbox);
    world.give(Input::Moment(id(1)));
    let thread = |n: u64| channel(&format!("{}", 2_000 - n));
    let in_thread = |n: u64, at: u64| Incoming { parent: Some(channel("c1")), ..bots(n, &thread(at)) };
    let most = limits::INBOX_CHANNELS as u64;
    for n in 1..most {
        world.hear(in_thread(n + 1, n));
    }
    world.hear(in_thread(5_000, 1));
    world.hear(in_thread(5_001, most));
    world.pass(S * 2);
    assert_eq!(world.seen_ids.len(), limits::INBOX_CHANNELS);
    assert_eq!(world.seen_ids.get(&channel("c1")), Some(&id(1)));
    assert_eq!((world.seen_ids.get(&thread(1)), world.seen_ids.get(&thread(2))), (Some(&id(5_000)), None));
}

#[test]
fn while_the_store_takes_nothing_messages_wait_at_the_service() {
    let mut world = World::new(Adapter::Inbox);
    world.give(Input::Moment(id(0)));
    world.pass(S * 2);
    world.full = u32::MAX;
    let all = limits::INBOX_BACKLOG as u64 + 300;
    for n in 1..=all {
        world.hear(Incoming { author: user("bob"), ..message(n, "chatter") });
    }
    assert_eq!(world.inbox.passed.len(), limits::INBOX_BACKLOG);
    world.pass(limits::INBOX_FETCH_RETRY * 2);
    assert_eq!((world.fetches.len(), world.kept.len()), (0, 0));
    assert_eq!(world.inbox.snapshot(world.now).stuck, Some(CommitError::Full));
    world.full = 0;
    world.pass(limits::INBOX_FETCH_RETRY);
    while !world.fetches.is_empty() {
        world.fetch(100);
    }
    world.pass(S * 2);
    assert_eq!(world.seen_ids[&channel("c1")], id(all));
}
