//! The MCP endpoint.

use std::time::Duration;

use holdfast_testkit::mcp::{Modern, Session, http};
use holdfast_testkit::stand::{Stand, WireKind};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A good self-contained tool call.
fn good() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "list_dir", "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
}

fn with(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut body = good();
    change(&mut body);
    body.to_string().into_bytes()
}

fn headers(changes: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "list_dir"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for (name, value) in changes {
        let name = HeaderName::from_static(name);
        match *value {
            "" => drop(headers.remove(name)),
            value if value.starts_with('+') => drop(headers.append(name, HeaderValue::from_static(&value[1..]))),
            value => drop(headers.insert(name, HeaderValue::from_static(value))),
        }
    }
    headers
}

/// Posts; status, JSON-RPC error number, stable code.
async fn post(stand: &Stand, headers: HeaderMap, body: Vec<u8>) -> (u16, Option<i64>, Option<String>) {
    let sent = http().post(stand.relay.mcp()).bearer_auth(&stand.token).headers(headers).body(body).send();
    let response = sent.await.expect("an answer");
    let status = response.status().as_u16();
    let kind =
        response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    let text = response.text().await.expect("text");
    assert!(kind.starts_with("application/json"), "errors are JSON: {status} {kind} {text}");
    let body: Value = serde_json::from_str(&text).expect("JSON");
    let code = body["error"]["data"]["code"].as_str().or(body["code"].as_str()).map(str::to_owned);
    (status, body["error"]["code"].as_i64(), code)
}

/// What is wrong, the request's head and body, and the answer: HTTP status, JSON-RPC code, our code.
type Row = (&'static str, HeaderMap, Vec<u8>, (u16, Option<i64>, Option<String>));

#[tokio::test]
async fn a_malformed_request_gets_its_error_and_the_next_good_call_works() {
    let stand = Stand::start(WireKind::Feature).await;
    let invalid = |status: u16, number: i64| (status, Some(number), Some("invalid_request".to_owned()));
    let plain = || headers(&[]);
    let big = |bytes: usize| with(|body| body["params"]["arguments"] = json!({"path": "a".repeat(bytes)}));
    let rows: Vec<Row> = vec![
        ("no body", plain(), vec![], invalid(400, -32700)),
        ("no JSON", plain(), b"{".to_vec(), invalid(400, -32700)),
        ("no UTF-8", plain(), b"{\"jsonrpc\":\"\xff\"}".to_vec(), invalid(400, -32700)),
        ("a batch", plain(), format!("[{}]", good()).into_bytes(), invalid(400, -32600)),
        ("a number", plain(), b"7".to_vec(), invalid(400, -32600)),
        ("no version", plain(), with(|b| b["jsonrpc"] = json!("1.0")), invalid(400, -32600)),
        (
            "two ids",
            plain(),
            good().to_string().replacen("\"id\":1", "\"id\":1,\"id\":2", 1).into_bytes(),
            invalid(400, -32600),
        ),
        ("an id that is null", plain(), with(|b| b["id"] = Value::Null), invalid(400, -32600)),
        ("an id that is an object", plain(), with(|b| b["id"] = json!({})), invalid(400, -32600)),
        ("an id of 10 kB", plain(), with(|b| b["id"] = json!("i".repeat(10_000))), invalid(400, -32600)),
        (
            "no method",
            plain(),
            with(|b| drop(b.as_object_mut().expect("an object").remove("method"))),
            invalid(400, -32600),
        ),
        ("a method that is a number", plain(), with(|b| b["method"] = json!(7)), invalid(400, -32600)),
        ("a method of 300 bytes", plain(), with(|b| b["method"] = json!("m".repeat(300))), invalid(400, -32600)),
        ("params that are a list", plain(), with(|b| b["params"] = json!([])), invalid(400, -32600)),
        (
            "no tool name",
            headers(&[("mcp-name", "")]),
            with(|b| drop(b["params"].as_object_mut().expect("an object").remove("name"))),
            invalid(200, -32602),
        ),
        (
            "a tool name that is a number",
            headers(&[("mcp-name", "")]),
            with(|b| b["params"]["name"] = json!(7)),
            invalid(200, -32602),
        ),
        (
            "an unknown tool",
            headers(&[("mcp-name", "nope")]),
            with(|b| b["params"]["name"] = json!("nope")),
            invalid(200, -32602),
        ),
        ("arguments that are text", plain(), with(|b| b["params"]["arguments"] = json!("x")), invalid(200, -32602)),
        ("an unknown argument", plain(), with(|b| b["params"]["arguments"] = json!({"nope": 1})), invalid(200, -32602)),
        (
            "an argument of another type",
            plain(),
            with(|b| b["params"]["arguments"] = json!({"path": 7})),
            invalid(200, -32602),
        ),
        (
            "a key of 200 characters",
            plain(),
            with(|b| b["params"]["_meta"]["holdfast/idempotency-key"] = json!("k".repeat(200))),
            invalid(200, -32602),
        ),
        ("no Mcp-Method", headers(&[("mcp-method", "")]), with(|_| {}), invalid(400, -32020)),
        ("another Mcp-Method", headers(&[("mcp-method", "tools/list")]), with(|_| {}), invalid(400, -32020)),
        ("another Mcp-Name", headers(&[("mcp-name", "read_file")]), with(|_| {}), invalid(400, -32020)),
        ("two Mcp-Names", headers(&[("mcp-name", "+list_dir")]), with(|_| {}), invalid(400, -32020)),
        (
            "another revision in the header",
            headers(&[("mcp-protocol-version", "2025-11-25")]),
            with(|_| {}),
            invalid(400, -32020),
        ),
        (
            "no such revision",
            headers(&[("mcp-protocol-version", "1999-01-01")]),
            with(|b| b["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("1999-01-01")),
            invalid(400, -32022),
        ),
        ("another content type", headers(&[("content-type", "text/plain")]), with(|_| {}), invalid(415, -32600)),
        ("a body of 9 MiB", plain(), big(9 * 1024 * 1024), (413, None, Some("request_body_too_large".into()))),
        (
            "another method with 70 kB",
            headers(&[("mcp-method", "tools/list"), ("mcp-name", "")]),
            with(|b| (b["method"], b["params"]["x"]) = (json!("tools/list"), json!("x".repeat(70_000)))),
            (413, Some(-32600), Some("limit_exceeded".into())),
        ),
    ];
    for (name, headers, body, want) in rows {
        let got = post(&stand, headers, body).await;
        assert_eq!(got, want, "{name}");
    }
    let answer = stand.modern().call("list_dir", json!({})).send().await.expect("an answer");
    assert_eq!((answer.status, answer.code()), (200, None), "{answer:?}");
}

#[tokio::test]
async fn sessions_answer_what_is_out_of_order_with_404_and_what_is_malformed_with_400() {
    let stand = Stand::start(WireKind::Feature).await;
    let session = stand.session().await;
    let request = |method: &str| json!({"jsonrpc": "2.0", "id": 9, "method": method, "params": {}});
    let without = http().post(stand.relay.mcp()).bearer_auth(&stand.token).json(&request("tools/list"));
    let status =
        without.header("accept", "application/json, text/event-stream").send().await.expect("an answer").status();
    assert!(status == 400 || status == 404, "a request of a session without its id: {status}");
    for id in ["nope", "hf1.AAAAAAAA", "\u{1}"] {
        let Ok(id) = HeaderValue::from_str(id) else { continue };
        let sent = http()
            .post(stand.relay.mcp())
            .bearer_auth(&stand.token)
            .header("mcp-session-id", id)
            .header("accept", "application/json, text/event-stream")
            .json(&request("tools/list"));
        assert_eq!(sent.send().await.expect("an answer").status(), 404);
    }
    // The same id twice: the same question joins, another is a conflict, and nothing runs twice.
    stand.release("a");
    let work = holdfast_testkit::stand::work("a");
    let first =
        session.start_call(5, "run_process", work.clone()).await.expect("a stream").answer().await.expect("an answer");
    assert_eq!(first.content()["stdout"], "result-a\n");
    let bad_resume = session.resume("no-such-event").await.expect("an answer");
    assert!((400..500).contains(&bad_resume.status()), "{}", bad_resume.status());
    assert_eq!(session.cancel("never-used").await, 202);
    assert_eq!(session.notify("notifications/unknown", json!({})).await, 202);
    let unknown = session.request("no/such/method", json!({})).await.expect("an answer");
    assert_eq!(unknown.rpc_error(), Some(-32601));
    assert_eq!(session.call("list_dir", json!({})).await.expect("an answer").code(), None);
    assert!((200..300).contains(&session.delete().await));
    assert_eq!(session.request("tools/list", json!({})).await.expect("an answer").status, 404);
    assert_eq!(session.delete().await, 404);
    let again: Session = stand.session().await;
    assert_eq!(again.call("list_dir", json!({})).await.expect("an answer").code(), None);
}

#[tokio::test]
async fn an_id_in_flight_joins_the_same_question_and_refuses_another() {
    let stand = Stand::start(WireKind::Feature).await;
    let session = stand.session().await;
    let work = holdfast_testkit::stand::work;
    let first = session.start_call(5, "run_process", work("a")).await.expect("a stream");
    stand.journal_has("started a").await;
    let joined = session.start_call(5, "run_process", work("a")).await.expect("a stream");
    let other = session.start_call(5, "run_process", work("b")).await.expect("an answer").answer().await;
    // An error of one request is one JSON document, which a stream reader sees as lost; either way it is no result.
    if let Ok(answer) = other {
        assert_eq!(answer.code(), Some("conflict"), "{answer:?}");
    }
    stand.release("a");
    for stream in [first, joined] {
        assert_eq!(stream.answer().await.expect("an answer").content()["stdout"], "result-a\n");
    }
    let journal = stand.journal();
    assert_eq!(journal.iter().filter(|line| line.starts_with("started")).count(), 1, "{journal:?}");
}

#[tokio::test]
async fn a_head_that_never_ends_and_a_body_that_stops_keep_nobody_waiting() {
    let stand = Stand::start(WireKind::Feature).await;
    let address = stand.relay.url.trim_start_matches("http://").to_owned();
    let body = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: 1000\r\n\r\n{{",
        stand.token
    );
    let mut slow = Vec::new();
    for bytes in [&b"POST /mcp HTTP/1.1\r\nHost: "[..], body.as_bytes()].repeat(50) {
        let mut stream = TcpStream::connect(&address).await.expect("connect");
        stream.write_all(bytes).await.expect("write");
        slow.push(stream);
    }
    let answer = stand.modern().call("list_dir", json!({})).send().await.expect("an answer");
    assert_eq!(answer.code(), None);
}

#[tokio::test]
async fn bytes_that_are_no_http_and_headers_without_end_are_refused() {
    let stand = Stand::start(WireKind::Feature).await;
    let address = stand.relay.url.trim_start_matches("http://").to_owned();
    let long = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nX-Long: {}\r\n\r\n", "a".repeat(1_000_000));
    let two_lengths =
        format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello");
    let both = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\nzz\r\n\r\n"
    );
    for bad in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"HELO relay\r\n\r\n",
        long.as_bytes(),
        two_lengths.as_bytes(),
        both.as_bytes(),
    ] {
        let mut stream = TcpStream::connect(&address).await.expect("connect");
        let _ = stream.write_all(bad).await;
        let mut said = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(120), stream.read_to_end(&mut said)).await;
        assert!(read.is_ok(), "never cut off: {:?}", &bad[..20.min(bad.len())]);
        let said = String::from_utf8_lossy(&said);
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
    }
    let answer =
        Modern::new(stand.relay.mcp(), &*stand.token).call("list_dir", json!({})).send().await.expect("an answer");
    assert_eq!(answer.code(), None);
}
