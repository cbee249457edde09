//! Thousands of devices in one process: each a real WebSocket with a real handshake and heartbeats, and no executor.

use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures_util::{SinkExt as _, StreamExt as _};
use holdfast_core::id::InstanceId;
use holdfast_core::limits;
use holdfast_core::policy::{Policy, Profile};
use holdfast_core::wire::{
    DaemonFrame, Feature, Features, Heartbeat, Hello, LINK_PATH, LinkRange, RelayFrame, RelayProbeResult, ResumeReport,
    TOKEN_HEADER, ToolResult,
};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use super::say;

type Socket = WebSocketStream<TcpStream>;

/// Dials at once; a listen backlog is finite.
const DIALS: usize = 512;

/// Connects one device per credential (a JSON list on stdin) and says how many seconds it took until all were ready.
pub async fn run(relay: SocketAddr) -> Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let tokens: Vec<String> = serde_json::from_str(&text)?;
    let started = Instant::now();
    let dials = Arc::new(Semaphore::new(DIALS));
    let (ready, mut all) = mpsc::channel(1024);
    let count = tokens.len();
    for (number, token) in tokens.into_iter().enumerate() {
        let (dials, ready) = (dials.clone(), ready.clone());
        tokio::spawn(async move {
            let met = {
                let _dial = dials.acquire().await;
                meet(relay, &token, number).await
            };
            match met {
                Ok(socket) => {
                    drop(ready.send(Ok(())).await);
                    // A link that ends while the bench runs shows in the figures as a call that fails.
                    drop(serve(socket).await);
                }
                Err(error) => drop(ready.send(Err(error)).await),
            }
        });
    }
    for _ in 0..count {
        all.recv().await.context("a device vanished")??;
    }
    say(&started.elapsed().as_secs_f64())?;
    std::future::pending().await
}

fn features() -> Features {
    [Feature::Ack, Feature::Report, Feature::Grace, Feature::Live].into_iter().fold(Features::NONE, Features::with)
}

async fn send(socket: &mut Socket, frame: &DaemonFrame) -> Result<()> {
    Ok(socket.send(Message::text(frame.encode(None))).await?)
}

/// From the TCP connection to `ready_ack`.
async fn meet(relay: SocketAddr, token: &str, number: usize) -> Result<Socket> {
    let stream = TcpStream::connect(relay).await?;
    stream.set_nodelay(true)?;
    let mut request = format!("ws://{relay}{LINK_PATH}").into_client_request()?;
    request.headers_mut().insert(TOKEN_HEADER, token.parse()?);
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await?;
    let mut instance = [0; 18];
    instance[..8].copy_from_slice(&number.to_be_bytes());
    while let Some(message) = socket.next().await {
        let Message::Text(text) = message? else { continue };
        match RelayFrame::decode(&text)?.frame {
            RelayFrame::Welcome(_) => {
                let hello = Hello {
                    instance_id: InstanceId::mint(instance),
                    tools: vec!["echo".into()],
                    policy: serde_json::to_value(Policy::of(Profile::Agent, "default"))?,
                    protocol_versions: vec!["2025-11-25".into()],
                    link: Some(LinkRange::OURS),
                    features: Some(features()),
                    max_calls: Some(limits::DAEMON_CALLS_MAX as u32),
                    version: None,
                };
                send(&mut socket, &DaemonFrame::Hello(hello)).await?;
            }
            RelayFrame::RelayProbe(probe) => {
                send(&mut socket, &DaemonFrame::RelayProbeResult(RelayProbeResult { id: probe.id })).await?;
            }
            RelayFrame::ResumeCalls(resume) => {
                let report = ResumeReport { unknown: resume.ids, ..ResumeReport::default() };
                send(&mut socket, &DaemonFrame::ResumeReport(report)).await?;
            }
            RelayFrame::ReadyAck(_) => return Ok(socket),
            _ => {}
        }
    }
    bail!("the relay closed the link")
}

async fn serve(mut socket: Socket) -> Result<()> {
    let mut heartbeat = tokio::time::interval(limits::HEARTBEAT - Duration::from_millis(500));
    heartbeat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = heartbeat.tick() => send(&mut socket, &DaemonFrame::Heartbeat(Heartbeat { ts: None })).await?,
            message = socket.next() => {
                let Message::Text(text) = message.context("closed")?? else { continue };
                if let RelayFrame::ToolCall(call) = RelayFrame::decode(&text)?.frame {
                    let outcome = Ok(super::daemon::said(&call.arguments)?);
                    send(&mut socket, &DaemonFrame::ToolResult(ToolResult { id: call.id, outcome })).await?;
                }
            }
        }
    }
}
