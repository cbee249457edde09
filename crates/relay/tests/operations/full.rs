//! A full disk: nothing is acknowledged, nothing is lost, and it ends by itself.

use holdfast_core::operation::{Stream, Streams};
use holdfast_testkit::disk::Disk;
use serde_json::json;

use crate::stage::{Stage, eventually, exec};

#[tokio::test]
async fn a_relay_without_room_acknowledges_nothing_and_goes_on_by_itself_when_there_is_room() {
    let stage = Stage::new().await;
    let disk = Disk::at(stage.relay.dir.path());
    let stage = stage.crash().await;
    let id = stage.start().await;
    let mut worker = stage.worker().await;
    let operation = worker.operation().await;
    let run = operation.run_id.clone().unwrap();
    worker.runs(&operation).await;
    worker.output(&run, Stream::Stdout, 0, &[b'a'; 100_000]).await;
    disk.resize(0);
    let refused = stage.post("", json!({"request": exec(), "key": "k"})).await;
    assert_eq!((refused.status, refused.code()), (507, "storage_full".into()));
    eventually("a device that is refused", async || refusing(&stage).await == 1).await;
    worker.send_output(&run, Stream::Stdout, 100_000, &[b'b'; 100_000]).await;
    worker.send_exit(&operation, 0, Streams::from([(Stream::Stdout, 200_000)])).await;
    // The refusal comes after what was sent before it, on the same store.
    while stage.post("", json!({"request": exec(), "key": "k"})).await.status != 507 {}
    assert_eq!(stage.view(&id).await["received"], json!({"stdout": 100_000}));
    disk.heal();
    stage.relay.advance(2);
    // Nothing was acknowledged, so the worker offers it again.
    worker.output(&run, Stream::Stdout, 100_000, &[b'b'; 100_000]).await;
    eventually("no device that is refused", async || refusing(&stage).await == 0).await;
    worker.exits(&operation, 0, Streams::from([(Stream::Stdout, 200_000)])).await;
    assert_eq!(stage.output(&id, "stdout", 199_999).await, ("b".into(), 200_000, true));
    assert_eq!(stage.state(&id).await, "completed");
    let order = json!({"request": exec(), "key": "k"});
    let first = stage.start_with(order.clone()).await;
    assert_eq!(stage.start_with(order).await, first, "the refused ones left no trace");
    let listed = stage.get("").await.json();
    assert_eq!(listed["operations"].as_array().unwrap().len(), 2);
}

/// Devices whose operations the store refuses, as `/metrics` says.
async fn refusing(stage: &Stage) -> usize {
    let metrics = stage.relay.get("/metrics", &[]).await.body;
    let line = metrics.lines().find_map(|line| line.strip_prefix("holdfast_operations_refusing_devices "));
    line.and_then(|value| value.parse::<f64>().ok()).map(|value| value as usize).expect("the gauge")
}
