//! What an agent writes faster than a service takes messages.

use std::time::Duration;

use super::super::*;
use super::world::*;
use crate::limits;

const TENTH: Duration = Duration::from_millis(100);

fn later() -> Fate {
    Fate::Refused(crate::chat::SendError::Later("no route".to_owned()))
}

/// How many lines of an agent stand in the channel.
fn posted(world: &World) -> u64 {
    world.service.texts().iter().map(|text| text.split("\n\n").count() as u64).sum()
}

#[test]
fn an_agent_that_writes_ten_lines_a_second_for_two_minutes_is_mirrored_without_lag_growing_or_skipping() {
    let mut world = World::new();
    let line = |n: u64| format!("line {n}: {}", "what an agent says while it works ".repeat(2));
    let mut behind = [0; 2];
    for n in 0..1200 {
        world.entries(n, Duration::ZERO, &[&line(n)]);
        let minute = usize::try_from(n / 600).unwrap();
        behind[minute] = (n + 1 - posted(&world)).max(behind[minute]);
        world.pass(TENTH);
    }
    // The service pauses for five seconds at the most, in which fifty are written.
    assert!(behind[0] <= 55 && behind[1] <= 55, "{behind:?} lines behind");
    world.pass(S * 6);
    let all: Vec<String> = (0..1200).map(|n| line(n).trim().to_owned()).collect();
    let said: Vec<&str> = world.service.posts.iter().flat_map(|post| post.text.split("\n\n")).map(str::trim).collect();
    assert_eq!(said, all);
    assert_eq!(world.told, []);
    let longest = world.service.texts().iter().map(|text| text.len()).max();
    assert!(longest.is_some_and(|length| length <= 2000) && world.service.posts.len() <= 130, "{longest:?}");
}

#[test]
fn what_waits_behind_a_message_becomes_one_with_empty_lines_between_and_a_key_for_all_its_bytes() {
    let mut world = World::new();
    world.fates.push_back(later());
    for (n, text) in (0..).zip(["first", "● **Run** (ls)", "```\na\n```", "Done.", "Done."]) {
        world.entries(n, S, &[text]);
    }
    world.pass(S * 2);
    let joined = "● **Run** (ls)\n\n```\na\n```\n\nDone.\n\nDone.";
    assert_eq!(world.service.texts(), ["first", joined]);
    let key = Key { source: source(), start: 1, end: 5, chunk: 0 };
    let nonces: Vec<&str> = world.sends.iter().map(|(_, draft)| draft.nonce.as_str()).collect();
    assert_eq!(nonces[nonces.len() - 1], key.nonce());
    let (record, ..) = &world.store.rows[&key];
    assert_eq!((record.entries, record.seq), (4, 2));
    assert_eq!(world.store.rows.len(), 2, "of the parts nothing is kept");
    // Whoever reads them again says none of them again.
    world.entries(0, S, &["first", "● **Run** (ls)", "```\na\n```", "Done.", "Done.", "new"]);
    assert_eq!(world.service.texts(), ["first", joined, "new"]);
}

#[test]
fn a_message_that_was_begun_or_prepared_by_another_holder_is_never_cut_anew() {
    let mut world = World::new();
    world.fates.push_back(Fate::Hangs(false));
    world.entries(0, S, &["under way"]);
    world.entries(1, S, &["behind it"]);
    world.entries(2, S, &["joined"]);
    world.fates.push_back(later());
    world.die();
    // The first may be there; what another holder prepared stays as it is.
    world.entries(3, S, &["of the next holder"]);
    world.entries(4, S, &["joined as well"]);
    world.pass(MIN);
    let expected = ["under way", "behind it\n\njoined", "of the next holder\n\njoined as well"];
    assert_eq!(world.service.texts(), expected);
    assert_eq!(world.told, []);
}

#[test]
fn only_what_fits_one_message_of_the_same_transcript_and_time_is_joined() {
    let mut world = World::new();
    world.fates.extend(vec![later(); 20]);
    let (long, longer) = ("a".repeat(1200), "b ".repeat(1500));
    world.entries(0, S, &["first"]);
    for (n, text) in (1..).zip([&*long, &*long, &*longer, "c", "d"]) {
        world.entries(n, S, &[text]);
    }
    let (c, d) = ("c1", "another transcript");
    let entry = Entry { start: 0, end: 1, age: S, text: d.to_owned(), count: 1 };
    world.give(Input::Entries { source: d.into(), channel: channel(c), entries: vec![entry], cursor: "1".into() });
    world.entries(6, S, &["e"]);
    world.pass(limits::OUTBOX_JOINED - S);
    world.entries(7, Duration::ZERO, &["f"]);
    world.pass(S * 2);
    world.entries(8, Duration::ZERO, &["g"]);
    world.fates.clear();
    world.pass(MIN * 2);
    let texts = world.service.texts();
    let (one, two, rest) = (texts[1], texts[2], &texts[5..]);
    assert_eq!((one, two), (&*long, &*long));
    let of_the_longer: usize = texts[3..5].iter().map(|text| text.matches('b').count()).sum();
    assert_eq!(of_the_longer, 1500, "a long entry is a message of its own, or several");
    assert_eq!(rest, ["c\n\nd", d, "e\n\nf", "g"]);
}

#[test]
fn a_death_at_each_step_of_joining_doubles_and_loses_nothing() {
    for step in 0..24 {
        let mut world = World::new();
        world.dies_in = Some(step);
        let texts = ["one", "two", "three", "four"];
        world.fates.push_back(Fate::Hangs(true));
        for (n, text) in (0..).zip(texts) {
            world.entries(n, S, &[text]);
            // A holder that died before the commit is followed by one that reads the same again.
            let end = (n + 1).to_string();
            if world.store.cursors.get(&source()).is_none_or(|cursor| **cursor != *end) {
                world.entries(n, S, &[text]);
            }
        }
        world.pass(MIN * 5);
        let said: Vec<&str> = world.service.posts.iter().flat_map(|post| post.text.split("\n\n")).collect();
        assert_eq!(said, texts, "step {step}");
        assert_eq!(world.told, [], "step {step}");
    }
}

#[test]
fn what_is_left_out_is_counted_in_entries_however_many_share_a_message() {
    let mut world = World::new();
    world.fates.extend(vec![later(); 200]);
    world.entries(0, S, &["first"]);
    for n in 1..=5 {
        world.entries(n, S, &[&n.to_string()]);
    }
    let entry = |start, count, age| Entry { start, end: start + 10, age, text: format!("{count}"), count };
    let entries = vec![entry(10, 3, MIN * 31), entry(20, 4, S), entry(30, 2, S)];
    world.give(Input::Entries { source: source(), channel: channel("c1"), entries, cursor: "40".into() });
    assert_eq!(world.told, [Told::Skipped(channel("c1"), 3)]);
    world.pass(MIN * 31);
    world.fates.clear();
    world.pass(MIN * 2);
    // The first one may not be there: it was refused before it began.
    assert_eq!(world.service.texts(), ["_(skipped 15 entries)_"]);
    assert_eq!(world.told[1..], [Told::Skipped(channel("c1"), 12)]);
}

#[test]
fn two_hundred_messages_may_wait_whatever_they_hold_and_what_is_left_out_is_counted_in_entries() {
    let mut world = World::new();
    world.fates.push_back(later());
    world.entries(0, S, &["first"]);
    for n in 0..202 {
        let entry = Entry { start: 10 + n, end: 11 + n, age: S, text: "x".repeat(1500), count: 3 };
        let cursor = (11 + n).to_string().into();
        world.give(Input::Entries { source: source(), channel: channel("c1"), entries: vec![entry], cursor });
    }
    let skipped: u64 = world.told.iter().map(|told| if let Told::Skipped(_, n) = told { *n } else { 0 }).sum();
    assert_eq!(skipped, 7, "the first and two messages of three");
    world.pass(MIN * 10);
    assert_eq!(world.service.texts()[0], "_(skipped 7 entries)_");
    assert_eq!(world.service.texts().len(), 201);
}
