//! The floor: an axum handler that sends each body over one WebSocket to another process and answers what comes back.
//! No MCP, no auth, no state: what two sockets and two processes cost at least.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use futures_util::{SinkExt as _, StreamExt as _};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::say;

#[derive(Default)]
struct Hop {
    to_echo: Mutex<Option<mpsc::UnboundedSender<Vec<u8>>>>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Bytes>>>,
    next: AtomicU64,
}

/// The HTTP side.
pub async fn front() -> Result<()> {
    let hop = Arc::new(Hop::default());
    let app = Router::new()
        .route("/mcp", post(answer))
        .route(
            "/hop",
            get(|State(hop): State<Arc<Hop>>, upgrade: WebSocketUpgrade| async move {
                upgrade.max_message_size(16 << 20).max_frame_size(16 << 20).on_upgrade(|socket| carry(hop, socket))
            }),
        )
        .layer(DefaultBodyLimit::max(16 << 20))
        .with_state(hop);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    say(&listener.local_addr()?)?;
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| drop(stream.set_nodelay(true)));
    Ok(axum::serve(listener, app).await?)
}

async fn answer(State(hop): State<Arc<Hop>>, body: Bytes) -> impl IntoResponse {
    let number = hop.next.fetch_add(1, Ordering::Relaxed);
    let (done, answered) = oneshot::channel();
    hop.waiting.lock().insert(number, done);
    let mut frame = Vec::with_capacity(body.len() + 8);
    frame.extend_from_slice(&number.to_be_bytes());
    frame.extend_from_slice(&body);
    if let Some(to_echo) = &*hop.to_echo.lock() {
        // The receiver lives as long as the process.
        let _ = to_echo.send(frame);
    }
    match answered.await {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

async fn carry(hop: Arc<Hop>, socket: WebSocket) {
    let (mut write, mut read) = socket.split();
    let (send, mut frames) = mpsc::unbounded_channel::<Vec<u8>>();
    *hop.to_echo.lock() = Some(send);
    let writing = tokio::spawn(async move {
        let mut batch = Vec::new();
        while frames.recv_many(&mut batch, 64).await > 0 {
            for frame in batch.drain(..) {
                write.feed(Message::Binary(frame.into())).await?;
            }
            write.flush().await?;
        }
        Ok::<_, axum::Error>(())
    });
    while let Some(Ok(message)) = read.next().await {
        let Message::Binary(frame) = message else { continue };
        let Some((number, _)) = frame.split_first_chunk::<8>() else { continue };
        if let Some(done) = hop.waiting.lock().remove(&u64::from_be_bytes(*number)) {
            // The client may have gone.
            let _ = done.send(frame.slice(8..));
        }
    }
    writing.abort();
}

/// The other process: every frame goes back as it came.
pub async fn echo(front: SocketAddr) -> Result<()> {
    use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
    let config = WebSocketConfig::default().max_message_size(Some(16 << 20)).max_frame_size(Some(16 << 20));
    let stream = tokio::net::TcpStream::connect(front).await?;
    stream.set_nodelay(true)?;
    let url = format!("ws://{front}/hop");
    let (socket, _) = tokio_tungstenite::client_async_with_config(url, stream, Some(config)).await?;
    say(&"ready")?;
    let (mut write, mut read) = socket.split();
    while let Some(message) = read.next().await {
        let Ok(message) = message else { break };
        let mut next = Some(message);
        // What has already arrived is answered with one flush.
        while let Some(message) = next.take() {
            if message.is_binary() {
                write.feed(message).await?;
            }
            next = futures_util::FutureExt::now_or_never(read.next()).flatten().transpose()?;
        }
        write.flush().await?;
    }
    Ok(())
}
