//! Which socket speaks for a device.

use holdfast_core::operation::{State, Stream, Streams};
use holdfast_core::wire::worker::{CLOSE_IN_USE, CLOSE_REPLACED};
use holdfast_relay::Offline;
use holdfast_testkit::worker::report;

use crate::stage::{Stage, eventually};

fn word(close: (u16, &str)) -> Option<(u16, String)> {
    Some((close.0, close.1.to_owned()))
}

#[tokio::test]
async fn a_newer_socket_of_the_same_ledger_takes_over_and_goes_on_where_the_old_one_was_acknowledged() {
    let stage = Stage::new().await;
    let id = stage.start().await;
    let mut old = stage.worker().await;
    let operation = old.operation().await;
    let run = operation.run_id.clone().unwrap();
    old.runs(&operation).await;
    old.output(&run, Stream::Stdout, 0, b"abc").await;
    let mut new = stage.socket(1).await;
    let wanted = new.hello().await;
    assert_eq!(old.closed().await, word(CLOSE_REPLACED));
    assert_eq!(wanted.requests, vec![id.clone()]);
    let from: Streams = wanted.offsets.iter().map(|offset| (offset.stream, offset.next_offset)).collect();
    assert_eq!(from, Streams::from([(Stream::Stdout, 3), (Stream::Stderr, 0), (Stream::Pty, 0)]));
    new.report(&wanted, vec![report(&operation, State::Running)]).await;
    // What the old one said after its last acknowledgement comes again, and more.
    new.send_output(&run, Stream::Stdout, 0, b"abcdef").await;
    assert_eq!(new.acknowledged(&run, Stream::Stdout).await, 6);
    new.complete(&wanted).await;
    new.exits(&operation, 0, Streams::from([(Stream::Stdout, 6)])).await;
    assert_eq!(stage.output(&id, "stdout", 0).await, ("abcdef".into(), 6, true));
}

#[tokio::test]
async fn a_copy_of_the_device_is_refused_while_the_device_answers() {
    let stage = Stage::new().await;
    let mut worker = stage.worker().await;
    let mut copy = stage.socket(2).await;
    copy.say_hello().await;
    assert_eq!(copy.closed().await, word(CLOSE_IN_USE));
    let id = stage.start().await;
    assert_eq!(worker.operation().await.request_id, id, "the device is not disturbed");
}

#[tokio::test]
async fn another_ledger_makes_unknown_only_what_was_sent_to_the_old_one() {
    let stage = Stage::new().await;
    let sent = stage.start().await;
    let mut worker = stage.worker().await;
    let operation = worker.operation().await;
    worker.runs(&operation).await;
    eventually("it is known to run", async || stage.state(&sent).await == "running").await;
    drop(worker);
    eventually("the worker is away", async || stage.view(&sent).await["worker_live"] == false).await;
    let queued = stage.start().await;
    let mut fresh =
        holdfast_testkit::worker::FakeWorker::live(stage.relay.addr(), &stage.device.token, 2, vec![]).await;
    assert_eq!(fresh.operation().await.request_id, queued);
    assert_eq!(stage.state(&sent).await, "unknown");
}

#[tokio::test]
async fn what_is_no_frame_of_the_protocol_ends_the_socket_and_nothing_else() {
    let stage = Stage::new().await;
    let id = stage.start().await;
    for text in ["", "{}", r#"{"type":"format_disk"}"#, r#"{"type":"hello"}"#, &"[".repeat(100_000)] {
        let mut worker = stage.socket(1).await;
        worker.say_text(text).await;
        let closed = worker.closed().await;
        assert!(closed.as_ref().is_some_and(|(code, _)| *code == 1002 || *code == 1008), "{closed:?}");
    }
    let mut worker = stage.socket(1).await;
    worker.say_text(&" ".repeat(holdfast_core::limits::OPERATION_FRAME_MAX + 1)).await;
    assert!(worker.closed().await.is_some_and(|(code, _)| code != 1000));
    assert_eq!(stage.worker().await.operation().await.request_id, id);
}

#[tokio::test]
async fn a_silent_worker_is_taken_for_dead() {
    let stage = Stage::new().await;
    let mut worker = stage.worker().await;
    stage.relay.advance(60);
    assert_eq!(worker.closed().await.map(|(code, _)| code), Some(1012));
}

#[tokio::test]
async fn a_stopping_relay_says_so_and_forgets_nothing() {
    let stage = Stage::new().await;
    let id = stage.start().await;
    let mut worker = stage.worker().await;
    let operation = worker.operation().await;
    worker.runs(&operation).await;
    let (relay, token) = (stage.relay, stage.token);
    let restarted = tokio::spawn(relay.restart());
    assert_eq!(worker.closed().await, Some((1012, "relay shutting down".into())));
    let stage = Stage { relay: restarted.await.unwrap(), device: stage.device, token };
    assert_eq!(stage.view(&id).await["cancelled"], false);
    let mut worker = stage.socket(1).await;
    assert_eq!(worker.hello().await.requests, vec![id]);
}

#[tokio::test]
async fn an_operation_of_a_device_that_is_removed_ends() {
    let stage = Stage::new().await;
    let sent = stage.start().await;
    let mut worker = stage.worker().await;
    let operation = worker.operation().await;
    worker.runs(&operation).await;
    let admin = &stage.relay.handle.admin;
    admin.revoke_device(None, stage.device.device.as_str()).await.unwrap();
    assert_eq!(worker.closed().await, Some((1008, "device_revoked".into())));
    let counts = || stage.relay.handle.state().operations.counts();
    eventually("it ended", async || counts().operations_unknown == 1).await;
    assert_eq!(stage.get(&format!("/{sent}")).await.status, 401, "its grants went with it");
}

/// A relay that is only administered leaves the operations alone.
#[tokio::test]
async fn offline_administration_opens_and_closes_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let offline = Offline::open(holdfast_relay::RelayOptions::loopback(0, dir.path())).await.unwrap();
    offline.close().await;
    assert!(dir.path().join("operations.sqlite").exists());
}
