//! Operations as MCP clients see them.

use holdfast_core::limits;
use serde_json::json;

use crate::desk::Desk;

#[tokio::test]
async fn a_client_starts_reads_writes_and_cancels_an_operation_and_finds_it_in_the_list() {
    let desk = Desk::start().await;
    let client = desk.stand.modern();
    let call =
        async |tool: &str, arguments| client.call(tool, arguments).send().await.expect("an answer").content().clone();
    let begun = call("start_operation", json!({"argv": ["cat"], "stdin": true})).await;
    let id = begun["operation_id"].as_str().expect("an id").to_owned();
    desk.state(&id, &["running"]).await;
    call("write_operation", json!({"operation_id": id, "data": "a ≤ b\n"})).await;
    let read = call("read_operation", json!({"operation_id": id, "wait_ms": 20_000})).await;
    assert_eq!((&read["stdout"], &read["stdout_next_offset"]), (&json!("a ≤ b\n"), &json!(8)), "{read}");
    let listed = call("list_operations", json!({"living": true})).await;
    assert_eq!(listed["operations"][0]["operation_id"], id);
    call("write_operation", json!({"operation_id": id, "close": true})).await;
    desk.end(&id).await;
    let end = call("read_operation", json!({"operation_id": id, "stdout_offset": 8})).await;
    assert_eq!(
        (&end["state"], &end["exit_code"], &end["done"]),
        (&json!("completed"), &json!(0), &json!(true)),
        "{end}"
    );
    let begun = call("start_operation", json!({"argv": ["sleep", "600"]})).await;
    let id = begun["operation_id"].as_str().expect("an id").to_owned();
    call("cancel_operation", json!({"operation_id": id})).await;
    assert_eq!(desk.end(&id).await["state"], "cancelled");
}

#[tokio::test]
async fn a_client_may_start_an_operation_while_the_machine_is_away() {
    let mut desk = Desk::start().await;
    desk.stand.device.kill_9().await;
    let client = desk.stand.modern();
    let script = "echo started away >> journal; echo it ran";
    let asked = json!({"argv": ["/bin/sh", "-c", script], "key": "once"});
    for _ in 0..2 {
        let begun = client.call("start_operation", asked.clone()).send().await.expect("an answer");
        assert_eq!(begun.content()["state"], "queued", "{begun:?}");
    }
    let begun = client.call("start_operation", asked).send().await.expect("an answer");
    let id = begun.content()["operation_id"].as_str().expect("an id").to_owned();
    desk.stand.restart_device().await;
    assert_eq!(desk.end(&id).await["state"], "completed");
    assert_eq!(desk.started("away"), 1);
}

#[tokio::test]
async fn a_client_whose_input_nobody_reads_is_told_busy_and_what_was_accepted_is_given_once_it_is_read() {
    let desk = Desk::start().await;
    let client = desk.stand.modern();
    let script = "echo started slow >> journal; \
                  while [ ! -e release-slow ]; do [ -e journal ] || exit 9; sleep 0.05; done; wc -c";
    let start = json!({"argv": ["/bin/sh", "-c", script], "stdin": true});
    let begun = client.call("start_operation", start).send().await.expect("an answer");
    let id = begun.content()["operation_id"].as_str().expect("an id").to_owned();
    desk.state(&id, &["running"]).await;
    let piece = "x".repeat(32 * 1024);
    let write = json!({"operation_id": id, "data": piece});
    let mut accepted = Vec::new();
    let refused = loop {
        let answer = client.call("write_operation", write.clone()).send().await.expect("an answer");
        if answer.code().is_some() {
            break answer;
        }
        accepted.push(answer.content()["input"].as_str().expect("an id").to_owned());
    };
    assert_eq!((refused.code(), refused.retryable()), (Some("busy"), Some(true)), "{refused:?}");
    assert!(accepted.len() >= limits::WORKER_RUN_INPUTS_MAX, "{}", accepted.len());
    desk.stand.release("slow");
    for input in &accepted {
        assert_eq!(desk.end(input).await["state"], "completed", "{input}");
    }
    // There is room again.
    let close = json!({"operation_id": id, "data": "last", "close": true});
    client.call("write_operation", close).send().await.expect("an answer").content();
    assert_eq!(desk.end(&id).await["state"], "completed");
    let counted = String::from_utf8(desk.output(&id, "stdout").await).expect("a number");
    assert_eq!(counted.trim().parse(), Ok(accepted.len() * piece.len() + "last".len()));
}
