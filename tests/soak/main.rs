//! Rounds that are too long for every day; `make soak` runs them.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use holdfast_testkit::fault::Swallow;
use holdfast_testkit::mcp::{Answer, Lost};
use holdfast_testkit::stand::{Stand, WireKind, work};
use serde_json::json;

/// The relay's grace.
fn grace(wire: WireKind) -> Duration {
    Duration::from_secs(if wire == WireKind::Feature { 120 } else { 30 })
}

/// A call in flight across a cut of this length; its answer.
async fn across(wire: WireKind, cut: Duration) -> (Stand, Result<Answer, Lost>) {
    let stand = Stand::start(wire).await;
    let client = stand.modern();
    let call = tokio::spawn(async move { client.call("run_process", work("a")).send().await });
    stand.journal_has("started a").await;
    stand.proxy.cut_for(cut).await;
    stand.ready(2).await;
    stand.release("a");
    let answer = call.await.expect("no panic");
    (stand, answer)
}

async fn a_cut_just_inside_the_grace_is_survived(wire: WireKind) {
    let (stand, answer) = across(wire, grace(wire) - Duration::from_secs(5)).await;
    assert_eq!(answer.expect("an answer").content()["stdout"], "result-a\n");
    assert_eq!(stand.journal().iter().filter(|line| *line == "finished a").count(), 1);
}

async fn a_cut_longer_than_the_grace_is_reported_and_the_work_is_killed(wire: WireKind) {
    let (stand, answer) = across(wire, grace(wire) + Duration::from_secs(20)).await;
    let answer = answer.expect("an answer");
    assert_eq!((answer.code(), answer.retryable()), (Some("outcome_unknown"), Some(false)), "{answer:?}");
    stand.work_ended("a").await;
    stand.release("b");
    let next = stand.modern().call("run_process", work("b")).send().await.expect("an answer");
    assert_eq!(next.content()["stdout"], "result-b\n");
}

#[tokio::test]
async fn a_cut_just_inside_the_grace_is_survived_between_holdfasts() {
    a_cut_just_inside_the_grace_is_survived(WireKind::Feature).await;
}

#[tokio::test]
async fn a_cut_just_inside_the_grace_is_survived_on_the_base_wire() {
    a_cut_just_inside_the_grace_is_survived(WireKind::Base).await;
}

#[tokio::test]
async fn a_cut_longer_than_the_grace_is_reported_between_holdfasts() {
    a_cut_longer_than_the_grace_is_reported_and_the_work_is_killed(WireKind::Feature).await;
}

#[tokio::test]
async fn a_cut_longer_than_the_grace_is_reported_on_the_base_wire() {
    a_cut_longer_than_the_grace_is_reported_and_the_work_is_killed(WireKind::Base).await;
}

#[tokio::test]
async fn a_result_of_almost_8_mib_arrives_at_64_kib_per_second() {
    let stand = Stand::start(WireKind::Feature).await;
    // A quote takes two characters in JSON.
    let text = "\"".repeat(4_000_000);
    std::fs::write(stand.home.workspace().join("big"), &text).expect("a file");
    stand.proxy.set(|faults| faults.up.rate = Some(64 * 1024));
    let arguments = json!({"path": "big", "max_bytes": 5_242_880});
    let answer = stand.modern().call("read_file", arguments).send().await.expect("an answer");
    assert!(answer.content()["content"] == *text, "the text is another");
    assert_eq!(stand.proxy.seen().down.of("ready_ack"), 1, "the link never broke");
}

#[tokio::test]
async fn arguments_of_5_mib_arrive_at_128_kib_per_second() {
    let stand = Stand::start(WireKind::Feature).await;
    let text = "x".repeat(5_000_000);
    stand.proxy.set(|faults| faults.down.rate = Some(128 * 1024));
    let answer = stand.modern().call("write_file", json!({"path": "big", "content": text})).send().await;
    assert_eq!(answer.expect("an answer").code(), None);
    assert_eq!(std::fs::read_to_string(stand.home.workspace().join("big")).expect("a file"), text);
    assert_eq!(stand.proxy.seen().down.of("ready_ack"), 1, "the link never broke");
}

#[tokio::test]
async fn a_half_open_base_link_is_noticed_and_its_call_completes() {
    let stand = Stand::start(WireKind::Base).await;
    let client = stand.modern();
    let call = tokio::spawn(async move { client.call("run_process", work("a")).send().await });
    stand.journal_has("started a").await;
    stand.proxy.strand();
    tokio::time::sleep(Duration::from_secs(80)).await;
    stand.ready(2).await;
    stand.release("a");
    assert_eq!(call.await.expect("no panic").expect("an answer").content()["stdout"], "result-a\n");
}

#[tokio::test]
async fn two_thousand_calls_lose_nothing_to_a_proxy_that_swallows_one_frame_in_a_hundred() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = stand.modern();
    stand.proxy.set(|faults| {
        faults.up.swallow = Swallow::OneIn(100);
        faults.down.swallow = Swallow::OneIn(101);
    });
    for call in 0..2000 {
        let arguments = json!({"argv": ["/bin/sh", "-c", format!("echo ran {call} >> journal; echo {call}")]});
        let answer = client.call("run_process", arguments).send().await.expect("an answer");
        assert_eq!(answer.content()["stdout"], format!("{call}\n"));
    }
    let mut ran = stand.journal();
    assert_eq!(ran.len(), 2000);
    ran.sort();
    ran.dedup();
    assert_eq!(ran.len(), 2000);
}
