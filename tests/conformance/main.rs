//! The official MCP conformance suite against the real product: relay, device and authorization server.
//!
//! Server scenarios go through a small proxy that adds the bearer token, because the suite sends none. What cannot pass
//! stands in `expected-*.yml` with its reason; an unexpected pass or failure breaks the test.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

mod tasks;

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use holdfast_testkit::oauth::Browser;
use holdfast_testkit::port::Port;
use holdfast_testkit::stand::{ACCOUNT, PASSWORD, RelayStand, Stand, WireKind};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

/// Node.js with the suite's or our script, its output line by line.
fn script(path: &str, args: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    assert!(folder().join("node_modules").exists(), "the suite is not installed; run `make conformance`");
    let brought = ["x64", "arm64"].map(|cpu| folder().join(format!("node_modules/node-linux-{cpu}/bin/node")));
    let node = brought.into_iter().find(|node| node.exists()).unwrap_or_else(|| "node".into());
    let mut command = Command::new(node);
    command.arg(folder().join(path)).args(args).stdout(Stdio::piped()).kill_on_drop(true);
    for proxy in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env_remove(proxy);
    }
    let mut child = command.spawn().expect("Node.js starts");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    (child, lines)
}

const SUITE: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";

/// Reads the suite's words to its end and demands that it is content.
async fn content(mut child: Child, mut lines: Lines<BufReader<ChildStdout>>) -> Vec<String> {
    let mut said = Vec::new();
    while let Some(line) = lines.next_line().await.expect("text") {
        said.push(line);
    }
    let status = child.wait().await.expect("an end");
    assert!(status.success(), "the suite is not content:\n{}", said.join("\n"));
    said
}

async fn server_scenarios(revision: &str) {
    let stand = Stand::start(WireKind::Feature).await;
    let (_proxy, mut lines) = script("proxy.mjs", &[&stand.relay.mcp(), &stand.token]);
    let url = lines.next_line().await.expect("text").expect("the proxy's address");
    let expected = folder().join(format!("expected-{revision}.yml"));
    let expected = expected.to_str().expect("UTF-8");
    let args = ["server", "--url", &url, "--suite", "all", "--spec-version", revision, "--expected-failures", expected];
    let (suite, lines) = script(SUITE, &args);
    let said = content(suite, lines).await.join("\n");
    for passed in ["tools-list", "dns-rebinding-protection", "server-sse-multiple-streams"] {
        assert!(said.contains(&format!("✓ {passed}")), "{passed} did not run:\n{said}");
    }
}

#[tokio::test]
async fn server_scenarios_of_2025_11_25() {
    server_scenarios("2025-11-25").await;
}

#[tokio::test]
async fn server_scenarios_of_2026_07_28() {
    server_scenarios("2026-07-28").await;
}

#[tokio::test]
async fn authorization_server_scenarios() {
    let relay = RelayStand::start(WireKind::Feature).await;
    relay.home.ok(&["enroll", &relay.url, &relay.code().await]).await;
    let held = Port::reserve();
    let port = held.number();
    let http = holdfast_testkit::mcp::http();
    let registration = json!({
        "client_name": "conformance",
        "redirect_uris": [format!("http://127.0.0.1:{port}/callback")],
        "token_endpoint_auth_method": "none",
    });
    let registered =
        http.post(format!("{}/oauth/register", relay.url)).json(&registration).send().await.expect("an answer");
    let registered: Value = registered.json().await.expect("JSON");
    let client = registered["client_id"].as_str().expect("a client id");
    let port = port.to_string();
    let resource = relay.mcp();
    let args = ["authorization", "--url", &relay.url, "--client-id", client, "--resource", &resource, "--port", &port];
    let (suite, mut lines) = script(SUITE, &args);
    let authorize = loop {
        let line = lines.next_line().await.expect("text").expect("the suite asks for a browser");
        if line.starts_with(&format!("{}/oauth/authorize", relay.url)) {
            break line;
        }
    };
    let (mut browser, page) = Browser::open(&authorize).await;
    let page = browser.log_in(&page, ACCOUNT, PASSWORD).await;
    let callback = page.location.expect("a redirect to the suite");
    // It names the address before it listens there.
    let listens = async {
        loop {
            match http.get(callback.clone()).send().await {
                Err(refused) if refused.is_connect() => tokio::time::sleep(Duration::from_millis(20)).await,
                answered => return answered.expect("an answer"),
            }
        }
    };
    let answered = tokio::time::timeout(Duration::from_secs(120), listens).await.expect("the suite listens");
    assert!(answered.status().is_success());
    let said = content(suite, lines).await.join("\n");
    for passed in ["authorization-server-metadata-endpoint", "authorization-code-grant"] {
        assert!(said.contains(passed), "{passed} did not run:\n{said}");
    }
}
