//! One open WebSocket: fed in batches, flushed once, and polled for whatever comes next.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Sink as _, SinkExt as _, Stream as _};
use holdfast_core::daemon::Traffic;
use holdfast_core::limits;
use holdfast_core::wire::WireError;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error as WsError, Message, Utf8Bytes};

use super::stream::{BoxStream, Meter};

/// What a socket has to say.
pub(crate) enum Happened {
    Text(Utf8Bytes),
    Binary(Bytes),
    Control,
    /// There is room again.
    Drained,
    Unreadable(WireError),
    Closed(Option<(u16, Cow<'static, str>)>),
}

/// A WebSocket and the state of its writing.
pub(super) struct Socket {
    ws: WebSocketStream<BoxStream>,
    meter: Arc<Meter>,
    told: (u64, u64),
    unwritten: usize,
    /// tungstenite answers pings by itself, but only writes the answer when it is flushed.
    owes_flush: bool,
    drained: bool,
}

impl Socket {
    pub(super) fn new(ws: WebSocketStream<BoxStream>, meter: Arc<Meter>) -> Self {
        // The upgrade's own bytes are no life of the link.
        let told = (meter.read(), meter.written());
        Socket { ws, meter, told, unwritten: 0, owes_flush: false, drained: false }
    }

    /// Whether it takes another frame.
    pub(super) fn has_room(&self) -> bool {
        self.unwritten < limits::LINK_WRITE_ROOM
    }

    /// Puts a frame in line. Errors come out of [`Socket::poll`].
    pub(super) fn feed(&mut self, text: String) {
        self.unwritten += text.len();
        self.owes_flush = true;
        // A broken socket says so when it is polled next.
        let _ = Pin::new(&mut self.ws).start_send(Message::text(text));
    }

    /// Puts a WebSocket ping in line.
    pub(super) fn ping(&mut self) {
        self.owes_flush = true;
        let _ = Pin::new(&mut self.ws).start_send(Message::Ping(Bytes::new()));
    }

    /// Bytes since the last question, if any went through.
    pub(super) fn traffic(&mut self) -> Option<Traffic> {
        let (read, written) = (self.meter.read(), self.meter.written());
        let traffic = Traffic {
            read: read - self.told.0,
            written: written - self.told.1,
            drained: std::mem::take(&mut self.drained),
        };
        self.told = (read, written);
        (traffic != Traffic::default()).then_some(traffic)
    }

    /// Writes what is in line and reads the next thing.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Happened> {
        if self.owes_flush {
            match Pin::new(&mut self.ws).poll_flush(cx) {
                Poll::Ready(Ok(())) => {
                    let was_full = !self.has_room();
                    self.owes_flush = false;
                    self.drained |= std::mem::take(&mut self.unwritten) > 0;
                    if was_full {
                        return Poll::Ready(Happened::Drained);
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(broken(&error)),
                Poll::Pending => {}
            }
        }
        match Pin::new(&mut self.ws).poll_next(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(message))) => Poll::Ready(match message {
                Message::Text(text) => Happened::Text(text),
                Message::Binary(bytes) => Happened::Binary(bytes),
                Message::Ping(_) | Message::Pong(_) => {
                    self.owes_flush = true;
                    Happened::Control
                }
                Message::Close(frame) => Happened::Closed(Some(word(frame))),
                Message::Frame(_) => Happened::Control,
            }),
            Poll::Ready(Some(Err(error))) => Poll::Ready(broken(&error)),
            Poll::Ready(None) => Poll::Ready(Happened::Closed(None)),
        }
    }

    /// Says goodbye without waiting for an echo; what was fed before goes out first, if the network takes it in time.
    pub(super) async fn close(mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame { code: code.into(), reason: reason.into() };
        let sent = async {
            self.ws.send(Message::Close(Some(frame))).await?;
            self.ws.flush().await
        };
        // Nobody is left to be told that it did not work.
        let _ = tokio::time::timeout(limits::CLOSE_WAIT, sent).await;
    }
}

fn word(frame: Option<CloseFrame>) -> (u16, Cow<'static, str>) {
    frame.map_or((1005, Cow::Borrowed("")), |frame| (frame.code.into(), Cow::Owned(frame.reason.to_string())))
}

fn broken(error: &WsError) -> Happened {
    match error {
        WsError::Utf8(_) => Happened::Unreadable(WireError::InvalidUtf8),
        WsError::Capacity(_) => Happened::Unreadable(WireError::TooLarge),
        _ => Happened::Closed(None),
    }
}
