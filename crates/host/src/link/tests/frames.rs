//! Open sockets.

use super::*;

#[tokio::test]
async fn a_call_survives_a_reset_and_its_result_arrives_on_the_next_connection() {
    let relay = Relay::new().await;
    let mut rig = Rig::new(&relay.url(), |_| {});
    let mut peer = relay.ready(&[]).await;
    rig.state(LinkState::Healthy).await;
    peer.call(1).await;
    assert_eq!(rig.started().await, id(1));
    drop(peer);
    let mut peer = relay.accept().await;
    rig.hands.finish(1, "[1.10]");
    peer.handshake(&[id(1)]).await;
    assert_eq!(peer.result().await, (id(1), "[1.10]".into()));
    peer.ack(1).await;
    let mut status = rig.link.status();
    soon(status.wait_for(|s| s.link.delivered == 1 && s.calls().queued_results == 0)).await.expect("running");
}

#[tokio::test]
async fn the_base_wire_carries_a_call_and_a_pong_forgets_its_result() {
    let relay = Relay { base: true, ..Relay::new().await };
    let mut rig = Rig::new(&relay.url(), |o| o.compat = Compat::Base);
    let mut peer = relay.ready(&[]).await;
    peer.call(1).await;
    rig.started().await;
    rig.hands.finish(1, "1");
    assert_eq!(peer.result().await, (id(1), "1".into()));
    // A proof of the link is a heartbeat; its pong says that the result was read.
    rig.link.network_changed();
    let waiting = async {
        let mut status = rig.link.status();
        status.wait_for(|s| s.link.delivered == 1).await.expect("running");
    };
    tokio::select! {
        _ = peer.hear() => panic!("nothing but heartbeats is said"),
        () = soon(waiting) => {}
    }
}

#[tokio::test]
async fn a_big_result_crosses_in_chunks_and_a_small_one_passes_it() {
    let relay = Relay::new().await;
    let mut rig = Rig::new(&relay.url(), |_| {});
    let mut peer = relay.ready(&[]).await;
    peer.call(1).await;
    peer.call(2).await;
    rig.started().await;
    rig.started().await;
    let raw = format!("\"{}\"", "x".repeat(6 << 20));
    rig.hands.finish(1, &raw);
    let mut text = Vec::new();
    let mut passed = false;
    use base64::Engine as _;
    loop {
        match peer.hear().await {
            DaemonFrame::ToolResultChunk(chunk) => {
                assert_eq!(chunk.offset, text.len() as u64);
                text.extend(base64::engine::general_purpose::STANDARD.decode(&chunk.data).expect("base64"));
                if chunk.offset == 0 {
                    rig.hands.finish(2, "2");
                }
                if text.len() as u64 == chunk.total {
                    break;
                }
            }
            DaemonFrame::ToolResult(result) => passed = result.id == id(2),
            other => panic!("{other:?}"),
        }
    }
    assert!(passed);
    let whole = DaemonFrame::decode(std::str::from_utf8(&text).expect("text")).expect("valid").frame;
    let DaemonFrame::ToolResult(result) = whole else { panic!() };
    assert_eq!(result.outcome.expect("ok").get(), raw);
}

#[tokio::test]
async fn a_result_that_waits_on_disk_is_private_and_gone_once_it_arrived() {
    let relay = Relay::new().await;
    let mut rig = Rig::new(&relay.url(), |_| {});
    let mut peer = relay.ready(&[]).await;
    peer.call(1).await;
    rig.started().await;
    drop(peer);
    let mut peer = relay.accept().await;
    let raw = format!("\"{}\"", "x".repeat(100 << 10));
    rig.hands.finish(1, &raw);
    peer.handshake(&[id(1)]).await;
    assert_eq!(peer.result().await, (id(1), raw));
    let file = rig.data.path().join("outbox").join(id(1).as_str());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        soon(async {
            while std::fs::metadata(&file).is_err() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    }
    peer.ack(1).await;
    soon(async {
        while file.exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_missing_frame_is_said_in_the_close() {
    let relay = Relay::new().await;
    let rig = Rig::new(&relay.url(), |_| {});
    let mut peer = relay.ready(&[]).await;
    rig.state(LinkState::Healthy).await;
    peer.n += 1;
    peer.call(1).await;
    assert_eq!(peer.closed().await, Some((1012, "frame gap".into())));
    let _peer = relay.ready(&[]).await;
}

#[tokio::test]
async fn bad_messages_are_answered_with_the_close_they_deserve() {
    let big = "x".repeat(holdfast_core::limits::FRAME_MAX + 1);
    for (bad, code) in [
        (Message::text("{"), 1007),
        (Message::text("[]"), 1002),
        (Message::text(r#"{"type":"weird","n":4}"#), 1002),
        (Message::binary(vec![0xff, 0xfe]), 1007),
        (Message::text(big), 1009),
    ] {
        let relay = Relay::new().await;
        let rig = Rig::new(&relay.url(), |_| {});
        let mut peer = relay.ready(&[]).await;
        rig.state(LinkState::Healthy).await;
        // The daemon may close before it has read all of a message that is too long.
        let _ = peer.ws.send(bad).await;
        let close = peer.closed().await;
        assert!(close.is_none_or(|(got, _)| got == code), "{code}");
        let _peer = relay.ready(&[]).await;
    }
}

#[tokio::test]
async fn a_stopped_link_says_daemon_shutdown_and_starts_again() {
    let relay = Relay::new().await;
    let rig = Rig::new(&relay.url(), |_| {});
    let mut peer = relay.ready(&[]).await;
    rig.state(LinkState::Healthy).await;
    rig.link.stop(true);
    assert_eq!(peer.closed().await, Some((1000, "daemon shutdown".into())));
    soon(rig.link.stopped()).await;
    rig.link.start();
    let _peer = relay.ready(&[]).await;
    rig.state(LinkState::Healthy).await;
}

#[tokio::test]
async fn an_ended_link_stops_its_calls_and_tells_the_relay() {
    let relay = Relay::new().await;
    let mut rig = Rig::new(&relay.url(), |_| {});
    let mut peer = relay.ready(&[]).await;
    peer.call(1).await;
    assert_eq!(rig.started().await, id(1));
    soon(rig.link.end()).await;
    assert_eq!(*rig.hands.cancelled.lock(), [(id(1), CancelReason::Shutdown)]);
    assert!(rig.ears.0.lock().contains(&Told::CutOff { calls: 1 }));
    assert_eq!(peer.closed().await, Some((1000, "daemon shutdown".into())));
}

#[tokio::test]
async fn every_close_of_the_relay_is_followed_by_another_dial() {
    for (code, reason) in [
        (1000, "bye"),
        (1002, "unknown daemon message type"),
        (1008, "daemon liveness timeout"),
        (1011, "relay internal error"),
        (1012, "frame gap"),
    ] {
        let relay = Relay { base: true, ..Relay::new().await };
        let rig = Rig::new(&relay.url(), |o| o.compat = Compat::Base);
        let peer = relay.ready(&[]).await;
        rig.state(LinkState::Healthy).await;
        peer.close(code, reason).await;
        let _peer = relay.ready(&[]).await;
    }
}

#[tokio::test]
async fn a_device_in_use_is_told_and_start_tries_at_once() {
    let relay = Relay::new().await;
    let rig = Rig::new(&relay.url(), |_| {});
    relay.accept().await.close(1013, "device_in_use").await;
    rig.cause("device_in_use").await;
    assert!(rig.ears.0.lock().contains(&Told::DeviceInUse));
    rig.link.start();
    let _peer = relay.ready(&[]).await;
    rig.state(LinkState::Healthy).await;
}

#[tokio::test]
async fn a_drill_cuts_the_link_for_as_long_as_it_says() {
    let relay = Relay::new().await;
    let rig = Rig::new(&relay.url(), |_| {});
    let mut peer = relay.ready(&[]).await;
    rig.state(LinkState::Healthy).await;
    let began = std::time::Instant::now();
    rig.link.cut(Duration::from_millis(300));
    assert_eq!(peer.closed().await, None, "no word is said");
    let _peer = relay.ready(&[]).await;
    assert!(began.elapsed() >= Duration::from_millis(300));
    rig.state(LinkState::Healthy).await;
}

#[tokio::test]
async fn a_half_open_connection_is_dead_within_ten_seconds_though_it_takes_what_is_sent() {
    let relay = Relay::new().await;
    let rig = Rig::new(&relay.url(), |_| {});
    let peer = relay.ready(&[]).await;
    rig.state(LinkState::Healthy).await;
    let began = std::time::Instant::now();
    // The peer's kernel goes on taking bytes; the peer itself never says anything.
    let next = relay.accept().await;
    assert!(began.elapsed() <= holdfast_core::limits::SILENCE_DEAD + Duration::from_secs(20));
    drop((peer, next));
}
