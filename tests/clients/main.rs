//! MCP clients that nobody of this project wrote, against the real product: the official TypeScript SDK 1.x and 2.x, the
//! official Python SDK, each in every era it speaks, and the MCP Inspector's command line.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

mod agent;
mod inspector;

use std::time::Duration;

use agent::{Agent, Sdk};
use holdfast_testkit::stand::{Stand, WireKind, work};
use serde_json::{Value, json};

macro_rules! with_every_sdk {
    ($($name:ident),+ $(,)?) => {
        with_every_sdk!(@ typescript_1, Sdk::TypeScript1, $($name),+);
        with_every_sdk!(@ typescript_2, Sdk::TypeScript2 { mode: "auto" }, $($name),+);
        with_every_sdk!(@ typescript_2_with_sessions, Sdk::TypeScript2 { mode: "legacy" }, $($name),+);
        with_every_sdk!(@ python, Sdk::Python { mode: "auto" }, $($name),+);
        with_every_sdk!(@ python_with_sessions, Sdk::Python { mode: "legacy" }, $($name),+);
    };
    (@ $module:ident, $sdk:expr, $($name:ident),+) => {
        mod $module {
            use super::*;
            $(#[tokio::test] async fn $name() { super::$name($sdk).await; })+
        }
    };
}

with_every_sdk!(
    it_connects_through_oauth_lists_the_tools_and_calls_one,
    a_call_it_cancels_is_killed_and_the_next_one_works,
    a_call_across_a_cut_link_completes_once,
);

async fn it_connects_through_oauth_lists_the_tools_and_calls_one(sdk: Sdk) {
    let stand = Stand::start(WireKind::Feature).await;
    let mut agent = Agent::connect(sdk, &stand).await;
    agent.say(json!({"do": "list"})).await;
    let answer = agent.hear().await;
    let tools: Vec<_> = answer["tools"].as_array().expect("tools").iter().filter_map(Value::as_str).collect();
    for tool in ["server_info", "read_file", "run_process"] {
        assert!(tools.contains(&tool), "{tool} is missing in {tools:?}");
    }
    std::fs::write(stand.home.workspace().join("a.txt"), "first\nsecond\n").expect("a file");
    agent.call(1, "read_file", json!({"path": "a.txt"})).await;
    assert_eq!(agent.ended(1).await["structuredContent"]["content"], "first\nsecond\n");
    agent.call(2, "read_file", json!({"path": "missing.txt"})).await;
    let failed = agent.ended(2).await;
    assert_eq!(
        (&failed["isError"], &failed["structuredContent"]["error"]["code"]),
        (&json!(true), &json!("not_found"))
    );
}

async fn a_call_it_cancels_is_killed_and_the_next_one_works(sdk: Sdk) {
    let stand = Stand::start(WireKind::Feature).await;
    let mut agent = Agent::connect(sdk, &stand).await;
    agent.call(1, "run_process", work("a")).await;
    stand.journal_has("started a").await;
    agent.say(json!({"do": "cancel", "id": 1})).await;
    let ended = agent.hear().await;
    assert!(ended["id"] == 1 && ended["error"].is_string(), "{ended}");
    stand.work_ended("a").await;
    stand.release("b");
    agent.call(2, "run_process", work("b")).await;
    assert_eq!(agent.ended(2).await["structuredContent"]["stdout"], "result-b\n");
    assert!(!stand.journal().contains(&"finished a".to_owned()));
}

async fn a_call_across_a_cut_link_completes_once(sdk: Sdk) {
    let stand = Stand::start(WireKind::Feature).await;
    let mut agent = Agent::connect(sdk, &stand).await;
    agent.call(1, "run_process", work("a")).await;
    stand.journal_has("started a").await;
    stand.proxy.cut_for(Duration::from_secs(2)).await;
    stand.ready(2).await;
    stand.release("a");
    assert_eq!(agent.ended(1).await["structuredContent"]["stdout"], "result-a\n");
    let finished = stand.journal().iter().filter(|line| *line == "finished a").count();
    assert_eq!(finished, 1);
}
