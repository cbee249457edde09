//! What a caller is shown: tools, instructions, the state of things.

use holdfast_core::policy::Role;
use holdfast_testkit::base;
use holdfast_testkit::mcp::{Modern, SseReader};
use serde_json::{Value, json};

use crate::stage::Stage;

fn names(list: &Value) -> Vec<&str> {
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn without_a_device_there_is_only_server_info() {
    let stage = Stage::start().await;
    assert_eq!(stage.modern().tools().await, ["server_info"]);
    let session = stage.session().await;
    assert_eq!(names(session.request("tools/list", json!({})).await.unwrap().result()), ["server_info"]);
    let refused = stage.modern().call("list_dir", json!({})).send().await.unwrap();
    assert_eq!((refused.code(), refused.retryable()), (Some("unavailable"), Some(true)));
}

#[tokio::test]
async fn the_list_is_what_role_and_device_allow_and_stays_through_an_outage() {
    let stage = Stage::start().await;
    let device = stage.device(&["exec_command", "write_file", "list_dir", "unheard_of"]).await;
    let (token, _) = stage.token_of("reader", Some(Role::Reviewer)).await;
    let reader = Modern::new(&stage.url, &token);
    let all = ["server_info", "read_result", "cancel_result", "list_dir", "write_file", "exec_command"];
    assert_eq!(stage.modern().tools().await, all);
    assert_eq!(reader.tools().await, ["server_info", "read_result", "cancel_result", "list_dir"]);
    let denied = reader.call("write_file", json!({"path": "a", "content": ""})).send().await.unwrap();
    assert_eq!((denied.code(), denied.retryable()), (Some("authorization_denied"), Some(false)));
    device.leave().await;
    assert_eq!(stage.modern().tools().await, all);
}

#[tokio::test]
async fn listeners_of_both_eras_hear_that_the_tools_changed() {
    let stage = Stage::start().await;
    let device = stage.device(&["list_dir"]).await;
    let session = stage.session().await;
    let http = holdfast_testkit::mcp::http();
    let get = || {
        let request = http.get(&stage.url).bearer_auth(&stage.token).header("mcp-session-id", session.id());
        request.header("accept", "text/event-stream").send()
    };
    let mut replaced = SseReader::new(get().await.unwrap());
    let mut listener = SseReader::new(get().await.unwrap());
    assert_eq!(replaced.next().await.unwrap(), None, "a newer stream takes the older one's place");
    let body = json!({"jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": true},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}}});
    let request = http.post(&stage.url).bearer_auth(&stage.token).json(&body);
    let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "subscriptions/listen");
    let mut subscription = SseReader::new(request.send().await.unwrap());
    let acknowledged: Value = serde_json::from_str(&subscription.next().await.unwrap().unwrap().data).unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    device.leave().await;
    let mut hello = base::hello(&base::instance("two"), &["list_dir", "read_file"]);
    hello["policy"]["profile"] = json!("custom");
    let _device = stage.device_with(hello).await;
    for stream in [&mut listener, &mut subscription] {
        let told: Value = serde_json::from_str(&stream.next().await.unwrap().unwrap().data).unwrap();
        assert_eq!(told["method"], "notifications/tools/list_changed");
    }
    assert_eq!(stage.modern().tools().await, ["server_info", "read_result", "cancel_result", "list_dir", "read_file"]);
}

#[tokio::test]
async fn initialize_and_discover_say_what_this_is_and_pass_on_the_devices_own_instructions() {
    let stage = Stage::start().await;
    let alone = stage.session().await;
    assert_eq!(alone.initialized()["protocolVersion"], "2025-11-25");
    assert_eq!(alone.initialized()["serverInfo"]["name"], "holdfast");
    assert_eq!(alone.initialized()["capabilities"]["tools"]["listChanged"], true);
    let fixed = alone.initialized()["instructions"].as_str().unwrap().to_owned();
    let mut device = stage.device(&["session_bootstrap"]).await;
    let (session, ()) = tokio::join!(stage.session(), async {
        let call = device.called().await;
        assert_eq!((&call["tool"], &call["arguments"]), (&json!("session_bootstrap"), &json!({"path": "."})));
        device.succeed(&call, json!({"instructions": "Use tabs."})).await;
    });
    let expected = format!("{fixed}\n--- LOCAL SESSION INSTRUCTIONS ---\nUse tabs.");
    assert_eq!(session.initialized()["instructions"], expected.as_str());
    let modern = stage.modern();
    let (discovered, ()) = tokio::join!(modern.request("server/discover", json!({})).send(), async {
        let call = device.called().await;
        device.fail(&call, json!({"code": "internal_error", "message": "x", "retryable": false})).await;
    });
    let discovered = discovered.unwrap();
    assert_eq!(discovered.result()["instructions"], fixed.as_str());
    assert_eq!(discovered.result()["supportedVersions"], json!(["2025-06-18", "2025-11-25", "2026-07-28"]));
}

#[tokio::test]
async fn server_info_counts_what_is_running_and_works_while_the_device_is_away() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let session = stage.session().await;
    let events = session.start_call(1, "list_dir", json!({})).await.unwrap();
    let call = device.called().await;
    let info = session.call("server_info", json!({})).await.unwrap();
    let info = info.content();
    let pending = &info["worker"]["pending_calls"];
    assert_eq!((&pending["active"], &pending["detached"], &pending["maximum"]), (&json!(1), &json!(0), &json!(64)));
    assert_eq!(pending["by_tool"], json!({"list_dir": 1}));
    assert_eq!(pending["request_keys"], 0);
    assert!(pending["oldest_ms"].is_u64());
    assert_eq!(info["daemon"]["connected"], true);
    assert_eq!(info["authorization"]["effective_policy"]["profile"], "full");
    assert_eq!(info["tools"], json!(["server_info", "read_result", "cancel_result", "list_dir"]));
    assert_eq!(info["account"]["role"], "owner");
    assert_eq!(info["worker"]["sockets_live"], json!({"authenticated": 1, "ready": 1, "probing": 0, "candidates": 0}));
    assert_eq!(info["worker"]["observability"]["calls"]["started"], 1);
    assert_eq!(info["worker"]["observability"]["sockets"]["ready"], 1);
    assert_eq!(info["oauth"]["token_endpoint"], stage.url.replace("/mcp", "/oauth/token").as_str());
    device.leave().await;
    loop {
        let info = stage.modern().call("server_info", json!({})).send().await.unwrap();
        if info.content()["worker"]["pending_calls"]["detached"] == 1 {
            assert_eq!(info.content()["daemon"]["connected"], false);
            break;
        }
    }
    let _ = call;
    drop(events);
}

#[tokio::test]
async fn rmcp_answers_the_rest_in_a_session() {
    let stage = Stage::start().await;
    let session = stage.session().await;
    assert_eq!(session.request("ping", json!({})).await.unwrap().result(), &json!({}));
    assert_eq!(session.request("logging/setLevel", json!({"level": "info"})).await.unwrap().result(), &json!({}));
    let unknown = session.request("nonsense", json!({})).await.unwrap();
    assert_eq!((unknown.status, unknown.rpc_error(), unknown.code()), (200, Some(-32601), Some("not_found")));
    let bad = session.request("logging/setLevel", json!({"level": 7})).await.unwrap();
    assert_eq!((bad.status, bad.rpc_error()), (200, Some(-32602)));
    let missing = session.request("resources/read", json!({"uri": "a:b"})).await.unwrap();
    assert_eq!((missing.rpc_error(), missing.code()), (Some(-32002), Some("not_found")));
    assert_eq!(session.request("prompts/list", json!({})).await.unwrap().result()["prompts"], json!([]));
    let list = session.request("tools/list", json!({})).await.unwrap();
    assert_eq!(list.result()["tools"][0]["annotations"]["readOnlyHint"], true);
    assert!(list.result().get("resultType").is_none());
    let modern = stage.modern().request("tools/list", json!({})).send().await.unwrap();
    assert_eq!(modern.result()["resultType"], "complete");
    assert_eq!(modern.result()["cacheScope"], "private");
}

#[tokio::test]
async fn a_relay_that_stops_ends_the_open_listeners_and_leaves_no_call_without_an_answer() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let session = stage.session().await;
    let http = holdfast_testkit::mcp::http();
    let request = http.get(&stage.url).bearer_auth(&stage.token).header("mcp-session-id", session.id());
    let mut listener = SseReader::new(request.send().await.unwrap());
    let events = session.start_call(1, "list_dir", json!({})).await.unwrap();
    let call = device.called().await;
    let stopped = tokio::spawn(stage.relay.shutdown());
    assert_eq!(listener.next().await.unwrap(), None);
    device.succeed(&call, json!({"n": 1})).await;
    assert_eq!(events.answer().await.unwrap().content(), &json!({"n": 1}));
    stopped.await.unwrap();
}
