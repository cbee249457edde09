//! Resets of every length around a call (`docs/PROMISES.md`, L1, L2 and L5).

use std::time::Duration;

use futures_util::future::join_all;
use holdfast_testkit::stand::{Stand, WireKind, until, work};
use serde_json::json;

use super::{assert_done_once, marks, on_both_wires};

on_both_wires!(
    a_reset_with_the_path_open_is_survived,
    a_cut_of_a_tenth_of_a_second_is_survived,
    a_cut_of_one_second_is_survived,
    a_cut_of_ten_seconds_is_survived,
    a_result_computed_while_the_link_is_down_arrives_once_and_byte_identical,
    a_session_client_gets_its_answer_on_the_same_stream_across_a_cut,
    ten_cuts_during_one_call_run_it_once,
    a_call_made_during_an_outage_waits_for_the_device,
    all_slots_held_across_a_cut_are_ready_within_a_second_of_the_heal_and_all_complete,
    one_idempotency_key_runs_once_across_a_cut,
);

/// A call in flight, a cut of this length, and the work goes on until after the heal.
async fn survives(wire: WireKind, cut: Duration) {
    let stand = Stand::start(wire).await;
    let client = stand.modern();
    let call = client.call("run_process", work("a")).send();
    let cut = async {
        stand.journal_has("started a").await;
        stand.proxy.cut_for(cut).await;
        stand.ready(2).await;
        stand.release("a");
    };
    let (answer, ()) = tokio::join!(call, cut);
    assert_done_once(&stand, "a", answer);
}

async fn a_reset_with_the_path_open_is_survived(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let client = stand.modern();
    let call = client.call("run_process", work("a")).send();
    let cut = async {
        stand.journal_has("started a").await;
        stand.proxy.reset();
        stand.ready(2).await;
        stand.release("a");
    };
    let (answer, ()) = tokio::join!(call, cut);
    assert_done_once(&stand, "a", answer);
}

async fn a_cut_of_a_tenth_of_a_second_is_survived(wire: WireKind) {
    survives(wire, Duration::from_millis(100)).await;
}

async fn a_cut_of_one_second_is_survived(wire: WireKind) {
    survives(wire, Duration::from_secs(1)).await;
}

async fn a_cut_of_ten_seconds_is_survived(wire: WireKind) {
    survives(wire, Duration::from_secs(10)).await;
}

async fn a_result_computed_while_the_link_is_down_arrives_once_and_byte_identical(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let client = stand.modern();
    let odd = "é\u{1f980}\t\"\\ \u{202e}";
    let script = "echo started a >> journal; while [ ! -e release-a ]; do [ -e journal ] || exit 9; sleep 0.05; done; \
                  printf '%s' \"$0\"; echo finished a >> journal";
    let arguments = json!({"argv": ["/bin/sh", "-c", script, odd], "timeout_seconds": 600});
    let call = client.call("run_process", arguments.clone()).send();
    let cut = async {
        stand.journal_has("started a").await;
        stand.proxy.cut();
        stand.release("a");
        stand.journal_has("finished a").await;
        stand.proxy.heal();
        stand.ready(2).await;
    };
    let (over_a_cut, ()) = tokio::join!(call, cut);
    let straight = client.call("run_process", arguments).id(1).send().await.expect("an answer");
    assert_eq!(over_a_cut.as_ref().expect("an answer").text, straight.text, "the same work, the same bytes");
    assert_eq!(over_a_cut.expect("an answer").content()["stdout"], odd);
    assert_eq!(marks(&stand, "a"), (2, 2), "each of the two calls ran once");
}

async fn a_session_client_gets_its_answer_on_the_same_stream_across_a_cut(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let session = stand.session().await;
    let stream = session.start_call(1, "run_process", work("a")).await.expect("a stream");
    stand.journal_has("started a").await;
    stand.proxy.cut_for(Duration::from_secs(1)).await;
    stand.release("a");
    assert_done_once(&stand, "a", stream.answer().await);
}

async fn ten_cuts_during_one_call_run_it_once(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let client = stand.modern();
    let call = client.call("run_process", work("a")).send();
    let cuts = async {
        stand.journal_has("started a").await;
        for cut in 0..10 {
            stand.proxy.cut_for(Duration::from_millis(50)).await;
            stand.ready(2 + cut).await;
        }
        stand.release("a");
    };
    let (answer, ()) = tokio::join!(call, cuts);
    assert_done_once(&stand, "a", answer);
}

async fn a_call_made_during_an_outage_waits_for_the_device(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let client = stand.modern();
    stand.proxy.cut();
    stand.missed().await;
    stand.release("a");
    let call = client.call("run_process", work("a")).send();
    let heal = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(marks(&stand, "a"), (0, 0));
        stand.proxy.heal();
    };
    let (answer, ()) = tokio::join!(call, heal);
    assert_done_once(&stand, "a", answer);
}

async fn all_slots_held_across_a_cut_are_ready_within_a_second_of_the_heal_and_all_complete(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let slots = if wire == WireKind::Feature { 60 } else { 14 };
    let clients: Vec<_> = (0..slots).map(|_| stand.modern()).collect();
    let names: Vec<_> = (0..slots).map(|n| format!("w{n}")).collect();
    let calls = clients.iter().zip(&names).map(|(client, name)| client.call("run_process", work(name)).send());
    let cut = async {
        let started = || stand.journal().iter().filter(|line| line.starts_with("started")).count() == slots;
        assert!(until(started).await, "all slots run: {:?}", stand.journal());
        stand.proxy.cut_for(Duration::from_secs(3)).await;
        let healed = std::time::Instant::now();
        stand.ready(2).await;
        let took = healed.elapsed();
        // The daemon tries at least each second while calls are detached; the rest is room for a loaded machine.
        assert!(took < Duration::from_secs(20), "ready {took:?} after the heal");
        names.iter().for_each(|name| stand.release(name));
    };
    let (answers, ()) = tokio::join!(join_all(calls), cut);
    for (name, answer) in names.iter().zip(answers) {
        assert_done_once(&stand, name, answer);
    }
}

async fn one_idempotency_key_runs_once_across_a_cut(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let (first, second) = (stand.modern(), stand.modern());
    let call =
        |client| holdfast_testkit::mcp::Modern::call(client, "run_process", work("a")).idempotency_key("one").send();
    let rest = async {
        stand.journal_has("started a").await;
        stand.proxy.cut();
        let joined = call(&second);
        let heal = async {
            stand.proxy.until("a refused dial", |seen| seen.refused > 0).await;
            stand.proxy.heal();
            stand.ready(2).await;
            stand.release("a");
        };
        tokio::join!(joined, heal).0
    };
    let (one, two) = tokio::join!(call(&first), rest);
    assert_done_once(&stand, "a", one);
    assert_done_once(&stand, "a", two);
    assert_done_once(&stand, "a", call(&stand.modern()).await);
    let other = stand.modern().call("run_process", work("b")).idempotency_key("one").send().await.expect("an answer");
    assert_eq!(other.code(), Some("conflict"), "{other:?}");
    assert_eq!(marks(&stand, "b"), (0, 0));
}
