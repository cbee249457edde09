//! A full disk: nothing is received, what runs goes on and its end is kept, and it is over by itself.

use holdfast_core::code::Code;
use holdfast_testkit::disk::Disk;

use super::*;

/// An operation whose row needs room.
fn big(n: u8) -> Operation {
    let argv = ["true".to_owned(), "x".repeat(60_000)];
    operation(n, serde_json::json!({"type": "exec", "command": {"argv": argv}}))
}

#[tokio::test]
async fn a_worker_without_room_receives_nothing_keeps_running_what_runs_and_recovers_by_itself() {
    let stage = Stage::new().await;
    let ledger = stage.data().join("worker");
    std::fs::create_dir_all(&ledger).unwrap();
    let disk = Disk::at(&ledger);
    let (worker, mut peer) = stage.live().await;
    peer.ask(sh(1, "while ! [ -e go ]; do sleep 0.01; done; echo done; exit 6")).await;
    peer.received(1).await;
    peer.state(1, State::Running).await;

    let files = std::fs::read_dir(&ledger).unwrap().flatten();
    disk.resize(files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum());
    peer.ask(big(2)).await;
    match peer.answer().await {
        WorkerFrame::OperationRejected { request_id, failure } => {
            assert_eq!((request_id, failure.code, failure.retryable), (id(2), Code::StorageFull, true));
        }
        other => panic!("{other:?}"),
    }
    status(&worker, |s| s.admission_closed.is_some()).await;

    std::fs::write(stage.workspace().join("go"), "").unwrap();
    let (outcome, _) = peer.end(1).await;
    assert_eq!(outcome.exit().and_then(|exit| exit.code), Some(6));
    assert_eq!(peer.output(1, Stream::Stdout), b"done\n");

    disk.heal();
    soon(async {
        loop {
            peer.ask(big(2)).await;
            match peer.answer().await {
                WorkerFrame::OperationReceived { .. } => break,
                WorkerFrame::OperationRejected { .. } => tokio::time::sleep(Duration::from_millis(50)).await,
                other => panic!("{other:?}"),
            }
        }
    })
    .await;
    assert_eq!(peer.end(2).await.0.state(), State::Completed);
    status(&worker, |s| s.admission_closed.is_none()).await;
}
