//! Output and input.

use std::time::Duration;

use holdfast_core::limits;
use holdfast_core::operation::{OnFull, Stream};
use holdfast_core::run::{Ask, Tell};

use super::*;

#[tokio::test]
async fn both_streams_and_the_exit_code_arrive_as_the_program_made_them() {
    let home = Home::new();
    for bytes in [2_000_000, 50_000_000] {
        let line = format!(
            "head -c {bytes} /dev/urandom > out; head -c {bytes} /dev/urandom > err; cat out & cat err >&2; wait; exit 7"
        );
        let folder = home.sh(&line, |_| {}).await;
        let end = ended(&folder).await;
        assert_eq!((end.exit.unwrap().code, end.dropped, &end.escaped[..]), (Some(7), 0, &[][..]));
        assert_eq!(end.written, [(Stream::Stdout, bytes), (Stream::Stderr, bytes)].into());
        for (stream, file) in [(Stream::Stdout, "out"), (Stream::Stderr, "err")] {
            assert!(all(&folder, stream, 0).0 == std::fs::read(home.path().join(file)).unwrap(), "{bytes} of {file}");
        }
        assert_eq!(crate::spool::written(&folder).unwrap(), end.written);
    }
}

#[tokio::test]
async fn a_character_written_byte_by_byte_is_one() {
    let home = Home::new();
    let folder = home.sh(r"for b in '\342' '\211' '\244'; do printf $b; sleep 0.02; done", |_| {}).await;
    ended(&folder).await;
    assert_eq!(text(&folder, Stream::Stdout), "≤");
}

#[tokio::test]
async fn input_that_is_repeated_is_given_once() {
    let home = Home::new();
    let folder = home.sh("cat; echo over", |_| {}).await;
    let mut first = attach(&folder).await.unwrap();
    assert_eq!(give(&mut first, 1, b"one\n", false).await, None);
    assert_eq!(give(&mut first, 1, b"one\n", false).await, None);
    // The newest connection counts, and knows what the one before brought.
    let mut second = attach(&folder).await.unwrap();
    while first.next().await.is_some() {}
    assert_eq!(give(&mut second, 1, b"one\n", false).await, None);
    assert_eq!(give(&mut second, 2, b"two\n", true).await, None);
    assert_eq!(ended(&folder).await.exit.unwrap().code, Some(0));
    assert_eq!(text(&folder, Stream::Stdout), "one\ntwo\nover\n");
}

#[tokio::test]
async fn what_a_connection_said_counts_although_the_next_one_is_there() {
    let home = Home::new();
    let folder = home.sh("cat", |_| {}).await;
    for n in 0..15 {
        let said = attach(&folder).await.unwrap();
        let data = bytes::Bytes::from(format!("{n}\n"));
        said.asker().ask(&Ask::Input { id: id(n), data, close: n == 14 }).await.unwrap();
    }
    assert_eq!(ended(&folder).await.written[&Stream::Stdout], 35);
    let all = (0..15).map(|n| format!("{n}\n")).collect::<String>();
    assert_eq!(text(&folder, Stream::Stdout), all);
}

#[tokio::test]
async fn input_for_a_program_that_takes_none_is_refused() {
    let home = Home::new();
    let folder = home.sh("exec <&-; sleep 0.2; echo closed; sleep 60", |_| {}).await;
    let mut attached = attach(&folder).await.unwrap();
    grown(&folder, &mut attached, Stream::Stdout, 7).await;
    assert_eq!(give(&mut attached, 1, b"x", false).await.as_deref(), Some("the program takes no more input"));
    attached.asker().ask(&Ask::Kill {}).await.unwrap();
    assert!(ended(&folder).await.killed);
}

#[tokio::test]
async fn a_program_waits_for_room_and_goes_on_when_output_is_acknowledged() {
    let home = Home::new();
    let size = 3 * limits::SPOOL_RUN_MIN;
    let line = format!("head -c {size} /dev/zero; echo end");
    let folder = home.sh(&line, |spec| spec.quota = limits::SPOOL_RUN_MIN).await;
    let mut attached = attach(&folder).await.unwrap();
    let mut acked = 0;
    while acked < size {
        if attached.stalled.is_none() {
            told(&mut attached, |tell| matches!(tell, Tell::Stalled { since: Some(_) })).await;
        }
        attached.stalled = None;
        let written = crate::spool::written(&folder).unwrap()[&Stream::Stdout];
        assert_eq!(written - acked, limits::SPOOL_RUN_MIN - 2 * limits::RUNNER_PIPE);
        let (bytes, gaps) = all(&folder, Stream::Stdout, acked);
        assert!(bytes.iter().all(|b| *b == 0) && gaps.is_empty());
        acked += bytes.len() as u64;
        attached.asker().ask(&Ask::Trim { stream: Stream::Stdout, offset: acked }).await.unwrap();
        if size - acked < limits::SPOOL_RUN_MIN - 2 * limits::RUNNER_PIPE {
            break;
        }
    }
    let end = ended(&folder).await;
    assert_eq!((end.written[&Stream::Stdout], end.dropped), (size + 4, 0));
    assert!(all(&folder, Stream::Stdout, acked).0.ends_with(b"\0end\n"));
    // What is acknowledged is gone.
    assert!(!folder.join("stdout.0").exists());
}

#[tokio::test]
async fn the_middle_is_given_up_when_that_was_asked_for() {
    let home = Home::new();
    let size = 5 * limits::SPOOL_RUN_MIN;
    let line = format!("echo begin; head -c {size} /dev/zero; echo end");
    let change = |spec: &mut holdfast_core::run::Spec| {
        spec.quota = limits::SPOOL_RUN_MIN;
        spec.on_full = OnFull::DropMiddle;
    };
    let folder = home.sh(&line, change).await;
    let end = ended(&folder).await;
    assert_eq!(end.written[&Stream::Stdout], size + 10);
    let (bytes, gaps) = all(&folder, Stream::Stdout, 0);
    assert!(bytes.starts_with(b"begin\n\0") && bytes.ends_with(b"\0end\n"));
    assert_eq!(gaps.len(), 1);
    assert_eq!((gaps[0].0, gaps[0].1 - gaps[0].0), (limits::SPOOL_SEGMENT, end.dropped));
    assert_eq!(bytes.len() as u64 + end.dropped, size + 10);
}

#[tokio::test]
async fn an_ended_program_waits_for_no_acknowledgement() {
    let home = Home::new();
    // What the runner does not read any more fits the pipe.
    let size = limits::SPOOL_RUN_MIN - 2 * limits::RUNNER_PIPE + 60_000;
    let folder = home.sh(&format!("head -c {size} /dev/zero"), |spec| spec.quota = limits::SPOOL_RUN_MIN).await;
    assert_eq!(ended(&folder).await.written[&Stream::Stdout], size);
    assert_eq!(all(&folder, Stream::Stdout, 0).0.len() as u64, size);
}

#[tokio::test]
async fn a_reader_that_was_slow_hears_the_latest_growth() {
    let home = Home::new();
    let folder = home.sh("for i in $(seq 200); do echo $i; sleep 0.001; done; sleep 60", |_| {}).await;
    let mut attached = attach(&folder).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    grown(&folder, &mut attached, Stream::Stdout, 692).await;
    assert_eq!(text(&folder, Stream::Stdout).lines().count(), 200);
    attached.asker().ask(&Ask::Kill {}).await.unwrap();
    ended(&folder).await;
}
