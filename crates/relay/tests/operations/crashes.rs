//! The relay dies at every step of an operation, and what it acknowledged stands.

use std::sync::Arc;

use holdfast_core::operation::{Operation, State, Stream, Streams};
use holdfast_core::wire::worker::{ControlFrame, Report, WorkerFrame};
use holdfast_testkit::worker::report;
use serde_json::json;

use crate::stage::{Stage, eventually, exec, id};

#[tokio::test]
async fn an_admitted_operation_is_delivered_by_the_next_life_of_the_relay() {
    let stage = Stage::new().await;
    let order = json!({"request": exec(), "key": "once"});
    let id = stage.start_with(order.clone()).await;
    let stage = stage.crash().await;
    assert_eq!(stage.start_with(order).await, id, "the client's repetition is the same operation");
    let mut worker = stage.worker().await;
    assert_eq!(worker.operation().await.request_id, id);
}

#[tokio::test]
async fn what_was_sent_is_asked_for_and_sent_again_only_if_the_ledger_does_not_have_it() {
    let stage = Stage::new().await;
    let lost = stage.start().await;
    let had = stage.start().await;
    let mut worker = stage.worker().await;
    let first = worker.operation().await;
    let second = worker.operation().await;
    assert_eq!((&first.request_id, &second.request_id), (&lost, &had));
    let stage = stage.crash().await;
    let mut worker = stage.socket(1).await;
    let wanted = worker.hello().await;
    let mut asked = wanted.requests.clone();
    asked.sort();
    let mut both = vec![lost.clone(), had.clone()];
    both.sort();
    assert_eq!(asked, both);
    worker.report(&wanted, vec![report(&second, State::Running)]).await;
    assert_eq!(worker.operation().await, first, "under the same run, to be started once");
    worker.complete(&wanted).await;
    worker.exits(&second, 0, Streams::new()).await;
    assert_eq!((stage.state(&had).await, stage.state(&lost).await), ("completed".into(), "queued".into()));
}

#[tokio::test]
async fn acknowledged_output_and_results_stand_at_every_step() {
    let mut stage = Stage::new().await;
    let id = stage.start().await;
    let mut worker = stage.worker().await;
    let operation = worker.operation().await;
    let run = operation.run_id.clone().unwrap();
    worker.runs(&operation).await;
    let mut written = 0;
    for step in 0..5_u8 {
        let piece = vec![b'a' + step; 100_000];
        worker.output(&run, Stream::Stdout, written, &piece).await;
        written += piece.len() as u64;
        // Not waited for: it may stand or not, and is offered again.
        worker.send_output(&run, Stream::Stdout, written, b"tail").await;
        stage = stage.crash().await;
        assert_eq!(worker.closed().await, None, "cut without a word");
        worker = stage.socket(1).await;
        let wanted = worker.hello().await;
        let stdout = wanted.offsets.iter().find(|offset| offset.stream == Stream::Stdout).unwrap().next_offset;
        assert!(stdout == written || stdout == written + 4, "{stdout} of {written}");
        worker.report(&wanted, vec![report(&operation, State::Running)]).await;
        worker.complete(&wanted).await;
        worker.output(&run, Stream::Stdout, written, b"tail").await;
        written += 4;
    }
    worker.exits(&operation, 7, Streams::from([(Stream::Stdout, written)])).await;
    let stage = stage.crash().await;
    assert_eq!(stage.view(&id).await["outcome"]["exit"]["code"], 7);
    let (mut whole, mut next, mut end) = (String::new(), 0, false);
    while !end {
        let (piece, after, last) = stage.output(&id, "stdout", next).await;
        (whole, next, end) = (whole + &piece, after, last);
    }
    let expected: String = ('a'..='e').map(|c| c.to_string().repeat(100_000) + "tail").collect();
    assert!(whole == expected, "{} of {} bytes", whole.len(), expected.len());
    let mut worker = stage.socket(1).await;
    assert_eq!(worker.hello().await.requests, vec![]);
}

#[tokio::test]
async fn an_end_whose_acknowledgement_was_lost_is_acknowledged_when_it_comes_again() {
    let stage = Stage::new().await;
    let id = stage.start().await;
    let mut worker = stage.worker().await;
    let operation = worker.operation().await;
    worker.runs(&operation).await;
    worker.send_exit(&operation, 0, Streams::new()).await;
    eventually("the end stands", async || stage.state(&id).await == "completed").await;
    let stage = stage.crash().await;
    let mut worker = stage.worker().await;
    worker.exits(&operation, 0, Streams::new()).await;
    assert_eq!(stage.state(&id).await, "completed");
}

#[tokio::test]
async fn a_cancel_outlives_the_relay_and_goes_before_operations() {
    let stage = Stage::new().await;
    let cancelled = stage.start().await;
    let mut worker = stage.worker().await;
    let operation = worker.operation().await;
    worker.runs(&operation).await;
    drop(worker);
    let answer = stage.post(&format!("/{cancelled}/cancel"), json!({})).await;
    assert_eq!((answer.status, answer.json()["cancelled"].as_bool()), (200, Some(true)));
    let next = stage.start().await;
    let stage = stage.crash().await;
    let mut worker = stage.socket(1).await;
    let wanted = worker.hello().await;
    worker.report(&wanted, vec![report(&operation, State::Running)]).await;
    let mut said = Vec::new();
    while said.len() < 2 {
        match worker.frame().await {
            ControlFrame::Cancel { request_id, .. } => said.push(("cancel", request_id)),
            ControlFrame::Operation(operation) => said.push(("start", operation.request_id)),
            _ => {}
        }
    }
    assert_eq!(said, vec![("cancel", cancelled.clone()), ("start", next)]);
    worker.say(WorkerFrame::CancelResult { request_id: cancelled.clone(), state: State::Cancelled }).await;
    worker.complete(&wanted).await;
}

#[tokio::test]
async fn a_session_that_was_cancelled_stays_cancelled() {
    let stage = Stage::new().await;
    let order = json!({"request": exec(), "session": "nightly"});
    let queued = stage.start_with(order.clone()).await;
    assert_eq!(stage.post("/cancel-session", json!({"session": "nightly"})).await.status, 204);
    eventually("what was queued is cancelled", async || stage.state(&queued).await == "cancelled").await;
    let stage = stage.crash().await;
    let refused = stage.post("", order).await;
    assert_eq!((refused.status, refused.code()), (409, "cancelled".into()));
    let other = stage.post("", json!({"request": exec(), "session": "daily"})).await;
    let mut worker = stage.worker().await;
    let mut named = None;
    loop {
        match worker.frame().await {
            ControlFrame::CancelSession { session_id, cancellation_id } => {
                named = Some(session_id);
                worker.say(WorkerFrame::CancelSessionAck { cancellation_id }).await;
            }
            ControlFrame::Operation(operation) => {
                assert_eq!(operation.request_id, id(&other.json()));
                break;
            }
            _ => {}
        }
    }
    assert!(named.is_some_and(|name| name.ends_with("/nightly")), "the worker is told, and first");
}

#[tokio::test]
async fn a_damaged_store_is_set_aside_and_the_relay_serves() {
    let stage = Stage::new().await;
    let known = stage.start().await;
    let file = stage.relay.dir.path().join("operations.sqlite");
    let stage = stage.crash_and(|| std::fs::write(&file, [7; 8192]).unwrap()).await;
    assert_eq!(stage.get("").await.json(), json!({"operations": []}));
    let lost = stage.get(&format!("/{known}")).await;
    assert_eq!((lost.status, &lost.json()["code"]), (404, &json!("not_found")));
    assert!(lost.json()["message"].as_str().is_some_and(|why| why.contains("damaged")), "{lost:?}");
    let kept = std::fs::read_dir(stage.relay.dir.path()).unwrap().flatten();
    let aside = kept.filter(|entry| entry.file_name().to_string_lossy().starts_with("operations.sqlite.damaged-"));
    assert!(aside.count() >= 1);
    stage.start().await;
}

#[tokio::test]
async fn a_calendar_that_is_set_while_the_relay_is_down_makes_nothing_expire() {
    let stage = Stage::new().await;
    let id = stage.start().await;
    let clock = Arc::clone(&stage.relay.clock);
    let stage = stage.crash_and(|| clock.set_calendar(7_200)).await;
    assert_eq!(stage.state(&id).await, "queued");
    let stage = stage.crash_and(|| clock.set_calendar(-14_400)).await;
    let mut worker = stage.worker().await;
    assert_eq!(worker.operation().await.request_id, id);
}

#[tokio::test]
async fn a_relay_whose_store_was_damaged_takes_back_from_the_worker_what_that_still_has() {
    let stage = Stage::new().await;
    let runs = stage.start().await;
    let mut worker = stage.worker().await;
    let running = worker.operation().await;
    let run = running.run_id.clone().unwrap();
    worker.runs(&running).await;
    worker.output(&run, Stream::Stdout, 0, b"abc").await;
    let store = stage.relay.dir.path().join("operations.sqlite");
    let stage = stage
        .crash_and(|| {
            for end in ["", "-wal"] {
                std::fs::write(format!("{}{end}", store.display()), [0xa5; 8192]).unwrap();
            }
        })
        .await;
    assert_eq!(stage.get(&format!("/{runs}")).await.status, 404);

    let mut worker = stage.socket(1).await;
    let wanted = worker.hello().await;
    assert_eq!(wanted.requests, []);
    let outline = Operation { request: running.request.outline(), ..running.clone() };
    let told = Report { operation: Some(Box::new(outline)), ..report(&running, State::Running) };
    worker.report(&wanted, vec![told]).await;
    let (run_id, stream) = (run.clone(), Stream::Stdout);
    worker.say(WorkerFrame::ExecGap { run_id, stream, offset: 0, next_offset: 3 }).await;
    worker.complete(&wanted).await;
    worker.output(&run, Stream::Stdout, 3, b"def").await;
    let view = stage.view(&runs).await;
    assert_eq!(
        (&view["state"], &view["missing"], &view["received"]["stdout"]),
        (&json!("running"), &json!({"stdout": 3}), &json!(6))
    );

    // It is an operation like any other: it survives, is cancelled, and ends once.
    let stage = stage.crash().await;
    let mut worker = stage.socket(1).await;
    let wanted = worker.hello().await;
    assert_eq!(wanted.requests, std::slice::from_ref(&runs));
    worker.report(&wanted, vec![report(&running, State::Running)]).await;
    worker.complete(&wanted).await;
    assert_eq!(stage.post(&format!("/{runs}/cancel"), json!({})).await.status, 200);
    while !matches!(worker.frame().await, ControlFrame::Cancel { .. }) {}
    worker.exits(&running, 7, Streams::from([(Stream::Stdout, 6)])).await;
    assert_eq!(stage.view(&runs).await["outcome"]["exit"]["code"], 7);
    assert_eq!(stage.output(&runs, "stdout", 3).await, ("def".into(), 6, true));
}
