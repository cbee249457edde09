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
fn a_delivery_that_was_about_to_begin_when_the_seat_is_let_go_is_the_next_holders() {
    let mut world = World::new(Adapter::Command);
    world.slow = true;
    world.hear(message(1, "one"));
    world.write();
    assert_eq!(world.rows[&1].standing, Standing::Stored);
    world.give(Input::Stop);
    assert!(!world.inbox.is_stored(), "it is being marked");
    while !world.inbox.is_stored() {
        world.write();
    }
    assert_eq!((world.texts().len(), world.rows[&1].standing), (0, Standing::Stored));
    world.slow = false;
    world.die();
    assert_eq!((world.texts(), world.said.len()), (vec!["one"], 0));
}

#[test]
fn a_program_that_fails_is_started_three_times_and_then_its_sender_decides() {
    let mut world = World::new(Adapter::Command);
    world.hear(message(1, "one"));
    world.hear(message(2, "two"));
    world.fail(Undelivered::Not("no such program".to_owned()));
    for _ in 0..limits::INBOX_TRIES {
        world.pass(limits::INBOX_RETRY_MAX);
        assert_eq!(world.texts(), ["one"]);
        world.fail(Undelivered::Failed("it ended with 1".to_owned()));
    }
    assert_eq!(world.texts(), ["two"]);
    assert_eq!(world.rows[&1].standing, Standing::Perhaps);
    let expected = ["Not delivered yet, tried again: no such program", "This may have been delivered: it ended with 1"];
    assert_eq!(world.sayings(), expected);
    assert_eq!(world.said[1].1.buttons[0].id, "again:1");
    world.answer(Ok(()));
    world.give(Input::Click(click("again:1", "ann")));
    assert_eq!(world.texts(), ["one"]);
}

#[test]
fn what_an_agent_may_have_is_not_given_again_until_a_person_says_so() {
    let mut world = World::new(Adapter::Tmux);
    world.hear(message(1, "one"));
    world.fail(Undelivered::Perhaps("Enter was not pressed".to_owned()));
    world.pass(limits::INBOX_RETRY_MAX * 2);
    assert_eq!(world.texts(), [""; 0]);
    assert_eq!(world.sayings(), ["This may have been delivered: Enter was not pressed"]);
    world.die();
    assert_eq!((world.said.len(), world.inbox.snapshot(world.now).perhaps), (1, 1));
}

#[test]
fn what_was_offered_once_stays_first() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(with_file(1, "slow"));
    world.hear(message(2, "two"));
    world.answer(Err("nobody took it".to_owned()));
    world.give(Input::Prepared(1, Ok(Prepared::default())));
    world.pass(limits::INBOX_RETRY_MAX);
    assert_eq!(world.texts(), ["two"]);
    world.die();
    world.give(Input::Prepared(1, Ok(Prepared::default())));
    assert_eq!(world.texts(), ["two"], "the next holder as well");
    world.answer(Ok(()));
    assert_eq!(world.texts(), ["slow"]);
}

/// The same agent's binding has another name.
fn renamed(world: &World, adapter: Adapter) -> Access {
    let mut access = world.access.clone();
    access.rules.get_mut(&channel("c1")).unwrap().binding = Binding { name: "claude".into(), adapter };
    access
}

#[test]
fn messages_of_a_binding_that_is_gone_go_to_the_one_that_is_there_now() {
    let mut world = World::new(Adapter::Command);
    for (n, text) in [(1, "one"), (2, "two"), (3, "three")] {
        world.hear(message(n, text));
    }
    let access = renamed(&world, Adapter::Inbox);
    world.give(Input::Access(access.clone()));
    assert_eq!(world.texts(), ["one", "two"], "the first is on its way");
    assert_eq!((&*world.rows[&2].binding, &*world.given[1].1.binding), ("claude", "claude"));
    world.fail(Undelivered::Not("no agent is bound there any more".to_owned()));
    world.answer(Ok(()));
    world.pass(limits::INBOX_RETRY_MAX);
    world.answer(Ok(()));
    assert_eq!(world.texts(), ["one"]);
    world.access = access;
    world.die();
    assert_eq!((world.texts(), &*world.rows[&1].binding), (vec!["one"], "claude"));
}

#[test]
fn what_was_offered_to_a_binding_that_is_gone_is_taken_back() {
    let mut world = World::new(Adapter::Mcp);
    world.hear(message(1, "one"));
    world.hear(message(2, "two"));
    let (old, ..) = world.given[0].clone();
    let access = renamed(&world, Adapter::Mcp);
    world.give(Input::Access(access));
    world.give(Input::Delivered(old, Ok(())));
    assert_eq!((world.texts(), &*world.given[0].1.binding), (vec!["one"], "claude"));
    world.answer(Ok(()));
    assert_eq!(world.texts(), ["two"]);
}

#[test]
fn messages_of_a_binding_that_is_gone_or_only_mirrors_are_answered_where_there_is_no_other() {
    let text = "No agent is bound here any more; this was not delivered.";
    for gone in [Access::default(), renamed(&World::new(Adapter::Command), Adapter::Mirror)] {
        let mut world = World::new(Adapter::Command);
        world.hear(message(1, "one"));
        world.hear(with_file(2, "two"));
        world.give(Input::Access(gone.clone()));
        assert_eq!((world.sayings(), world.rows[&2].standing), (vec![text], Standing::Done));
        world.access = gone;
        world.answer(Err("no agent is bound there any more".to_owned()));
        world.pass(limits::INBOX_RETRY_MAX);
        assert_eq!((world.sayings().last(), world.rows[&1].standing), (Some(&text), Standing::Done));
        assert_eq!(world.inbox.snapshot(world.now), InboxView::default());
    }
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
    assert_eq!(world.rows[&1].standing, Standing::Delivering(Adapter::Inbox));
}

#[test]
fn nothing_begins_once_the_seat_is_let_go_and_what_is_on_its_way_may_end() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(message(1, "one"));
    world.hear(message(2, "two"));
    world.give(Input::Stop);
    world.hear(message(3, "three"));
    world.answer(Ok(()));
    assert!(world.inbox.is_stored());
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
