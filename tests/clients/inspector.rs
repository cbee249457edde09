//! The MCP Inspector's command line with a static token.

use std::process::Output;

use holdfast_testkit::stand::{Stand, WireKind};
use serde_json::Value;
use tokio::process::Command;

use crate::agent::{folder, node};

async fn inspect(stand: &Stand, more: &[&str]) -> Output {
    let authorization = format!("Authorization: Bearer {}", stand.token);
    Command::new(node())
        .arg(folder().join("node/node_modules/.bin/mcp-inspector"))
        .args(["--cli", &stand.relay.mcp(), "--transport", "http", "--header", &authorization])
        .args(more)
        .env("HOME", stand.home.workspace())
        .kill_on_drop(true)
        .output()
        .await
        .expect("the inspector starts")
}

fn json(output: &Output) -> Value {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}\n{stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {stdout}\n{stderr}"))
}

#[tokio::test]
async fn the_inspector_lists_the_tools_and_calls_one() {
    let stand = Stand::start(WireKind::Feature).await;
    let listed = json(&inspect(&stand, &["--method", "tools/list"]).await);
    let tools = listed["tools"].as_array().expect("tools");
    assert!(tools.iter().any(|tool| tool["name"] == "run_process"), "{listed}");
    let call = ["--method", "tools/call", "--tool-name", "run_process", "--tool-arg", r#"argv=["echo","hello"]"#];
    let called = json(&inspect(&stand, &call).await);
    assert_eq!(called["structuredContent"]["stdout"], "hello\n", "{called}");
}

#[tokio::test]
async fn the_inspector_with_a_wrong_token_is_refused() {
    let mut stand = Stand::start(WireKind::Feature).await;
    stand.token = "hf_pat_wrong".into();
    let output = inspect(&stand, &["--method", "tools/list"]).await;
    assert!(!output.status.success());
}
