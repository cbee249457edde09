//! A holder dies while a message is on its way to the agent.

use super::super::*;
use super::world::*;
use crate::chat::{Button, Look};

#[test]
fn what_an_agent_acknowledges_is_offered_again() {
    for adapter in [Adapter::Mcp, Adapter::Inbox] {
        let mut world = World::new(adapter);
        world.hear(message(1, "one"));
        world.hear(message(2, "two"));
        world.die();
        assert_eq!((world.texts(), world.said.len()), (vec!["one"], 0));
        world.answer(Ok(()));
        assert_eq!(world.texts(), ["two"]);
    }
}

#[test]
fn what_an_agent_cannot_tell_apart_is_not_given_again_until_a_person_says_so() {
    for adapter in [Adapter::Command, Adapter::Tmux] {
        let mut world = World::new(adapter);
        world.hear(message(1, "rm -r build"));
        world.hear(message(2, "two"));
        world.die();
        assert_eq!(world.texts(), ["two"]);
        assert_eq!(world.rows[&1].standing, Standing::Perhaps);
        let (_, draft) = &world.said[0];
        assert_eq!(draft.text, "This may have been delivered: Holdfast stopped just then.");
        let button = Button { id: "again:1".to_owned(), label: "Send again".to_owned(), look: Look::Plain };
        assert_eq!((&draft.buttons, &draft.reply_to), (&vec![button], &Some(id(1))));

        world.give(Input::Click(click("again:1", "bob")));
        assert_eq!(world.rows[&1].standing, Standing::Perhaps, "a stranger's click");
        world.give(Input::Click(click("again:1", "ann")));
        world.give(Input::Click(click("again:1", "ann")));
        let answers: Vec<&str> = world
            .out
            .iter()
            .filter_map(|output| match output {
                Output::Answer { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(answers, ["You may not do this here.", "It is sent again.", "This has expired."]);
        world.answer(Ok(()));
        assert_eq!(world.texts(), ["rm -r build"]);
        // The same again: it is told anew, with a button of its own.
        world.die();
        assert_eq!(world.said.len(), 2);
        assert_eq!(world.said[1].1.buttons[0].id, "again:3");
    }
}

#[test]
fn a_message_that_was_only_stored_is_delivered_by_the_next_holder() {
    let mut world = World::new(Adapter::Command);
    world.hear(message(1, "one"));
    world.hear(message(2, "two"));
    world.answer(Ok(()));
    world.answer(Ok(()));
    world.hear(with_file(3, "three"));
    world.die();
    assert_eq!(world.preparing, [3], "files are fetched anew");
    world.give(Input::Prepared(3, Ok(Prepared::default())));
    assert_eq!(world.texts(), ["three"]);
    assert_eq!(world.said, []);
}
