//! Operations as MCP clients see them.

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
