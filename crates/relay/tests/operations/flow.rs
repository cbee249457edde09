//! From an order to its end.

use holdfast_core::operation::{Stream, Streams};
use serde_json::json;

use crate::stage::{Stage, exec};

#[tokio::test]
async fn an_operation_asked_for_while_the_worker_is_away_is_delivered_once_and_its_end_and_output_are_read() {
    let stage = Stage::new().await;
    let id = stage.start().await;
    let waiting = stage.view(&id).await;
    assert_eq!((waiting["state"].as_str(), waiting["worker_live"].as_bool()), (Some("queued"), Some(false)));
    let mut worker = stage.worker().await;
    let operation = worker.operation().await;
    assert_eq!(operation.request_id, id);
    let run = operation.run_id.clone().unwrap();
    worker.runs(&operation).await;
    worker.output(&run, Stream::Stdout, 0, b"one ").await;
    worker.output(&run, Stream::Stderr, 0, b"\xe2\x89").await;
    assert_eq!(stage.state(&id).await, "running");
    assert_eq!(stage.output(&id, "stdout", 0).await, ("one ".into(), 4, false));
    worker.output(&run, Stream::Stdout, 4, b"two").await;
    worker.exits(&operation, 3, Streams::from([(Stream::Stdout, 7), (Stream::Stderr, 2)])).await;
    assert_eq!(stage.output(&id, "stdout", 0).await, ("one two".into(), 7, true));
    assert_eq!(stage.output(&id, "stdout", 7).await, (String::new(), 7, true));
    assert_eq!(stage.output(&id, "stderr", 2).await, (String::new(), 2, true));
    let ended = stage.view(&id).await;
    assert_eq!(ended["state"], "completed");
    assert_eq!(ended["outcome"]["exit"]["code"], 3);
    assert_eq!(ended["received"], json!({"stdout": 7, "stderr": 2}));
    // Nothing of it is sent again.
    drop(worker);
    let mut worker = stage.socket(1).await;
    let wanted = worker.hello().await;
    assert_eq!((wanted.requests, wanted.offsets), (vec![], vec![]));
}

#[tokio::test]
async fn a_key_stands_for_one_operation_whatever_became_of_it() {
    let stage = Stage::new().await;
    let order = json!({"request": exec(), "key": "build 7"});
    let id = stage.start_with(order.clone()).await;
    assert_eq!(stage.start_with(order.clone()).await, id);
    let other = json!({"request": {"type": "exec", "command": {"argv": ["false"]}}, "key": "build 7"});
    let conflict = stage.post("", other).await;
    assert_eq!((conflict.status, conflict.code()), (409, "conflict".into()));
    let mut worker = stage.worker().await;
    let operation = worker.operation().await;
    worker.runs(&operation).await;
    worker.exits(&operation, 0, Streams::new()).await;
    assert_eq!(stage.start_with(order).await, id, "an ended one is remembered too");
    assert_eq!(stage.state(&id).await, "completed");
}
