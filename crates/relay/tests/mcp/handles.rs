//! Calls that a client without tasks leaves with a handle: patience, `read_result`, `cancel_result`; and whose handles are whose.

use std::time::Duration;

use holdfast_core::limits;
use holdfast_relay::RelayOptions;
use holdfast_testkit::mcp::Modern;
use serde_json::{Value, json};

use crate::stage::{Device, Stage};
use crate::tasks::{ask, build, long};

const PATIENCE: Duration = Duration::from_millis(100);
const QUIET: Duration = Duration::from_millis(300);

fn hasty(options: &mut RelayOptions) {
    options.patience = PATIENCE;
}

/// A call that is answered with a handle while it runs: the handle, and what the device was sent.
async fn handle(client: &Modern, device: &mut Device) -> (String, Value) {
    let (answer, call) = tokio::join!(client.call("list_dir", json!({})).send(), device.called());
    let told = answer.unwrap().content().clone();
    assert_eq!((&told["status"], &told["read_with"]), (&json!("in_progress"), &json!("read_result")));
    (told["handle"].as_str().unwrap().to_owned(), call)
}

async fn read(client: &Modern, handle: &str, wait_ms: u64) -> holdfast_testkit::mcp::Answer {
    client.call("read_result", json!({"handle": handle, "wait_ms": wait_ms})).send().await.unwrap()
}

#[tokio::test]
async fn a_call_that_outlasts_its_clients_patience_is_answered_with_a_handle_and_read_later() {
    let stage = Stage::with(hasty).await;
    let mut device = stage.device(&["list_dir"]).await;
    let modern = stage.modern();
    let (handle, call) = handle(&modern, &mut device).await;
    device.hears_nothing_for(QUIET).await;
    let early = read(&modern, &handle, 0).await;
    let running =
        json!({"handle": handle, "offset": 0, "next_offset": 0, "done": false, "text": "", "status": "in_progress"});
    assert_eq!(early.content(), &running);
    let (late, ()) = tokio::join!(read(&modern, &handle, 30_000), async {
        device.hears_nothing_for(PATIENCE * 3).await;
        device.succeed_raw(&call, r#"{"n":1.10}"#).await;
    });
    let page = json!({"handle": handle, "offset": 0, "next_offset": 10, "total_bytes": 10, "done": true,
        "text": "{\"n\":1.10}"});
    assert_eq!(late.content(), &page);
    let part = modern.call("read_result", json!({"handle": handle, "offset": 5, "max_bytes": 2})).send().await.unwrap();
    assert_eq!((&part.content()["text"], &part.content()["done"]), (&json!("1."), &json!(false)));
}

#[tokio::test]
async fn a_session_keeps_its_answer_and_the_call_goes_on_when_the_session_ends() {
    let stage = Stage::with(hasty).await;
    let mut device = stage.device(&["list_dir"]).await;
    let session = stage.session().await;
    let (answer, call) = tokio::join!(session.call("list_dir", json!({})), device.called());
    let told = answer.unwrap().content().clone();
    let handle = told["handle"].as_str().unwrap();
    assert_eq!(session.delete().await, 204);
    device.hears_nothing_for(QUIET).await;
    device.succeed(&call, json!({"n": 1})).await;
    let session = stage.session().await;
    let answer = session.call("read_result", json!({"handle": handle, "wait_ms": 30_000})).await.unwrap();
    assert_eq!(answer.content()["text"], "{\"n\":1}");
    // It works while the device is away: the relay keeps the result.
    device.leave().await;
    let answer = session.call("read_result", json!({"handle": handle})).await.unwrap();
    assert_eq!(answer.content()["text"], "{\"n\":1}");
}

#[tokio::test]
async fn a_handle_stops_its_call_once() {
    let stage = Stage::with(hasty).await;
    let mut device = stage.device(&["list_dir"]).await;
    let modern = stage.modern();
    let (handle, call) = handle(&modern, &mut device).await;
    let stop = || modern.call("cancel_result", json!({"handle": handle})).send();
    assert_eq!(stop().await.unwrap().content(), &json!({"handle": handle, "cancelled": true}));
    assert_eq!(device.cancelled().await, call["id"]);
    assert_eq!(read(&modern, &handle, 30_000).await.code(), Some("cancelled"), "a call that failed fails its reader");
    assert_eq!(stop().await.unwrap().content()["cancelled"], false);
}

#[tokio::test]
async fn a_tool_that_promises_a_schema_answers_with_an_error_that_carries_the_handle() {
    let stage = Stage::with(|options| {
        hasty(options);
        long(options);
        options.extra_tools[0].output_schema = Some(json!({"type": "object"}));
    })
    .await;
    let mut device = stage.device(&["build"]).await;
    let modern = stage.modern();
    let (answer, _) = tokio::join!(modern.call("build", json!({})).send(), device.called());
    let answer = answer.unwrap();
    assert_eq!((answer.code(), answer.retryable()), (Some("in_progress"), Some(false)));
    let details = &answer.result()["structuredContent"]["error"]["details"];
    assert!(details["handle"].as_str().unwrap().starts_with("kept_"));
}

#[tokio::test]
async fn clients_known_to_wait_and_relays_told_to_wait_give_no_handle() {
    for known in [true, false] {
        let stage = Stage::with(|options| options.patience = if known { PATIENCE } else { Duration::ZERO }).await;
        let mut device = stage.device(&["list_dir"]).await;
        let modern = stage.modern();
        let name = if known { "claude-code" } else { "any" };
        let info = json!({"name": name, "version": "1"});
        let call = modern.call("list_dir", json!({})).meta("io.modelcontextprotocol/clientInfo", info);
        let (answer, ()) = tokio::join!(call.send(), async {
            let call = device.called().await;
            device.hears_nothing_for(PATIENCE * 4).await;
            device.succeed(&call, json!({"n": 1})).await;
        });
        assert_eq!(answer.unwrap().content(), &json!({"n": 1}));
    }
}

#[tokio::test]
async fn a_handle_of_the_device_goes_to_the_device() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir", "read_result"]).await;
    let modern = stage.modern();
    let (answer, ()) = tokio::join!(read(&modern, "res_aaaaaaaaaaaaaaaaaaaa", 0), async {
        let call = device.called().await;
        assert_eq!(
            (&call["tool"], &call["arguments"]["handle"]),
            (&json!("read_result"), &json!("res_aaaaaaaaaaaaaaaaaaaa"))
        );
        device.succeed(&call, json!({"text": "t"})).await;
    });
    assert_eq!(answer.content(), &json!({"text": "t"}));
}

#[tokio::test]
async fn a_handle_of_another_client_account_or_nobody_names_nothing() {
    let stage = Stage::with(|options| {
        hasty(options);
        long(options);
    })
    .await;
    let mut device = stage.device(&["list_dir", "build"]).await;
    let task = build(&stage.modern()).await;
    device.called().await;
    let (kept, _) = handle(&stage.modern(), &mut device).await;
    let guessed = format!("kept_{}", "A".repeat(24));
    let strangers = [stage.token_of("another client", None).await.0, stage.stranger().await];
    let own = stage.token.clone();
    let cases = strangers.iter().flat_map(|token| [(token, &task), (token, &kept)]);
    for (token, handle) in cases.chain([(&own, &guessed)]) {
        let thief = Modern::new(&stage.url, token);
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let refused = ask(&thief, method, handle).await;
            assert_eq!((refused.rpc_error(), refused.code()), (Some(-32602), Some("invalid_request")), "{method}");
        }
        for tool in ["read_result", "cancel_result"] {
            let refused = thief.call(tool, json!({"handle": handle})).send().await.unwrap();
            // A stranger's device was never seen, so there is no such tool; a handle is refused all the same.
            assert!(matches!(refused.code(), Some("not_found")), "{tool}: {refused:?}");
        }
    }
    for nonsense in ["", "kept_", "kept_../../x", "op_AAAAAAAAAAAAAAAAAAAAAA", "call_AAAAAAAAAAAA"] {
        let refused = ask(&stage.modern(), "tasks/get", nonsense).await;
        assert_eq!(refused.rpc_error(), Some(-32602), "{nonsense}");
        let refused = stage.modern().call("read_result", json!({"handle": nonsense})).send().await.unwrap();
        assert_eq!(refused.rpc_error(), Some(-32602), "{nonsense}");
    }
    device.hears_nothing_for(QUIET).await;
    assert_eq!(ask(&stage.modern(), "tasks/get", &task).await.result()["status"], "working");
}

#[tokio::test]
async fn a_reader_who_waits_takes_none_of_the_devices_places() {
    let stage = Stage::with(hasty).await;
    let mut device = stage.device(&["list_dir"]).await;
    let modern = stage.modern();
    let (handle, call) = handle(&modern, &mut device).await;
    let answered = std::cell::Cell::new(0);
    let reader = async |_| {
        let answer = read(&modern, &handle, 30_000).await;
        answered.set(answered.get() + 1);
        answer
    };
    let readers = futures_util::future::join_all((0..limits::CALL_WAITERS_MAX + 4).map(reader));
    let (answers, ()) = tokio::join!(readers, async {
        // Whoever finds no place is told at once, and by then all the others wait.
        while answered.get() < 4 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let room = &stage.relay.state().devices.rooms()[0];
        assert_eq!(room.status().link.pending.active, 1);
        device.succeed(&call, json!({"n": 1})).await;
    });
    let done = answers.iter().filter(|answer| answer.content()["done"] == true).count();
    assert_eq!(done, limits::CALL_WAITERS_MAX, "the others are told that it runs");
}
