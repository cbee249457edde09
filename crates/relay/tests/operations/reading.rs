//! Readers: waiting, following, coming back, and what was given up.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_core::id::OperationId;
use holdfast_core::limits;
use holdfast_core::operation::{Operation, Stream, Streams};
use holdfast_core::wire::worker::WorkerFrame;
use holdfast_testkit::mcp::Modern;
use holdfast_testkit::worker::FakeWorker;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::stage::{PATIENCE, Stage, eventually};

/// An operation that runs.
async fn running(stage: &Stage) -> (OperationId, FakeWorker, Operation) {
    let id = stage.start().await;
    let mut worker = stage.worker().await;
    let operation = worker.operation().await;
    worker.runs(&operation).await;
    (id, worker, operation)
}

#[tokio::test]
async fn a_reader_waits_for_output_and_for_the_end_and_no_longer_than_it_asked() {
    let stage = Stage::new().await;
    let (id, mut worker, operation) = running(&stage).await;
    let run = operation.run_id.clone().unwrap();
    let nothing = stage.get(&format!("/{id}/output?wait_ms=1")).await;
    assert_eq!((nothing.body.as_str(), nothing.header("x-end")), ("", Some("false")));
    let first = stage.output(&id, "stdout", 0);
    let (read, ()) = tokio::join!(first, worker.output(&run, Stream::Stdout, 0, b"abc"));
    assert_eq!(read, ("abc".into(), 3, false));
    let written = Streams::from([(Stream::Stdout, 3)]);
    let (read, ()) = tokio::join!(stage.output(&id, "stdout", 3), worker.exits(&operation, 0, written));
    assert_eq!(read, (String::new(), 3, true));
}

#[tokio::test]
async fn what_was_given_up_is_told_with_the_place_where_output_goes_on() {
    let stage = Stage::new().await;
    let (id, mut worker, operation) = running(&stage).await;
    let run = operation.run_id.clone().unwrap();
    worker.output(&run, Stream::Stdout, 0, b"begin").await;
    let gap = WorkerFrame::ExecGap { run_id: run.clone(), stream: Stream::Stdout, offset: 5, next_offset: 1_000 };
    worker.say(gap).await;
    while worker.acknowledged(&run, Stream::Stdout).await < 1_000 {}
    worker.output(&run, Stream::Stdout, 1_000, b"end").await;
    assert_eq!(stage.output(&id, "stdout", 0).await, ("begin".into(), 5, false));
    let gone = stage.get(&format!("/{id}/output?offset=7")).await;
    assert_eq!(
        (gone.status, gone.code(), gone.json()["first_available"].as_u64()),
        (410, "offset_gone".into(), Some(1_000))
    );
    assert_eq!(stage.output(&id, "stdout", 1_000).await, ("end".into(), 1_003, false));
    for bad in ["offset=1004", "stream=pty", "stream=stdin", "offset=-1", "offset=x", "nonsense=1"] {
        let answer = stage.get(&format!("/{id}/output?{bad}")).await;
        assert_eq!((answer.status, answer.code()), (400, "invalid_request".into()), "{bad}");
    }
}

/// Events of one connection: kind, id and data.
struct Events {
    socket: TcpStream,
    text: String,
}

type Event = (String, Option<u64>, String);

impl Events {
    async fn open(stage: &Stage, path: &str, last: Option<u64>) -> Events {
        let mut socket = TcpStream::connect(stage.relay.addr()).await.unwrap();
        let last = last.map_or(String::new(), |id| format!("last-event-id: {id}\r\n"));
        let head = format!(
            "GET /api/operations{path} HTTP/1.0\r\nhost: {}\r\nauthorization: Bearer {}\r\n{last}\r\n",
            stage.relay.addr(),
            stage.token
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut events = Events { socket, text: String::new() };
        let head = events.until("\r\n\r\n").await.unwrap();
        assert!(head.contains("text/event-stream") && head.contains("x-accel-buffering: no"), "{head}");
        events
    }

    /// `None`: the connection ended.
    async fn until(&mut self, mark: &str) -> Option<String> {
        loop {
            if let Some((before, after)) = self.text.split_once(mark) {
                let before = before.to_owned();
                self.text = after.to_owned();
                return Some(before);
            }
            let mut buffer = [0; 8192];
            let read = tokio::time::timeout(PATIENCE, self.socket.read(&mut buffer)).await.expect("an event").ok()?;
            if read == 0 {
                return None;
            }
            self.text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            let block = self.until("\n\n").await?;
            let field =
                |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(|text| text.trim().to_owned());
            if let Some(kind) = field("event:") {
                return Some((kind, field("id:").map(|id| id.parse().unwrap()), field("data:").unwrap_or_default()));
            }
        }
    }

    async fn output(&mut self) -> (Vec<u8>, u64) {
        match self.next().await {
            Some((kind, Some(id), data)) if kind == "output" => (STANDARD.decode(data).unwrap(), id),
            other => panic!("no output: {other:?}"),
        }
    }
}

#[tokio::test]
async fn who_follows_gets_every_byte_and_comes_back_where_the_connection_was_lost() {
    let stage = Stage::new().await;
    let (id, mut worker, operation) = running(&stage).await;
    let run = operation.run_id.clone().unwrap();
    let path = format!("/{id}/output?stream=stdout&follow=1");
    let mut events = Events::open(&stage, &path, None).await;
    worker.output(&run, Stream::Stdout, 0, b"\xe2\x89").await;
    assert_eq!(events.output().await, (b"\xe2\x89".to_vec(), 2));
    worker.output(&run, Stream::Stdout, 2, b"\xa4\n").await;
    assert_eq!(events.output().await, (b"\xa4\n".to_vec(), 4));
    drop(events);
    worker.output(&run, Stream::Stdout, 4, b"more").await;
    let gap = WorkerFrame::ExecGap { run_id: run.clone(), stream: Stream::Stdout, offset: 8, next_offset: 20 };
    worker.say(gap).await;
    while worker.acknowledged(&run, Stream::Stdout).await < 20 {}
    let mut events = Events::open(&stage, &path, Some(4)).await;
    assert_eq!(events.output().await, (b"more".to_vec(), 8));
    assert_eq!(events.next().await, Some(("gap".into(), Some(20), r#"{"first_available":20}"#.into())));
    let big = vec![b'x'; 3 * limits::CONTROL_FOLLOW_PIECE + 1];
    let end = 20 + big.len() as u64;
    let all = async {
        let (mut got, mut at) = (Vec::new(), 20);
        while at < end {
            let (piece, next) = events.output().await;
            assert!(piece.len() <= limits::CONTROL_FOLLOW_PIECE && next == at + piece.len() as u64);
            got.extend(piece);
            at = next;
        }
        got
    };
    let (got, ()) = tokio::join!(all, worker.output(&run, Stream::Stdout, 20, &big));
    assert!(got == big);
    worker.exits(&operation, 5, Streams::from([(Stream::Stdout, end)])).await;
    let (kind, _, data) = events.next().await.unwrap();
    let view: serde_json::Value = serde_json::from_str(&data).unwrap();
    assert_eq!((kind.as_str(), view["outcome"]["exit"]["code"].as_i64()), ("end", Some(5)));
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn who_follows_by_a_grant_that_is_revoked_hears_nothing_more() {
    let stage = Stage::new().await;
    let (id, mut worker, operation) = running(&stage).await;
    let mut events = Events::open(&stage, &format!("/{id}/output?follow=1"), None).await;
    worker.output(operation.run_id.as_ref().unwrap(), Stream::Stdout, 0, b"abc").await;
    events.output().await;
    stage.relay.handle.admin.cut_all_access().await.unwrap();
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn what_is_over_is_read_and_told_as_a_task_however_many_wait_for_output() {
    let stage = Stage::new().await;
    let modern = Modern::new(stage.relay.handle.mcp_url(), &stage.token);
    let task = stage.start().await;
    let mut worker = stage.worker().await;
    let operation = worker.operation().await;
    worker.runs(&operation).await;
    let run = operation.run_id.clone().unwrap();
    worker.output(&run, Stream::Stdout, 0, b"abc").await;
    worker.exits(&operation, 0, Streams::from([(Stream::Stdout, 3)])).await;
    eventually("its end", async || stage.state(&operation.request_id).await == "completed").await;

    let waits = stage.start().await;
    let path = format!("/{waits}/output?stream=stdout&follow=1");
    let mut waiting = Vec::new();
    for _ in 0..limits::CONTROL_READERS_MAX {
        waiting.push(Events::open(&stage, &path, None).await);
    }
    let full = async || stage.get(&format!("/{waits}/output?wait_ms=1")).await.status == 429;
    eventually("every place to be taken", full).await;
    let got = modern.request("tasks/get", json!({"taskId": task})).tasks().send().await.unwrap();
    assert_eq!(got.result()["status"], "completed", "{got:?}");
    assert_eq!(got.result()["result"]["structuredContent"]["stdout_head"], "abc");
    assert_eq!(stage.get(&format!("/{}/output", operation.request_id)).await.body, "abc");
    assert_eq!(stage.get(&format!("/{waits}/output")).await.status, 200, "who does not wait takes no place");
}

#[tokio::test]
async fn a_task_whose_result_cannot_be_read_now_is_not_said_to_be_unknown() {
    let stage = Stage::new().await;
    let modern = Modern::new(stage.relay.handle.mcp_url(), &stage.token);
    let (id, mut worker, operation) = running(&stage).await;
    worker.output(operation.run_id.as_ref().unwrap(), Stream::Stdout, 0, b"abc").await;
    worker.exits(&operation, 0, Streams::from([(Stream::Stdout, 3)])).await;
    eventually("its end", async || stage.state(&id).await == "completed").await;
    let db = rusqlite::Connection::open(stage.relay.dir.path().join("operations.sqlite")).unwrap();
    db.busy_timeout(PATIENCE).unwrap();
    db.execute_batch("ALTER TABLE chunks RENAME TO lost").unwrap();
    let got = modern.request("tasks/get", json!({"taskId": id})).tasks().send().await.unwrap();
    assert_eq!((got.rpc_error(), got.code()), (Some(-32603), Some("internal_error")), "{got:?}");
}
