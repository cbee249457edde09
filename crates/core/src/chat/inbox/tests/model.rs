//! Random histories: every message of somebody who may is given exactly once, or perhaps given and told; in order but for
//! those whose files were slow.

use proptest::prelude::*;

use super::super::*;
use super::world::*;

#[derive(Debug, Clone)]
enum Step {
    /// Heard live, or missed.
    Message {
        live: bool,
        file: bool,
    },
    /// The service repeats the last one.
    Repeat,
    Reconnect,
    Fetch(usize),
    FetchFails,
    Answer(bool),
    Prepared,
    Die,
    Full(u32),
    Pass(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any::<bool>(), any::<bool>()).prop_map(|(live, file)| Step::Message { live, file }),
        2 => Just(Step::Repeat),
        2 => Just(Step::Reconnect),
        4 => (1usize..5).prop_map(Step::Fetch),
        1 => Just(Step::FetchFails),
        5 => any::<bool>().prop_map(Step::Answer),
        2 => Just(Step::Prepared),
        2 => Just(Step::Die),
        1 => (1u32..4).prop_map(Step::Full),
        3 => (0u32..30).prop_map(Step::Pass),
    ]
}

/// The gateway is there only between a reconnect and the first message that is missed.
#[derive(Debug)]
struct Live(bool);

fn carry_out(world: &mut World, live: &mut Live, step: Step) {
    match step {
        Step::Message { live: heard, file } => {
            let n = world.posted.len() as u64 + 1;
            let text = format!("message {n}");
            let incoming = if file { with_file(n, &text) } else { message(n, &text) };
            if heard && live.0 {
                world.hear(incoming);
            } else {
                world.posted.push(incoming);
                live.0 = false;
            }
        }
        Step::Repeat => {
            if let Some(last) = world.posted.last().cloned().filter(|_| live.0) {
                world.give(Input::Message(last));
            }
        }
        Step::Reconnect => {
            world.give(Input::Connected);
            live.0 = true;
        }
        Step::Fetch(most) if !world.fetches.is_empty() => world.fetch(most),
        Step::FetchFails => {
            if let Some((channel, _)) = world.fetches.pop_front() {
                world.give(Input::Fetched(channel, Err("no route".to_owned())));
            }
        }
        Step::Answer(good) if !world.given.is_empty() => {
            world.answer(if good { Ok(()) } else { Err("no".to_owned()) });
        }
        Step::Prepared => {
            if let Some(seq) = world.preparing.pop() {
                world.give(Input::Prepared(seq, Ok(Prepared::default())));
            }
        }
        Step::Die => {
            world.die();
            live.0 = false;
        }
        Step::Full(times) => world.full = times,
        Step::Pass(seconds) => world.pass(S * seconds),
        Step::Fetch(_) | Step::Answer(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(300), ..ProptestConfig::default() })]
    #[test]
    fn every_message_is_given_once_or_told(
        acknowledges in any::<bool>(),
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut world = World::new(if acknowledges { Adapter::Mcp } else { Adapter::Command });
        // What was there before the bot came is not fetched.
        world.hear(message(1, "message 1"));
        world.pass(S * 2);
        let mut live = Live(true);
        for step in steps {
            carry_out(&mut world, &mut live, step);
        }
        world.full = 0;
        world.give(Input::Connected);
        let mut rest = 0;
        let over = |row: &&Message| matches!(row.standing, Standing::Done | Standing::Perhaps);
        while world.rows.values().filter(over).count() < world.posted.len() {
            rest += 1;
            prop_assert!(rest < 1000, "it stands still: {:?} {:?}", world.rows, world.inbox.snapshot(world.now));
            if !world.fetches.is_empty() {
                world.fetch(100);
            }
            while let Some(seq) = world.preparing.pop() {
                world.give(Input::Prepared(seq, Ok(Prepared::default())));
            }
            if !world.given.is_empty() {
                world.answer(Ok(()));
            }
            world.pass(S * 5);
        }
        prop_assert_eq!(world.rows.len(), world.posted.len());
        let told = world.sayings().iter().filter(|text| text.starts_with("This may have been delivered")).count();
        let perhaps = world.rows.values().filter(|row| row.standing == Standing::Perhaps).count();
        prop_assert_eq!(told, perhaps);
        for (seq, row) in &world.rows {
            prop_assert!(matches!(row.standing, Standing::Done | Standing::Perhaps), "{} {:?}", seq, row);
            prop_assert!(world.all_given.contains(&row.incoming.text));
        }
        if !acknowledges {
            // Only a failed delivery is made again.
            let failures = world.out.iter().filter(|o| matches!(o, Output::Told(Told::NotDelivered(..)))).count();
            prop_assert!(world.all_given.len() <= world.rows.len() + failures);
        }
    }
}
