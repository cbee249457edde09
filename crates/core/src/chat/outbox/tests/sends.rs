//! One message, and what a service does with it.

use super::super::*;
use super::world::*;
use crate::chat::{Button, CommitError, Draft, Look, MessageId, Scope, SendError, Ticket};

fn refused(scope: Scope) -> Fate {
    Fate::Refused(SendError::Permanent { scope, code: "10003".to_owned(), text: "Unknown Channel".to_owned() })
}

#[test]
fn a_message_is_stored_with_the_place_that_was_read_before_it_is_sent() {
    let mut outbox = World::new().outbox;
    let now = World::new().now;
    let entry = Entry { start: 5, end: 9, age: S, text: "hello".to_owned(), count: 1 };
    outbox.handle(
        now,
        Input::Entries { source: source(), channel: channel("c1"), entries: vec![entry], cursor: "9".into() },
    );
    assert_eq!(outbox.poll_output(), Some(Output::Changed));
    let Some(Output::Commit { ticket, generation: 1, changes }) = outbox.poll_output() else { panic!() };
    let key = Key { source: source(), start: 5, end: 9, chunk: 0 };
    let [Change::Prepare(record), Change::Cursor { source: of, state }] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!((&record.key, record.text.as_str(), record.seq, record.age), (&key, "hello", 1, S));
    assert_eq!((&**of, &**state), ("transcript-1", "9"));
    assert_eq!(outbox.poll_output(), None, "nothing is sent before the commit");
    outbox.handle(now, Input::Committed(ticket, Ok(Vec::new())));
    let Some(Output::Send { generation: 1, draft, .. }) = outbox.poll_output() else { panic!() };
    assert_eq!((draft.text.as_str(), draft.nonce.as_str()), ("hello", key.nonce().as_str()));
    assert_eq!(draft.nonce.len(), 24);
}

#[test]
fn a_nonce_depends_on_every_part_of_the_key_and_on_nothing_else() {
    let key = Key { source: source(), start: 5, end: 9, chunk: 0 };
    assert_eq!(key.nonce(), key.clone().nonce());
    let others = [
        Key { source: "transcript-2".into(), ..key.clone() },
        Key { start: 4, ..key.clone() },
        Key { end: 10, ..key.clone() },
        Key { chunk: 1, ..key.clone() },
    ];
    for other in others {
        assert_ne!(other.nonce(), key.nonce(), "{other}");
    }
}

#[test]
fn two_equal_entries_are_two_messages() {
    let mut world = World::new();
    world.entries(0, S, &["Done.", "Done."]);
    assert_eq!(world.service.texts(), ["Done.", "Done."]);
}

#[test]
fn an_entry_that_is_read_again_is_not_said_again() {
    let mut world = World::new();
    world.entries(0, S, &["one", "two"]);
    world.entries(0, S, &["one", "two", "three"]);
    assert_eq!(world.service.texts(), ["one", "two", "three"]);
}

#[test]
fn an_entry_that_is_read_again_while_it_waits_is_sent_once() {
    let mut world = World::new();
    world.fates.push_back(Fate::Refused(SendError::Later("no route".to_owned())));
    world.entries(0, S, &["one"]);
    world.entries(0, S, &["one"]);
    world.pass(MIN);
    assert_eq!(world.service.texts(), ["one"]);
}

#[test]
fn the_next_message_waits_for_the_end_of_the_last_to_be_stored() {
    let mut world = World::new();
    world.fates.push_back(Fate::DiskFull);
    world.entries(0, S, &["one", "two"]);
    assert_eq!(world.service.texts(), ["one"]);
    assert_eq!(world.outbox.snapshot(world.now).stuck, Some(CommitError::Full));
    world.pass(S * 3);
    assert_eq!(world.service.texts(), ["one", "two"]);
    assert_eq!(world.outbox.snapshot(world.now).stuck, None);
}

#[test]
fn within_two_minutes_an_unknown_message_is_sent_again_with_its_nonce() {
    let mut world = World::new();
    world.fates.extend([Fate::AnswerLost, Fate::RequestLost]);
    world.entries(0, S, &["one"]);
    world.pass(S * 10);
    let nonces: Vec<&str> = world.sends.iter().map(|(_, draft)| draft.nonce.as_str()).collect();
    assert_eq!(nonces, vec![Key { source: source(), start: 0, end: 1, chunk: 0 }.nonce(); 3]);
    assert_eq!((world.service.texts(), world.compares), (vec!["one"], 0));
}

#[test]
fn after_two_minutes_the_channel_is_asked_and_one_match_is_the_message() {
    let mut world = World::new();
    world.entries(0, S, &["one"]);
    world.fates.push_back(Fate::AnswerLost);
    world.fates.extend(vec![Fate::Refused(SendError::Later("no route".to_owned())); 7]);
    world.entries(1, S, &["two", "three"]);
    world.pass(MIN * 5);
    assert_eq!((world.service.texts(), world.compares), (vec!["one", "two", "three"], 1));
    assert_eq!(world.told, []);
}

#[test]
fn a_message_that_the_channel_has_not_is_sent() {
    let mut world = World::new();
    world.fates.push_back(Fate::RequestLost);
    world.fates.extend(vec![Fate::Refused(SendError::Later("no route".to_owned())); 7]);
    world.entries(0, S, &["one"]);
    world.pass(MIN * 5);
    assert_eq!((world.service.texts(), world.compares), (vec!["one"], 1));
}

#[test]
fn what_a_service_lost_that_cannot_be_asked_is_told_at_once_and_sent_again_when_a_person_wants_it() {
    let mut world = World::new();
    world.fates.push_back(Fate::Refused(SendError::Lost("no answer".to_owned())));
    world.entries(0, S, &["one", "two"]);
    let key = Key { source: source(), start: 0, end: 1, chunk: 0 };
    assert_eq!((world.service.texts(), &world.told), (vec!["two"], &vec![Told::Unknown(key, "no answer".to_owned())]));
    world.give(Input::Retry { channel: None, unknown: true });
    assert_eq!((world.service.texts(), world.compares), (vec!["two", "one"], 0));
}

#[test]
fn what_waits_for_an_answer_goes_before_what_has_not_begun() {
    let mut world = World::new();
    world.entries(0, S, &["0", "1", "2", "3", "4", "5", "6"]);
    let button = Button { id: "ask:1:allow".to_owned(), label: "Allow".to_owned(), look: Look::Good };
    let draft = |text: &str, buttons| Draft {
        channel: channel("c1"),
        text: text.to_owned(),
        nonce: String::new(),
        reply_to: None,
        buttons,
    };
    world.give(Input::Say { key: Key::single("reply:1"), draft: draft("reply", Vec::new()) });
    world.give(Input::Say { key: Key::single("ask:1"), draft: draft("May I?", vec![button]) });
    world.pass(MIN);
    assert_eq!(world.service.texts(), ["0", "1", "2", "3", "4", "May I?", "5", "6", "reply"]);
    assert_eq!(world.told, []);
}

#[test]
fn what_waits_for_an_answer_is_not_left_out_however_much_waits_and_keeps_its_order() {
    let mut world = World::new();
    let texts: Vec<String> = (0..600).map(|n| format!("old {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    world.entries(0, S, &texts[..300]);
    for (key, text) in [("ask:1", "May I?"), ("ask:2", "And this?")] {
        let button = Button { id: format!("{key}:allow"), label: "Allow".to_owned(), look: Look::Good };
        let draft = Draft {
            channel: channel("c1"),
            text: text.to_owned(),
            nonce: String::new(),
            reply_to: None,
            buttons: vec![button],
        };
        world.give(Input::Say { key: Key::single(key), draft });
    }
    world.entries(300, S, &texts[300..]);
    world.pass(MIN * 10);
    let said = world.service.texts();
    let asked: Vec<usize> = ["May I?", "And this?"].iter().flat_map(|ask| said.iter().position(|s| s == ask)).collect();
    assert!(asked.len() == 2 && asked[0] + 1 == asked[1] && asked[1] < 10, "{asked:?} in {said:?}");
}

#[test]
fn several_matches_are_told_as_unknown_and_the_channel_goes_on() {
    let mut world = World::new();
    world.entries(0, S, &["zero"]);
    // Somebody else uses the bot.
    for nonce in ["x", "y"] {
        let draft = crate::chat::Draft {
            channel: channel("c1"),
            text: "one".to_owned(),
            nonce: nonce.to_owned(),
            reply_to: None,
            buttons: Vec::new(),
        };
        world.service.post(world.now.boot, &draft).unwrap();
    }
    world.dies_in = Some(2);
    world.entries(1, S, &["one", "two"]);
    world.pass(MIN);
    let key = Key { source: source(), start: 1, end: 2, chunk: 0 };
    let why = "the channel has several messages like it".to_owned();
    assert_eq!(world.told, [Told::Unknown(key.clone(), why.clone())]);
    assert_eq!(world.service.texts(), ["zero", "one", "one", "two"]);
    let view = world.outbox.snapshot(world.now);
    let trouble = Trouble { key, channel: channel("c1"), unknown: true, reason: why, text: "one".to_owned() };
    assert_eq!(view.troubles, [trouble]);

    world.give(Input::Retry { channel: None, unknown: false });
    assert_eq!(world.outbox.snapshot(world.now).troubles.len(), 1, "nobody said that it should be sent blindly");
    world.give(Input::Retry { channel: None, unknown: true });
    assert_eq!(world.service.texts(), ["zero", "one", "one", "two", "one"]);
}

#[test]
fn a_comparison_goes_by_what_the_service_makes_of_a_text() {
    let mut world = World::new();
    world.dies_in = Some(2);
    world.entries(0, S, &["    a block\r\nand more  "]);
    world.pass(S);
    assert_eq!(world.service.posts.len(), 1);
    assert_eq!(world.told, []);
}

#[test]
fn a_refused_message_is_parked_alone_and_goes_to_the_end_when_a_person_lets_it() {
    let mut world = World::new();
    world.fates.push_back(refused(Scope::Message));
    world.entries(0, S, &["bad", "good"]);
    let key = Key { source: source(), start: 0, end: 1, chunk: 0 };
    assert_eq!(world.told, [Told::Parked(key, "Unknown Channel (10003)".to_owned())]);
    assert_eq!(world.service.texts(), ["good"]);
    world.die();
    world.give(Input::Retry { channel: Some(channel("c1")), unknown: false });
    assert_eq!(world.service.texts(), ["good", "bad"]);
    assert_eq!(world.outbox.snapshot(world.now).troubles, []);
}

#[test]
fn a_refusal_counts_once_nothing_of_an_earlier_attempt_can_arrive_any_more() {
    let key = Key { source: source(), start: 0, end: 1, chunk: 0 };
    let parked = Told::Parked(key, "Unknown Channel (10003)".to_owned());
    let arrives = (Fate::Late(S * 60), 1, vec!["one", "two"], vec![]);
    for (earlier, refusals, said, told) in [arrives, (Fate::RequestLost, 2, vec!["two"], vec![parked])] {
        let mut world = World::new();
        world.fates.push_back(earlier);
        world.fates.extend(vec![refused(Scope::Message); refusals]);
        world.dies_in = Some(3);
        world.entries(0, S, &["one", "two"]);
        world.pass(S * 119);
        assert_eq!((world.compares, &world.told[..]), (1, &[][..]));
        world.pass(S);
        assert_eq!((world.service.texts(), world.compares, world.told), (said, 2, told));
    }
}

#[test]
fn a_channel_that_is_gone_is_parked_and_the_others_go_on() {
    let mut world = World::new();
    world.fates.push_back(refused(Scope::Channel));
    world.entries(0, S, &["one", "two"]);
    world.entries_in("c2", 2, S, &["three"]);
    assert_eq!(world.told, [Told::ChannelParked(channel("c1"), "Unknown Channel (10003)".to_owned())]);
    world.pass(MIN * 40);
    assert_eq!(world.service.texts(), ["three"]);
    world.die();
    let view = world.outbox.snapshot(world.now);
    assert_eq!((view.depth, view.lanes[0].parked.as_deref()), (2, Some("Unknown Channel (10003)")));
    world.give(Input::Retry { channel: Some(channel("c1")), unknown: false });
    assert_eq!(world.service.texts(), ["three", "one", "two"], "a person wants them, however old they are");
}

#[test]
fn a_token_that_does_not_hold_any_more_ends_it() {
    let mut world = World::new();
    world.fates.push_back(refused(Scope::Seat));
    world.entries(0, S, &["one"]);
    assert_eq!(world.seen.last(), Some(&Output::Failed("Unknown Channel (10003)".to_owned())));
    world.entries(1, S, &["two"]);
    world.pass(MIN);
    assert_eq!(world.service.texts(), [""; 0]);
    assert!(!world.outbox.takes(&channel("c1")), "nothing is read from the transcript while nobody speaks");
}

#[test]
fn a_limit_is_waited_for_and_order_is_kept() {
    let mut world = World::new();
    world.entries(0, S, &["1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(world.service.texts().len(), 5);
    world.pass(S * 4);
    assert_eq!(world.service.texts().len(), 5);
    world.pass(S);
    assert_eq!(world.service.texts(), ["1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(world.sends.len(), 8);
}

#[test]
fn a_send_that_hangs_has_the_client_reset_and_its_late_end_changes_nothing() {
    let mut world = World::new();
    world.fates.push_back(Fate::Hangs(true));
    world.entries(0, S, &["one", "two"]);
    world.pass(S * 119);
    assert!(!world.seen.contains(&Output::Reset));
    world.pass(S);
    assert!(world.seen.contains(&Output::Reset));
    let (attempt, _) = world.sends[0];
    world.pass(S * 14);
    assert_eq!(world.service.texts(), ["one"]);
    world.pass(S * 3);
    assert_eq!((world.service.texts(), world.compares), (vec!["one", "two"], 1));
    world.give(Input::Sent(attempt, Ok(MessageId::parse("999999").unwrap())));
    assert_eq!(world.sends.len(), 2);
    assert_eq!(world.store.lanes[0].last, Some(MessageId::parse("000002").unwrap()));
}

#[test]
fn what_waits_for_the_network_is_tried_at_once_when_it_is_back() {
    let mut world = World::new();
    world.fates.extend(vec![Fate::Refused(SendError::Later("no route".to_owned())); 6]);
    world.entries(0, S, &["one"]);
    world.pass(S * 40);
    assert_eq!(world.service.texts(), [""; 0]);
    let lane = &world.outbox.snapshot(world.now).lanes[0];
    assert_eq!(lane.why.as_deref(), Some("no route"));
    world.fates.clear();
    world.give(Input::Online);
    world.pass(std::time::Duration::ZERO);
    assert_eq!(world.service.texts(), ["one"]);
}

/// A bare outbox whose commits and sends are answered by hand.
#[derive(Debug)]
struct ByHand(Outbox);

impl ByHand {
    fn read(&mut self, name: &str, start: u64, texts: &[&str]) -> Vec<String> {
        let entry =
            |(start, text): (u64, &&str)| Entry { start, end: start + 1, age: S, text: (*text).to_owned(), count: 1 };
        let entries = (start..).zip(texts).map(entry).collect();
        let cursor = "later".into();
        self.give(Input::Entries { source: source(), channel: channel(name), entries, cursor })
    }

    /// Commits and sends, in words.
    fn give(&mut self, input: Input) -> Vec<String> {
        self.0.handle(World::new().now, input);
        let outputs = std::iter::from_fn(|| self.0.poll_output());
        let words = outputs.filter_map(|output| match output {
            Output::Commit { ticket, .. } => Some(format!("commit {}", ticket.0)),
            Output::Send { draft, .. } => Some(format!("send {}", draft.text)),
            _ => None,
        });
        words.collect()
    }

    fn committed(&mut self, ticket: u64) -> Vec<String> {
        self.give(Input::Committed(Ticket(ticket), Ok(Vec::new())))
    }
}

#[test]
fn each_message_waits_for_its_own_commit_and_for_that_of_the_end_before_it() {
    let mut hand = ByHand(Outbox::new(World::new().now, 1, 2000, Stored::default(), 1));
    assert_eq!(hand.read("c1", 0, &["one", "two"]), ["commit 1"]);
    assert_eq!(hand.read("c2", 2, &["three"]), [""; 0], "one commit is under way");
    assert_eq!(hand.committed(1), ["send one", "commit 2"], "what waits is not sent with another's commit");
    let sent = |attempt, id| Input::Sent(Attempt(attempt), Ok(MessageId::parse(id).unwrap()));
    assert_eq!(hand.give(sent(1, "1")), [""; 0]);
    assert_eq!(hand.committed(2), ["send three", "commit 3"], "the end of the first is in the third commit");
    assert_eq!(hand.committed(3), ["send two"]);
    assert_eq!(hand.committed(3), [""; 0], "an answer counts once");
}

#[test]
fn what_is_taken_back_before_it_was_sent_is_never_sent_and_what_was_begun_stays() {
    let mut world = World::new();
    let say = |name: &str, text: &str| {
        let draft = Draft {
            channel: channel("c1"),
            text: text.to_owned(),
            nonce: String::new(),
            reply_to: None,
            buttons: Vec::new(),
        };
        Input::Say { key: Key::single(name), draft }
    };
    // The service takes five at once; the sixth waits for its pause.
    for n in 1..=7 {
        world.give(say(&format!("p{n}"), &n.to_string()));
    }
    world.give(say("p8", &"long ".repeat(600)));
    assert_eq!(world.service.texts(), ["1", "2", "3", "4", "5"]);
    for key in ["p1", "p6", "p8", "p9"] {
        world.give(Input::TakeBack(Key::single(key)));
    }
    world.pass(S * 30);
    assert_eq!(world.service.texts(), ["1", "2", "3", "4", "5", "7"]);
    world.die();
    world.pass(S * 300);
    assert_eq!(world.service.texts().len(), 6);
    // One that may be there already is not taken back.
    world.fates.push_back(Fate::AnswerLost);
    world.give(say("p10", "10"));
    world.give(Input::TakeBack(Key::single("p10")));
    world.pass(S * 300);
    assert_eq!(world.service.texts().last(), Some(&"10"));
}
