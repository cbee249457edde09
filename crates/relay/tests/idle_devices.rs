//! What an idle device costs. A process of its own, because it measures the process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is how a test fails")]

use std::sync::Arc;

use axum::Router;
use holdfast_core::id::{DeviceId, InstanceId};
use holdfast_core::switchboard::Identity;
use holdfast_core::wire::*;
use holdfast_relay::devices::{Devices, DevicesOptions, router};
use holdfast_relay::store;
use holdfast_relay::{DeviceAuthFailure, SystemClock};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const DEVICES: u16 = 400;
const ALLOWED: usize = 24 * 1024;

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("linux");
    statm.split(' ').nth(1).expect("resident pages").parse::<usize>().expect("a number") * 4096
}

fn device(token: &str) -> Result<DeviceId, DeviceAuthFailure> {
    let number: u16 = token.parse().map_err(|_| DeviceAuthFailure::Unknown)?;
    let mut bytes = [0; 12];
    bytes[..2].copy_from_slice(&number.to_be_bytes());
    Ok(DeviceId::mint(bytes))
}

/// A client without buffers of its own, so that only the relay's side is measured.
struct Bare(TcpStream);

impl Bare {
    async fn dial(addr: std::net::SocketAddr, token: u16) -> Bare {
        let mut stream = TcpStream::connect(addr).await.expect("connected");
        let head = format!(
            "GET /daemon/ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nx-bridge-token: {token}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("asked");
        let mut seen = Vec::new();
        while !seen.ends_with(b"\r\n\r\n") {
            seen.push(stream.read_u8().await.expect("an answer"));
        }
        assert!(seen.starts_with(b"HTTP/1.1 101"));
        Bare(stream)
    }

    async fn say(&mut self, frame: DaemonFrame) {
        let text = frame.encode(None);
        let length = u16::try_from(text.len()).expect("short");
        let mut bytes = vec![0x81, 0x80 | 126];
        bytes.extend(length.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(text.as_bytes());
        self.0.write_all(&bytes).await.expect("sent");
    }

    async fn hear(&mut self) -> RelayFrame {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).await.expect("a frame");
        let length = match head[1] {
            126 => usize::from(self.0.read_u16().await.expect("a length")),
            short => usize::from(short),
        };
        let mut text = vec![0; length];
        self.0.read_exact(&mut text).await.expect("a payload");
        RelayFrame::decode(std::str::from_utf8(&text).expect("text")).expect("a frame").frame
    }

    async fn become_ready(&mut self, number: u16) {
        let mut instance = [0; 18];
        instance[..2].copy_from_slice(&number.to_be_bytes());
        let hello = Hello {
            instance_id: InstanceId::mint(instance),
            tools: (0..24).map(|tool| format!("some_tool_{tool}")).collect(),
            policy: serde_json::json!({"profile": "agent"}),
            protocol_versions: vec![BASE_PROTOCOL.into()],
            link: None,
            features: None,
            max_calls: None,
            version: None,
        };
        self.say(DaemonFrame::Hello(hello)).await;
        loop {
            match self.hear().await {
                RelayFrame::RelayProbe(probe) => {
                    self.say(DaemonFrame::RelayProbeResult(RelayProbeResult { id: probe.id })).await;
                }
                RelayFrame::ReadyAck(_) => return,
                _ => {}
            }
        }
    }
}

#[tokio::test]
async fn an_idle_device_fits_in_24_kib() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let options = DevicesOptions {
        identity: Identity::holdfast("1"),
        check: Arc::new(device),
        store: store::open(folder.path()).expect("a store"),
        clock: Arc::new(SystemClock::default()),
    };
    let devices = Arc::new(Devices::open(options).expect("devices"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    let app: Router = router(devices.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let mut clients = Vec::new();
    let mut before = 0;
    for number in 0..DEVICES + 20 {
        let mut client = Bare::dial(addr, number).await;
        client.become_ready(number).await;
        clients.push(client);
        if number == 19 {
            // The first ones paid for what all share.
            before = resident();
        }
    }
    let each = resident().saturating_sub(before) / usize::from(DEVICES);
    println!("{each} bytes for each idle device");
    assert!(each <= ALLOWED, "{each} bytes for each idle device");
    assert_eq!(devices.rooms().iter().filter(|room| room.is_ready()).count(), usize::from(DEVICES) + 20);
}
