//! From an order to its end.

use holdfast_core::operation::{Outcome, Request, Stream, Streams};
use holdfast_core::wire::worker::{ControlFrame, WorkerFrame};
use serde_json::json;

use crate::stage::{Stage, eventually, exec};

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

#[tokio::test]
async fn input_reaches_the_run_it_is_for_once() {
    let stage = Stage::new().await;
    let id = stage.start_with(json!({"request": {"type": "exec", "command": {"argv": ["cat"]}, "stdin": true}})).await;
    let mut worker = stage.worker().await;
    let operation = worker.operation().await;
    worker.runs(&operation).await;
    let given = json!({"request": {"type": "exec_stdin", "data": "/wDiiQ==", "close": true}, "key": "line 1"});
    let first = stage.post(&format!("/{id}/input"), given.clone()).await.json();
    let again = stage.post(&format!("/{id}/input"), given).await.json();
    assert_eq!(first["id"], again["id"]);
    let input = worker.operation().await;
    let expected = Request::ExecStdin { data: bytes::Bytes::from_static(b"\xff\x00\xe2\x89"), close: true };
    assert_eq!((input.request, &input.run_id), (expected, &operation.run_id));
    let outcome = Outcome::Completed { exit: None, value: None };
    worker.say(WorkerFrame::OperationCompleted { request_id: input.request_id.clone(), outcome }).await;
    let acknowledged = ControlFrame::OperationResultAck { request_id: input.request_id.clone() };
    while worker.frame().await != acknowledged {}
    assert_eq!(stage.state(&input.request_id).await, "completed");
    worker.exits(&operation, 0, Streams::new()).await;
    let late = json!({"request": {"type": "exec_stdin", "close": true}});
    let refused = stage.post(&format!("/{id}/input"), late).await;
    assert_eq!((refused.status, refused.code()), (404, "not_found".into()));
}

#[tokio::test]
async fn what_no_worker_came_for_in_its_time_expires_and_its_key_is_free_again() {
    let stage = Stage::new().await;
    let order = json!({"request": exec(), "key": "soon", "ttl_ms": 60_000});
    let first = stage.start_with(order.clone()).await;
    let expires = stage.view(&first).await["expires"].as_u64().unwrap();
    assert_eq!(expires, stage.view(&first).await["created"].as_u64().unwrap() + 60_000);
    // Over the death of the relay too.
    let stage = stage.crash().await;
    stage.relay.advance(61);
    eventually("it expired", async || stage.state(&first).await == "expired").await;
    assert_ne!(stage.start_with(order).await, first);
    let stage = stage.crash().await;
    let mut worker = stage.worker().await;
    assert_ne!(worker.operation().await.request_id, first);
}
