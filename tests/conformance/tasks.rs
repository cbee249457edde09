//! The tasks extension: the suite's scenarios call fixture tools that no developer's machine offers, so a relay in this process
//! has a scripted device that does.

use std::time::Duration;

use holdfast_relay::mcp::ExtraTool;
use holdfast_relay::{RelayOptions, TokenRequest};
use holdfast_testkit::base::{self, Frame, Wire};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{content, folder, script};

/// What the fixtures are called, and whether they say that they take long.
const FIXTURES: [(&str, bool); 5] = [
    ("greet", false),
    ("slow_compute", true),
    ("failing_job", true),
    ("protocol_error_job", true),
    ("confirm_delete", false),
];

/// How often the device looks whether a call is due.
const TURN: Duration = Duration::from_millis(20);

fn fixture((name, long_running): (&str, bool)) -> ExtraTool {
    ExtraTool {
        name: name.into(),
        description: "A fixture.".into(),
        input_schema: json!({"type": "object"}),
        output_schema: None,
        long_running,
    }
}

/// A relay with the fixtures and their device: the relay, its address, and a token.
async fn stage(folder: &std::path::Path) -> (holdfast_relay::RelayHandle, String, String) {
    let mut options = RelayOptions::loopback(0, folder);
    options.extra_tools = FIXTURES.map(fixture).into();
    let relay = holdfast_relay::start(options).await.expect("a relay");
    let owner = relay.admin.ensure_owner("anna").await.expect("an account");
    let device = relay.admin.enrol_local(&owner.id, "desk").await.expect("a device");
    let token = relay.admin.create_token(TokenRequest { name: "suite".into(), ..TokenRequest::default() }).await;
    let url = relay.mcp_url();
    let mut wire = base::dial(url.trim_end_matches("/mcp"), &device.token).await.expect("upgraded");
    wire.send(base::hello(&base::instance("one"), &FIXTURES.map(|(name, _)| name))).await;
    loop {
        match wire.next().await {
            Frame::Json(frame) if frame["type"] == "relay_probe" => {
                wire.send(json!({"type": "relay_probe_result", "id": frame["id"]})).await;
            }
            Frame::Json(frame) if frame["type"] == "ready_ack" => break,
            Frame::Json(_) => {}
            other => panic!("not ready: {other:?}"),
        }
    }
    tokio::spawn(run(wire));
    (relay, url, token.expect("a token").token)
}

/// Does what the fixtures do, until the suite is through.
async fn run(mut wire: Wire) {
    let mut running: Vec<(Instant, Value)> = Vec::new();
    loop {
        match wire.next_within(TURN).await {
            None => {}
            Some(Frame::Json(frame)) if frame["type"] == "tool_call" => {
                let seconds = match frame["tool"].as_str() {
                    Some("slow_compute") => frame["arguments"]["seconds"].as_f64().unwrap_or(0.0),
                    Some("failing_job" | "protocol_error_job") => 1.0,
                    _ => 0.0,
                };
                running.push((Instant::now() + Duration::from_secs_f64(seconds), frame));
            }
            Some(Frame::Json(frame)) if frame["type"] == "cancel_call" => {
                running.retain(|(_, call)| call["id"] != frame["id"]);
            }
            Some(Frame::Json(_)) => {}
            Some(_) => return,
        }
        for (_, call) in running.extract_if(.., |(due, _)| *due <= Instant::now()) {
            let fail = |code: &str| json!({"code": code, "message": "the fixture says so", "retryable": false});
            let failed = |error: Value| json!({"type": "tool_result", "id": call["id"], "ok": false, "error": error});
            match call["tool"].as_str() {
                Some("greet") => {
                    let name = call["arguments"]["name"].as_str().unwrap_or_default();
                    wire.succeed(&call, json!(format!("Hello, {name}!"))).await;
                }
                Some("failing_job") => wire.send(failed(fail("execution_failed"))).await,
                // What the relay itself would say of a call whose device is lost.
                Some("protocol_error_job") => wire.send(failed(fail("outcome_unknown"))).await,
                _ => wire.succeed(&call, json!("done")).await,
            }
        }
    }
}

#[tokio::test]
async fn scenarios_of_the_tasks_extension() {
    let home = tempfile::tempdir().expect("a folder");
    let (_relay, url, token) = stage(home.path()).await;
    let (_proxy, mut lines) = script("proxy.mjs", &[&url, &token]);
    let url = lines.next_line().await.expect("text").expect("the proxy's address");
    let expected = folder().join("expected-tasks.yml");
    let expected = expected.to_str().expect("UTF-8");
    for scenario in [
        "lifecycle",
        "capability-negotiation",
        "wire-fields",
        "request-state-removal",
        "mrtr-input",
        "request-headers",
        "dispatch-and-envelope",
        "status-notifications",
        "required-task-error",
        "mrtr-composition",
    ] {
        let name = format!("tasks-{scenario}");
        let args = ["server", "--url", &url, "--scenario", &name, "--expected-failures", expected];
        let (suite, lines) = script(super::SUITE, &args);
        let said = content(suite, lines).await.join("\n");
        assert!(said.contains(&format!("'{name}' against server")), "{name} did not run:\n{said}");
    }
}
