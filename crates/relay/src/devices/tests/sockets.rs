use std::sync::Arc;
use std::time::Duration;

use futures_util::SinkExt as _;
use holdfast_core::limits;
use holdfast_core::switchboard::Identity;
use holdfast_core::wire::*;
use tokio_tungstenite::tungstenite::Message;

use super::fake::*;
use crate::clock::{Clock as _, ManualClock};

#[tokio::test]
async fn a_base_daemon_sees_the_frames_of_the_real_relay_in_their_order() {
    let relay = Relay::start(Identity::base()).await;
    let mut daemon = relay.connect().await;
    let RelayFrame::Welcome(welcome) = daemon.frame().await else { panic!() };
    assert_eq!((welcome.server.as_str(), welcome.version.as_str()), ("machine-bridge-mcp", "1.2.10"));
    daemon.hello(1, None).await;
    assert_eq!(daemon.until("ready_ack").await, ["hello_ack", "relay_probe", "resume_calls", "ready_ack"]);
    daemon.say_text(r#"{"type":"heartbeat","ts":7}"#).await;
    let RelayFrame::Pong(pong) = daemon.frame().await else { panic!() };
    assert_eq!(pong.ts, Some(7.into()));
    let catalogue = relay.room().catalogue();
    assert_eq!(catalogue.tools.len(), 2);
    assert_eq!(catalogue.policy.profile, "agent");
}

#[tokio::test]
async fn bad_frames_close_with_the_base_wires_words() {
    let relay = Relay::start(Identity::base()).await;
    for (message, want) in [
        (Message::text("{"), close::INVALID_JSON),
        (Message::text("[1]"), close::NOT_AN_OBJECT),
        (Message::text(r#"{"type":"tool_result_ack"}"#), close::UNKNOWN_TYPE),
        (Message::Binary(vec![0xff, 0xfe].into()), close::INVALID_UTF8),
        (Message::text(format!(r#"{{"type":"{}"}}"#, "x".repeat(limits::FRAME_MAX))), close::TOO_LARGE),
    ] {
        let mut daemon = relay.base(1).await;
        // The peer may close before it has read a frame that is too large.
        let _ = daemon.ws.send(message).await;
        assert_eq!(daemon.close().await, (want.0, want.1.to_owned()));
    }
    eventually("every socket is gone", || !relay.room().status().link.ready).await;
}

#[tokio::test]
async fn text_that_is_not_utf8_closes_1007() {
    use tokio::io::AsyncWriteExt as _;
    let relay = Relay::start(Identity::base()).await;
    let mut daemon = relay.base(1).await;
    // A text frame, masked with zeroes, of one byte that begins no UTF-8 sequence.
    daemon.ws.get_mut().write_all(&[0x81, 0x81, 0, 0, 0, 0, 0xff]).await.unwrap();
    assert_eq!(daemon.close().await, (close::INVALID_UTF8.0, close::INVALID_UTF8.1.to_owned()));
}

#[tokio::test]
async fn a_binary_frame_is_read_as_text() {
    let relay = Relay::start(Identity::base()).await;
    let mut daemon = relay.base(1).await;
    daemon.ws.send(Message::Binary(br#"{"type":"heartbeat","ts":1}"#.to_vec().into())).await.unwrap();
    assert!(matches!(daemon.frame().await, RelayFrame::Pong(_)));
}

#[tokio::test]
async fn a_frame_of_exactly_the_limit_is_read() {
    let relay = Relay::start(Identity::base()).await;
    let mut daemon = relay.base(1).await;
    let mut handle = relay.room().open(call());
    let call = daemon.call().await;
    let head = format!(r#"{{"type":"tool_result","id":"{}","ok":true,"result":""#, call.id);
    let text = format!("{head}{}\"}}", "a".repeat(limits::FRAME_MAX - head.len() - 2));
    assert_eq!(text.len(), limits::FRAME_MAX);
    daemon.say_text(&text).await;
    let end = handle.end().await;
    assert_eq!(end.outcome.unwrap().get().len(), limits::FRAME_MAX - head.len() - 2 + 2);
}

#[tokio::test]
async fn a_second_socket_of_the_instance_takes_over_and_the_first_is_told_to_move() {
    let relay = Relay::start(Identity::base()).await;
    let mut old = relay.base(1).await;
    let mut handle = relay.room().open(call());
    let id = old.call().await.id;
    let mut new = relay.connect().await;
    new.hello(1, None).await;
    new.until("ready_ack").await;
    assert_eq!(old.close().await, (1001, "moved to a newer connection".into()));
    new.finish(&id, "1").await;
    assert_eq!(handle.end().await.outcome.unwrap().get(), "1");
}

#[tokio::test]
async fn another_instance_is_refused_while_the_first_answers_pings() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut incumbent = relay.holdfast(1, Features::all()).await;
    let mut newcomer = relay.connect().await;
    newcomer.hello(2, Some(Features::all())).await;
    // Reading answers the ping.
    let incumbent = tokio::spawn(async move { incumbent.message().await });
    assert_eq!(newcomer.close().await, (1013, "device_in_use".into()));
    assert!(relay.room().is_ready());
    assert_eq!(relay.devices.counters().device_in_use, 1);
    incumbent.abort();
}

#[tokio::test]
async fn the_owner_reads_of_a_refused_copy_once_and_sees_it_while_it_keeps_trying() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.subscriber());
    let clock = Arc::new(ManualClock::default());
    let relay = Relay::at(clock.clone(), Identity::holdfast("1")).await;
    let mut incumbent = relay.holdfast(1, Features::all()).await;
    assert_eq!(relay.room().status().in_use, None);
    let incumbent = tokio::spawn(async move { while incumbent.message().await.is_some() {} });
    let copy_comes = async || {
        let mut copy = relay.connect().await;
        copy.hello(2, Some(Features::all())).await;
        assert_eq!(copy.close().await, (1013, "device_in_use".into()));
        clock.unix()
    };
    for _ in 0..2 {
        let refused = copy_comes().await;
        assert_eq!(relay.room().status().in_use, Some(refused));
    }
    let told = format!("another computer answers with this device's credential and was refused device={}", device());
    assert_eq!(log.text().matches(&told).count(), 1, "{}", log.text());
    clock.advance(limits::IN_USE_TOLD);
    assert_eq!(relay.room().status().in_use, None, "it gave up");
    incumbent.abort();
}

#[tokio::test]
async fn a_frame_number_that_is_missing_closes_the_link() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    daemon.say_text(r#"{"type":"heartbeat","n":9}"#).await;
    assert_eq!(daemon.close().await, (1012, "frame gap".into()));
    assert_eq!(relay.devices.counters().frame_gaps, 1);
}

#[tokio::test]
async fn a_base_daemon_that_never_says_hello_is_told_and_closed() {
    let relay = Relay::start(Identity::base()).await;
    let mut daemon = relay.connect().await;
    daemon.frame().await;
    let began = std::time::Instant::now();
    let RelayFrame::Error(error) = daemon.frame().await else { panic!() };
    assert_eq!(error.error, "daemon_hello_timeout");
    assert_eq!(daemon.close().await, (1008, "daemon hello timeout".into()));
    assert!(began.elapsed() >= limits::HANDSHAKE_TIMEOUT - Duration::from_millis(100));
}

#[tokio::test]
async fn a_half_open_socket_is_found_dead_and_its_call_completes_on_the_next() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    // Its socket stays open and nobody reads or writes it any more.
    let mut silent = relay.holdfast(1, Features::all()).await;
    let mut handle = relay.room().open(call());
    let id = silent.call().await.id;
    eventually("the silence is noticed", || relay.room().status().link.pending.detached == 1).await;
    assert_eq!(relay.devices.counters().sockets_silent, 1);
    let mut back = relay.holdfast(1, Features::all()).await;
    back.finish(&id, "1").await;
    assert_eq!(handle.end().await.outcome.unwrap().get(), "1");
}

#[tokio::test]
async fn bytes_of_an_unfinished_frame_are_life() {
    use tokio::io::AsyncWriteExt as _;
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    // The head of a masked text frame of 65 535 bytes, then a byte each second and not one answer to a ping.
    daemon.ws.get_mut().write_all(&[0x81, 0xfe, 0xff, 0xff, 0, 0, 0, 0]).await.unwrap();
    for _ in 0..13 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        daemon.ws.get_mut().write_all(b"{").await.unwrap();
    }
    assert!(relay.room().is_ready());
}

#[tokio::test]
async fn a_stopping_relay_closes_with_1012_and_refuses_more() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    relay.devices.shutdown().await;
    assert_eq!(daemon.close().await, (1012, "relay shutting down".into()));
    let end = relay.room().open(call()).end().await;
    assert_eq!(end.outcome.unwrap_err().code, holdfast_core::code::Code::Unavailable);
}

#[tokio::test]
async fn a_revoked_device_is_closed_1008() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    relay.devices.revoke(&device());
    assert_eq!(daemon.close().await, (1008, "device_revoked".into()));
}
