use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// A target that sends back what it gets.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("bind");
    let address = listener.local_addr().expect("address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    address
}

async fn say(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.write_all(text).await?;
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back).await?;
    Ok(back)
}

/// An unmasked text frame.
fn frame(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81, u8::try_from(text.len()).expect("short")];
    frame.extend_from_slice(text.as_bytes());
    frame
}

#[tokio::test]
async fn a_good_network_passes_bytes_and_the_end_of_the_stream() {
    let proxy = FaultProxy::start(echo().await).await.expect("proxy");
    let mut stream = TcpStream::connect(proxy.address()).await.expect("connect");
    assert_eq!(say(&mut stream, b"hello").await.expect("echo"), b"hello");
    stream.shutdown().await.expect("shutdown");
    assert_eq!(stream.read(&mut [0; 8]).await.expect("end"), 0);
    let seen = proxy.until("the end", |seen| seen.open == 0).await;
    assert_eq!((seen.accepted, seen.up.bytes, seen.down.bytes), (1, 5, 5));
}

#[tokio::test]
async fn a_cut_resets_open_connections_and_refuses_new_ones_until_healed() {
    let proxy = FaultProxy::start(echo().await).await.expect("proxy");
    let mut stream = TcpStream::connect(proxy.address()).await.expect("connect");
    say(&mut stream, b"up").await.expect("echo");
    proxy.cut();
    let error = stream.read(&mut [0; 8]).await.expect_err("reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let mut second = TcpStream::connect(proxy.address()).await.expect("accepted by the kernel");
    assert!(say(&mut second, b"x").await.is_err());
    proxy.until("a refusal", |seen| seen.refused == 1).await;
    proxy.heal();
    let mut third = TcpStream::connect(proxy.address()).await.expect("connect");
    assert_eq!(say(&mut third, b"again").await.expect("echo"), b"again");
}

#[tokio::test]
async fn a_black_hole_keeps_connections_open_and_delivers_late() {
    let proxy = FaultProxy::start(echo().await).await.expect("proxy");
    let mut stream = TcpStream::connect(proxy.address()).await.expect("connect");
    say(&mut stream, b"up").await.expect("echo");
    proxy.set(|faults| faults.path = Path::BlackHole);
    stream.write_all(b"late").await.expect("into the kernel");
    assert_eq!(proxy.seen().open, 1);
    assert_eq!(proxy.seen().up.bytes, 2);
    proxy.heal();
    let mut back = [0; 4];
    stream.read_exact(&mut back).await.expect("delivered");
    assert_eq!(&back, b"late");
}

#[tokio::test]
async fn a_stranded_connection_is_dead_for_good_and_new_ones_pass() {
    let proxy = FaultProxy::start(echo().await).await.expect("proxy");
    let mut old = TcpStream::connect(proxy.address()).await.expect("connect");
    say(&mut old, b"up").await.expect("echo");
    proxy.strand();
    old.write_all(b"lost").await.expect("into the kernel");
    let mut new = TcpStream::connect(proxy.address()).await.expect("connect");
    assert_eq!(say(&mut new, b"new").await.expect("echo"), b"new");
    assert_eq!(proxy.seen().up.bytes, 5);
    assert_eq!(proxy.seen().open, 2);
}

#[tokio::test]
async fn sliced_and_truncated_bytes_arrive_in_order_up_to_the_cut() {
    let proxy = FaultProxy::start(echo().await).await.expect("proxy");
    proxy.set(|faults| {
        faults.up.slice = Some(1);
        faults.down.truncate_after = Some(7);
    });
    let mut stream = TcpStream::connect(proxy.address()).await.expect("connect");
    stream.write_all(b"0123456789").await.expect("write");
    let mut back = vec![0; 7];
    stream.read_exact(&mut back).await.expect("seven bytes");
    assert_eq!(back, b"0123456");
    let error = stream.read(&mut back).await.expect_err("reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_slow_direction_keeps_its_rate() {
    let proxy = FaultProxy::start(echo().await).await.expect("proxy");
    proxy.set(|faults| faults.up.rate = Some(1000));
    let mut stream = TcpStream::connect(proxy.address()).await.expect("connect");
    let start = tokio::time::Instant::now();
    say(&mut stream, &[7; 500]).await.expect("echo");
    let took = start.elapsed();
    assert!((Duration::from_millis(450)..Duration::from_secs(20)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn frames_are_counted_by_type_and_swallowed_as_told() {
    let proxy = FaultProxy::start(echo().await).await.expect("proxy");
    let mut stream = TcpStream::connect(proxy.address()).await.expect("connect");
    let head = b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n";
    assert_eq!(say(&mut stream, head).await.expect("echo"), head);
    let (beat, call) = (frame(r#"{"type":"heartbeat"}"#), frame(r#"{"id":1,"type":"tool_call"}"#));
    assert_eq!(say(&mut stream, &beat).await.expect("echo"), beat);

    proxy.set(|faults| faults.up.swallow = Swallow::Kind { kind: "tool_call", times: 1 });
    stream.write_all(&call).await.expect("swallowed");
    assert_eq!(say(&mut stream, &call).await.expect("echo"), call);
    let seen = proxy.until("the second call", |seen| seen.down.of("tool_call") == 1).await;
    assert_eq!((seen.up.frames, seen.up.swallowed, seen.up.of("tool_call"), seen.up.of("heartbeat")), (3, 1, 1, 1));

    assert_eq!(proxy.captured("tool_call"), r#"{"id":1,"type":"tool_call"}"#);

    proxy.set(|faults| faults.up.swallow = Swallow::Nth(5));
    say(&mut stream, &beat).await.expect("the fourth passes");
    stream.write_all(&beat).await.expect("the fifth does not");
    proxy.until("the fifth frame", |seen| seen.up.swallowed == 2).await;

    proxy.set(|faults| faults.up.swallow = Swallow::OneIn(3));
    stream.write_all(&beat).await.expect("the sixth does not");
    proxy.until("the sixth frame", |seen| seen.up.swallowed == 3).await;
}

#[tokio::test]
async fn a_masked_frame_in_pieces_and_a_ping_pass_whole() {
    let mut splitter = frames::Splitter::default();
    splitter.push(b"HTTP/1.1 101 X\r\nupgrade: websocket\r\n\r\n");
    assert!(matches!(splitter.next_piece(), Some(frames::Piece::Other(_))));
    let text = br#"{"type":"pong"}"#;
    let mut masked = vec![0x81, 0x80 | u8::try_from(text.len()).expect("short"), 1, 2, 3, 4];
    masked.extend(text.iter().zip([1, 2, 3, 4].iter().cycle()).map(|(byte, mask)| byte ^ mask));
    for byte in &masked[..masked.len() - 1] {
        splitter.push(&[*byte]);
        assert_eq!(splitter.next_piece(), None);
    }
    splitter.push(&masked[masked.len() - 1..]);
    let pong = frames::Piece::Data { frame: masked.into(), payload: text.to_vec(), kind: Some("pong".into()) };
    assert_eq!(splitter.next_piece(), Some(pong));
    splitter.push(&[0x89, 0]);
    assert_eq!(splitter.next_piece(), Some(frames::Piece::Other(vec![0x89, 0].into())));
}
