//! From the service into the store.

use super::super::*;
use super::world::*;
use crate::chat::{Incoming, MessageId};
use crate::limits;

#[test]
fn a_message_is_stored_before_anything_is_done_with_it() {
    let mut world = World::new(Adapter::Inbox);
    world.full = 2;
    world.hear(message(1, "hello"));
    assert_eq!((world.rows.len(), world.texts().len(), world.out.len()), (0, 0, 0));
    world.pass(S * 2);
    assert_eq!(world.texts(), ["hello"]);
    assert_eq!(world.out, [Output::Taken(channel("c1"), id(1))]);
}

#[test]
fn whoever_brings_a_message_is_told_when_it_is_stored_or_if_nobody_wants_it() {
    let mut world = World::new(Adapter::Inbox);
    world.full = 1;
    world.hear(message(1, "hello"));
    world.hear(Incoming { author: user("eve"), ..message(2, "me too") });
    assert_eq!(world.kept, []);
    world.hear(Incoming { channel: channel("c9"), ..message(3, "where nobody listens") });
    assert_eq!(world.kept, [id(3)]);
    world.pass(S * 2);
    assert_eq!(world.kept, [id(3), id(1), id(2)]);
}

#[test]
fn what_is_fetched_anyway_is_brought_again_until_it_is_stored() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(message(1, "1"));
    world.give(Input::Connected);
    world.hear(message(2, "2"));
    assert_eq!(world.kept, [id(1)]);
    world.fetch(9);
    world.pass(S * 2);
    assert_eq!(world.kept, [id(1), id(2), id(2)]);
    world.give(Input::Stop);
    world.hear(message(3, "3"));
    world.pass(S * 2);
    assert_eq!(world.kept.len(), 3);
}

#[test]
fn the_same_message_is_taken_once_in_one_life_and_in_the_next() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(message(1, "hello"));
    world.give(Input::Message(message(1, "hello")));
    world.answer(Ok(()));
    assert_eq!(world.inbox.snapshot(world.now).queues, []);
    world.die();
    world.give(Input::Message(message(1, "hello")));
    assert_eq!(world.inbox.snapshot(world.now).queues, []);
    assert_eq!((world.rows.len(), world.all_given.len()), (1, 1));
    assert_eq!(world.rows[&1].standing, Standing::Done);
}

#[test]
fn missed_messages_are_fetched_and_come_before_what_is_written_meanwhile() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(message(1, "1"));
    for n in 2..8 {
        world.posted.push(message(n, &n.to_string()));
    }
    world.give(Input::Connected);
    world.hear(message(8, "8"));
    assert_eq!(world.fetches.front(), Some(&(channel("c1"), id(1))));
    world.fetch(3);
    world.fetch(3);
    world.fetch(3);
    for _ in 0..8 {
        world.answer(Ok(()));
    }
    assert_eq!(world.all_given, ["1", "2", "3", "4", "5", "6", "7", "8"]);
    world.hear(message(9, "9"));
    world.die();
    assert_eq!(world.seen_ids[&channel("c1")], id(9));
}

#[test]
fn a_fetch_that_fails_is_made_again_and_nothing_is_taken_over_the_gap() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(message(1, "1"));
    world.answer(Ok(()));
    world.posted.push(message(2, "2"));
    world.give(Input::Connected);
    let (at, _) = world.fetches.pop_front().unwrap();
    world.give(Input::Fetched(at.clone(), Err("no route".to_owned())));
    assert_eq!(world.out.last(), Some(&Output::Told(Told::NotFetched(at, "no route".to_owned()))));
    world.hear(message(3, "3"));
    assert_eq!(world.all_given, ["1"]);
    world.pass(limits::INBOX_FETCH_RETRY);
    world.fetch(10);
    world.answer(Ok(()));
    world.answer(Ok(()));
    assert_eq!(world.all_given, ["1", "2", "3"]);
}

#[test]
fn a_flood_while_fetching_is_fetched_as_well() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(message(1, "hello"));
    world.give(Input::Connected);
    let more = limits::INBOX_HELD as u64 + 50;
    for n in 2..2 + more {
        world.hear(Incoming { author: user("bob"), ..message(n, "chatter") });
    }
    world.fetch(100);
    while !world.fetches.is_empty() {
        world.fetch(100);
    }
    world.pass(S * 2);
    assert_eq!(world.seen_ids[&channel("c1")], id(1 + more));
}

#[test]
fn what_steers_a_terminal_is_removed_and_a_file_alone_is_taken() {
    let mut world = World::new(Adapter::Tmux);
    world.hear(message(1, "a\u{1b}[201~\u{7}b\r\n\tc\u{9b}d\0"));
    assert_eq!(world.texts(), ["a[201~b\n\tcd"]);
    world.answer(Ok(()));
    world.hear(with_file(2, "  "));
    let row = &world.rows[&2].incoming;
    assert_eq!((row.text.as_str(), row.attachments[0].name.as_str()), ("  ", "a_b_.png"));
}

#[test]
fn commands_pass_the_queue_are_stored_first_and_are_not_for_the_agent() {
    let mut world = World::new(Adapter::Command);
    world.hear(message(1, "work"));
    world.hear(message(2, "more work"));
    world.hear(message(3, " /STOP "));
    world.hear(message(4, "/status@holdfast_bot"));
    world.hear(message(5, "/seat"));
    assert_eq!(world.commands(), [(Command::Stop, 3), (Command::Status, 4), (Command::Seat, 5)]);
    assert_eq!((world.texts(), world.rows[&3].standing), (vec!["work"], Standing::Stored));
    world.give(Input::Carried(3, "Stopped.".to_owned()));
    let (key, draft) = &world.said[0];
    assert_eq!((&*key.source, draft.text.as_str(), &draft.reply_to), ("command:c1:000003", "Stopped.", &Some(id(3))));
    assert_eq!(world.rows[&3].standing, Standing::Done);
    world.give(Input::Carried(3, "Stopped.".to_owned()));
    assert_eq!(world.said.len(), 1);
}

#[test]
fn a_command_whose_holder_ended_before_it_was_answered_is_the_next_ones() {
    let mut world = World::new(Adapter::Command);
    world.hear(message(1, "/stop"));
    world.die();
    assert_eq!((world.commands(), world.texts().len()), (vec![(Command::Stop, 1), (Command::Stop, 1)], 0));
    world.give(Input::Stop);
    world.give(Input::Carried(1, "Stopped.".to_owned()));
    assert_eq!((world.said.len(), world.rows[&1].standing), (0, Standing::Stored), "nothing is said any more");
    world.rows.get_mut(&1).unwrap().incoming.age = limits::INBOX_COMMAND_AGE + S;
    world.die();
    assert_eq!(world.sayings(), ["Too late: this command was ignored."]);
    assert_eq!((world.commands().len(), world.rows[&1].standing), (2, Standing::Done));
}

#[test]
fn a_command_waits_for_no_missed_messages_and_outlives_a_connection_that_goes_again() {
    let mut world = World::new(Adapter::Command);
    world.hear(message(1, "work"));
    world.pass(S * 2);
    world.give(Input::Connected);
    // As one that no service brings a second time.
    world.give(Input::Message(message(5, "/stop")));
    assert_eq!(world.commands(), [(Command::Stop, 2)]);
    assert_eq!(world.kept, [id(1), id(5)]);
    world.give(Input::Connected);
    world.posted.push(message(2, "missed"));
    world.fetch(9);
    world.pass(S * 2);
    assert_eq!(world.seen_ids[&channel("c1")], id(2), "what is no message is not counted as the last one");
}

#[test]
fn a_command_that_is_fetched_as_well_is_carried_out_once() {
    let mut world = World::new(Adapter::Command);
    world.hear(message(1, "work"));
    world.hear(message(2, "/stop"));
    world.give(Input::Carried(2, "Stopped.".to_owned()));
    world.posted[1].age = limits::INBOX_COMMAND_AGE + S;
    world.give(Input::Connected);
    world.fetch(9);
    assert_eq!((world.commands().len(), world.sayings()), (1, vec!["Stopped."]));
}

#[test]
fn a_command_that_was_missed_for_long_is_not_carried_out() {
    let mut world = World::new(Adapter::Command);
    world.hear(Incoming { age: limits::INBOX_COMMAND_AGE + S, ..message(1, "/stop") });
    assert_eq!(world.sayings(), ["Too late: this command was ignored."]);
    assert_eq!((world.commands(), world.rows[&1].standing), (vec![], Standing::Done));
}

#[test]
fn more_than_two_hundred_waiting_messages_are_refused_aloud() {
    let mut world = World::new(Adapter::Inbox);
    for n in 1..=limits::INBOX_WAITING as u64 + 1 {
        world.hear(message(n, "hello"));
    }
    assert_eq!(world.sayings(), ["Too many messages are waiting already; this one was dropped."]);
    assert_eq!(world.rows.len(), limits::INBOX_WAITING);
}

#[test]
fn where_nothing_reaches_the_agent_a_message_is_answered_and_not_kept_but_the_bot_is_asked() {
    let mut world = World::new(Adapter::Mirror);
    world.hear(message(1, "hello"));
    assert_eq!(world.sayings(), ["This channel is read-only: messages here do not reach the agent."]);
    assert_eq!(world.said[0].1.reply_to, Some(MessageId::parse("000001").unwrap()));
    world.hear(message(2, "/status"));
    assert_eq!(world.commands(), [(Command::Status, 1)]);
    assert_eq!((&*world.rows[&1].binding, world.rows.len()), ("agent", 1));
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(message(1, &format!("a{}", "é".repeat(limits::INBOX_TEXT_MAX))));
    assert_eq!(world.rows[&1].incoming.text.len(), limits::INBOX_TEXT_MAX - 1);
}
