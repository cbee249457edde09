//! Who is waiting, and what leaving means: the rules of each revision.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::Stage;

const QUIET: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_call_of_2026_is_one_json_document_when_it_is_fast() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let modern = stage.modern();
    let (answer, call) = tokio::join!(modern.call("list_dir", json!({"path": "src"})).id("abc").send(), async {
        let call = device.called().await;
        device.succeed(&call, json!("text")).await;
        call
    });
    let answer = answer.unwrap();
    assert_eq!(call["tool"], "list_dir");
    assert_eq!(call["arguments"], json!({"path": "src"}));
    assert_eq!(call["timeout_ms"], 60_000);
    assert_eq!(call["authorization"]["role"], "owner");
    assert_eq!(call["authorization"]["client_name"], "first");
    assert_eq!(
        answer.text,
        r#"{"jsonrpc":"2.0","id":"abc","result":{"resultType":"complete","content":[{"type":"text","text":"text"}],"isError":false}}"#
    );
}

#[tokio::test]
async fn a_slow_call_of_2026_becomes_a_stream_and_carries_progress() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let modern = stage.modern();
    let (answer, ()) = tokio::join!(modern.call("list_dir", json!({})).progress("p").send(), async {
        let call = device.called().await;
        device.progress(&call, 1, "half").await;
        device.succeed(&call, json!({"n": 1})).await;
    });
    let answer = answer.unwrap();
    let told = json!({"jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": "p", "progress": 1.0, "message": "half"}});
    assert_eq!(answer.before, [told]);
    assert_eq!(answer.content(), &json!({"n": 1}));
}

#[tokio::test]
async fn a_client_of_2026_that_reads_no_streams_gets_json_however_slow() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let modern = stage.modern();
    let call = modern.call("list_dir", json!({})).progress("p").header("accept", "application/json");
    let (answer, ()) = tokio::join!(call.send(), async {
        let call = device.called().await;
        device.progress(&call, 1, "half").await;
        device.succeed(&call, json!({"n": 1})).await;
    });
    assert!(answer.unwrap().before.is_empty());
}

#[tokio::test]
async fn leaving_a_call_of_2026_cancels_it_before_and_inside_a_stream() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let modern = stage.modern();
    let mut waiting = Box::pin(modern.call("list_dir", json!({})).send());
    let call = tokio::select! { _ = &mut waiting => panic!("answered"), call = device.called() => call };
    drop(waiting);
    assert_eq!(device.cancelled().await, call["id"]);

    // Progress opens the stream, so that the next drop is inside it.
    let mut waiting = Box::pin(modern.call("list_dir", json!({})).progress("p").send());
    let call = tokio::select! { _ = &mut waiting => panic!("answered"), call = device.called() => call };
    device.progress(&call, 1, "open").await;
    tokio::select! { _ = &mut waiting => panic!("answered"), () = tokio::time::sleep(QUIET) => {} }
    drop(waiting);
    assert_eq!(device.cancelled().await, call["id"]);
}

#[tokio::test]
async fn losing_the_connection_of_a_2025_call_cancels_nothing() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let session = stage.session().await;
    let mut events = session.start_call(1, "list_dir", json!({})).await.unwrap();
    let priming = events.next().await.unwrap().unwrap().id.unwrap();
    let call = device.called().await;
    drop(events);
    device.hears_nothing_for(QUIET).await;
    let resumed = session.resume(&priming).await.unwrap();
    device.succeed(&call, json!({"n": 1})).await;
    assert_eq!(resumed.answer().await.unwrap().content(), &json!({"n": 1}));
}

#[tokio::test]
async fn a_2025_call_is_cancelled_by_notification_and_its_stream_ends_without_an_answer() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let session = stage.session().await;
    let other = stage.session().await;
    let mut events = session.start_call(1, "list_dir", json!({})).await.unwrap();
    let call = device.called().await;
    assert_eq!(other.cancel(1).await, 202, "the same id of another session");
    assert_eq!(session.cancel("1").await, 202, "a text is not the number");
    device.hears_nothing_for(QUIET).await;
    assert_eq!(session.cancel(1).await, 202);
    assert_eq!(device.cancelled().await, call["id"]);
    assert_eq!(events.next().await.unwrap().unwrap().data, "");
    assert_eq!(events.next().await.unwrap(), None);
}

#[tokio::test]
async fn deleting_a_session_cancels_its_calls_at_once() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let session = stage.session().await;
    let mut events = session.start_call(1, "list_dir", json!({})).await.unwrap();
    let call = device.called().await;
    assert_eq!(session.delete().await, 204);
    assert_eq!(device.cancelled().await, call["id"]);
    events.next().await.unwrap();
    assert_eq!(events.next().await.unwrap(), None);
    let gone = session.request("ping", json!({})).await.unwrap();
    assert_eq!((gone.status, gone.rpc_error(), gone.code()), (404, Some(-32001), Some("not_found")));
    assert_eq!(session.delete().await, 404);
}

#[tokio::test]
async fn revoking_a_grant_cancels_its_calls_in_both_eras_and_ends_its_session() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let (token, id) = stage.token_of("second", None).await;
    let session = holdfast_testkit::mcp::Session::open(&stage.url, &token).await;
    let modern = holdfast_testkit::mcp::Modern::new(&stage.url, &token);
    let mut events = session.start_call(1, "list_dir", json!({})).await.unwrap();
    let first = device.called().await;
    let mut waiting = Box::pin(modern.call("list_dir", json!({})).send());
    let second = tokio::select! { _ = &mut waiting => panic!("answered"), call = device.called() => call };
    stage.relay.admin.revoke_token(&id).await.unwrap();
    let mut cancelled = [device.cancelled().await, device.cancelled().await].map(|id| id.to_string());
    let mut expected = [first["id"].to_string(), second["id"].to_string()];
    cancelled.sort();
    expected.sort();
    assert_eq!(cancelled, expected);
    assert_eq!(waiting.await.unwrap().code(), Some("cancelled"));
    events.next().await.unwrap();
    assert_eq!(events.next().await.unwrap(), None);
    assert_eq!(session.request("ping", json!({})).await.unwrap().status, 401);
}

#[tokio::test]
async fn the_same_id_and_arguments_join_the_running_call_and_others_are_a_conflict() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let session = stage.session().await;
    let first = session.start_call(1, "list_dir", json!({"path": "a"})).await.unwrap();
    let call = device.called().await;
    let conflict = session.start_call(1, "list_dir", json!({"path": "b"})).await.unwrap();
    assert_eq!(conflict.status(), 200);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "list_dir", "arguments": {"path": "b"}}});
    let text: Value = serde_json::from_str(&session.post(&body).await.unwrap().text().await.unwrap()).unwrap();
    assert_eq!(text["error"]["data"]["code"], "conflict");
    let joined = session.start_call(1, "list_dir", json!({ "path" : "a" })).await.unwrap();
    device.hears_nothing_for(QUIET).await;
    device.succeed(&call, json!({"n": 1})).await;
    for events in [first, joined] {
        assert_eq!(events.answer().await.unwrap().content(), &json!({"n": 1}));
    }
}

#[tokio::test]
async fn an_idempotency_key_makes_two_requests_one_call() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let modern = stage.modern();
    let ask = |path: &str| modern.call("list_dir", json!({"path": path})).idempotency_key("k").send();
    let (first, second, ()) = tokio::join!(ask("a"), ask("a"), async {
        let call = device.called().await;
        device.hears_nothing_for(QUIET).await;
        device.succeed(&call, json!({"n": 1})).await;
    });
    assert_eq!(first.unwrap().content(), &json!({"n": 1}));
    assert_eq!(second.unwrap().content(), &json!({"n": 1}));
    assert_eq!(ask("a").await.unwrap().content(), &json!({"n": 1}), "kept after the end");
    assert_eq!(ask("b").await.unwrap().code(), Some("conflict"));
    let long = "k".repeat(129);
    let refused = modern.call("list_dir", json!({})).idempotency_key(&long).send().await.unwrap();
    assert_eq!(refused.rpc_error(), Some(-32602));
}

#[tokio::test]
async fn a_tools_failure_is_a_result_with_its_code() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let modern = stage.modern();
    let (answer, ()) = tokio::join!(modern.call("list_dir", json!({})).send(), async {
        let call = device.called().await;
        device.fail(&call, json!({"code": "path_boundary", "message": "outside", "retryable": false})).await;
    });
    let answer = answer.unwrap();
    assert_eq!((answer.status, answer.code(), answer.retryable()), (200, Some("path_boundary"), Some(false)));
    assert_eq!(answer.result()["isError"], true);
}

#[tokio::test]
async fn an_older_session_gets_no_event_without_data() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let http = holdfast_testkit::mcp::http();
    let response = http.post(&stage.url).bearer_auth(&stage.token).json(&body).send().await.unwrap();
    let id = response.headers()["mcp-session-id"].clone();
    let agreed: Value = response.json().await.unwrap();
    assert_eq!(agreed["result"]["protocolVersion"], "2025-06-18");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_dir"}});
    let asked = http.post(&stage.url).bearer_auth(&stage.token).header("mcp-session-id", id).json(&body).send();
    let (response, ()) = tokio::join!(asked, async {
        let call = device.called().await;
        device.succeed(&call, json!("x")).await;
    });
    let text = response.unwrap().text().await.unwrap();
    assert!(text.starts_with("id: ") && text.contains("/1\ndata: {\"jsonrpc\""), "{text}");
    assert_eq!(text.matches("data:").count(), 1);
}
