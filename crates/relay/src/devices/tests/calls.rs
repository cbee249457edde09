use base64::Engine as _;
use holdfast_core::code::Code;
use holdfast_core::limits;
use holdfast_core::switchboard::Identity;
use holdfast_core::wire::*;
use sha2::{Digest as _, Sha256};

use super::fake::*;
use crate::devices::CallEvent;

#[tokio::test]
async fn a_result_is_byte_identical_and_acknowledged_once_it_is_committed() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    let mut handle = relay.room().open(call());
    let sent = daemon.call().await;
    assert_eq!(sent.id, *handle.id());
    assert_eq!(sent.arguments.get(), r#"{"argv":["make"]}"#);
    let raw = r#"{"z":1,"a":[1.10,123456789012345678901234567890]}"#;
    daemon.finish(&sent.id, raw).await;
    let end = handle.end().await;
    assert_eq!(end.outcome.unwrap().get(), raw);
    end.commit.done();
    let ack = daemon.ack().await;
    assert_eq!((ack.id, ack.matched), (sent.id, true));
}

#[tokio::test]
async fn an_answer_nobody_took_is_acknowledged_as_unmatched() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    let mut handle = relay.room().open(call());
    let sent = daemon.call().await;
    daemon.finish(&sent.id, "1").await;
    drop(handle.end().await.commit);
    assert!(!daemon.ack().await.matched);
    assert_eq!(relay.devices.counters().undelivered_results, 1);
}

#[tokio::test]
async fn a_request_that_goes_away_cancels_its_call() {
    let relay = Relay::start(Identity::base()).await;
    let mut daemon = relay.base(1).await;
    let handle = relay.room().open(call());
    let sent = daemon.call().await;
    drop(handle);
    let RelayFrame::CancelCall(cancel) = daemon.frame().await else { panic!() };
    assert_eq!(cancel.id, sent.id);
    assert_eq!(relay.room().status().link.pending.active, 0);
}

#[tokio::test]
async fn a_cancelled_call_ends_as_cancelled() {
    let relay = Relay::start(Identity::base()).await;
    let mut daemon = relay.base(1).await;
    let mut handle = relay.room().open(call());
    daemon.call().await;
    handle.cancel();
    assert_eq!(handle.end().await.outcome.unwrap_err().code, Code::Cancelled);
}

#[tokio::test]
async fn progress_comes_before_the_end() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    let mut open = call();
    open.wants_progress = true;
    let mut handle = relay.room().open(open);
    let sent = daemon.call().await;
    assert!(sent.progress);
    let progress = ToolProgress { id: sent.id.clone(), progress: 0.5, total: Some(1.0), message: Some("half".into()) };
    daemon.say(DaemonFrame::ToolProgress(progress)).await;
    daemon.finish(&sent.id, "1").await;
    let CallEvent::Progress(progress) = handle.next().await else { panic!() };
    assert_eq!((progress.progress, progress.total, progress.message.as_deref()), (0.5, Some(1.0), Some("half")));
    assert!(matches!(handle.next().await, CallEvent::End(_)));
}

#[tokio::test]
async fn the_61st_ordinary_and_the_65th_call_are_refused_at_once() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let room = relay.room();
    let mut held: Vec<_> = (0..60).map(|_| room.open(call())).collect();
    let control = || {
        let mut open = call();
        open.control = true;
        open
    };
    assert_eq!(room.open(call()).end().await.outcome.unwrap_err().code, Code::Busy);
    held.extend((0..4).map(|_| room.open(control())));
    assert_eq!(room.open(control()).end().await.outcome.unwrap_err().code, Code::Busy);
    let mut daemon = relay.holdfast(1, Features::all()).await;
    for _ in 0..64 {
        let sent = daemon.call().await;
        daemon.finish(&sent.id, "1").await;
    }
    for mut handle in held {
        let end = handle.end().await;
        assert!(end.outcome.is_ok());
        end.commit.done();
    }
    assert_eq!(room.status().link.pending.active, 0);
}

#[tokio::test]
async fn a_call_waits_for_a_device_that_comes_back_and_survives_a_cut() {
    let relay = Relay::start(Identity::base()).await;
    let mut handle = relay.room().open(call());
    let mut daemon = relay.base(1).await;
    let sent = daemon.call().await;
    drop(daemon);
    eventually("the cut is noticed", || relay.room().status().link.pending.detached == 1).await;
    let mut daemon = relay.connect().await;
    daemon.hello(1, None).await;
    let mut named = Vec::new();
    loop {
        match daemon.frame().await {
            RelayFrame::RelayProbe(probe) => {
                daemon.say(DaemonFrame::RelayProbeResult(RelayProbeResult { id: probe.id })).await;
            }
            RelayFrame::ResumeCalls(resume) => named = resume.ids,
            RelayFrame::ReadyAck(_) => break,
            _ => {}
        }
    }
    assert_eq!(named, std::slice::from_ref(&sent.id));
    daemon.finish(&sent.id, "\"once\"").await;
    assert_eq!(handle.end().await.outcome.unwrap().get(), "\"once\"");
}

fn chunks(call: &holdfast_core::id::CallId, text: &str) -> Vec<ToolResultChunk> {
    let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(text));
    let piece = |(i, bytes): (usize, &[u8])| ToolResultChunk {
        id: call.clone(),
        offset: (i * 32_768) as u64,
        total: text.len() as u64,
        sha256: digest.clone(),
        data: base64::engine::general_purpose::STANDARD.encode(bytes),
    };
    text.as_bytes().chunks(32_768).enumerate().map(piece).collect()
}

#[tokio::test]
async fn a_big_result_in_chunks_arrives_whole_and_control_frames_get_between() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    let mut handle = relay.room().open(call());
    let sent = daemon.call().await;
    let raw = format!("\"{}\"", "0123456789é".repeat(650_000));
    let text = format!(r#"{{"type":"tool_result","id":"{}","ok":true,"result":{raw}}}"#, sent.id);
    assert!(text.len() < limits::FRAME_MAX);
    for (i, chunk) in chunks(&sent.id, &text).into_iter().enumerate() {
        daemon.say(DaemonFrame::ToolResultChunk(chunk)).await;
        if i == 3 {
            daemon.say(DaemonFrame::Heartbeat(Heartbeat { ts: Some(3.into()) })).await;
            let RelayFrame::Pong(pong) = daemon.frame().await else { panic!() };
            assert_eq!(pong.ts, Some(3.into()));
        }
    }
    assert_eq!(handle.end().await.outcome.unwrap().get(), raw);
}

#[tokio::test]
async fn a_big_result_with_a_wrong_digest_closes_the_link_and_comes_whole_on_the_next() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    let mut handle = relay.room().open(call());
    let sent = daemon.call().await;
    let raw = format!("\"{}\"", "a".repeat(300_000));
    let text = format!(r#"{{"type":"tool_result","id":"{}","ok":true,"result":{raw}}}"#, sent.id);
    for mut chunk in chunks(&sent.id, &text) {
        chunk.sha256 = "00".repeat(32);
        daemon.say(DaemonFrame::ToolResultChunk(chunk)).await;
    }
    assert_eq!(daemon.close().await, (1002, "invalid result chunk".into()));
    let mut daemon = relay.holdfast(1, Features::all()).await;
    for chunk in chunks(&sent.id, &text) {
        daemon.say(DaemonFrame::ToolResultChunk(chunk)).await;
    }
    assert_eq!(handle.end().await.outcome.unwrap().get(), raw);
}

#[tokio::test]
async fn a_slow_reader_blocks_neither_the_room_nor_its_close() {
    let relay = Relay::start(Identity::base()).await;
    // It never reads: far more than the sockets hold is queued for it.
    let _stalled = relay.base(1).await;
    let mut held = Vec::new();
    for _ in 0..8 {
        let mut open = call();
        let text = format!("{{\"x\":\"{}\"}}", "a".repeat(7 * 1024 * 1024));
        open.arguments = serde_json::value::RawValue::from_string(text).unwrap();
        held.push(relay.room().open(open));
    }
    let began = std::time::Instant::now();
    relay.devices.revoke(&device());
    for mut handle in held {
        assert_eq!(handle.end().await.outcome.unwrap_err().code, Code::OutcomeUnknown);
    }
    assert!(began.elapsed() < limits::QUEUE_WAIT);
}
