//! What must fail, and how.

use holdfast_testkit::mcp::{Modern, Session};
use serde_json::{Value, json};

use crate::stage::Stage;

#[tokio::test]
async fn a_request_without_a_good_token_learns_only_where_to_get_one() {
    let stage = Stage::start().await;
    let http = holdfast_testkit::mcp::http();
    for method in [reqwest::Method::POST, reqwest::Method::GET, reqwest::Method::DELETE] {
        for token in ["", "nonsense"] {
            let mut request = http.request(method.clone(), &stage.url);
            if !token.is_empty() {
                request = request.bearer_auth(token);
            }
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 401);
            let challenge = response.headers()["www-authenticate"].to_str().unwrap().to_owned();
            let metadata = stage.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
            assert!(challenge.starts_with(&format!("Bearer resource_metadata=\"{metadata}\"")), "{challenge}");
            let body: Value = response.json().await.unwrap();
            assert_eq!(body["code"], "authentication_failed");
        }
    }
    let response = http.put(&stage.url).bearer_auth(&stage.token).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers()["allow"].to_str().unwrap()), (405, "GET, POST, DELETE"));
}

#[tokio::test]
async fn a_stolen_session_id_names_nothing() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let session = stage.session().await;
    let mut events = session.start_call(1, "list_dir", json!({})).await.unwrap();
    let priming = events.next().await.unwrap().unwrap().id.unwrap();
    let call = device.called().await;
    for thief in [stage.token_of("another client", None).await.0, stage.stranger().await] {
        let stolen = session.stolen_by(&thief);
        assert_eq!(stolen.resume(&priming).await.unwrap().status(), 404);
        assert_eq!(stolen.cancel(1).await, 404);
        assert_eq!(stolen.delete().await, 404);
        assert_eq!(stolen.call("list_dir", json!({})).await.unwrap().status, 404);
    }
    device.succeed(&call, json!({"n": 1})).await;
    assert_eq!(events.answer().await.unwrap().content(), &json!({"n": 1}));
}

#[tokio::test]
async fn the_same_ids_of_two_clients_never_meet() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let (token, _) = stage.token_of("second", None).await;
    let (one, two) = (stage.session().await, Session::open(&stage.url, &token).await);
    let first = one.start_call(7, "list_dir", json!({"path": "one"})).await.unwrap();
    let second = two.start_call(7, "list_dir", json!({"path": "two"})).await.unwrap();
    let modern = Modern::new(&stage.url, &token);
    let third = modern.call("list_dir", json!({"path": "three"})).id(7).send();
    let (third, ()) = tokio::join!(third, async {
        let calls = [device.called().await, device.called().await, device.called().await];
        for call in calls.iter().rev() {
            device.succeed(call, call["arguments"].clone()).await;
        }
    });
    assert_eq!(first.answer().await.unwrap().content(), &json!({"path": "one"}));
    assert_eq!(second.answer().await.unwrap().content(), &json!({"path": "two"}));
    assert_eq!(third.unwrap().content(), &json!({"path": "three"}));
}

#[tokio::test]
async fn malformed_bodies_are_json_rpc_errors_with_a_stable_code() {
    let stage = Stage::start().await;
    let table: &[(&[u8], u16, i64)] = &[
        (b"", 400, -32700),
        (b"{", 400, -32700),
        (b"\xff\xfe", 400, -32700),
        (b"[]", 400, -32600),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, 400, -32600),
        (b"null", 400, -32600),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400, -32600),
        (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, 400, -32600),
        (br#"{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}"#, 400, -32600),
        (br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, 400, -32600),
        (br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, 200, -32602),
        (br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":7}}"#, 200, -32602),
    ];
    for (body, status, code) in table {
        let (got, text) = stage.post(body.to_vec(), &[]).await;
        let message: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("not JSON: {text}"));
        let shown = String::from_utf8_lossy(body);
        assert_eq!((got, message["error"]["code"].as_i64()), (*status, Some(*code)), "{shown} {text}");
        assert_eq!(message["error"]["data"]["code"], "invalid_request", "{shown}");
    }
    let (status, text) = stage.post("{}", &[("content-type", "text/plain")]).await;
    assert_eq!(status, 415);
    assert!(text.contains("-32600"), "{text}");
}

#[tokio::test]
async fn senseless_calls_are_refused_in_both_eras_without_asking_the_device() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["read_file"]).await;
    let session = stage.session().await;
    let modern = stage.modern();
    for params in [
        json!({}),
        json!({"name": 7}),
        json!({"name": ""}),
        json!({"name": "x".repeat(129)}),
        json!({"name": "nonsense"}),
        json!({"name": "drill_wait"}),
        json!({"name": "read_file", "arguments": []}),
        json!({"name": "read_file", "arguments": null}),
        json!({"name": "read_file", "arguments": {}}),
        json!({"name": "read_file", "arguments": {"path": "a", "more": 1}}),
        json!({"name": "read_file", "arguments": {"path": "a"}, "_meta": {"holdfast/idempotency-key": ""}}),
        json!({"name": "read_file", "arguments": {"path": "a"}, "_meta": {"progressToken": {}}}),
    ] {
        let old = session.request("tools/call", params.clone()).await.unwrap();
        assert_eq!((old.status, old.rpc_error()), (200, Some(-32602)), "{params}");
        assert_eq!(old.code(), Some("invalid_request"));
        let mut request = modern.request("tools/call", params.clone());
        for (key, value) in params["_meta"].as_object().into_iter().flatten() {
            request = request.meta(key, value.clone());
        }
        let new = request.send().await.unwrap();
        // A name that is no text has no header to match it.
        let expected = if params["name"].as_str().is_none_or(str::is_empty) { [-32602, -32020] } else { [-32602; 2] };
        assert!(new.rpc_error().is_some_and(|code| expected.contains(&code)), "{params} {new:?}");
    }
    device.hears_nothing_for(std::time::Duration::from_millis(100)).await;
}

#[tokio::test]
async fn a_header_that_contradicts_the_body_is_refused() {
    let stage = Stage::start().await;
    let _device = stage.device(&["list_dir"]).await;
    let modern = stage.modern();
    for (name, value, code) in [
        ("mcp-method", "tools/list", -32020),
        ("mcp-method", "", -32020),
        ("mcp-name", "read_file", -32020),
        ("mcp-name", "", -32020),
        ("mcp-protocol-version", "2025-11-25", -32020),
        ("mcp-protocol-version", "", -32020),
    ] {
        let answer = modern.call("list_dir", json!({})).header(name, value).send().await.unwrap();
        assert_eq!((answer.status, answer.rpc_error()), (400, Some(code)), "{name}: {value:?}");
        assert_eq!(answer.code(), Some("invalid_request"));
    }
    let future = modern.call("list_dir", json!({})).header("mcp-protocol-version", "2099-01-01");
    let future = future.meta("io.modelcontextprotocol/protocolVersion", "2099-01-01").send().await.unwrap();
    assert_eq!((future.status, future.rpc_error()), (400, Some(-32022)));
    assert_eq!(future.message["error"]["data"]["supported"][0], "2026-07-28");
    let unknown = modern.request("nonsense/method", json!({})).send().await.unwrap();
    assert_eq!((unknown.status, unknown.rpc_error(), unknown.code()), (404, Some(-32601), Some("not_found")));
}

#[tokio::test]
async fn only_tool_calls_may_be_long_and_no_body_longer_than_the_limit() {
    let stage = Stage::start().await;
    let session = stage.session().await;
    let long = session.request("tools/list", json!({"padding": "x".repeat(70_000)})).await.unwrap();
    assert_eq!((long.status, long.rpc_error(), long.code()), (413, Some(-32600), Some("limit_exceeded")));
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"list_dir","arguments":{{"path":"{}"}}}}}}"#,
        "x".repeat(9 * 1024 * 1024)
    );
    assert_eq!(stage.post(body, &[]).await.0, 413);
}

#[tokio::test]
async fn a_session_needs_its_id_and_a_stranger_header_changes_nothing_in_2026() {
    let stage = Stage::start().await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let (status, text) = stage.post(body, &[("mcp-protocol-version", "2025-11-25")]).await;
    assert_eq!(status, 400);
    assert!(text.contains("Mcp-Session-Id is missing"), "{text}");
    assert_eq!(stage.post(body, &[("mcp-session-id", "hf_nonsense")]).await.0, 404);
    assert_eq!(stage.post(body, &[("mcp-protocol-version", "1999-01-01")]).await.0, 400);
    let modern = stage.modern();
    let answer = modern.request("tools/list", json!({})).header("mcp-session-id", "hf_nonsense").send().await.unwrap();
    assert_eq!(answer.status, 200);
    let http = holdfast_testkit::mcp::http();
    let listen = http.get(&stage.url).bearer_auth(&stage.token).header("mcp-protocol-version", "2026-07-28");
    assert_eq!(listen.send().await.unwrap().status(), 405);
}
