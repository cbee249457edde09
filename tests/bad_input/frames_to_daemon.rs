//! Frames of a relay that breaks the protocol. The daemon drops the socket, comes back, and still delivers.

use std::time::Duration;

use holdfast_testkit::base::{DaemonBench, Frame, Wire, call_id};
use serde_json::{Value, json};

fn who(kind: &str) -> Value {
    json!({"type": kind, "server": "machine-bridge-mcp", "version": "1.2.10"})
}

fn many(count: usize) -> Vec<String> {
    (0..count).map(|n| call_id(&n.to_string())).collect()
}

/// Waits until the daemon has dropped this socket.
async fn dropped(name: &str, socket: &mut Wire) {
    loop {
        match socket.next_within(Duration::from_secs(60)).await {
            Some(Frame::Json(_)) => {}
            Some(Frame::Closed(..) | Frame::Gone(_)) => return,
            None => panic!("{name}: the daemon kept the socket"),
        }
    }
}

#[tokio::test]
async fn every_bad_frame_drops_the_socket_and_costs_no_call() {
    let bench = DaemonBench::start().await;
    let mut socket = bench.ready(&[]).await;
    let id = bench.running(&mut socket, "a").await;

    // While ready.
    for (name, text) in [
        ("no JSON", "{".to_owned()),
        ("an array", "[]".into()),
        ("no type", "{}".into()),
        ("an unknown type", json!({"type": "shiny"}).to_string()),
        ("a probe when ready", json!({"type": "relay_probe", "id": "probe_00000000"}).to_string()),
        ("resume_calls when ready", json!({"type": "resume_calls", "ids": []}).to_string()),
        ("a cancel without id", json!({"type": "cancel_call"}).to_string()),
    ] {
        socket.send_text(text).await;
        dropped(name, &mut socket).await;
        socket = bench.ready(&[&id]).await;
    }

    // A call whose id cannot be read is nobody's: it is logged, and the link stays.
    socket.send_text(r#"{"type":"tool_call","id":"call_00000000","id":"call_00000001"}"#).await;

    // On the way to ready.
    let resume = |ids: Value| json!({"type": "resume_calls", "ids": ids});
    for (name, frames) in [
        ("a probe before hello_ack", vec![json!({"type": "relay_probe", "id": "probe_00000000"})]),
        ("a bad probe id", vec![who("hello_ack"), json!({"type": "relay_probe", "id": "nope"})]),
        (
            "a call before ready",
            vec![
                who("hello_ack"),
                json!({"type": "tool_call", "id": "call_00000000", "tool": "list_dir", "arguments": {}, "timeout_ms": 1000}),
            ],
        ),
        ("resume_calls before hello_ack", vec![resume(json!([]))]),
        (
            "ready_ack before resume_calls",
            vec![who("hello_ack"), json!({"type": "relay_probe", "id": "probe_00000000"}), who("ready_ack")],
        ),
        (
            "33 ids",
            vec![who("hello_ack"), json!({"type": "relay_probe", "id": "probe_00000000"}), resume(json!(many(33)))],
        ),
        (
            "an id twice",
            vec![
                who("hello_ack"),
                json!({"type": "relay_probe", "id": "probe_00000000"}),
                resume(json!(["call_00000000", "call_00000000"])),
            ],
        ),
        (
            "a bad id",
            vec![who("hello_ack"), json!({"type": "relay_probe", "id": "probe_00000000"}), resume(json!(["nope"]))],
        ),
        (
            "ids that are no list",
            vec![
                who("hello_ack"),
                json!({"type": "relay_probe", "id": "probe_00000000"}),
                resume(json!("call_00000000")),
            ],
        ),
    ] {
        drop(socket);
        socket = bench.relay.accept().await;
        socket.send(who("welcome")).await;
        for frame in frames {
            socket.send(frame).await;
        }
        dropped(name, &mut socket).await;
        socket = bench.ready(&[&id]).await;
    }

    bench.release("a");
    let result = socket.result().await;
    assert_eq!((&result["id"], &result["result"]["stdout"]), (&json!(id), &json!("result-a\n")));
    assert_eq!(bench.journal().matches("started a").count(), 1);
}
