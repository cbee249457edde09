//! kill -9 in the middle of calls: of the daemon, of the relay, of both, again and again.
//!
//! What was sent and can never be heard of again is told at once; what can come back comes back; nothing runs twice and
//! nothing is left behind.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use holdfast_testkit::stand::{Stand, WireKind, alive, until, work, zombies_of};
use serde_json::json;

/// How often this work started and finished.
fn marks(stand: &Stand, name: &str) -> (usize, usize) {
    let journal = stand.journal();
    let count = |mark: &str| journal.iter().filter(|line| **line == format!("{mark} {name}")).count();
    (count("started"), count("finished"))
}

/// The device reaped every child. It hears of an end a moment after the process is gone.
async fn no_zombies(stand: &Stand) {
    let device = stand.device.pid();
    assert!(until(|| zombies_of(device).is_empty()).await, "zombies of {device}: {:?}", zombies_of(device));
}

/// A call goes through, whatever happened before.
async fn works_again(stand: &Stand, name: &str) {
    stand.release(name);
    let answer = stand.modern().call("run_process", work(name)).send().await.expect("an answer");
    assert_eq!(answer.content()["stdout"], format!("result-{name}\n"));
    assert_eq!(marks(stand, name), (1, 1));
}

#[tokio::test]
async fn a_daemon_killed_in_the_middle_of_a_call_is_told_as_outcome_unknown_as_soon_as_it_is_back() {
    let mut stand = Stand::start(WireKind::Feature).await;
    let client = stand.modern();
    let call = tokio::spawn(async move { client.call("run_process", work("a")).send().await });
    stand.journal_has("started a").await;
    stand.device.kill_9().await;
    assert!(!call.is_finished(), "the relay waits for the daemon");
    let back = Instant::now();
    stand.restart_device().await;
    let answer = call.await.expect("no panic").expect("an answer");
    assert!(back.elapsed() < Duration::from_secs(60), "told {:?} after the restart", back.elapsed());
    assert_eq!((answer.code(), answer.retryable()), (Some("outcome_unknown"), Some(false)), "{answer:?}");
    works_again(&stand, "b").await;
    assert_eq!(marks(&stand, "a").0, 1, "the call did not run again");
}

#[tokio::test]
async fn a_call_that_waits_for_a_killed_daemon_goes_to_its_next_life() {
    let mut stand = Stand::start(WireKind::Feature).await;
    stand.device.kill_9().await;
    // One that comes before the relay knows is sent to the dead one, and its outcome unknown.
    stand.missed().await;
    stand.release("a");
    let client = stand.modern();
    let call = client.call("run_process", work("a")).send();
    let (answer, ()) = tokio::join!(call, stand.restart_device_after(Duration::from_millis(500)));
    assert_eq!(answer.expect("an answer").content()["stdout"], "result-a\n");
    assert_eq!(marks(&stand, "a"), (1, 1));
}

#[tokio::test]
async fn a_relay_killed_in_the_middle_of_a_call_costs_the_client_its_connection_and_the_daemon_cancels_the_orphan() {
    let mut stand = Stand::start(WireKind::Feature).await;
    let client = stand.modern();
    let call = tokio::spawn(async move { client.call("run_process", work("a")).send().await });
    stand.journal_has("started a").await;
    let pid = stand.work_pid("a");
    stand.relay.process.kill_9().await;
    call.await.expect("no panic").expect_err("the connection died with the relay");
    assert!(alive(pid), "the daemon keeps the call until it knows better");
    stand.relay.restart().await;
    stand.ready(2).await;
    stand.work_ended("a").await;
    stand.release("a");
    works_again(&stand, "b").await;
    assert_eq!(marks(&stand, "a"), (1, 0));
    no_zombies(&stand).await;
}

#[tokio::test]
async fn a_keyed_call_comes_back_after_the_relay_was_killed() {
    let mut stand = Stand::start(WireKind::Feature).await;
    let client = stand.modern();
    let call = tokio::spawn(async move { client.call("run_process", work("a")).idempotency_key("once").send().await });
    stand.journal_has("started a").await;
    stand.relay.process.kill_9().await;
    call.await.expect("no panic").expect_err("the connection died with the relay");
    stand.relay.restart().await;
    let client = stand.modern();
    let again = client.call("run_process", work("a")).idempotency_key("once").send();
    let finish = async {
        stand.ready(2).await;
        stand.release("a");
    };
    let (answer, ()) = tokio::join!(again, finish);
    assert_eq!(answer.expect("an answer").content()["stdout"], "result-a\n");
    assert_eq!(marks(&stand, "a"), (1, 1));
    let stored = client.call("run_process", work("a")).idempotency_key("once").send().await.expect("an answer");
    assert_eq!(stored.content()["stdout"], "result-a\n");
    assert_eq!(marks(&stand, "a"), (1, 1));
}

#[tokio::test]
async fn a_key_whose_daemon_and_relay_both_died_is_unknown_and_never_runs_a_second_time() {
    let mut stand = Stand::start(WireKind::Feature).await;
    let client = stand.modern();
    let call = tokio::spawn(async move { client.call("run_process", work("a")).idempotency_key("once").send().await });
    stand.journal_has("started a").await;
    stand.device.kill_9().await;
    stand.relay.process.kill_9().await;
    call.await.expect("no panic").expect_err("the connection died with the relay");
    stand.relay.restart().await;
    stand.restart_device().await;
    stand.ready(2).await;
    let client = stand.modern();
    for _ in 0..2 {
        let answer = client.call("run_process", work("a")).idempotency_key("once").send().await.expect("an answer");
        assert_eq!(answer.code(), Some("outcome_unknown"), "{answer:?}");
    }
    assert_eq!(marks(&stand, "a").0, 1);
}

#[tokio::test]
async fn a_session_of_a_killed_relay_is_gone_and_the_client_initialises_again() {
    let mut stand = Stand::start(WireKind::Feature).await;
    let session = stand.session().await;
    stand.relay.process.kill_9().await;
    stand.relay.restart().await;
    let answer = session.request("tools/list", json!({})).await.expect("an answer");
    assert_eq!(answer.status, 404, "{answer:?}");
    stand.session().await;
}

#[tokio::test]
async fn accounts_tokens_and_devices_survive_kill_9_of_the_relay_twenty_times_under_load() {
    let mut stand = Stand::start(WireKind::Feature).await;
    for round in 0..20 {
        let clients: Vec<_> = (0..4).map(|_| stand.modern()).collect();
        let calls = clients.iter().enumerate().map(|(n, client)| {
            let arguments = json!({"argv": ["/bin/sh", "-c", format!("echo ran {round}-{n} >> journal")]});
            client.call("run_process", arguments).idempotency_key(&format!("{round}-{n}")).send()
        });
        // The kill falls anywhere into the calls: a different moment each round.
        tokio::select! {
            _ = join_all(calls) => {}
            () = tokio::time::sleep(Duration::from_millis(3 * round)) => {}
        }
        stand.relay.process.kill_9().await;
        stand.relay.restart().await;
        stand.ready(round + 2).await;
    }
    works_again(&stand, "last").await;
    let journal = stand.journal();
    let mut ran: Vec<_> = journal.iter().filter(|line| line.starts_with("ran ")).collect();
    let all = ran.len();
    ran.sort();
    ran.dedup();
    assert_eq!(ran.len(), all, "a key ran twice: {journal:?}");
    no_zombies(&stand).await;
}

#[tokio::test]
async fn a_stopped_daemon_lets_its_calls_finish_and_says_goodbye() {
    let mut stand = Stand::start(WireKind::Feature).await;
    let client = stand.modern();
    let call = tokio::spawn(async move { client.call("run_process", work("a")).send().await });
    stand.journal_has("started a").await;
    stand.device.signal(holdfast_testkit::process::Signal::SIGTERM);
    stand.release("a");
    let status = stand.device.ended().await;
    assert_eq!(status.code(), Some(0));
    assert_eq!(call.await.expect("no panic").expect("an answer").content()["stdout"], "result-a\n");
    assert_eq!(marks(&stand, "a"), (1, 1));
    let pid = stand.work_pid("a");
    assert!(until(|| !alive(pid)).await);
}

#[tokio::test]
async fn a_stopped_relay_ends_plain_calls_as_unknown_and_keeps_keyed_ones() {
    let mut stand = Stand::start(WireKind::Feature).await;
    let (plain, keyed) = (stand.modern(), stand.modern());
    let plain = tokio::spawn(async move { plain.call("run_process", work("a")).send().await });
    let keyed = tokio::spawn(async move { keyed.call("run_process", work("b")).idempotency_key("b").send().await });
    stand.journal_has("started a").await;
    stand.journal_has("started b").await;
    let status = stand.relay.process.stop().await;
    assert_eq!(status.code(), Some(0));
    let answer = plain.await.expect("no panic").expect("an answer before the end");
    assert_eq!(answer.code(), Some("outcome_unknown"), "{answer:?}");
    // A keyed call outlives its request; what its own request hears is that it goes on, or nothing.
    drop(keyed);
    stand.relay.restart().await;
    stand.ready(2).await;
    stand.work_ended("a").await;
    stand.release("b");
    let client = stand.modern();
    let answer = client.call("run_process", work("b")).idempotency_key("b").send().await.expect("an answer");
    assert_eq!(answer.content()["stdout"], "result-b\n");
    assert_eq!((marks(&stand, "a"), marks(&stand, "b")), ((1, 0), (1, 1)));
}
