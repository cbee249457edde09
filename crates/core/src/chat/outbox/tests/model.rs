//! Random histories of a service that loses answers and of holders that die: nothing is posted twice, what is not posted
//! is told, and each channel keeps its order.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::super::*;
use super::world::*;
use crate::chat::{Scope, SendError};
use crate::limits;

#[derive(Debug, Clone)]
enum Step {
    /// So many entries in a channel, whether they say the same, and which of them are too old, as bits.
    Entries(u8, u8, bool, u8),
    Pass(Duration),
    Die,
    DieIn(usize),
    HandOver,
    Fate(Fate),
    Full(u32),
    Retry,
    Online,
}

fn fate() -> impl Strategy<Value = Fate> {
    let parked = |scope| Fate::Refused(SendError::Permanent { scope, code: "1".to_owned(), text: "no".to_owned() });
    prop_oneof![
        3 => Just(Fate::Good),
        3 => Just(Fate::AnswerLost),
        2 => Just(Fate::RequestLost),
        2 => (0u64..60_000).prop_map(|ms| Fate::Late(Duration::from_millis(ms))),
        1 => any::<bool>().prop_map(Fate::Hangs),
        2 => Just(Fate::Refused(SendError::Later("no route".to_owned()))),
        1 => Just(parked(Scope::Message)),
        1 => Just(parked(Scope::Channel)),
        1 => Just(Fate::DiskFull),
    ]
}

fn old() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(0), 1 => any::<u8>()]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u8..2, 1u8..4, any::<bool>(), old()).prop_map(|(c, n, same, old)| Step::Entries(c, n, same, old)),
        4 => (0u64..20_000).prop_map(|ms| Step::Pass(Duration::from_millis(ms))),
        2 => (0u64..400).prop_map(|s| Step::Pass(Duration::from_secs(s))),
        1 => (0u64..4000).prop_map(|s| Step::Pass(Duration::from_secs(s))),
        2 => Just(Step::Die),
        4 => (0usize..8).prop_map(Step::DieIn),
        1 => Just(Step::HandOver),
        5 => fate().prop_map(Step::Fate),
        1 => (1u32..4).prop_map(Step::Full),
        1 => Just(Step::Retry),
        1 => Just(Step::Online),
    ]
}

/// What each channel should say, in order.
type Wanted = BTreeMap<String, Vec<String>>;

fn carry_out(world: &mut World, wanted: &mut Wanted, at: &mut u64, step: Step) {
    match step {
        Step::Entries(c, count, same, old) => {
            let name = format!("c{c}");
            let text = |n: u64| if same { "Done.".to_owned() } else { format!("entry {n}") };
            let texts: Vec<String> = (*at..*at + u64::from(count)).map(text).collect();
            let age = |nth: usize| if old & 1 << nth == 0 { Duration::ZERO } else { limits::OUTBOX_AGE + S };
            let aged: Vec<_> = texts.iter().enumerate().map(|(nth, text)| (age(nth), text.as_str())).collect();
            let end = (*at + u64::from(count)).to_string();
            let read = |world: &World| world.store.cursors.get(&source()).is_some_and(|cursor| **cursor == *end);
            let mut reader = world.store.generation;
            world.aged(&name, *at, &aged);
            // Whoever died before it was stored is followed by one who reads it again; a full disk is waited for.
            for _ in 0..10 {
                if read(world) {
                    break;
                }
                world.pass(S * 2);
                if !read(world) && world.store.generation != reader {
                    reader = world.store.generation;
                    world.aged(&name, *at, &aged);
                }
            }
            assert!(read(world));
            *at += u64::from(count);
            wanted.entry(name).or_default().extend(texts);
        }
        Step::Pass(time) => world.pass(time),
        Step::Die => world.die(),
        Step::DieIn(outputs) => world.dies_in = Some(outputs),
        Step::HandOver => {
            world.give(Input::Drain);
            world.pass(S * 4);
            world.die();
        }
        Step::Fate(fate) => world.fates.push_back(fate),
        Step::Full(times) => world.full = times,
        Step::Retry => world.give(Input::Retry { channel: None, unknown: false }),
        Step::Online => world.give(Input::Online),
    }
}

/// The number that a text begins with.
fn number(text: &str) -> u64 {
    text.split(' ').next().unwrap().parse().unwrap()
}

fn check(world: &World, wanted: &Wanted) -> Result<(), TestCaseError> {
    for (name, wanted) in wanted {
        let here = world.service.posts.iter().filter(|post| post.channel == channel(name));
        // What waited may have become one message.
        let entries = here.flat_map(|post| post.text.split("\n\n"));
        let said: Vec<&str> = entries.filter(|text| !text.starts_with("_(skipped")).collect();
        // Nothing twice.
        let count = |text: &str, all: &[&str]| all.iter().filter(|t| **t == text).count();
        let refs: Vec<&str> = wanted.iter().map(String::as_str).collect();
        for text in &said {
            prop_assert!(count(text, &said) <= count(text, &refs), "{name}: {text} twice in {said:?}");
        }
        // What is missing is told, one by one.
        let told: u64 = world
            .told
            .iter()
            .map(|told| match told {
                Told::Skipped(c, n) if *c == channel(name) => *n,
                _ => 0,
            })
            .sum();
        let troubles = world.outbox.troubles.iter().filter(|(record, _)| record.channel == channel(name));
        let troubles: u64 = troubles.map(|(record, _)| record.entries).sum();
        let missing = (wanted.len() - said.len()) as u64;
        prop_assert!(missing <= told + troubles, "{name}: {missing} missing, {told} skipped, {troubles} told");
        // And no more than that is counted in its lines.
        let lines = world.service.posts.iter().filter(|post| post.channel == channel(name));
        let counted: u64 = lines.filter_map(|post| post.text.strip_prefix("_(skipped ")).map(number).sum();
        prop_assert!(counted <= missing, "{name}: {counted} counted, {missing} missing");
        // What was refused and let again goes to the end, and what is told as unknown may still come; everything else keeps
        // its order.
        let mut next = 0;
        let mut late = 0_u64;
        for text in said.iter().filter(|text| **text != "Done.") {
            let place: usize = text[6..].parse().unwrap();
            late += u64::from(place < next);
            next = next.max(place);
        }
        let entries = |key: &Key| world.store.rows.get(key).map_or(1, |(record, ..)| record.entries);
        let refused: u64 = world
            .told
            .iter()
            .map(|told| match told {
                Told::Parked(key, _) | Told::Unknown(key, _) => entries(key),
                _ => 0,
            })
            .sum();
        prop_assert!(late <= refused, "{name}: {said:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(400), ..ProptestConfig::default() })]
    #[test]
    fn nothing_is_posted_twice_and_nothing_is_lost_untold(steps in prop::collection::vec(step(), 1..60)) {
        let (mut world, mut wanted, mut at) = (World::new(), Wanted::new(), 0);
        for step in steps {
            carry_out(&mut world, &mut wanted, &mut at, step);
        }
        world.fates.clear();
        (world.full, world.dies_in) = (0, None);
        world.give(Input::Retry { channel: None, unknown: false });
        world.pass(MIN * 20);
        prop_assert_eq!(world.outbox.snapshot(world.now).depth, 0);
        check(&world, &wanted)?;
        let over = world.store.rows.values().all(|(_, standing, _)| *standing != Standing::Prepared);
        prop_assert!(over, "{:?}", world.store.rows);
    }
}
