//! What a start finds.

use super::*;

#[tokio::test]
async fn a_damaged_ledger_is_told_and_what_still_runs_is_ended() {
    let stage = Stage::new().await;
    let (worker, mut peer) = stage.live().await;
    // It takes a while to end.
    peer.ask(sh(1, "trap '' TERM; echo $$; while :; do sleep 1000; done")).await;
    peer.received(1).await;
    peer.state(1, State::Running).await;
    peer.until_output(1, Stream::Stdout, |output| output.ends_with(b"\n")).await;
    let child: u32 = String::from_utf8_lossy(peer.output(1, Stream::Stdout)).trim().parse().unwrap();
    worker.end().await;
    std::fs::write(stage.data().join("worker/ledger.sqlite"), "no database, whatever it was before").unwrap();

    let _worker = stage.worker().await;
    let second = stage.relay.live(&[id(1)], BTreeMap::new()).await;
    assert!(!lives(child), "the relay takes it for over as soon as it sees the new ledger");
    assert_eq!(*stage.ears.0.lock(), [Aside::Damaged]);
    assert_ne!(second.ledger, peer.ledger);
    assert_eq!(second.reports, [], "it was never received here");
    gone(&stage.run_folder(1)).await;
}

#[tokio::test]
async fn folders_that_nobody_knows_are_removed() {
    let stage = Stage::new().await;
    let runs = stage.data().join("runs");
    let unclaimed = crate::run::folder(&runs, &run(1), 1);
    let strange = runs.join("strange");
    for folder in [&unclaimed, &strange] {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("stdout.0"), "old").unwrap();
    }
    let _live = stage.live().await;
    gone(&unclaimed).await;
    gone(&strange).await;
}

#[tokio::test]
async fn a_stopped_worker_leaves_what_runs_alone_and_takes_it_up_again() {
    let stage = Stage::new().await;
    let (worker, mut peer) = stage.live().await;
    peer.ask(sh(1, "while ! [ -e go ]; do sleep 0.01; done; exit 6")).await;
    peer.received(1).await;
    peer.state(1, State::Running).await;
    worker.stop();
    soon(worker.stopped()).await;
    std::fs::write(stage.workspace().join("go"), "").unwrap();
    worker.start();
    let mut peer = stage.relay.live(&[id(1)], BTreeMap::new()).await;
    match peer.end(1).await.0 {
        Outcome::Completed { exit: Some(exit), .. } => assert_eq!(exit.code, Some(6)),
        other => panic!("{other:?}"),
    }
}
