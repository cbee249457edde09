//! Kills and freezes of holders, again and again; `make soak` has them many times and for long.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use holdfast_testkit::discord::{Fault, Seen};
use serde_json::Value;

use super::crew::{Crew, numbers};

const POST: &str = "POST channels/*/messages";

/// A number of the environment.
fn set(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// What came of rounds in which a holder died.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    said: usize,
    posted: usize,
    twice: usize,
    /// Neither posted nor told.
    lost: usize,
    /// Told as unknown.
    unknown: usize,
}

/// A holder dies after the service has a message and before its answer is on disk, in each of so many rounds.
async fn killed_before_the_commit(rounds: u64) -> Tally {
    let mut crew = Crew::of(2).await;
    crew.takes(0).await;
    for round in 0..rounds as usize {
        let before = crew.discord.seen().posts.len();
        crew.discord.fault(POST, [Fault::Hang, Fault::Half, Fault::Cut][round % 3]);
        crew.says(1);
        crew.discord.until("the post", |seen| seen.posts.len() > before).await;
        crew.dies_and_comes_again(round % 2).await;
        crew.discord.release();
        if round % 6 > 2 {
            // Only the channel itself can tell now.
            crew.discord.forget_nonces();
        }
        crew.takes((round + 1) % 2).await;
    }
    crew.says(1);
    crew.last_is_told().await;
    let holder = rounds as usize % 2;
    let rests = |status: &Value| status["seat"]["waiting"] == 0 && status["channels"]["in_flight"] == 0;
    let status = crew.until(holder, "rest", rests).await;
    tally(&crew, &crew.discord.seen(), &status["channels"]["troubles"])
}

fn tally(crew: &Crew, seen: &Seen, troubles: &Value) -> Tally {
    let posted = numbers(seen, crew.channel);
    let unknown: Vec<String> = troubles.as_array().into_iter().flatten().map(|row| row["text"].to_string()).collect();
    let told = |n: &usize| unknown.iter().any(|text| text.contains(&format!("[{n}]")));
    let lost = crew.numbers().filter(|n| !posted.contains(n) && !told(n)).count();
    let ordered = posted.is_sorted();
    assert!(ordered, "{posted:?}");
    Tally {
        said: crew.numbers().count(),
        posted: posted.len(),
        twice: seen.twice().len() + posted.windows(2).filter(|two| two[0] == two[1]).count(),
        lost,
        unknown: unknown.len(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_between_the_answer_and_the_commit_nothing_is_lost_or_comes_twice_and_what_nobody_knows_is_told() {
    let rounds = set("KILLS", 12);
    let lanes = if rounds > 100 { 4 } else { 2 };
    let tallies = join_all((0..lanes).map(|_| killed_before_the_commit(rounds.div_ceil(lanes)))).await;
    for tally in &tallies {
        eprintln!("{tally:?}");
        assert_eq!((tally.twice, tally.lost), (0, 0), "{tally:?}");
    }
}

#[tokio::test]
async fn a_holder_that_is_stopped_for_long_while_another_asks_for_its_seat_says_nothing_twice_when_it_goes_on() {
    let mut crew = Crew::of(2).await;
    crew.takes(0).await;
    crew.says(1);
    crew.members[0].process.freeze();
    let frozen = Instant::now();
    crew.says(1);
    let asked = crew.members[1].home.run(&["seat", "take", "--json"]).await;
    assert_eq!(asked.status.code(), Some(6), "{}", String::from_utf8_lossy(&asked.stderr));
    while frozen.elapsed() < Duration::from_secs(set("FREEZE", 8)) {
        crew.says(1);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let status = crew.members[1].home.json(&["seat", "show", "--json"]).await;
    assert_eq!((&status["state"], &status["frozen"]), (&"standby".into(), &true.into()), "nobody was asked to end it");
    crew.members[0].process.thaw();
    crew.until(1, "told that it is awake", |status| status["seat"]["frozen"] == false).await;
    crew.says(1);
    crew.is_told().await;
    crew.until(0, "the seat, still", |status| status["seat"]["state"] == "serving").await;
    crew.takes(1).await;
    crew.until(0, "its end", |status| status["seat"]["state"] == "off").await;
    crew.says(1);
    crew.is_told().await;
    let seen = crew.discord.seen();
    eprintln!("stopped for {:?}: {} messages, none twice", frozen.elapsed(), seen.texts(crew.channel).len());
}
