//! What is too old or too much.

use std::time::Duration;

use super::super::*;
use super::world::*;
use crate::chat::{Button, Draft, Look, Scope, SendError};
use crate::limits;

fn later() -> Fate {
    Fate::Refused(SendError::Later("no route".to_owned()))
}

#[test]
fn entries_older_than_half_an_hour_become_one_line() {
    let mut world = World::new();
    world.entries(0, MIN * 31, &["a", "b", "c"]);
    world.entries(3, MIN * 29, &["d"]);
    assert_eq!(world.service.texts(), ["_(skipped 3 entries)_", "d"]);
    assert_eq!(world.told, [Told::Skipped(channel("c1"), 3)]);
}

#[test]
fn of_more_than_two_hundred_entries_only_the_newest_are_said() {
    let mut world = World::new();
    let texts: Vec<String> = (0..1400).map(|n| format!("old {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for (from, part) in (0..).step_by(500).zip(texts.chunks(500)) {
        world.entries(from, MIN, part);
    }
    world.pass(MIN * 10);
    let said = world.service.texts();
    // The first ones were under way before anybody knew how many there are.
    assert_eq!(said[said.len() - 200..], texts[1200..]);
    let lines = said.iter().filter(|text| text.starts_with("_(skipped")).count();
    assert!(lines <= 2 && said.len() <= 200 + 7, "{said:?}");
    let skipped: u64 = world.told.iter().map(|told| if let Told::Skipped(_, n) = told { *n } else { 0 }).sum();
    assert_eq!(skipped as usize + said.len() - lines, 1400);
}

#[test]
fn what_waited_too_long_for_its_holder_becomes_one_line() {
    let mut world = World::new();
    world.fates.extend(vec![later(); 3]);
    world.entries(0, S, &["a", "b", "c"]);
    world.now = world.now.plus(MIN * 31);
    world.die();
    world.entries(3, S, &["d"]);
    world.pass(MIN * 3);
    assert_eq!(world.service.texts(), ["_(skipped 3 entries)_", "d"]);
    assert_eq!(world.told, [Told::Skipped(channel("c1"), 3)]);
    assert_eq!(world.compares, 2, "the first one might have been there, or have been on its way");
}

#[test]
fn what_is_young_between_what_is_too_old_is_said_and_in_its_place() {
    let mut world = World::new();
    let old = limits::OUTBOX_AGE + S;
    let texts = [(old, "a"), (S, "b"), (old, "c"), (old, "d"), (Duration::ZERO, "e"), (old, "f")];
    world.aged("c1", 0, &texts);
    world.pass(MIN);
    assert_eq!(
        world.service.texts(),
        ["_(skipped 1 entry)_", "b", "_(skipped 2 entries)_", "e", "_(skipped 1 entry)_"]
    );
    // Whoever reads them again counts none again.
    world.aged("c1", 0, &texts);
    world.pass(MIN);
    assert_eq!(world.service.texts().len(), 5);
}

#[test]
fn what_is_too_old_and_may_still_arrive_is_waited_for_before_it_counts_as_skipped() {
    let arrives = (Fate::Late(S * 60), vec!["a", "_(skipped 1 entry)_", "c"], 1);
    for (fate, said, skipped) in [arrives, (Fate::RequestLost, vec!["_(skipped 2 entries)_", "c"], 2)] {
        let mut world = World::new();
        world.fates.push_back(fate);
        world.entries(0, MIN * 30 - S, &["a", "b"]);
        world.now = world.now.plus(S * 40);
        world.die();
        world.entries(2, S, &["c"]);
        let why = world.outbox.snapshot(world.now).lanes[0].why.clone();
        assert_eq!(why.as_deref(), Some("an earlier attempt may still arrive"));
        world.give(Input::Online);
        world.pass(limits::OUTBOX_NONCE_WINDOW - S);
        assert_eq!(world.told, [], "nothing is counted while it may still arrive");
        world.pass(MIN);
        assert_eq!(world.service.texts(), said);
        assert_eq!(world.told, [Told::Skipped(channel("c1"), skipped)]);
        assert_eq!(world.compares, 2);
    }
}

#[test]
fn what_a_person_let_go_and_arrives_after_its_holders_death_keeps_its_place() {
    let mut world = World::new();
    world.fates.extend([later(), Fate::Late(S * 60)]);
    world.entries(0, S, &["a"]);
    world.now = world.now.plus(MIN * 31);
    world.give(Input::Retry { channel: None, unknown: false });
    world.die();
    world.entries(1, S, &["b"]);
    world.pass(MIN * 3);
    assert_eq!(world.service.texts(), ["a", "b"]);
    assert_eq!(world.told, []);
}

#[test]
fn what_may_have_been_sent_by_a_dead_holder_is_looked_for_before_it_counts_as_skipped() {
    let mut world = World::new();
    world.fates.push_back(Fate::Hangs(true));
    world.entries(0, S, &["a", "b"]);
    world.now = world.now.plus(MIN * 60);
    world.die();
    world.pass(MIN);
    assert_eq!(world.service.texts(), ["a", "_(skipped 1 entry)_"]);
}

#[test]
fn lines_that_wait_become_one_line() {
    let mut world = World::new();
    world.fates.push_back(later());
    world.entries(0, S, &["first"]);
    world.entries(1, MIN * 40, &["a", "b"]);
    world.entries(3, MIN * 40, &["c"]);
    world.pass(S * 2);
    assert_eq!(world.service.texts(), ["first", "_(skipped 3 entries)_"]);
    assert_eq!(world.told, [Told::Skipped(channel("c1"), 2), Told::Skipped(channel("c1"), 1)]);
}

#[test]
fn an_entry_without_end_is_cut_and_says_so() {
    let mut world = World::new();
    world.entries(0, S, &[&"word ".repeat(1 << 20)]);
    world.pass(MIN);
    assert_eq!(world.service.posts.len(), limits::OUTBOX_CHUNKS);
    let last = world.service.texts()[limits::OUTBOX_CHUNKS - 1].to_owned();
    assert!(last.starts_with("_(skipped 2") && last.ends_with("more messages of this entry)_"), "{last}");
}

#[test]
fn a_new_channel_takes_the_lane_that_was_idle_for_longest() {
    let mut world = World::new();
    for n in 0..limits::OUTBOX_LANES as u64 + 1 {
        world.entries_in(&format!("c{n}"), n, S, &["hello"]);
    }
    assert_eq!(world.service.posts.len(), limits::OUTBOX_LANES + 1);
    assert_eq!(world.store.lanes.len(), limits::OUTBOX_LANES);
    assert!(world.store.lanes.iter().all(|lane| lane.channel != channel("c0")));
}

#[test]
fn with_all_lanes_at_work_no_more_of_a_transcript_is_read() {
    let mut world = World::new();
    world.fates.extend(vec![later(); limits::OUTBOX_LANES]);
    for n in 0..limits::OUTBOX_LANES as u64 {
        world.entries_in(&format!("c{n}"), n, S, &["hello"]);
    }
    assert!(world.outbox.takes(&channel("c0")) && !world.outbox.takes(&channel("another")));
    world.entries_in("another", 100, S, &["hello"]);
    assert_eq!(world.told, [Told::NoLane(channel("another"))]);
    assert!(!world.store.cursors.values().any(|cursor| &**cursor == "101"));
}

#[test]
fn a_channel_that_refuses_gives_way_where_every_lane_is_taken_and_what_waited_there_is_kept_as_refused() {
    let mut world = World::new();
    let no =
        SendError::Permanent { scope: Scope::Channel, code: "50001".to_owned(), text: "Missing Access".to_owned() };
    for n in 0..limits::OUTBOX_LANES as u64 {
        world.fates.push_back(Fate::Refused(no.clone()));
        world.entries_in(&format!("c{n}"), n, S, &[&format!("for c{n}")]);
    }
    assert!(world.outbox.takes(&channel("another")));
    world.told.clear();
    world.entries_in("another", 100, S, &["hello"]);
    assert_eq!((world.service.texts(), &world.told), (vec!["hello"], &vec![]));
    let view = world.outbox.snapshot(world.now);
    assert_eq!((view.lanes.len(), view.depth), (limits::OUTBOX_LANES - 1, limits::OUTBOX_LANES - 1));
    let kept: Vec<_> = view.troubles.iter().map(|kept| (kept.channel.as_str(), kept.unknown, &*kept.reason)).collect();
    assert_eq!(kept, [("c0", false, "Missing Access (50001)")]);
    world.die();
    world.give(Input::Retry { channel: Some(channel("c0")), unknown: false });
    assert_eq!(world.service.texts(), ["hello", "for c0"]);
}

#[test]
fn what_may_have_arrived_before_its_channel_refused_is_unknown_when_that_gives_way() {
    let mut world = World::new();
    let no =
        SendError::Permanent { scope: Scope::Channel, code: "50001".to_owned(), text: "Missing Access".to_owned() };
    world.fates.push_back(Fate::RequestLost);
    world.entries_in("c0", 0, S, &["one"]);
    for n in 1..limits::OUTBOX_LANES as u64 {
        world.fates.push_back(Fate::Refused(no.clone()));
        world.entries_in(&format!("c{n}"), n, S, &["hello"]);
    }
    world.fates.push_back(Fate::Refused(no));
    world.pass(S * 2);
    world.told.clear();
    world.entries_in("another", 100, S, &["hello"]);
    let key = Key { source: source(), start: 0, end: 1, chunk: 0 };
    let why = "refused, but an earlier attempt may have arrived: Missing Access (50001)";
    assert_eq!(world.told, [Told::Unknown(key, why.to_owned())]);
}

#[test]
fn where_a_transcript_begins_is_stored_at_once_and_a_place_that_moved_over_nothing_waits_a_little_for_company() {
    let mut world = World::new();
    world.entries(0, S, &[]);
    assert_eq!(&*world.store.cursors[&source()], "0");
    world.entries(0, S, &["  "]);
    world.entries(1, S, &[""]);
    assert_eq!(&*world.store.cursors[&source()], "0");
    world.pass(limits::OUTBOX_CURSOR_LAG);
    assert_eq!(&*world.store.cursors[&source()], "2");
    assert_eq!(world.outbox.poll_timeout(world.now).map(|left| left > S * 30), Some(true), "nothing else to do");
}

#[test]
fn what_is_pressed_stands_under_the_end_of_a_text_and_the_answer_at_its_beginning() {
    let mut world = World::new();
    let button = Button { id: "ask:1:allow".to_owned(), label: "Allow".to_owned(), look: Look::Good };
    let reply_to = Some(crate::chat::MessageId::parse("77").unwrap());
    let draft = Draft {
        channel: channel("c1"),
        text: "word ".repeat(600),
        nonce: String::new(),
        reply_to: reply_to.clone(),
        buttons: vec![button.clone()],
    };
    let key = Key::single("ask:1");
    world.give(Input::Say { key: key.clone(), draft: draft.clone() });
    world.give(Input::Say { key: key.clone(), draft });
    let drafts: Vec<&Draft> = world.sends.iter().map(|(_, draft)| draft).collect();
    assert_eq!(drafts.len(), 2);
    assert_eq!((&drafts[0].reply_to, drafts[0].buttons.len()), (&reply_to, 0));
    assert_eq!((&drafts[1].reply_to, &drafts[1].buttons), (&None, &vec![button]));
    let second = Key { chunk: 1, ..key };
    let message = world.service.posts[1].id.clone();
    assert!(world.seen.contains(&Output::Posted { key: second, message }));
}

#[test]
fn waits_grow_to_a_minute() {
    let mut world = World::new();
    world.fates.extend(vec![later(); 100]);
    world.entries(0, S, &["one"]);
    world.pass(MIN * 10);
    let made = 100 - world.fates.len();
    assert!((15..=25).contains(&made), "{made}");
    let wait = world.outbox.snapshot(world.now).lanes[0].next_try.unwrap() - world.now.boot;
    assert!(wait <= Duration::from_secs(60));
}
