//! Holders that race, die, freeze and hand over while an agent writes and people do: nothing is lost, and nothing comes twice.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use holdfast_testkit::discord::Break;
use serde_json::Value;

use super::crew::Crew;
use super::stage::PATIENCE;

#[tokio::test]
async fn what_an_agent_writes_appears_in_its_channel() {
    let mut crew = Crew::of(1).await;
    crew.takes(0).await;
    crew.says(3);
    crew.is_told().await;
    let rests = |status: &Value| status["seat"]["last_sent"].is_u64() && status["seat"]["waiting"] == 0;
    let status = crew.until(0, "rest", rests).await;
    let transcript = crew.transcript().canonicalize().expect("it is there");
    assert_eq!(status["seat"]["transcript"].as_str(), transcript.to_str());
    assert_eq!(status["channels"]["troubles"], Value::Array(vec![]));
}

async fn race(members: usize) {
    let mut crew = Crew::of(members).await;
    crew.takes(0).await;
    for _round in 0..2 {
        let takes: Vec<_> = crew.members.iter().map(|m| m.home.command(&["seat", "take", "--json"]).output()).collect();
        let racing = tokio::spawn(join_all(takes));
        while !racing.is_finished() {
            crew.says(1);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let takes = racing.await.expect("no panic");
        assert!(takes.iter().flatten().any(|take| take.status.success()), "somebody has it");
        crew.says(1);
        crew.is_told().await;
    }
}

#[tokio::test]
async fn two_that_take_the_seat_at_once_post_every_message_once() {
    race(2).await;
}

#[tokio::test]
async fn five_that_take_the_seat_at_once_post_every_message_once() {
    race(5).await;
}

#[tokio::test]
async fn killed_at_any_moment_while_the_agent_writes_nothing_is_lost_or_comes_twice() {
    let mut crew = Crew::of(2).await;
    crew.takes(0).await;
    for round in 0..6_usize {
        let before = crew.discord.seen().posts.len();
        crew.says(20);
        // Somewhere on the way: before its first post, in the middle, or after its last.
        if round % 3 > 0 {
            crew.discord.until("a post", |seen| seen.posts.len() > before).await;
        }
        crew.dies_and_comes_again(round % 2).await;
        crew.says(1);
        crew.takes((round + 1) % 2).await;
    }
    crew.says(1);
    crew.is_told().await;
}

#[tokio::test]
async fn a_holder_that_was_frozen_goes_on_and_one_that_is_ended_for_it_leaves_everything_to_the_next() {
    let mut crew = Crew::of(2).await;
    crew.takes(0).await;
    crew.says(1);
    crew.members[0].process.freeze();
    crew.says(5);
    let refused = crew.members[1].home.run(&["seat", "take", "--json"]).await;
    assert_eq!(refused.status.code(), Some(6), "{}", String::from_utf8_lossy(&refused.stderr));
    crew.members[1].home.ok(&["seat", "release"]).await;
    crew.members[0].process.thaw();
    crew.is_told().await;
    crew.members[0].process.freeze();
    crew.says(5);
    let taken = crew.members[1].home.json(&["seat", "take", "--force", "--json"]).await;
    assert_eq!(taken["state"], "serving");
    crew.is_told().await;
}

#[tokio::test]
async fn a_seat_that_moves_while_both_sides_write_loses_nothing_either_way() {
    let mut crew = Crew::of(2).await;
    crew.takes(0).await;
    let seats = crew.members[0].home.seats();
    let seat = std::fs::read_dir(seats).expect("seats").next().expect("one").expect("readable").path();
    let (new, mut taken, mut written) = (seat.join("inbox/app/new"), BTreeSet::new(), Vec::new());
    // The agent takes whatever lies in its folder.
    let mut take = || {
        for entry in std::fs::read_dir(&new).into_iter().flatten().flatten() {
            let letter = std::fs::read(entry.path()).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
            if let Some(id) = letter.as_ref().and_then(|letter| letter["meta"]["message_id"].as_str()) {
                taken.insert(id.to_owned());
                std::fs::remove_file(entry.path()).expect("it is taken");
            }
        }
        taken.len()
    };
    for round in 1..5_usize {
        let home = &crew.members[round % 2].home;
        let moving = tokio::spawn(home.command(&["seat", "take", "--json"]).output());
        while !moving.is_finished() {
            crew.says(1);
            written.push(crew.discord.write(crew.channel, crew.ann, "hello").to_string());
            tokio::time::sleep(Duration::from_millis(100)).await;
            take();
        }
        let moved = moving.await.expect("no panic").expect("it ran");
        assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stderr));
    }
    crew.says(1);
    crew.is_told().await;
    let all = async {
        while take() < written.len() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("every message reaches the agent");
    assert_eq!(taken, written.into_iter().collect());
}

#[tokio::test]
async fn a_connection_that_drops_costs_nothing_in_either_direction() {
    let mut crew = Crew::of(1).await;
    crew.takes(0).await;
    crew.discord.write(crew.channel, crew.ann, "/seat");
    let is_answer = |text: &&str| text.starts_with("This bot runs on ");
    let channel = crew.channel;
    let answers = |seen: &holdfast_testkit::discord::Seen| seen.texts(channel).iter().filter(|t| is_answer(t)).count();
    crew.discord.until("an answer", |seen| answers(seen) == 1).await;
    for (n, how) in [Break::Drop, Break::Close(4000), Break::Invalid(false)].into_iter().enumerate() {
        crew.discord.open(false);
        crew.discord.disturb("m0", how);
        crew.discord.until("the end of the connection", |seen| seen.connected.get("m0").is_none_or(|n| *n == 0)).await;
        crew.says(1);
        crew.discord.write(crew.channel, crew.ann, "/seat");
        crew.discord.open(true);
        crew.discord.until("an answer", |seen| answers(seen) == n + 2).await;
    }
    crew.is_told().await;
}

#[tokio::test]
async fn a_token_that_is_revoked_ends_the_seat_and_a_deleted_channel_only_itself() {
    let mut crew = Crew::of(1).await;
    crew.takes(0).await;
    crew.says(1);
    crew.is_told().await;
    crew.discord.delete(crew.channel);
    crew.says(1);
    let status = crew.until(0, "a parked channel", |s| s["channels"]["bindings"][0]["parked"].is_string()).await;
    assert_eq!(status["seat"]["state"], "serving");
    let codes: Vec<&Value> = status["health"].as_array().expect("a list").iter().map(|w| &w["code"]).collect();
    assert!(codes.contains(&&"channel_parked".into()), "{codes:?}");
    let token = crew.discord.bot(super::stage::BOT);
    let logins = crew.discord.seen().identified.len();
    crew.discord.revoke(&token);
    let status = crew.until(0, "the seat's end", |s| s["seat"]["state"] == "failed").await;
    assert!(status["seat"]["reason"].is_string(), "{status}");
    assert_eq!(crew.discord.seen().identified.len(), logins, "it does not log in again");
}
