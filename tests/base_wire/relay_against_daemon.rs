//! `holdfast relay` with the base identity, and a scripted 1.2.10 daemon.

use std::time::Duration;

use futures_util::future::join_all;
use holdfast_testkit::base::{self, Frame, RelayBench};
use holdfast_testkit::stand::WireKind;
use serde_json::json;

#[tokio::test]
async fn the_upgrade_is_refused_as_the_base_relay_refuses_it() {
    let bench = RelayBench::start(WireKind::Base).await;
    assert_eq!(
        base::dial(&bench.relay.url, "wrong-but-long-enough").await.map(|_| ()),
        Err((401, "Unauthorized daemon".into()))
    );
    let http = holdfast_testkit::mcp::http();
    let at = format!("{}/daemon/ws", bench.relay.url);
    let plain = http.get(&at).header("x-bridge-token", &bench.credential).send().await.expect("an answer");
    assert_eq!(plain.status(), 426);
    assert_eq!(plain.text().await.expect("text"), "Expected Upgrade: websocket");
    let post = http.post(&at).send().await.expect("an answer");
    assert_eq!((post.status().as_u16(), post.headers()["allow"].to_str().expect("text")), (405, "GET"));
}

#[tokio::test]
async fn a_call_has_the_fields_of_the_base_wire_and_nothing_else_is_ever_sent() {
    let bench = RelayBench::start(WireKind::Base).await;
    let mut daemon = bench.daemon("a").await;
    let answer = bench.call("run_process", json!({"argv": ["true"], "timeout_seconds": 7}));
    let call = daemon.expect("tool_call").await;
    let id = call["id"].as_str().expect("an id");
    assert!(id.starts_with("call_") && id.len() == 48, "{id}");
    assert_eq!(
        (&call["tool"], &call["arguments"]),
        (&json!("run_process"), &json!({"argv": ["true"], "timeout_seconds": 7}))
    );
    let timeout = call["timeout_ms"].as_u64().expect("an integer");
    assert!((7_000..=12_000).contains(&timeout), "{timeout}");
    let authorization = call["authorization"].as_object().expect("an object");
    let account = authorization["account_id"].as_str().expect("an id");
    assert!(account.starts_with("acct_") && (25..=101).contains(&account.len()), "{account}");
    assert_eq!((&authorization["account_version"], &authorization["role"]), (&json!(1), &json!("owner")));
    daemon.succeed(&call, json!({"code": 0, "stdout": "é", "stderr": ""})).await;
    assert_eq!(answer.await.expect("no panic").content()["stdout"], "é");
    daemon.send(json!({"type": "heartbeat", "ts": 1234})).await;
    assert_eq!(daemon.next().await, Frame::Json(json!({"type": "pong", "ts": 1234})), "no acknowledgement, no number");
}

#[tokio::test]
async fn an_unknown_error_code_of_the_daemon_becomes_execution_failed_with_its_message() {
    let bench = RelayBench::start(WireKind::Base).await;
    let mut daemon = bench.daemon("a").await;
    let answer = bench.call("list_dir", json!({}));
    let call = daemon.expect("tool_call").await;
    let error = json!({"code": "odd", "message": "the daemon's words", "retryable": true});
    daemon.send(json!({"type": "tool_result", "id": call["id"], "ok": false, "error": error})).await;
    let answer = answer.await.expect("no panic");
    assert_eq!((answer.code(), answer.retryable()), (Some("execution_failed"), Some(true)));
    assert_eq!(answer.result()["structuredContent"]["error"]["message"], "the daemon's words");
}

#[tokio::test]
async fn t1_a_second_socket_of_the_same_instance_takes_attached_calls_along() {
    let bench = RelayBench::start(WireKind::Base).await;
    let mut old = bench.daemon("a").await;
    let answer = bench.call("list_dir", json!({}));
    let call = old.expect("tool_call").await;
    let mut new = bench.dial().await;
    assert_eq!(new.become_ready(&base::instance("a"), &["list_dir"]).await, [call["id"].as_str().expect("an id")]);
    let (_, code, reason) = old.closed().await;
    assert_ne!((code, &*reason), (1012, "replaced by verified daemon"), "the real daemon would exit");
    assert!([1001, 1011, 1012, 1013].contains(&code), "{code} is not one the real daemon retries");
    new.succeed(&call, json!({"n": 1})).await;
    assert_eq!(answer.await.expect("no panic").content()["n"], 1);
}

#[tokio::test]
async fn t3_t4_a_call_that_the_socket_lost_is_named_again_and_may_be_given_back_as_not_started() {
    let bench = RelayBench::start(WireKind::Base).await;
    let daemon_lost_it = bench.daemon("a").await;
    let answer = bench.call("list_dir", json!({}));
    let mut daemon_lost_it = daemon_lost_it;
    let call = daemon_lost_it.expect("tool_call").await;
    drop(daemon_lost_it);
    let mut again = bench.dial().await;
    assert_eq!(again.become_ready(&base::instance("a"), &["list_dir"]).await, [call["id"].as_str().expect("an id")]);
    let error = json!({"code": "unavailable", "message": "never seen", "retryable": true});
    again.send(json!({"type": "tool_result", "id": call["id"], "ok": false, "error": error})).await;
    let answer = answer.await.expect("no panic");
    assert_eq!((answer.code(), answer.retryable()), (Some("unavailable"), Some(true)));
}

#[tokio::test]
async fn a_second_result_for_one_call_is_ignored_and_the_link_stays() {
    let bench = RelayBench::start(WireKind::Base).await;
    let mut daemon = bench.daemon("a").await;
    let answer = bench.call("list_dir", json!({}));
    let call = daemon.expect("tool_call").await;
    daemon.succeed(&call, json!({"n": 1})).await;
    daemon.succeed(&call, json!({"n": 2})).await;
    assert_eq!(answer.await.expect("no panic").content()["n"], 1);
    let answer = bench.call("list_dir", json!({}));
    let call = daemon.expect("tool_call").await;
    daemon.succeed(&call, json!({"n": 3})).await;
    assert_eq!(answer.await.expect("no panic").content()["n"], 3);
}

#[tokio::test]
async fn another_instance_ends_the_calls_of_the_one_that_died_as_unknown_and_gets_the_unsent_ones() {
    let bench = RelayBench::start(WireKind::Base).await;
    let mut dead = bench.daemon("a").await;
    let sent = bench.call("list_dir", json!({}));
    dead.expect("tool_call").await;
    drop(dead);
    let mut next = bench.daemon("b").await;
    let sent = sent.await.expect("no panic");
    assert_eq!((sent.code(), sent.retryable()), (Some("outcome_unknown"), Some(false)));
    let fresh = bench.call("list_dir", json!({}));
    let call = next.expect("tool_call").await;
    next.succeed(&call, json!({"n": 1})).await;
    assert_eq!(fresh.await.expect("no panic").content()["n"], 1);
}

#[tokio::test]
async fn fourteen_ordinary_calls_run_at_once_and_the_fifteenth_follows() {
    let bench = RelayBench::start(WireKind::Base).await;
    let mut daemon = bench.daemon("a").await;
    let answers: Vec<_> = (0..15).map(|_| bench.call("list_dir", json!({}))).collect();
    let mut calls = Vec::new();
    for _ in 0..14 {
        calls.push(daemon.expect("tool_call").await);
    }
    assert_eq!(daemon.next_within(Duration::from_millis(300)).await, None, "the fifteenth waits");
    daemon.succeed(&calls[0], json!({})).await;
    calls.push(daemon.expect("tool_call").await);
    for call in &calls[1..] {
        daemon.succeed(call, json!({})).await;
    }
    for answer in join_all(answers).await {
        assert_eq!(answer.expect("no panic").code(), None);
    }
}

#[tokio::test]
async fn a_client_that_leaves_sends_cancel_call_and_a_late_result_is_ignored() {
    let bench = RelayBench::start(WireKind::Base).await;
    let mut daemon = bench.daemon("a").await;
    let answer = bench.call("list_dir", json!({}));
    let call = daemon.expect("tool_call").await;
    answer.abort();
    assert_eq!(daemon.next().await, Frame::Json(json!({"type": "cancel_call", "id": call["id"]})));
    daemon.succeed(&call, json!({"n": 1})).await;
    daemon.send(json!({"type": "ping"})).await;
    assert_eq!(daemon.expect("pong").await["type"], "pong");
}

#[tokio::test]
async fn a_hostile_hello_is_sanitised_and_the_list_shows_only_what_is_allowed() {
    let bench = RelayBench::start(WireKind::Base).await;
    let mut daemon = bench.dial().await;
    let mut hello = base::hello(&base::instance("a"), &["list_dir", "nope", "server_info", "list_dir", "write_file"]);
    hello["policy"] = json!({"profile": "weird\u{1}", "execMode": "zsh", "allowWrite": "yes"});
    hello["shiny"] = json!(true);
    daemon.send(hello).await;
    for kind in ["welcome", "hello_ack"] {
        daemon.expect(kind).await;
    }
    let probe = daemon.expect("relay_probe").await;
    daemon.send(json!({"type": "heartbeat", "ts": 1})).await;
    daemon.expect("pong").await;
    daemon.send(json!({"type": "relay_probe_result", "id": probe["id"]})).await;
    daemon.expect("resume_calls").await;
    daemon.expect("ready_ack").await;
    let client = bench.modern();
    let mut tools = client.tools().await;
    tools.retain(|tool| !matches!(&**tool, "server_info" | "read_result" | "cancel_result"));
    assert_eq!(tools, ["list_dir"]);
}
