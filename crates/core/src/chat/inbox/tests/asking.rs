//! From the store to the agent.

use super::super::*;
use super::world::*;
use crate::limits;

#[test]
fn messages_of_one_binding_are_delivered_one_after_the_other() {
    let mut world = World::new(Adapter::Command);
    world.hear(message(1, "one"));
    world.hear(message(2, "two"));
    assert_eq!(world.texts(), ["one"]);
    world.answer(Ok(()));
    assert_eq!(world.texts(), ["two"]);
}

#[test]
fn a_slow_file_lets_other_messages_pass_and_its_message_goes_without_it_in_the_end() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(with_file(1, "listen"));
    world.hear(message(2, "two"));
    assert_eq!((world.texts(), world.preparing.clone()), (vec!["two"], vec![1]));
    world.answer(Ok(()));
    world.pass(limits::INBOX_ATTACHMENT_WAIT);
    assert_eq!(world.texts(), ["listen"]);
    assert_eq!(world.given[0].2.note, "[attachments are missing: it took too long]");
    let late = Prepared { files: vec!["a.png".into()], note: String::new() };
    world.give(Input::Prepared(1, Ok(late)));
    assert_eq!(world.all_given.len(), 2);
}

#[test]
fn files_that_are_there_go_with_their_message() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(with_file(1, "look"));
    let prepared = Prepared { files: vec!["inbox/1.png".into()], note: String::new() };
    world.give(Input::Prepared(1, Ok(prepared.clone())));
    assert_eq!(world.given[0].2, prepared);
}

#[test]
fn a_failed_delivery_stays_queued_is_tried_again_and_its_sender_sees_it_once() {
    let mut world = World::new(Adapter::Tmux);
    world.hear(message(1, "one"));
    world.hear(message(2, "two"));
    world.answer(Err("no such pane".to_owned()));
    assert_eq!(world.texts(), [""; 0]);
    world.pass(limits::INBOX_RETRY_MIN);
    world.answer(Err("no such pane".to_owned()));
    assert_eq!(world.inbox.snapshot(world.now).queues[0].why.as_deref(), Some("no such pane"));
    world.pass(limits::INBOX_RETRY_MIN * 2);
    world.answer(Ok(()));
    assert_eq!(world.sayings(), ["Not delivered yet, tried again: no such pane", "Delivered now."]);
    assert_eq!(world.texts(), ["two"]);
    assert_eq!(world.rows[&1].standing, Standing::Done);
}

#[test]
fn what_is_said_of_a_failure_holds_no_secret() {
    let mut world = World::new(Adapter::Command);
    world.hear(message(1, "one"));
    world.answer(Err("curl: token=hunter2hunter2\u{1b}[2J".to_owned()));
    assert_eq!(world.sayings(), ["Not delivered yet, tried again: curl: token=[hidden][2J"]);
}

#[test]
fn the_end_of_an_older_delivery_changes_nothing() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(message(1, "one"));
    let (old, ..) = world.given[0].clone();
    world.answer(Err("gone".to_owned()));
    world.pass(limits::INBOX_RETRY_MIN);
    world.give(Input::Delivered(old, Ok(())));
    assert_eq!(world.rows[&1].standing, Standing::Delivering);
}

#[test]
fn nothing_begins_once_the_seat_is_let_go_and_what_is_on_its_way_may_end() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(message(1, "one"));
    world.hear(message(2, "two"));
    world.give(Input::Stop);
    world.hear(message(3, "three"));
    assert!(!world.inbox.is_idle());
    world.answer(Ok(()));
    assert!(world.inbox.is_idle());
    assert_eq!((world.texts().len(), world.rows.len()), (0, 2));
    world.die();
    assert_eq!(world.texts(), ["two"]);
}

#[test]
fn a_later_generation_stops_it_at_once() {
    let mut world = World::new(Adapter::Inbox);
    world.give(Input::Generation(2));
    assert_eq!(world.out, [Output::Superseded(2)]);
    world.hear(message(1, "one"));
    assert_eq!((world.rows.len(), world.inbox.poll_timeout(world.now)), (0, None));
}
