//! One WebSocket of a scripted peer.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};

/// How long a scripted peer waits for the next frame, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the other side sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// A JSON message.
    Json(Value),
    /// A close frame; 1005 without a code.
    Closed(u16, String),
    /// The connection ended without a close frame.
    Gone(String),
}

/// One WebSocket of a scripted peer.
pub struct Wire {
    socket: WebSocketStream<TcpStream>,
}

impl Wire {
    pub(super) fn new(socket: WebSocketStream<TcpStream>) -> Wire {
        Wire { socket }
    }

    /// Sends a JSON message. An error means that the other side is gone, which the next read tells better.
    pub async fn send(&mut self, message: Value) {
        self.send_text(message.to_string()).await;
    }

    /// Sends any text frame.
    pub async fn send_text(&mut self, text: impl Into<String>) {
        let _ = self.socket.send(Message::text(text.into())).await;
    }

    /// Sends a binary frame.
    pub async fn send_binary(&mut self, bytes: Vec<u8>) {
        let _ = self.socket.send(Message::binary(bytes)).await;
    }

    /// Sends a close frame.
    pub async fn close(&mut self, code: u16, reason: &str) {
        let frame = CloseFrame { code: code.into(), reason: reason.to_owned().into() };
        let _ = self.socket.send(Message::Close(Some(frame))).await;
    }

    /// The next message or end; pings are answered on the way.
    ///
    /// # Panics
    /// After two minutes of silence.
    pub async fn next(&mut self) -> Frame {
        self.next_within(PATIENCE).await.unwrap_or_else(|| panic!("nothing came within {PATIENCE:?}"))
    }

    /// The next message or end, or `None` when nothing came in time.
    pub async fn next_within(&mut self, patience: Duration) -> Option<Frame> {
        tokio::time::timeout(patience, self.read()).await.ok()
    }

    async fn read(&mut self) -> Frame {
        loop {
            let text = match self.socket.next().await {
                Some(Ok(Message::Text(text))) => text.to_string(),
                Some(Ok(Message::Binary(bytes))) => String::from_utf8_lossy(&bytes).into_owned(),
                Some(Ok(Message::Close(frame))) => {
                    let (code, reason) = frame.map_or((1005, String::new()), |f| (f.code.into(), f.reason.to_string()));
                    return Frame::Closed(code, reason);
                }
                Some(Ok(_)) => continue,
                Some(Err(Error::ConnectionClosed)) | None => return Frame::Gone("closed".into()),
                Some(Err(error)) => return Frame::Gone(error.to_string()),
            };
            return Frame::Json(serde_json::from_str(&text).unwrap_or_else(|e| panic!("no JSON ({e}): {text}")));
        }
    }

    /// The next message, which must be of this type.
    ///
    /// # Panics
    /// If something else comes, or nothing.
    pub async fn expect(&mut self, kind: &str) -> Value {
        match self.next().await {
            Frame::Json(message) if message["type"] == kind => message,
            other => panic!("expected {kind}, got {other:?}"),
        }
    }

    /// The next message of this type; heartbeats and pongs before it are skipped.
    ///
    /// # Panics
    /// If something else comes, or nothing.
    pub async fn expect_past_life(&mut self, kind: &str) -> Value {
        loop {
            match self.next().await {
                Frame::Json(message) if message["type"] == kind => return message,
                Frame::Json(message) if matches!(message["type"].as_str(), Some("heartbeat" | "pong")) => {}
                other => panic!("expected {kind}, got {other:?}"),
            }
        }
    }

    /// Waits for the close, whatever messages come before it; these and the close's code and reason.
    ///
    /// # Panics
    /// If the connection ends without a close frame, or not at all.
    pub async fn closed(&mut self) -> (Vec<Value>, u16, String) {
        let mut before = Vec::new();
        loop {
            match self.next().await {
                Frame::Json(message) => before.push(message),
                Frame::Closed(code, reason) => return (before, code, reason),
                Frame::Gone(cause) => {
                    panic!("the connection ended without a close frame: {cause}; before it {before:?}")
                }
            }
        }
    }
}
