//! Slow, sliced, truncated and half-open paths (`docs/PROMISES.md`, L7).

use std::time::{Duration, Instant};

use holdfast_testkit::fault::Path;
use holdfast_testkit::stand::{Stand, WireKind, work};
use serde_json::{Value, json};

use super::{assert_done_once, on_both_wires};

on_both_wires!(
    a_big_result_over_a_slow_path_arrives_whole,
    a_big_result_cut_in_the_middle_of_its_transfer_arrives_whole,
    a_path_that_delivers_single_bytes_changes_nothing,
    a_path_that_hangs_for_three_seconds_and_goes_on_changes_nothing,
);

/// Writes a file of numbered lines and reads it through the tool.
async fn big_file(stand: &Stand, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 16);
    let mut line = 0;
    while text.len() < bytes {
        text.push_str(&format!("line {line:08}\n"));
        line += 1;
    }
    std::fs::write(stand.home.workspace().join("big.txt"), &text).expect("a file");
    text
}

fn read_big() -> Value {
    json!({"path": "big.txt", "max_bytes": 5_242_880})
}

/// The file's text in a `read_file` result.
fn text_of(content: &Value) -> &str {
    content["content"].as_str().unwrap_or_else(|| panic!("no content: {:.300}", content.to_string()))
}

async fn a_big_result_over_a_slow_path_arrives_whole(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let text = big_file(&stand, 1_500_000).await;
    stand.proxy.set(|faults| faults.up.rate = Some(256 * 1024));
    let answer = stand.modern().call("read_file", read_big()).send().await.expect("an answer");
    assert!(text_of(answer.content()) == text, "the text is another");
    assert_eq!(stand.proxy.seen().down.of("ready_ack"), 1, "the link never broke");
}

async fn a_big_result_cut_in_the_middle_of_its_transfer_arrives_whole(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let text = big_file(&stand, 1_500_000).await;
    stand.proxy.set(|faults| faults.up.rate = Some(512 * 1024));
    let before = stand.proxy.seen().up.bytes;
    let client = stand.modern();
    let call = client.call("read_file", read_big()).send();
    let cut = async {
        stand.proxy.until("half of the result", |seen| seen.up.bytes > before + 700_000).await;
        stand.proxy.cut_for(Duration::from_millis(300)).await;
        stand.proxy.set(|faults| faults.up.rate = None);
    };
    let (answer, ()) = tokio::join!(call, cut);
    assert!(text_of(answer.expect("an answer").content()) == text, "the text is another");
    assert_eq!(stand.proxy.seen().down.of("ready_ack"), 2);
}

async fn a_path_that_delivers_single_bytes_changes_nothing(wire: WireKind) {
    let stand = Stand::start(wire).await;
    stand.proxy.set(|faults| {
        faults.up.slice = Some(1);
        faults.down.slice = Some(1);
    });
    stand.release("a");
    assert_done_once(&stand, "a", stand.modern().call("run_process", work("a")).send().await);
    stand.proxy.reset();
    stand.ready(2).await;
    stand.release("b");
    let mut answer = stand.modern().call("run_process", work("b")).send().await;
    // On the base wire a result that no pong answered for yet makes the daemon look twice, and a call sent in between is
    // refused as one that never arrived.
    if wire == WireKind::Base && answer.as_ref().is_ok_and(|answer| answer.code() == Some("unavailable")) {
        stand.ready(3).await;
        answer = stand.modern().call("run_process", work("b")).send().await;
    }
    assert_done_once(&stand, "b", answer);
}

async fn a_path_that_hangs_for_three_seconds_and_goes_on_changes_nothing(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let client = stand.modern();
    let call = client.call("run_process", work("a")).send();
    let hang = async {
        stand.journal_has("started a").await;
        let began = Instant::now();
        stand.proxy.set(|faults| faults.path = Path::BlackHole);
        stand.release("a");
        tokio::time::sleep(Duration::from_secs(3)).await;
        stand.proxy.heal();
        began.elapsed()
    };
    let (answer, hung) = tokio::join!(call, hang);
    assert_done_once(&stand, "a", answer);
    // On a machine that had no time for this test it was longer.
    if hung < Duration::from_secs(4) {
        assert_eq!(stand.proxy.seen().down.of("ready_ack"), 1, "three seconds are no outage");
    }
}

#[tokio::test]
async fn a_half_open_link_is_noticed_and_the_call_completes_on_a_new_one() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = stand.modern();
    let call = client.call("run_process", work("a")).send();
    let strand = async {
        stand.journal_has("started a").await;
        stand.proxy.strand();
        let stranded = Instant::now();
        stand.ready(2).await;
        let took = stranded.elapsed();
        assert!(
            took < Duration::from_secs(40),
            "a dead peer is noticed within 10 s, the rest is room for a loaded machine: {took:?}"
        );
        stand.release("a");
    };
    let (answer, ()) = tokio::join!(call, strand);
    assert_done_once(&stand, "a", answer);
}
