//! An agent that could still take a message loses it to another.

use super::super::*;
use super::world::*;
use crate::limits;

/// The same binding's messages go another way.
fn by(world: &mut World, adapter: Adapter) {
    world.access.rules.get_mut(&channel("c1")).unwrap().binding.adapter = adapter;
    let access = world.access.clone();
    world.give(Input::Access(access));
}

/// Offered by the inbox, and the inbox changed for a program; what comes of taking it back is the test's.
fn changed() -> (World, Attempt) {
    let mut world = World::new(Adapter::Inbox);
    world.back = None;
    world.hear(message(1, "one"));
    world.hear(message(2, "two"));
    by(&mut world, Adapter::Command);
    assert_eq!((world.texts().len(), world.said.len()), (0, 0), "nobody is given anything meanwhile");
    let (attempt, text, how) = world.taking.pop_front().unwrap();
    assert_eq!((text.as_str(), how, world.taking.len()), ("one", Adapter::Inbox, 0));
    (world, attempt)
}

#[test]
fn what_was_taken_back_goes_the_other_way_at_once() {
    let (mut world, attempt) = changed();
    assert_eq!(world.rows[&1].standing, Standing::Delivering(Adapter::Inbox), "until it is certain");
    world.give(Input::TakenBack(attempt, Back::Safe));
    assert_eq!((world.texts(), world.rows[&1].standing), (vec!["one"], Standing::Delivering(Adapter::Command)));
    world.answer(Ok(()));
    assert_eq!((world.texts(), world.said.len()), (vec!["two"], 0));
}

#[test]
fn what_was_taken_just_before_is_not_given_again() {
    let (mut world, attempt) = changed();
    world.give(Input::TakenBack(attempt, Back::Taken));
    assert_eq!((world.texts(), world.rows[&1].standing), (vec!["two"], Standing::Done));
    let (mut world, attempt) = changed();
    // Its delivery had ended before it could be ended.
    world.give(Input::Delivered(attempt, Ok(())));
    world.give(Input::TakenBack(attempt, Back::Safe));
    assert_eq!((world.texts(), world.rows[&1].standing), (vec!["two"], Standing::Done));
}

#[test]
fn of_what_the_agent_may_have_its_sender_decides() {
    let (mut world, attempt) = changed();
    world.give(Input::Delivered(attempt, Err(Undelivered::Not("nobody took it".to_owned()))));
    assert_eq!((world.texts().len(), world.said.len()), (0, 0), "it is not known yet");
    world.give(Input::TakenBack(attempt, Back::Perhaps("it was told of it".to_owned())));
    assert_eq!((world.texts(), world.rows[&1].standing), (vec!["two"], Standing::Perhaps));
    assert_eq!(world.sayings(), ["This may have been delivered: it was told of it"]);
    world.answer(Ok(()));
    world.give(Input::Click(click("again:1", "ann")));
    assert_eq!(world.texts(), ["one"]);
}

#[test]
fn what_nobody_took_for_a_while_is_still_offered_between_two_tries() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(message(1, "one"));
    world.answer(Err("nobody took it".to_owned()));
    assert_eq!(world.rows[&1].standing, Standing::Delivering(Adapter::Inbox), "its file is there");
    world.back = None;
    by(&mut world, Adapter::Command);
    let (attempt, text, how) = world.taking.pop_front().unwrap();
    assert_eq!((text.as_str(), how, world.texts().len()), ("one", Adapter::Inbox, 0));
    world.give(Input::TakenBack(attempt, Back::Safe));
    assert_eq!(world.texts(), ["one"], "without the wait of the other agent");
}

#[test]
fn another_agent_is_not_waited_for_because_the_first_could_not_take_it() {
    let mut world = World::new(Adapter::Tmux);
    world.hear(message(1, "one"));
    world.answer(Err("no such pane".to_owned()));
    by(&mut world, Adapter::Command);
    assert_eq!((world.texts(), world.taking.len()), (vec!["one"], 0));
}

#[test]
fn a_change_of_mind_offers_it_to_the_first_again() {
    let (mut world, attempt) = changed();
    by(&mut world, Adapter::Inbox);
    assert_eq!(world.texts().len(), 0);
    world.give(Input::TakenBack(attempt, Back::Safe));
    assert_eq!((world.texts(), world.taking.len()), (vec!["one"], 0));
}

#[test]
fn what_was_offered_before_a_crash_is_taken_back_by_whoever_finds_another_way() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(message(1, "one"));
    world.hear(message(2, "two"));
    world.access.rules.get_mut(&channel("c1")).unwrap().binding.adapter = Adapter::Mcp;
    world.back = None;
    world.die();
    assert_eq!(world.texts().len(), 0);
    let (attempt, text, how) = world.taking.pop_front().unwrap();
    assert_eq!((text.as_str(), how), ("one", Adapter::Inbox));
    world.give(Input::TakenBack(attempt, Back::Safe));
    assert_eq!(world.texts(), ["one"]);
}

#[test]
fn a_holder_that_goes_meanwhile_leaves_it_to_the_next() {
    let (mut world, _) = changed();
    world.give(Input::Stop);
    assert!(world.inbox.is_stored());
    world.die();
    let (attempt, text, how) = world.taking.pop_front().unwrap();
    assert_eq!((text.as_str(), how, world.texts().len()), ("one", Adapter::Inbox, 0));
    world.give(Input::TakenBack(attempt, Back::Safe));
    assert_eq!(world.texts(), ["one"]);
}

#[test]
fn a_change_while_the_delivery_is_being_stored_takes_nothing_back_and_begins_the_other_way() {
    let mut world = World::new(Adapter::Inbox);
    world.slow = true;
    world.hear(message(1, "one"));
    world.write();
    by(&mut world, Adapter::Command);
    while !world.commits.is_empty() {
        world.write();
    }
    assert_eq!((world.texts(), world.taking.len()), (vec!["one"], 0));
    assert_eq!(world.rows[&1].standing, Standing::Delivering(Adapter::Command));
}

#[test]
fn where_no_agent_is_any_more_its_sender_is_told_once_it_was_taken_back() {
    let mut world = World::new(Adapter::Inbox);
    world.back = None;
    world.hear(message(1, "one"));
    world.hear(message(2, "two"));
    world.give(Input::Access(Access::default()));
    assert_eq!(world.said.len(), 0);
    let (attempt, ..) = world.taking.pop_front().unwrap();
    world.give(Input::TakenBack(attempt, Back::Safe));
    let told = "No agent is bound here any more; this was not delivered.";
    assert_eq!(world.sayings(), [told, told]);
    assert_eq!((world.rows[&1].standing, world.rows[&2].standing), (Standing::Done, Standing::Done));
    world.pass(limits::INBOX_RETRY_MAX);
    assert_eq!(world.inbox.snapshot(world.now), InboxView::default());
}
