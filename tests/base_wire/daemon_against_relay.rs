//! `holdfast serve` in base compatibility, and a scripted 1.2.10 relay.

use std::time::Duration;

use holdfast_testkit::base::{DaemonBench, Frame, call_id};
use holdfast_testkit::stand::{alive, found, until, work};
use serde_json::{Value, json};

/// Waits until the daemon says this of its relay.
async fn state_becomes(bench: &DaemonBench, state: &str) {
    found(state, async || {
        let status = bench.home.json(&["status", "--json"]).await;
        (status["relay"]["state"] == state).then_some(())
    })
    .await;
}

fn stdout(result: &Value) -> &Value {
    &result["result"]["stdout"]
}

#[tokio::test]
async fn the_handshake_has_the_order_and_fields_of_the_real_daemon() {
    let bench = DaemonBench::start().await;
    let mut socket = bench.relay.accept().await;
    let hello = socket.prove(&[]).await;
    let mut fields: Vec<_> = hello.as_object().expect("an object").keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["instance_id", "policy", "protocol_versions", "tools", "type"]);
    assert_eq!(hello["protocol_versions"], json!(["2025-11-25"]));
    let instance = hello["instance_id"].as_str().expect("an id");
    assert!(instance.starts_with("daemon_") && instance.len() == 31, "{instance}");
    let tools = hello["tools"].as_array().expect("tools");
    assert!(tools.contains(&json!("run_process")) && !tools.contains(&json!("server_info")), "{tools:?}");
    assert_eq!((&hello["policy"]["profile"], &hello["policy"]["revision"]), (&json!("agent"), &json!(5)));
    bench.release("a");
    socket.call(&call_id("a"), "run_process", work("a")).await;
    let result = socket.result().await;
    assert_eq!((&result["ok"], stdout(&result)), (&json!(true), &json!("result-a\n")));
    socket.close(1012, "restart").await;
    let mut again = bench.relay.accept().await;
    assert_eq!(again.prove(&[]).await["instance_id"], instance, "one id for the process's life");
}

#[tokio::test]
async fn extra_fields_are_ignored_and_a_missing_welcome_is_tolerated() {
    let bench = DaemonBench::start().await;
    let mut socket = bench.relay.accept().await;
    socket.expect("hello").await;
    let who = |kind: &str| json!({"type": kind, "server": "machine-bridge-mcp", "version": "1.2.10", "shiny": [1]});
    socket.send(who("hello_ack")).await;
    socket.send(json!({"type": "relay_probe", "id": "probe_0123456789", "shiny": 1})).await;
    assert_eq!(socket.expect("relay_probe_result").await["id"], "probe_0123456789");
    socket.send(json!({"type": "resume_calls", "ids": [], "shiny": {}})).await;
    socket.send(who("ready_ack")).await;
    state_becomes(&bench, "healthy").await;
}

#[tokio::test]
async fn a_relay_of_another_version_is_incompatible_and_never_proven() {
    let bench = DaemonBench::start().await;
    let mut socket = bench.relay.accept().await;
    socket.send(json!({"type": "welcome", "server": "machine-bridge-mcp", "version": "1.2.11"})).await;
    while let Frame::Json(message) = socket.next().await {
        assert_eq!(message["type"], "hello");
    }
    state_becomes(&bench, "incompatible").await;
}

#[tokio::test]
async fn a_wrong_secret_needs_a_sign_in() {
    let bench = DaemonBench::with_secret("another-secret-that-is-wrong").await;
    assert!(bench.relay.accept_within(Duration::from_secs(2)).await.is_none());
    state_becomes(&bench, "sign_in_needed").await;
}

#[tokio::test]
async fn t1_calls_left_out_after_an_unclean_replacement_are_asked_for_once_more() {
    let bench = DaemonBench::start().await;
    let mut old = bench.ready(&[]).await;
    let id = bench.running(&mut old, "a").await;
    drop(old);
    // The real relay has not noticed the loss: it names nothing on the first reconnect.
    let mut first = bench.relay.accept().await;
    first.prove_up_to_resume(&[]).await;
    let mut second = bench.ready(&[&id]).await;
    bench.release("a");
    assert_eq!(stdout(&second.result().await), "result-a\n");
}

#[tokio::test]
async fn a_call_that_stays_left_out_is_cancelled_and_its_processes_are_killed() {
    let bench = DaemonBench::start().await;
    let mut old = bench.ready(&[]).await;
    bench.running(&mut old, "a").await;
    let pid = bench.journal().lines().find_map(|line| line.strip_prefix("pid a ")?.parse().ok()).expect("a pid");
    drop(old);
    let mut first = bench.relay.accept().await;
    first.prove_up_to_resume(&[]).await;
    let mut second = bench.ready(&[]).await;
    assert!(until(|| !alive(pid)).await);
    bench.release("b");
    second.call(&call_id("b"), "run_process", work("b")).await;
    let result = second.result().await;
    assert_eq!((&result["id"], stdout(&result)), (&json!(call_id("b")), &json!("result-b\n")));
    assert!(!bench.journal().contains("finished a"));
}

#[tokio::test]
async fn t2_what_was_fatal_for_the_real_daemon_is_only_a_reconnect() {
    let bench = DaemonBench::start().await;
    let mut socket = bench.ready(&[]).await;
    let id = bench.running(&mut socket, "a").await;
    socket.send(json!({"type": "error", "error": "daemon_liveness_timeout"})).await;
    socket.close(1008, "daemon liveness timeout").await;
    let mut socket = bench.ready(&[&id]).await;
    socket.close(1012, "daemon transport error").await;
    let mut socket = bench.ready(&[&id]).await;
    socket.send(json!({"type": "brand_new_type"})).await;
    let mut socket = bench.ready(&[&id]).await;
    bench.release("a");
    assert_eq!(stdout(&socket.result().await), "result-a\n");
}

#[tokio::test]
async fn t3_a_result_that_died_with_its_socket_is_sent_again_when_it_is_named() {
    let bench = DaemonBench::start().await;
    let mut socket = bench.ready(&[]).await;
    let id = bench.running(&mut socket, "a").await;
    bench.release("a");
    let first = socket.result().await;
    drop(socket);
    let mut socket = bench.ready(&[&id]).await;
    assert_eq!(socket.result().await, first);
}

#[tokio::test]
async fn t4_a_named_call_that_was_never_seen_is_given_back_as_not_started() {
    let bench = DaemonBench::start().await;
    let lost = call_id("lost");
    let mut socket = bench.ready(&[&lost]).await;
    let result = socket.result().await;
    assert_eq!((&result["id"], &result["ok"]), (&json!(lost), &json!(false)));
    assert_eq!((&result["error"]["code"], &result["error"]["retryable"]), (&json!("unavailable"), &json!(true)));
}

#[tokio::test]
async fn t16_a_result_too_big_for_a_frame_fails_its_call_and_not_the_link() {
    let bench = DaemonBench::start().await;
    // Each of these bytes takes six characters in JSON.
    std::fs::write(bench.home.workspace().join("big"), vec![1; 3_000_000]).expect("a file");
    let mut socket = bench.ready(&[]).await;
    socket.call(&call_id("a"), "read_file", json!({"path": "big", "max_bytes": 5_242_880})).await;
    let result = socket.result().await;
    assert_eq!(
        (&result["ok"], &result["error"]["code"]),
        (&json!(false), &json!("limit_exceeded")),
        "{:.300}",
        result.to_string()
    );
    bench.release("b");
    socket.call(&call_id("b"), "run_process", work("b")).await;
    assert_eq!(stdout(&socket.result().await), "result-b\n");
}

#[tokio::test]
async fn a_call_id_that_runs_is_not_run_again_and_one_that_ended_answers_the_same() {
    let bench = DaemonBench::start().await;
    let mut socket = bench.ready(&[]).await;
    let id = bench.running(&mut socket, "a").await;
    socket.call(&id, "run_process", work("a")).await;
    bench.release("a");
    let first = socket.result().await;
    socket.call(&id, "run_process", work("a")).await;
    assert_eq!(socket.result().await, first);
    assert_eq!(bench.journal().lines().filter(|line| *line == "started a").count(), 1);
}

#[tokio::test]
async fn a_cancelled_call_is_killed_and_says_nothing_more() {
    let bench = DaemonBench::start().await;
    let mut socket = bench.ready(&[]).await;
    let id = bench.running(&mut socket, "a").await;
    let pid = bench.journal().lines().find_map(|line| line.strip_prefix("pid a ")?.parse().ok()).expect("a pid");
    socket.send(json!({"type": "cancel_call", "id": id})).await;
    assert!(until(|| !alive(pid)).await);
    bench.release("b");
    socket.call(&call_id("b"), "run_process", work("b")).await;
    assert_eq!(socket.result().await["id"], call_id("b"));
}

#[tokio::test]
async fn a_call_without_authorization_is_an_invalid_request_and_the_link_stays() {
    let bench = DaemonBench::start().await;
    let mut socket = bench.ready(&[]).await;
    socket
        .send(
            json!({"type": "tool_call", "id": call_id("a"), "tool": "list_dir", "arguments": {}, "timeout_ms": 60_000}),
        )
        .await;
    let result = socket.result().await;
    assert_eq!((&result["id"], &result["error"]["code"]), (&json!(call_id("a")), &json!("invalid_request")));
    bench.release("b");
    socket.call(&call_id("b"), "run_process", work("b")).await;
    assert_eq!(stdout(&socket.result().await), "result-b\n");
}

#[tokio::test]
async fn a_daemon_that_was_replaced_keeps_its_processes_warns_and_does_not_fight() {
    let bench = DaemonBench::start().await;
    let mut socket = bench.ready(&[]).await;
    bench.running(&mut socket, "a").await;
    socket.close(1012, "replaced by verified daemon").await;
    assert!(bench.relay.accept_within(Duration::from_secs(3)).await.is_none(), "it tries again only every 5 min");
    found("the warning", async || {
        let status = bench.home.json(&["status", "--json"]).await;
        status["health"].as_array()?.iter().any(|warning| warning["code"] == "device_in_use").then_some(())
    })
    .await;
    bench.release("a");
    bench.journal_has("finished a").await;
}
