//! Who may, and how they come in.

use super::super::*;
use super::world::*;
use crate::chat::Incoming;
use crate::limits;

#[test]
fn an_empty_list_admits_nobody() {
    let access = Access { people: [].into(), ..access(Adapter::Inbox) };
    assert_eq!(access.message(&message(1, "hello")), Err(Refusal::Person));
    assert_eq!(access.click(&click("ask:1:allow", "ann")), Err(Refusal::Person));
}

#[test]
fn people_are_known_by_id_channels_by_themselves_or_as_parent_and_bots_are_nobody() {
    let access = access(Adapter::Inbox);
    assert!(access.message(&message(1, "hello")).is_ok());
    let stranger = Incoming { author: user("bob"), author_name: "Ann".to_owned(), ..message(1, "hello") };
    assert_eq!(access.message(&stranger), Err(Refusal::Person));
    assert_eq!(access.message(&Incoming { bot: true, ..message(1, "hello") }), Err(Refusal::Bot));
    let elsewhere = Incoming { channel: channel("c2"), ..message(1, "hello") };
    assert_eq!(access.message(&elsewhere), Err(Refusal::Channel));
    assert_eq!(access.message(&Incoming { bot: true, ..elsewhere.clone() }), Err(Refusal::Channel));
    assert!(access.message(&Incoming { parent: Some(channel("c1")), ..elsewhere.clone() }).is_ok());
    assert_eq!(access.message(&Incoming { direct: true, ..elsewhere }), Err(Refusal::Channel));
}

#[test]
fn a_channels_own_list_narrows_and_never_widens() {
    let mut access = access(Adapter::Inbox);
    access.people.insert(user("bob"));
    access.rules.get_mut(&channel("c1")).unwrap().people = [user("bob"), user("eve")].into();
    let by = |who: &str| Incoming { author: user(who), ..message(1, "hello") };
    assert_eq!(access.message(&by("ann")), Err(Refusal::Person));
    assert!(access.message(&by("bob")).is_ok());
    assert_eq!(access.message(&by("eve")), Err(Refusal::Person));
}

#[test]
fn where_a_mention_is_asked_for_other_messages_do_not_count_and_clicks_do() {
    let mut access = access(Adapter::Inbox);
    access.rules.get_mut(&channel("c1")).unwrap().mention = true;
    assert_eq!(access.message(&message(1, "hello")), Err(Refusal::Mention));
    assert!(access.message(&Incoming { mentions_us: true, ..message(1, "hello") }).is_ok());
    assert!(access.click(&click("ask:1:allow", "ann")).is_ok());
}

#[test]
fn a_stranger_who_clicks_is_told_so_and_nothing_else_happens() {
    let mut world = World::new(Adapter::Inbox);
    world.give(Input::Click(click("ask:1:allow", "bob")));
    let text = "You may not do this here.".to_owned();
    assert_eq!(world.out, [Output::Answer { click: "click".to_owned(), text }]);
    world.give(Input::Click(click("ask:1:allow", "ann")));
    assert_eq!(world.out[1], Output::Clicked(click("ask:1:allow", "ann")));
}

#[test]
fn whoever_asks_something_of_the_bot_is_told_alone_whether_it_counts() {
    let mut world = World::new(Adapter::Inbox);
    let told = |world: &mut World| match world.out.drain(..).find(|output| matches!(output, Output::Answer { .. })) {
        Some(Output::Answer { click, text }) => Some((click, text)),
        _ => None,
    };
    let elsewhere = Incoming { channel: channel("c9"), ..message(2, "/stop") };
    for asked in [Incoming { author: user("bob"), ..message(1, "/stop") }, elsewhere] {
        world.hear(asked.clone());
        assert_eq!(told(&mut world), Some((asked.id.to_string(), "You may not do this here.".to_owned())));
    }
    world.hear(message(3, "/stop"));
    assert_eq!(told(&mut world), Some((message(3, "").id.to_string(), "Heard: /stop".to_owned())));
    world.hear(Incoming { author: user("bob"), ..message(4, "hello") });
    assert_eq!(told(&mut world), None);
}

fn stranger(n: u64, who: &str) -> Incoming {
    Incoming { author: user(who), author_name: who.to_owned(), mentions_us: true, ..message(n, "it is me") }
}

fn code(world: &World) -> String {
    world.said.last().unwrap().1.text.split("**").nth(1).unwrap().to_owned()
}

#[test]
fn the_first_person_comes_in_by_a_code_typed_at_this_machine() {
    let mut world = World::new(Adapter::Inbox);
    world.hear(stranger(1, "bob"));
    assert_eq!(world.said.len(), 0, "nobody opened pairing");
    world.give(Input::PairOpen);
    world.hear(stranger(2, "bob"));
    world.hear(stranger(3, "bob"));
    assert_eq!(world.said.len(), 1, "one code each");
    let code = code(&world);
    assert_eq!(code.len(), limits::PAIR_CODE);
    world.give(Input::PairTyped(format!(" {} ", code.to_lowercase())));
    assert_eq!(world.out, [Output::Admit(user("bob"), "bob".to_owned())]);
    world.hear(stranger(4, "bob"));
    assert_eq!(world.texts(), ["it is me"]);
    assert_eq!(world.rows.len(), 1, "what was said before is not taken");
    world.give(Input::PairTyped(code));
    assert_eq!(world.out.last(), Some(&Output::Told(Told::WrongCode)), "a code counts once");
}

#[test]
fn pairing_ends_after_five_wrong_codes_and_after_ten_minutes() {
    let mut world = World::new(Adapter::Inbox);
    world.give(Input::PairOpen);
    world.hear(stranger(1, "bob"));
    let first = code(&world);
    for _ in 0..limits::PAIR_TRIES {
        world.give(Input::PairTyped("000000".to_owned()));
    }
    world.give(Input::PairTyped(first));
    assert_eq!(world.out, vec![Output::Told(Told::WrongCode); 6]);
    world.give(Input::PairOpen);
    world.hear(stranger(2, "bob"));
    let second = code(&world);
    world.pass(limits::PAIR_LIFE);
    world.give(Input::PairTyped(second));
    assert_eq!(world.out.last(), Some(&Output::Told(Told::WrongCode)));
}

#[test]
fn at_most_three_people_get_a_code() {
    let mut world = World::new(Adapter::Inbox);
    world.give(Input::PairOpen);
    for (n, who) in (1..).zip(["b", "c", "d", "e"]) {
        world.hear(stranger(n, who));
    }
    assert_eq!(world.said.len(), 3);
}
