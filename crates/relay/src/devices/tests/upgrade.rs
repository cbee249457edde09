use holdfast_core::switchboard::Identity;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::fake::*;

const UPGRADE: &str = "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

async fn ask(relay: &Relay, head: &str) -> String {
    let mut stream = TcpStream::connect(relay.addr).await.unwrap();
    stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn status_and_body(answer: &str) -> (&str, &str) {
    (answer.split(' ').nth(1).unwrap(), answer.split_once("\r\n\r\n").unwrap().1)
}

#[tokio::test]
async fn the_upgrade_is_checked_in_the_base_wires_order() {
    let holdfast = Relay::start(Identity::holdfast("1")).await;
    let base = Relay::start(Identity::base()).await;
    let get = "GET /daemon/ws HTTP/1.1\r\nhost: anything.example\r\n";
    let post = ask(&holdfast, "POST /daemon/ws HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n").await;
    assert_eq!(status_and_body(&post), ("405", r#"{"error":"method_not_allowed"}"#));
    assert!(post.to_ascii_lowercase().contains("allow: get"));
    assert_eq!(status_and_body(&ask(&holdfast, get).await), ("426", "Expected Upgrade: websocket"));
    let origin = format!("{get}{UPGRADE}origin: https://evil.example\r\nx-bridge-token: {TOKEN}\r\n");
    assert_eq!(status_and_body(&ask(&holdfast, &origin).await), ("403", r#"{"error":"origin_not_allowed"}"#));
    let nobody = format!("{get}{UPGRADE}");
    assert_eq!(status_and_body(&ask(&holdfast, &nobody).await), ("401", r#"{"error":"device_unknown"}"#));
    let revoked = format!("{get}{UPGRADE}x-bridge-token: revoked\r\n");
    assert_eq!(status_and_body(&ask(&holdfast, &revoked).await), ("401", r#"{"error":"device_revoked"}"#));
    assert_eq!(status_and_body(&ask(&base, &revoked).await), ("401", "Unauthorized daemon"));
    assert_eq!(status_and_body(&ask(&base, &nobody).await), ("401", "Unauthorized daemon"));
}

#[tokio::test]
async fn an_upgrade_of_another_version_or_without_a_key_is_no_upgrade() {
    let relay = Relay::start(Identity::base()).await;
    let head = format!("GET /daemon/ws HTTP/1.1\r\nhost: x\r\nx-bridge-token: {TOKEN}\r\n");
    for part in
        ["sec-websocket-version: 13\r\n", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "upgrade: websocket\r\n"]
    {
        let answer = ask(&relay, &format!("{head}{}", UPGRADE.replace(part, ""))).await;
        assert_eq!(status_and_body(&answer).0, "426", "{part}");
    }
}

#[tokio::test]
async fn any_host_is_accepted() {
    let relay = Relay::start(Identity::base()).await;
    let stream = TcpStream::connect(relay.addr).await.unwrap();
    let mut request = relay.request();
    request.headers_mut().insert("host", "relay.example:443".parse().unwrap());
    assert!(tokio_tungstenite::client_async(request, stream).await.is_ok());
}
