//! Frames of a daemon that breaks the protocol. A call that was sent before is answered after.
//!
//! Only the close tells what was wrong: an `error` message, which the base relay sends before it, ends a real 1.2.10
//! daemon for good.

use holdfast_testkit::base::{self, Frame, RelayBench, Wire};
use holdfast_testkit::stand::WireKind;
use serde_json::{Value, json};

/// What is sent.
enum Bad {
    Text(&'static str),
    Json(Value),
    Binary(Vec<u8>),
    /// A text of this many bytes.
    Long(usize),
}

/// When it is sent.
#[derive(Clone, Copy, PartialEq)]
enum When {
    BeforeHello,
    Probing,
    Ready,
}

struct Row {
    name: &'static str,
    when: When,
    bad: Bad,
    close: (u16, &'static str),
}

fn row(name: &'static str, when: When, bad: Bad, close: (u16, &'static str)) -> Row {
    Row { name, when, bad, close }
}

fn rows() -> Vec<Row> {
    use When::{BeforeHello, Probing, Ready};
    let no_hello = (1008, "daemon hello required");
    let bad_json = (1007, "invalid JSON");
    let no_object = (1002, "daemon message must be an object");
    let no_instance = (1002, "daemon instance id required");
    let bad_probe = (1002, "invalid daemon readiness result");
    let twice = (1002, "duplicate daemon hello");
    let unknown = (1002, "unknown daemon message type");
    let hello = || base::hello(&base::instance("x"), &["list_dir"]);
    let without = |field: &str| {
        let mut hello = hello();
        hello.as_object_mut().expect("an object").remove(field);
        Bad::Json(hello)
    };
    let result = |body: Value| {
        let mut result = json!({"type": "tool_result", "id": "call_00000000"});
        result.as_object_mut().expect("an object").extend(body.as_object().expect("an object").clone());
        Bad::Json(result)
    };
    vec![
        row("a heartbeat first", BeforeHello, Bad::Json(json!({"type": "heartbeat", "ts": 1})), no_hello),
        row("a result first", BeforeHello, result(json!({"ok": true, "result": 1})), no_hello),
        row("an unknown type first", BeforeHello, Bad::Json(json!({"type": "shiny"})), no_hello),
        row("no JSON first", BeforeHello, Bad::Text("{"), bad_json),
        row("an array first", BeforeHello, Bad::Text("[]"), no_object),
        row("bytes that are no UTF-8 first", BeforeHello, Bad::Binary(vec![0xff, 0xfe]), (1007, "invalid UTF-8")),
        row("a hello without instance", BeforeHello, without("instance_id"), no_instance),
        row(
            "a hello with a short instance",
            BeforeHello,
            Bad::Json(json!({"type": "hello", "instance_id": "daemon_short"})),
            no_instance,
        ),
        row(
            "a hello with two instances",
            BeforeHello,
            Bad::Text(
                r#"{"type":"hello","instance_id":"daemon_0123456789abcdef","instance_id":"daemon_0123456789abcdeg"}"#,
            ),
            no_instance,
        ),
        row("a second hello while probing", Probing, Bad::Json(hello()), twice),
        row(
            "another probe's answer",
            Probing,
            Bad::Json(json!({"type": "relay_probe_result", "id": "probe_00000000"})),
            bad_probe,
        ),
        row("a result while probing", Probing, result(json!({"ok": true, "result": 1})), bad_probe),
        row("no JSON while probing", Probing, Bad::Text("nul"), bad_json),
        row("a second hello", Ready, Bad::Json(hello()), twice),
        row("an unknown type", Ready, Bad::Json(json!({"type": "shiny"})), unknown),
        row(
            "a probe replayed",
            Ready,
            Bad::Json(json!({"type": "relay_probe_result", "id": "probe_00000000"})),
            unknown,
        ),
        row(
            "a report that was not agreed",
            Ready,
            Bad::Json(json!({"type": "resume_report", "running": [], "done": [], "lost": [], "unknown": []})),
            unknown,
        ),
        row("no JSON", Ready, Bad::Text("{\"type\":"), bad_json),
        row("a number", Ready, Bad::Text("7"), no_object),
        row("an object without type", Ready, Bad::Text("{}"), no_object),
        row("bytes that are no UTF-8", Ready, Bad::Binary(vec![0x22, 0xc3, 0x28, 0x22]), (1007, "invalid UTF-8")),
        row("a frame of more than 8 MiB", Ready, Bad::Long(8 * 1024 * 1024 + 1), (1009, "message too large")),
    ]
}

/// From `hello` to `ready_ack`, under any server name; the resumed ids.
async fn become_ready(socket: &mut Wire) -> Vec<Value> {
    socket.send(base::hello(&base::instance("a"), &["list_dir"])).await;
    let probe = probed(socket).await;
    socket.send(json!({"type": "relay_probe_result", "id": probe})).await;
    let resumed = socket.expect("resume_calls").await;
    socket.expect("ready_ack").await;
    resumed["ids"].as_array().expect("ids").clone()
}

async fn probed(socket: &mut Wire) -> Value {
    socket.expect("welcome").await;
    socket.expect("hello_ack").await;
    socket.expect("relay_probe").await["id"].take()
}

async fn send(socket: &mut Wire, bad: Bad) {
    match bad {
        Bad::Text(text) => socket.send_text(text).await,
        Bad::Json(message) => socket.send(message).await,
        Bad::Binary(bytes) => socket.send_binary(bytes).await,
        Bad::Long(length) => socket.send_text(format!("\"{}\"", "a".repeat(length - 2))).await,
    }
}

/// The close, whatever was on the way.
async fn refused(name: &str, socket: &mut Wire) -> (u16, String) {
    loop {
        match socket.next().await {
            Frame::Json(message) => assert_ne!(message["type"], "error", "{name}"),
            Frame::Closed(code, reason) => return (code, reason),
            Frame::Gone(cause) => panic!("{name}: gone without a close: {cause}"),
        }
    }
}

async fn every_bad_frame_is_refused_as_documented_and_costs_no_call(wire: WireKind) {
    let bench = RelayBench::start(wire).await;
    let mut ready = bench.dial().await;
    become_ready(&mut ready).await;
    for row in rows() {
        let name = row.name;
        let answer = bench.call("list_dir", json!({}));
        let call = ready.expect("tool_call").await;
        let close = if row.when == When::Ready {
            send(&mut ready, row.bad).await;
            let refused = refused(name, &mut ready).await;
            ready = bench.dial().await;
            assert_eq!(become_ready(&mut ready).await, [call["id"].clone()], "{name}: the call is named again");
            refused
        } else {
            let mut other = bench.dial().await;
            if row.when == When::Probing {
                other.send(base::hello(&base::instance("a"), &["list_dir"])).await;
                probed(&mut other).await;
            }
            send(&mut other, row.bad).await;
            refused(name, &mut other).await
        };
        assert_eq!((close.0, &*close.1), row.close, "{name}");
        ready.succeed(&call, json!({"row": name})).await;
        assert_eq!(answer.await.expect("no panic").content()["row"], name);
    }
}

#[tokio::test]
async fn every_bad_frame_is_refused_as_documented_and_costs_no_call_between_holdfasts() {
    every_bad_frame_is_refused_as_documented_and_costs_no_call(WireKind::Feature).await;
}

#[tokio::test]
async fn every_bad_frame_is_refused_as_documented_and_costs_no_call_on_the_base_wire() {
    every_bad_frame_is_refused_as_documented_and_costs_no_call(WireKind::Base).await;
}

#[tokio::test]
async fn a_result_that_contradicts_itself_never_answers_its_call() {
    let bench = RelayBench::start(WireKind::Base).await;
    let mut ready = bench.dial().await;
    become_ready(&mut ready).await;
    for bad in [
        json!({"ok": true, "error": {"code": "timeout", "message": "x", "retryable": false}}),
        json!({"ok": false, "result": 1}),
        json!({"ok": "yes", "result": 1}),
        json!({"ok": false, "error": "text"}),
    ] {
        let answer = bench.call("list_dir", json!({}));
        let call = ready.expect("tool_call").await;
        let mut result = json!({"type": "tool_result", "id": call["id"]});
        result.as_object_mut().expect("an object").extend(bad.as_object().expect("an object").clone());
        ready.send(result).await;
        let (code, _) = refused("a contradiction", &mut ready).await;
        assert_eq!(code, 1002, "{bad}");
        ready = bench.dial().await;
        assert_eq!(become_ready(&mut ready).await, [call["id"].clone()]);
        ready.succeed(&call, json!({"n": 1})).await;
        assert_eq!(answer.await.expect("no panic").content()["n"], 1);
    }
}
