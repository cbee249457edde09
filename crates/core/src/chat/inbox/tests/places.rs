//! What was missed where nobody wrote before.

use std::collections::BTreeSet;

use super::super::*;
use super::world::*;
use crate::chat::Incoming;
use crate::limits;

fn in_thread(n: u64, thread: &str, text: &str) -> Incoming {
    Incoming { channel: channel(thread), parent: Some(channel("c1")), ..message(n, text) }
}

fn privately(n: u64, by: &str, text: &str) -> Incoming {
    Incoming { channel: channel(&format!("d-{by}")), direct: true, author: user(by), ..message(n, text) }
}

fn thread(name: &str, parent: &str, last: u64) -> Thread {
    Thread { channel: channel(name), parent: channel(parent), last: Some(id(last)) }
}

/// Serves `c1` from its message 5 on.
fn serving() -> World {
    let mut world = World::new(Adapter::Inbox);
    world.give(Input::Moment(id(5)));
    world.give(Input::Connected);
    world.fetch_all();
    world.pass(S * 2);
    world
}

/// The same, and Ann may speak to the bot alone.
fn serving_privately() -> World {
    let mut world = serving();
    world.private.insert(user("ann"), channel("d-ann"));
    world.access.direct = world.access.rules.get(&channel("c1")).cloned();
    world.give(Input::Access(world.access.clone()));
    world.give(Input::Moment(id(10)));
    world.pass(S * 2);
    world
}

#[test]
fn a_thread_that_was_opened_in_a_gap_is_fetched_once() {
    let mut world = serving();
    world.posted.extend([in_thread(7, "t1", "in a thread"), in_thread(8, "t1", "more")]);
    world.threads = vec![thread("t1", "c1", 8), thread("t2", "c2", 9)];
    world.die();
    world.give(Input::Connected);
    world.fetch_all();
    world.pass(S * 2);
    let texts = |world: &World| world.rows.values().map(|row| row.incoming.text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&world), ["in a thread", "more"]);
    assert_eq!((world.seen_ids.get(&channel("t1")), world.seen_ids.get(&channel("t2"))), (Some(&id(8)), None));
    world.give(Input::Connected);
    world.fetch_all();
    assert_eq!(texts(&world).len(), 2);
}

#[test]
fn a_thread_without_news_is_not_asked_for() {
    let mut world = serving();
    world.threads = vec![thread("t1", "c1", 5), thread("t2", "c1", 4)];
    world.give(Input::Connected);
    let asked: Vec<_> = world.fetches.iter().map(|(at, _)| at.clone()).collect();
    assert_eq!((asked, world.seen_ids.get(&channel("t1"))), (vec![channel("c1")], None));
}

#[test]
fn a_crash_while_missed_messages_are_fetched_leaves_no_gap_in_a_thread() {
    let mut world = serving();
    world.posted.extend([in_thread(6, "t1", "in a thread"), message(9, "in the channel")]);
    world.threads = vec![thread("t1", "c1", 6)];
    world.give(Input::Connected);
    // The channel is fetched, its thread is not.
    let at = world.fetches.iter().position(|(at, _)| *at == channel("c1")).unwrap();
    let first = world.fetches.remove(at).unwrap();
    world.fetches.push_front(first);
    world.fetch(100);
    world.pass(S * 2);
    assert_eq!(world.seen_ids[&channel("c1")], id(9));
    world.die();
    world.give(Input::Connected);
    world.fetch_all();
    world.pass(S * 2);
    let texts: BTreeSet<_> = world.rows.values().map(|row| row.incoming.text.as_str()).collect();
    assert_eq!(texts, ["in a thread", "in the channel"].into());
}

#[test]
fn a_thread_that_speaks_before_it_is_found_is_fetched_from_its_beginning() {
    let mut world = serving();
    world.slow_threads = true;
    world.posted.push(in_thread(7, "t1", "missed"));
    world.give(Input::Connected);
    assert_eq!(world.fetches, [], "threads are looked for first");
    world.hear(in_thread(9, "t1", "heard"));
    world.threads = vec![thread("t1", "c1", 9)];
    world.find(Ok(()));
    world.fetch_all();
    world.pass(S * 2);
    let texts: Vec<_> = world.rows.values().map(|row| row.incoming.text.as_str()).collect();
    assert_eq!(texts, ["missed", "heard"]);
}

#[test]
fn threads_that_cannot_be_looked_for_keep_nothing_waiting_and_are_looked_for_again() {
    let mut world = serving();
    world.slow_threads = true;
    world.posted.extend([in_thread(7, "t1", "in a thread"), message(8, "in the channel")]);
    world.threads = vec![thread("t1", "c1", 7)];
    world.give(Input::Connected);
    world.find(Err("no route".to_owned()));
    world.fetch_all();
    assert_eq!(world.rows.len(), 1);
    assert!(world.out.contains(&Output::Told(Told::NotFound("no route".to_owned()))));
    world.pass(limits::INBOX_FETCH_RETRY);
    // The channel went on meanwhile; the thread is fetched from where the channel was.
    world.find(Ok(()));
    assert_eq!(world.fetches, [(channel("t1"), id(5))]);
    world.fetch_all();
    assert_eq!(world.rows.len(), 2);
}

#[test]
fn a_connection_that_comes_again_while_threads_are_looked_for_has_them_looked_for_again() {
    let mut world = serving();
    world.slow_threads = true;
    for _ in 0..3 {
        world.give(Input::Connected);
    }
    assert_eq!(world.looking.len(), 1);
    world.find(Ok(()));
    world.threads = vec![thread("t1", "c1", 7)];
    assert_eq!(world.looking.len(), 1);
    world.find(Ok(()));
    assert_eq!(world.looking.len(), 0);
    assert!(world.fetches.contains(&(channel("t1"), id(5))));
}

#[test]
fn a_thread_of_a_channel_that_is_not_bound_any_more_is_left_alone() {
    let mut world = serving();
    world.slow_threads = true;
    world.threads = vec![thread("t1", "c1", 7)];
    world.give(Input::Connected);
    world.give(Input::Access(Access::default()));
    world.find(Ok(()));
    assert!(world.fetches.iter().all(|(at, _)| *at != channel("t1")));
}

#[test]
fn what_an_admitted_person_writes_alone_for_the_first_time_in_a_gap_is_fetched_once() {
    let mut world = serving_privately();
    assert_eq!(world.sought, [user("ann")]);
    world.posted.extend([privately(11, "ann", "in private"), privately(12, "bob", "me too")]);
    world.die();
    world.give(Input::Moment(id(20)));
    world.give(Input::Connected);
    assert_eq!(world.fetches, [(channel("c1"), id(5)), (channel("d-ann"), id(10))]);
    world.fetch_all();
    world.give(Input::Connected);
    world.fetch_all();
    let texts: Vec<_> = world.rows.values().map(|row| row.incoming.text.as_str()).collect();
    assert_eq!(texts, ["in private"]);
}

#[test]
fn where_nobody_is_heard_alone_nobody_is_looked_for() {
    let mut world = serving();
    world.give(Input::Moment(id(6)));
    world.give(Input::Connected);
    assert_eq!(world.sought, []);
    let mut others = access(Adapter::Inbox);
    others.direct = others.rules.get(&channel("c1")).cloned();
    others.direct.as_mut().unwrap().people.insert(user("bob"));
    others.people.insert(user("bob"));
    world.give(Input::Access(others));
    world.give(Input::Moment(id(7)));
    assert_eq!(world.sought, [user("bob")], "ann may not there");
}

#[test]
fn what_was_written_while_a_person_was_not_heard_alone_is_not_fetched() {
    let mut world = serving_privately();
    let with = world.access.clone();
    world.give(Input::Access(access(Adapter::Inbox)));
    world.hear(privately(15, "ann", "nobody hears this"));
    world.give(Input::Access(with));
    world.give(Input::Moment(id(30)));
    world.give(Input::Connected);
    world.fetch_all();
    assert_eq!((world.rows.len(), world.sought.len()), (0, 2));
}

#[test]
fn a_conversation_that_is_found_only_after_the_gap_is_fetched_from_when_the_person_was_heard_there() {
    let mut world = serving();
    world.access.direct = world.access.rules.get(&channel("c1")).cloned();
    world.give(Input::Access(world.access.clone()));
    world.give(Input::Moment(id(10)));
    world.posted.push(privately(11, "ann", "in private"));
    world.private.insert(user("ann"), channel("d-ann"));
    world.give(Input::Connected);
    world.fetch_all();
    let texts: Vec<_> = world.rows.values().map(|row| row.incoming.text.as_str()).collect();
    assert_eq!(texts, ["in private"]);
}

#[test]
fn of_very_many_people_only_some_are_looked_for_at_a_time() {
    let mut world = serving();
    let mut others = access(Adapter::Inbox);
    others.direct = others.rules.get(&channel("c1")).cloned();
    others.people = (0..100).map(|n| user(&format!("p{n:03}"))).collect();
    for person in &others.people {
        world.private.insert(person.clone(), channel(&format!("d-{person}")));
    }
    world.give(Input::Access(others));
    world.give(Input::Moment(id(7)));
    assert_eq!(world.sought.len(), limits::INBOX_DIRECT);
    world.give(Input::Connected);
    assert_eq!(world.sought.iter().collect::<BTreeSet<_>>().len(), 2 * limits::INBOX_DIRECT);
}
