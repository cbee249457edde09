//! What runs, and what comes of it when worker, runner or network go away.

use holdfast_core::operation::Exit;
use holdfast_core::run::Claim;
use holdfast_core::status::LinkState;
use holdfast_testkit::fault::FaultProxy;
use serde_json::json;

use super::*;

fn exit_code(outcome: &Outcome) -> Option<i32> {
    match outcome {
        Outcome::Completed { exit: Some(Exit { code, .. }), .. } => *code,
        other => panic!("not completed: {other:?}"),
    }
}

/// The first status that tells the only operation as completed and nothing behind; it is told at a pace, so it may come
/// a moment after the folder went, and one from before the start has nothing behind either.
async fn settled(worker: &WorkerHandle) -> Arc<WorkerStatus> {
    let over = |s: &Arc<WorkerStatus>| {
        let completed = s.operations.iter().map(|row| row.state).eq([State::Completed]);
        completed && (s.behind_bytes, s.results_waiting, s.counts.running) == (0, 0, 0)
    };
    status(worker, over).await
}

#[tokio::test]
async fn a_program_runs_and_its_output_its_exit_and_the_giving_up_of_its_room_follow() {
    let stage = Stage::new().await;
    let (worker, mut peer) = stage.live().await;
    peer.ask(sh(1, "printf out; printf err >&2; pwd; exit 3")).await;
    peer.received(1).await;
    let (outcome, written) = peer.end(1).await;
    assert_eq!(exit_code(&outcome), Some(3));
    let folder = stage.workspace().canonicalize().unwrap();
    let out = format!("out{}\n", folder.display());
    assert_eq!(String::from_utf8_lossy(peer.output(1, Stream::Stdout)), out);
    assert_eq!(peer.output(1, Stream::Stderr), b"err");
    assert_eq!(written, Streams::from([(Stream::Stdout, out.len() as u64), (Stream::Stderr, 3)]));
    gone(&stage.run_folder(1)).await;
    assert_eq!(settled(&worker).await.operations[0].exit_code, Some(3));
    // The same again is not done again.
    peer.ask(sh(1, "printf out; printf err >&2; pwd; exit 3")).await;
    peer.received(1).await;
    assert_eq!(peer.end(1).await.0, outcome);
}

#[tokio::test]
async fn bytes_arrive_as_they_were_written_whatever_they_are() {
    let stage = Stage::new().await;
    // Longer than a piece and no multiple of one; the three bytes of a character fall on every border.
    let bytes: Vec<u8> = "≤".bytes().cycle().take(700_000).chain(0..=255).collect();
    std::fs::write(stage.workspace().join("bytes"), &bytes).unwrap();
    let (_worker, mut peer) = stage.live().await;
    peer.ask(sh(1, "cat bytes; cat bytes >&2")).await;
    peer.received(1).await;
    let (outcome, written) = peer.end(1).await;
    assert_eq!(exit_code(&outcome), Some(0));
    assert_eq!(written, Streams::from([(Stream::Stdout, 700_256), (Stream::Stderr, 700_256)]));
    assert!(peer.output(1, Stream::Stdout) == bytes && peer.output(1, Stream::Stderr) == bytes);
}

#[tokio::test]
async fn input_reaches_a_program_once_and_a_terminal_is_one() {
    let stage = Stage::new().await;
    let (_worker, mut peer) = stage.live().await;
    peer.ask(operation(1, json!({"type": "pty_open", "command": {"argv": ["sh", "-c", "tty >/dev/null && stty size; read x; echo got $x"]}, "cols": 90, "rows": 30}))).await;
    peer.received(1).await;
    peer.until_output(1, Stream::Pty, |output| output == b"30 90\r\n").await;
    let input = Operation { run_id: Some(run(1)), ..operation(2, json!({"type": "pty_input", "data": "eWVzCg=="})) };
    for _ in 0..2 {
        peer.ask(input.clone()).await;
        peer.received(2).await;
        loop {
            match peer.answer().await {
                WorkerFrame::OperationCompleted { request_id, outcome } => {
                    assert_eq!((request_id, outcome.state()), (id(2), State::Completed));
                    break;
                }
                other => peer.keep(other),
            }
        }
    }
    let (outcome, _) = peer.end(1).await;
    assert_eq!(exit_code(&outcome), Some(0));
    assert_eq!(String::from_utf8_lossy(peer.output(1, Stream::Pty)), "30 90\r\nyes\r\ngot yes\r\n");
}

#[tokio::test]
async fn a_cancelled_program_ends_with_all_it_started() {
    let stage = Stage::new().await;
    let (_worker, mut peer) = stage.live().await;
    peer.ask(sh(1, "sleep 1000 & echo $!; wait")).await;
    peer.received(1).await;
    peer.state(1, State::Running).await;
    peer.until_output(1, Stream::Stdout, |output| output.ends_with(b"\n")).await;
    peer.say(ControlFrame::Cancel { request_id: id(1), run_id: Some(run(1)) }).await;
    match peer.answer().await {
        WorkerFrame::CancelResult { request_id, .. } => assert_eq!(request_id, id(1)),
        other => panic!("{other:?}"),
    }
    let (outcome, _) = peer.end(1).await;
    assert!(matches!(outcome, Outcome::Cancelled { started: true, .. }), "{outcome:?}");
    let child: u32 = String::from_utf8_lossy(peer.output(1, Stream::Stdout)).trim().parse().unwrap();
    assert!(!lives(child));
}

/// Runs a worker in a runtime of its own, so that it can be torn off at any moment. Its socket stays open until it is gone:
/// one that dialled again would be taken for the next worker.
async fn torn_off(stage: &Stage, meanwhile: impl AsyncFnOnce(Peer) -> Peer) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let worker = {
        let _inside = runtime.enter();
        stage.worker().await
    };
    let peer = meanwhile(stage.relay.live(&[], BTreeMap::new()).await).await;
    tokio::task::spawn_blocking(move || runtime.shutdown_timeout(limits::WORKER_LEASE)).await.unwrap();
    drop((peer, worker));
}

#[tokio::test]
async fn a_run_outlives_its_worker_and_the_next_one_finds_it_again() {
    let stage = Stage::new().await;
    let mut received = BTreeMap::new();
    let mut ledger = None;
    torn_off(&stage, async |mut peer| {
        peer.ask(sh(1, "echo before; read x; echo got $x; exit 7")).await;
        peer.received(1).await;
        peer.state(1, State::Running).await;
        peer.until_output(1, Stream::Stdout, |output| output == b"before\n").await;
        (received, ledger) = (std::mem::take(&mut peer.received), peer.ledger.take());
        peer
    })
    .await;

    let _worker = stage.worker().await;
    let mut peer = stage.relay.live(&[id(1)], received).await;
    assert_eq!(peer.ledger, ledger);
    let reported: Vec<_> = peer.reports.iter().map(|r| (r.request_id.clone(), r.state)).collect();
    assert_eq!(reported, [(id(1), State::Running)]);
    peer.ask(Operation { run_id: Some(run(1)), ..operation(2, json!({"type": "exec_stdin", "data": "eWVzCg=="})) })
        .await;
    peer.received(2).await;
    loop {
        match peer.answer().await {
            WorkerFrame::OperationCompleted { .. } => break,
            other => peer.keep(other),
        }
    }
    let (outcome, written) = peer.end(1).await;
    assert_eq!(exit_code(&outcome), Some(7));
    assert_eq!(peer.output(1, Stream::Stdout), b"before\ngot yes\n");
    assert_eq!(written, Streams::from([(Stream::Stdout, 15)]));
}

#[tokio::test]
async fn an_end_that_came_while_no_worker_was_there_is_told_by_the_next_one() {
    let stage = Stage::new().await;
    torn_off(&stage, async |mut peer| {
        peer.ask(sh(1, "while ! [ -e go ]; do sleep 0.01; done; echo late; exit 4")).await;
        peer.received(1).await;
        peer.state(1, State::Running).await;
        peer
    })
    .await;
    std::fs::write(stage.workspace().join("go"), "").unwrap();
    soon(async {
        while !stage.run_folder(1).join("exit").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let _worker = stage.worker().await;
    let mut peer = stage.relay.live(&[id(1)], BTreeMap::new()).await;
    let (outcome, _) = peer.end(1).await;
    assert_eq!(exit_code(&outcome), Some(4));
    assert_eq!(peer.output(1, Stream::Stdout), b"late\n");
}

#[tokio::test]
async fn a_killed_runner_leaves_an_unknown_outcome_the_output_so_far_and_nothing_running() {
    let stage = Stage::new().await;
    let (worker, mut peer) = stage.live().await;
    peer.ask(sh(1, "echo $$; sleep 1000")).await;
    peer.received(1).await;
    peer.state(1, State::Running).await;
    peer.until_output(1, Stream::Stdout, |output| output.ends_with(b"\n")).await;
    let claim = std::fs::read_to_string(stage.run_folder(1).join("claim")).unwrap();
    let Claim::Runner(runner) = serde_json::from_str(&claim).unwrap() else { panic!("{claim}") };
    let runner = nix::unistd::Pid::from_raw(i32::try_from(runner.pid).unwrap());
    nix::sys::signal::kill(runner, nix::sys::signal::Signal::SIGKILL).unwrap();
    let (outcome, written) = peer.end(1).await;
    match &outcome {
        Outcome::Unknown { evidence: Some(evidence), .. } => assert_eq!(evidence["runner"], "gone"),
        other => panic!("{other:?}"),
    }
    assert_eq!(written[&Stream::Stdout], peer.output(1, Stream::Stdout).len() as u64);
    let child: u32 = String::from_utf8_lossy(peer.output(1, Stream::Stdout)).trim().parse().unwrap();
    assert!(!lives(child), "unknown means over");
    let status = status(&worker, |s| s.counts.unknown == 1).await;
    assert!(status.operations[0].note.is_some());
    worker.dismiss(id(1));
    super::status(&worker, |s| s.counts.unknown == 0 && s.operations.is_empty()).await;
}

/// A program runs, its worker goes, something happens to its folder, and another worker comes: how it ends, and the program.
async fn spoilt(spoil: impl FnOnce(&Path)) -> (Outcome, u32) {
    let stage = Stage::new().await;
    let mut received = BTreeMap::new();
    let mut program = 0;
    torn_off(&stage, async |mut peer| {
        peer.ask(sh(1, "echo $$; exec sleep 1000")).await;
        peer.received(1).await;
        peer.state(1, State::Running).await;
        peer.until_output(1, Stream::Stdout, |output| output.ends_with(b"\n")).await;
        program = String::from_utf8_lossy(peer.output(1, Stream::Stdout)).trim().parse().unwrap();
        received = std::mem::take(&mut peer.received);
        peer
    })
    .await;
    assert!(lives(program));
    spoil(&stage.run_folder(1));
    let _worker = stage.worker().await;
    let mut peer = stage.relay.live(&[id(1)], received).await;
    (peer.end(1).await.0, program)
}

#[tokio::test]
async fn a_claim_that_says_nothing_makes_the_outcome_unknown_after_what_runs_was_found_and_ended() {
    let (outcome, program) = spoilt(|folder| std::fs::write(folder.join("claim"), "{").unwrap()).await;
    assert!(!lives(program), "unknown means over");
    let Outcome::Unknown { evidence: Some(evidence), .. } = &outcome else { panic!("{outcome:?}") };
    assert_eq!((&evidence["runner"], &evidence["left"]["living"]), (&json!("unreadable"), &json!([])));
}

#[tokio::test]
async fn a_claim_that_was_removed_makes_the_outcome_unknown_after_what_runs_was_found_and_ended() {
    let (outcome, program) = spoilt(|folder| std::fs::remove_file(folder.join("claim")).unwrap()).await;
    assert!(!lives(program), "unknown means over");
    let reason = "what its runner left is gone".into();
    assert_eq!(outcome, Outcome::Unknown { reason, evidence: None });
}

#[tokio::test]
async fn a_cut_in_the_middle_of_output_loses_no_byte_and_repeats_none_beyond_the_window() {
    let stage = Stage::new().await;
    let bytes: Vec<u8> = (0..6_000_000u32).flat_map(|n| [(n % 251) as u8]).collect();
    std::fs::write(stage.workspace().join("bytes"), &bytes).unwrap();
    let proxy = FaultProxy::start(stage.relay.address()).await.unwrap();
    let worker = stage.worker_at(proxy.address(), |_| {}).await;
    let mut peer = stage.relay.live(&[], BTreeMap::new()).await;
    peer.ask(sh(1, "cat bytes")).await;
    peer.received(1).await;
    peer.until_output(1, Stream::Stdout, |output| output.len() > 1_000_000).await;
    proxy.cut();
    let received = std::mem::take(&mut peer.received);
    drop(peer);
    status(&worker, |s| s.state != LinkState::Healthy).await;
    proxy.heal();
    let mut peer = stage.relay.live(&[id(1)], received).await;
    let (outcome, written) = peer.end(1).await;
    assert_eq!(exit_code(&outcome), Some(0));
    assert_eq!(written, Streams::from([(Stream::Stdout, 6_000_000)]));
    assert!(peer.output(1, Stream::Stdout) == bytes);
}

/// Makes the worker lose its connection to the runner of a run: a runner talks to its newest one only.
async fn torn(stage: &Stage, n: u8) -> (PathBuf, crate::run::Attached) {
    let folder = stage.run_folder(n);
    let attached = crate::run::attach(&folder).await.expect("a runner");
    (crate::run::spec(&folder).expect("a spec").socket.into(), attached)
}

#[tokio::test]
async fn a_runner_whose_socket_lost_its_name_is_found_again_and_input_keeps_its_order() {
    let stage = Stage::new().await;
    let (_worker, mut peer) = stage.live().await;
    peer.ask(sh(1, "while read x; do echo got $x; [ $x = 4 ] && exit 6; done")).await;
    peer.received(1).await;
    peer.state(1, State::Running).await;
    let (socket, attached) = torn(&stage, 1).await;
    std::fs::remove_file(socket).unwrap();
    for n in 2..=4 {
        let data = data_encoding::BASE64.encode(format!("{n}\n").as_bytes());
        peer.ask(Operation { run_id: Some(run(1)), ..operation(n, json!({"type": "exec_stdin", "data": data})) }).await;
    }
    drop(attached);
    let exit = |frame: &WorkerFrame| matches!(frame, WorkerFrame::ExecExit { .. });
    while !peer.heard.iter().any(exit) {
        let frame = peer.frame().await;
        peer.keep(frame);
    }
    peer.heard.retain(exit);
    assert_eq!(exit_code(&peer.end(1).await.0), Some(6));
    assert_eq!(String::from_utf8_lossy(peer.output(1, Stream::Stdout)), "got 2\ngot 3\ngot 4\n");
}

#[tokio::test]
async fn a_program_whose_runner_cannot_be_reached_is_ended_all_the_same() {
    let stage = Stage::new().await;
    let (_worker, mut peer) = stage.live().await;
    peer.ask(sh(1, "echo $$; exec sleep 1000")).await;
    peer.received(1).await;
    peer.until_output(1, Stream::Stdout, |output| output.ends_with(b"\n")).await;
    let (socket, attached) = torn(&stage, 1).await;
    std::fs::remove_file(&socket).unwrap();
    // Nobody can listen there again.
    std::fs::create_dir(&socket).unwrap();
    drop(attached);
    peer.say(ControlFrame::Cancel { request_id: id(1), run_id: Some(run(1)) }).await;
    match peer.answer().await {
        WorkerFrame::CancelResult { request_id, .. } => assert_eq!(request_id, id(1)),
        other => panic!("{other:?}"),
    }
    let (outcome, _) = soon(peer.end(1)).await;
    std::fs::remove_dir(&socket).unwrap();
    assert!(matches!(outcome, Outcome::Cancelled { started: true, .. }), "{outcome:?}");
    let child: u32 = String::from_utf8_lossy(peer.output(1, Stream::Stdout)).trim().parse().unwrap();
    assert!(!lives(child));
}

#[tokio::test]
async fn a_run_that_the_system_ends_is_failed_also_if_its_program_says_that_all_is_well() {
    let stage = Stage::new().await;
    let (_worker, mut peer) = stage.live().await;
    peer.ask(sh(1, "trap 'exit 0' TERM; echo $$; while :; do sleep 0.01; done")).await;
    peer.received(1).await;
    peer.until_output(1, Stream::Stdout, |output| output.ends_with(b"\n")).await;
    let crate::run::Found::Lives(identity) = crate::run::look(&stage.run_folder(1)).unwrap() else { panic!() };
    let runner = nix::unistd::Pid::from_raw(i32::try_from(identity.pid).unwrap());
    nix::sys::signal::kill(runner, nix::sys::signal::Signal::SIGTERM).unwrap();
    let Outcome::Failed { started: true, evidence: Some(evidence), .. } = soon(peer.end(1)).await.0 else { panic!() };
    assert_eq!((&evidence["interrupted"], &evidence["exit"]["code"]), (&json!(true), &json!(0)));
}

/// A runner that stands still, its connection open: what it is asked waits before it.
#[tokio::test]
async fn a_program_whose_runner_does_nothing_any_more_is_ended_all_the_same() {
    let stage = Stage::new().await;
    let (_worker, mut peer) = stage.live().await;
    peer.ask(sh(1, "echo $$; exec sleep 1000")).await;
    peer.received(1).await;
    peer.until_output(1, Stream::Stdout, |output| output.ends_with(b"\n")).await;
    let crate::run::Found::Lives(identity) = crate::run::look(&stage.run_folder(1)).unwrap() else { panic!() };
    let runner = nix::unistd::Pid::from_raw(i32::try_from(identity.pid).unwrap());
    nix::sys::signal::kill(runner, nix::sys::signal::Signal::SIGSTOP).unwrap();
    peer.say(ControlFrame::Cancel { request_id: id(1), run_id: Some(run(1)) }).await;
    match peer.answer().await {
        WorkerFrame::CancelResult { request_id, .. } => assert_eq!(request_id, id(1)),
        other => panic!("{other:?}"),
    }
    let (outcome, _) = soon(peer.end(1)).await;
    // It was killed, and says nothing of how its program ended.
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
    let child: u32 = String::from_utf8_lossy(peer.output(1, Stream::Stdout)).trim().parse().unwrap();
    assert!(!lives(child));
}

#[tokio::test]
async fn a_spool_that_lost_a_part_is_sent_without_it_and_the_operation_ends() {
    let stage = Stage::new().await;
    torn_off(&stage, async |mut peer| {
        peer.ask(sh(1, "while ! [ -e go ]; do sleep 0.01; done; head -c 10000000 /dev/zero")).await;
        peer.received(1).await;
        peer.state(1, State::Running).await;
        peer
    })
    .await;
    std::fs::write(stage.workspace().join("go"), "").unwrap();
    let folder = stage.run_folder(1);
    soon(async {
        while !folder.join("exit").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    // One whole segment, and the end of the last.
    std::fs::remove_file(folder.join("stdout.1")).unwrap();
    let last = std::fs::OpenOptions::new().write(true).open(folder.join("stdout.2")).unwrap();
    last.set_len(1000).unwrap();
    let segment = limits::SPOOL_SEGMENT;
    let worker = stage.worker().await;
    let mut peer = stage.relay.live(&[id(1)], BTreeMap::new()).await;
    let (outcome, written) = peer.end(1).await;
    assert_eq!(exit_code(&outcome), Some(0));
    assert_eq!(written, Streams::from([(Stream::Stdout, 10_000_000)]));
    assert_eq!(peer.lost, segment + 10_000_000 - 2 * segment - 1000);
    settled(&worker).await;
}
