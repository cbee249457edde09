//! Calls that become tasks of 2026-07-28 clients.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::limits;
use holdfast_relay::mcp::ExtraTool;
use holdfast_relay::{ManualClock, RelayOptions};
use holdfast_testkit::base;
use holdfast_testkit::mcp::{Answer, Modern, Session};
use serde_json::{Value, json};

use crate::stage::Stage;

const QUIET: Duration = Duration::from_millis(300);

/// A tool that says of itself that it takes long.
pub fn long(options: &mut RelayOptions) {
    options.extra_tools = vec![ExtraTool {
        name: "build".into(),
        description: "Builds.".into(),
        input_schema: json!({"type": "object"}),
        output_schema: None,
        long_running: true,
    }];
}

/// Calls the tool that takes long; the task's id.
pub async fn build(client: &Modern) -> String {
    let answer = client.call("build", json!({})).tasks().send().await.unwrap();
    assert_eq!(answer.result()["resultType"], "task", "{answer:?}");
    answer.result()["taskId"].as_str().unwrap().to_owned()
}

pub async fn ask(client: &Modern, method: &str, task: &str) -> Answer {
    let mut params = json!({"taskId": task});
    if method == "tasks/update" {
        params["inputResponses"] = json!({});
    }
    client.request(method, params).tasks().send().await.unwrap()
}

/// Looks until the task has ended.
async fn ended(client: &Modern, task: &str) -> Value {
    loop {
        let answer = ask(client, "tasks/get", task).await;
        if answer.result()["status"] != "working" {
            return answer.result().clone();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_tool_that_takes_long_answers_with_a_task_whose_result_is_byte_identical() {
    let stage = Stage::with(long).await;
    let mut device = stage.device(&["build"]).await;
    let modern = stage.modern();
    let answer = modern.call("build", json!({})).tasks().send().await.unwrap();
    let created = answer.result();
    let id = created["taskId"].as_str().unwrap();
    assert!(id.starts_with("kept_"));
    let kept_ms = limits::RECORD_KEPT.as_millis() as u64;
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    assert!((kept_ms..kept_ms + 60_000).contains(&created["ttlMs"].as_u64().unwrap()), "{created}");
    assert_eq!(created["pollIntervalMs"], 2000);
    assert!(created["createdAt"].as_str().unwrap().ends_with('Z'));
    let call = device.called().await;
    let looked = ask(&modern, "tasks/get", id).await;
    assert_eq!((&looked.result()["resultType"], &looked.result()["status"]), (&json!("complete"), &json!("working")));
    assert_eq!(looked.result()["createdAt"], created["createdAt"]);
    device.succeed_raw(&call, r#"{"z":1.10,"a":[1e2,18446744073709551617]}"#).await;
    ended(&modern, id).await;
    let done = ask(&modern, "tasks/get", id).await;
    assert_eq!(done.result()["status"], "completed");
    let result = r#""result":{"resultType":"complete","content":"#;
    assert!(done.text.contains(result), "{}", done.text);
    assert!(done.text.contains(r#""structuredContent":{"z":1.10,"a":[1e2,18446744073709551617]},"isError":false}"#));
    let updated = ask(&modern, "tasks/update", id).await;
    assert_eq!(updated.result(), &json!({"resultType": "complete"}));
}

#[tokio::test]
async fn a_call_becomes_a_task_after_ten_seconds_and_not_before() {
    let clock = Arc::new(ManualClock::default());
    let stage = Stage::with(|options| options.clock = clock.clone()).await;
    let mut device = stage.device(&["list_dir"]).await;
    let modern = stage.modern();
    let (answer, call) = tokio::join!(modern.call("list_dir", json!({})).tasks().send(), async {
        let call = device.called().await;
        device.hears_nothing_for(QUIET).await;
        clock.advance(limits::PROMOTE_AFTER);
        call
    });
    let answer = answer.unwrap();
    assert_eq!(answer.result()["resultType"], "task");
    // The request is over, and nothing was cancelled.
    device.hears_nothing_for(QUIET).await;
    device.succeed(&call, json!({"n": 1})).await;
    let done = ended(&modern, answer.result()["taskId"].as_str().unwrap()).await;
    assert_eq!(done["result"]["structuredContent"], json!({"n": 1}));
    let (fast, ()) = tokio::join!(modern.call("list_dir", json!({})).tasks().send(), async {
        let call = device.called().await;
        device.succeed(&call, json!({"n": 2})).await;
    });
    assert_eq!(fast.unwrap().content(), &json!({"n": 2}), "a fast call is no task");
}

#[tokio::test]
async fn while_the_device_is_away_a_task_is_made_at_once_and_runs_when_it_comes_or_fails_after_an_hour() {
    let clock = Arc::new(ManualClock::default());
    let stage = Stage::with(|options| options.clock = clock.clone()).await;
    stage.device(&["list_dir"]).await.leave().await;
    let modern = stage.modern();
    while stage.relay.state().devices.rooms()[0].is_ready() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let asked = || async {
        let answer = modern.call("list_dir", json!({})).tasks().send().await.unwrap();
        answer.result()["taskId"].as_str().unwrap().to_owned()
    };
    let task = asked().await;
    let mut device = stage.device(&["list_dir"]).await;
    let call = device.called().await;
    device.succeed(&call, json!({"n": 1})).await;
    assert_eq!(ended(&modern, &task).await["result"]["structuredContent"], json!({"n": 1}));
    device.leave().await;
    while stage.relay.state().devices.rooms()[0].is_ready() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let task = asked().await;
    clock.advance(limits::QUEUE_TTL);
    let failed = ended(&modern, &task).await;
    assert_eq!((&failed["status"], &failed["result"]), (&json!("failed"), &Value::Null));
    assert_eq!((&failed["error"]["code"], &failed["error"]["data"]["code"]), (&json!(-32000), &json!("unavailable")));
    assert_eq!(failed["error"]["data"]["retryable"], true);
}

#[tokio::test]
async fn a_task_is_stopped_by_word_and_a_word_too_late_is_taken_the_same() {
    let stage = Stage::with(long).await;
    let mut device = stage.device(&["build"]).await;
    let modern = stage.modern();
    let task = build(&modern).await;
    let call = device.called().await;
    for _ in 0..2 {
        assert_eq!(ask(&modern, "tasks/cancel", &task).await.result(), &json!({"resultType": "complete"}));
    }
    assert_eq!(device.cancelled().await, call["id"]);
    let stopped = ended(&modern, &task).await;
    assert_eq!(
        (&stopped["status"], &stopped["result"], &stopped["error"]),
        (&json!("cancelled"), &Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn a_tool_that_fails_completes_its_task_with_an_error_and_a_lost_device_fails_it() {
    let stage = Stage::with(long).await;
    let mut device = stage.device(&["build"]).await;
    let modern = stage.modern();
    let task = build(&modern).await;
    let call = device.called().await;
    device.fail(&call, json!({"code": "path_boundary", "message": "outside", "retryable": false})).await;
    let failed = ended(&modern, &task).await;
    assert_eq!((&failed["status"], &failed["result"]["isError"]), (&json!("completed"), &json!(true)));
    assert_eq!(failed["result"]["structuredContent"]["error"]["code"], "path_boundary");
    let task = build(&modern).await;
    device.called().await;
    // Another process of the device: no word of the call will come.
    device.leave().await;
    let _restarted = stage.device_with(base::hello(&base::instance("two"), &["build"])).await;
    let unknown = ended(&modern, &task).await;
    assert_eq!((&unknown["status"], &unknown["error"]["data"]["code"]), (&json!("failed"), &json!("outcome_unknown")));
}

#[tokio::test]
async fn revoking_a_grant_stops_its_tasks_and_no_others() {
    let stage = Stage::with(long).await;
    let mut device = stage.device(&["build"]).await;
    let (token, id) = stage.token_of("second", None).await;
    let modern = stage.modern();
    let own = build(&modern).await;
    device.called().await;
    build(&Modern::new(&stage.url, &token)).await;
    let theirs = device.called().await;
    stage.relay.admin.revoke_token(&id).await.unwrap();
    assert_eq!(device.cancelled().await, theirs["id"]);
    assert_eq!(ask(&modern, "tasks/get", &own).await.result()["status"], "working");
}

#[tokio::test]
async fn the_tasks_of_a_revoked_grant_that_could_not_be_looked_up_are_looked_up_again() {
    let stage = Stage::with(long).await;
    let mut device = stage.device(&["build"]).await;
    let (token, id) = stage.token_of("second", None).await;
    build(&Modern::new(&stage.url, &token)).await;
    let call = device.called().await;
    stage.in_store("ALTER TABLE calls RENAME TO calls_away");
    stage.relay.admin.revoke_token(&id).await.unwrap();
    device.hears_nothing_for(QUIET).await;
    stage.in_store("ALTER TABLE calls_away RENAME TO calls");
    assert_eq!(device.cancelled().await, call["id"]);
}

#[tokio::test]
async fn without_the_extension_there_are_no_tasks_in_either_era() {
    let stage = Stage::with(long).await;
    let mut device = stage.device(&["build"]).await;
    let modern = stage.modern();
    let task = build(&modern).await;
    device.called().await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = modern.request(method, json!({"taskId": task, "inputResponses": {}})).send().await.unwrap();
        assert_eq!((refused.status, refused.rpc_error()), (400, Some(-32021)), "{method}");
        let required = &refused.message["error"]["data"]["requiredCapabilities"];
        assert_eq!(required, &json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
    }
    let (plain, ()) = tokio::join!(modern.call("build", json!({})).send(), async {
        let call = device.called().await;
        device.succeed(&call, json!({"n": 1})).await;
    });
    assert_eq!(plain.unwrap().result()["resultType"], "complete");
    // A session's client may say what it likes: tasks are no part of its revision.
    let session = Session::open(&stage.url, &stage.token).await;
    assert_eq!(session.initialized()["capabilities"].get("extensions"), None);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "build", "task": {"ttl": 1},
        "_meta": {"io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}}});
    let (answer, ()) = tokio::join!(session.post(&body), async {
        let call = device.called().await;
        device.succeed(&call, json!({"n": 2})).await;
    });
    let text = answer.unwrap().text().await.unwrap();
    assert!(text.contains(r#""structuredContent":{"n":2}"#) && !text.contains("resultType"), "{text}");
    let refused = session.request("tasks/get", json!({"taskId": task})).await.unwrap();
    assert_eq!(refused.rpc_error(), Some(-32601));
    let discovered = modern.request("server/discover", json!({})).send().await.unwrap();
    assert_eq!(discovered.result()["capabilities"]["extensions"], json!({"io.modelcontextprotocol/tasks": {}}));
}

#[tokio::test]
async fn a_request_about_a_task_names_it_in_its_header_too() {
    let stage = Stage::with(long).await;
    let mut device = stage.device(&["build"]).await;
    let modern = stage.modern();
    let task = build(&modern).await;
    device.called().await;
    let get = || modern.request("tasks/get", json!({"taskId": task})).tasks();
    assert_eq!(get().header("mcp-name", "another").send().await.unwrap().rpc_error(), Some(-32020));
    assert_eq!(get().header("mcp-name", "").send().await.unwrap().rpc_error(), Some(-32020));
    assert_eq!(get().header("mcp-method", "tasks/cancel").send().await.unwrap().rpc_error(), Some(-32020));
    let nameless = modern.request("tasks/get", json!({"taskId": 7})).tasks().send().await.unwrap();
    assert_eq!(nameless.rpc_error(), Some(-32602));
}

#[tokio::test]
async fn after_a_crash_a_task_that_was_sent_completes_and_one_that_was_not_says_so() {
    let stage = Stage::with(long).await;
    let mut device = stage.device(&["build", "list_dir"]).await;
    let sent = build(&stage.modern()).await;
    let call = device.called().await;
    device.leave().await;
    while stage.relay.state().devices.rooms()[0].is_ready() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let modern = stage.modern();
    let unsent = modern.call("list_dir", json!({})).tasks().send().await.unwrap();
    let unsent = unsent.result()["taskId"].as_str().unwrap().to_owned();
    let stage = stage.crash().await;
    let modern = stage.modern();
    assert_eq!(ask(&modern, "tasks/get", &sent).await.result()["status"], "working");
    let failed = ended(&modern, &unsent).await;
    assert_eq!((&failed["status"], &failed["error"]["data"]["code"]), (&json!("failed"), &json!("unavailable")));
    let mut device = stage.device(&["build", "list_dir"]).await;
    device.succeed(&call, json!({"n": 1})).await;
    assert_eq!(ended(&modern, &sent).await["result"]["structuredContent"], json!({"n": 1}));
}
