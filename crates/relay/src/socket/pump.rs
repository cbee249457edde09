//! The one task of a socket: writes what the room queued, reads frames and gives them to the room.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::{Sink as _, SinkExt as _, Stream as _};
use holdfast_core::limits;
use holdfast_core::switchboard::SocketId;
use holdfast_core::wire::WireError;
use holdfast_core::wire::close::Close;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::metered::Metered;
use super::transfer::Transfer;
use super::wire::{Item, Next, Wire};
use super::{News, Room};

/// How a socket ended.
enum End {
    /// We close it.
    Ours(Close),
    /// The peer closed it, with its word if it gave one.
    Peer(Option<(u16, String)>),
    /// The transport failed, or a frame was too slow.
    Broken,
}

/// Serves one accepted socket until it ends.
pub(super) async fn run<R: Room, S: AsyncRead + AsyncWrite + Unpin>(room: Arc<R>, io: S) {
    let (socket, wire) = room.connect();
    let io = Metered::new(io, Arc::clone(&wire), Arc::clone(room.pace()));
    let ws = WebSocketStream::from_raw_socket(io, Role::Server, Some(config(R::FRAME_MAX))).await;
    let mut pump = Pump {
        room,
        socket,
        wire,
        ws,
        intake: R::Intake::default(),
        unflushed: false,
        yielded: false,
        transfer: Transfer::default(),
    };
    let end = poll_fn(|cx| pump.poll(cx)).await;
    let word = match &end {
        End::Peer(word) => word.clone(),
        _ => None,
    };
    pump.room.disconnect(socket, word);
    // Bounded as a whole; a peer that does not read loses the reason of its close, nothing else.
    match end {
        End::Ours(close) => drop(timeout(limits::CLOSE_WAIT, part(pump.ws, Some(close))).await),
        // tungstenite queued the echo itself.
        End::Peer(_) => drop(timeout(limits::CLOSE_WAIT, part(pump.ws, None)).await),
        End::Broken => {}
    }
    pump.room.parted();
}

fn config(frame_max: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(limits::SOCKET_BUFFER)
        .write_buffer_size(limits::SOCKET_BUFFER)
        .max_write_buffer_size(limits::SOCKET_WRITE_MAX)
        .max_message_size(Some(frame_max))
        .max_frame_size(Some(frame_max))
}

/// Says why, then reads what the peer had already sent: closing over unread bytes would reset the connection and the
/// reason would be lost.
async fn part<S: AsyncRead + AsyncWrite + Unpin>(mut ws: WebSocketStream<Metered<S>>, farewell: Option<Close>) {
    if let Some((code, reason)) = farewell {
        let frame = CloseFrame { code: CloseCode::from(code), reason: reason.into() };
        if ws.send(Message::Close(Some(frame))).await.is_err() {
            return;
        }
    } else if ws.flush().await.is_err() {
        return;
    }
    let io = ws.get_mut();
    if io.shutdown().await.is_err() {
        return;
    }
    let mut rest = [0; 1024];
    while io.read(&mut rest).await.is_ok_and(|read| read > 0) {}
}

struct Pump<R: Room, S> {
    room: Arc<R>,
    socket: SocketId,
    wire: Arc<Wire>,
    ws: WebSocketStream<Metered<S>>,
    intake: R::Intake,
    unflushed: bool,
    yielded: bool,
    transfer: Transfer,
}

impl<R: Room, S: AsyncRead + AsyncWrite + Unpin> Pump<R, S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        // While this task runs it looks into its queue by itself and need not be woken for it.
        self.wire.attend();
        // Requests that are ready to run go first, so that what they queue leaves with the same write.
        self.yielded = !self.yielded && self.wire.has_items();
        if self.yielded {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            if let Poll::Ready(end) = self.write(cx) {
                return Poll::Ready(end);
            }
            match self.read(cx) {
                Poll::Ready(Some(end)) => return Poll::Ready(end),
                Poll::Ready(None) => continue,
                Poll::Pending => {}
            }
            let stalled_read = self.wire.meter().mid_frame();
            if self.transfer.too_slow(cx, self.wire.meter(), stalled_read, self.unflushed) {
                return Poll::Ready(End::Broken);
            }
            if self.wire.wait(cx, self.unflushed) {
                return Poll::Pending;
            }
        }
    }

    /// Feeds all queued frames, then flushes once. Ready when the socket is to end.
    fn write(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            match Pin::new(&mut self.ws).poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(End::Broken),
                // Not to be waited for any longer if the room wants to close.
                Poll::Pending if self.wire.is_cut() => return Poll::Ready(End::Broken),
                Poll::Pending => {
                    return self.wire.next_close().map_or(Poll::Pending, |close| Poll::Ready(End::Ours(close)));
                }
            }
            let message = match self.wire.next() {
                Next::Write(Item::Text(text)) => Message::text(text),
                Next::Write(Item::Ping(nonce)) => Message::Ping(nonce.to_be_bytes().to_vec().into()),
                // Frames before it are flushed together with the close.
                Next::Close(close) => return Poll::Ready(End::Ours(close)),
                Next::Cut => return Poll::Ready(End::Broken),
                Next::Nothing => match self.room.give(self.socket) {
                    Some(frame) => Message::text(frame),
                    None => break,
                },
            };
            self.unflushed = true;
            if Pin::new(&mut self.ws).start_send(message).is_err() {
                return Poll::Ready(End::Broken);
            }
        }
        if self.unflushed {
            match Pin::new(&mut self.ws).poll_flush(cx) {
                Poll::Ready(Ok(())) => {
                    self.unflushed = false;
                    self.transfer.wrote();
                }
                Poll::Ready(Err(_)) => return Poll::Ready(End::Broken),
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }

    /// Reads a batch. Ready with nothing: there may be more.
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        for _ in 0..limits::SOCKET_READ_BATCH {
            let message = match Pin::new(&mut self.ws).poll_next(cx) {
                Poll::Ready(Some(Ok(message))) => message,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(self.failed(&error))),
                Poll::Ready(None) => return Poll::Ready(Some(End::Peer(None))),
                Poll::Pending => return Poll::Pending,
            };
            self.wire.meter().frame_complete();
            self.transfer.read();
            match message {
                Message::Text(text) => self.arrived(News::Text(&text)),
                Message::Binary(bytes) => self.arrived(News::Binary(&bytes)),
                Message::Pong(payload) => {
                    if let Ok(nonce) = <[u8; 8]>::try_from(&payload[..]) {
                        self.arrived(News::Ponged(u64::from_be_bytes(nonce)));
                    }
                }
                Message::Close(frame) => {
                    let word = frame.map(|frame| (frame.code.into(), frame.reason.as_str().to_owned()));
                    return Poll::Ready(Some(End::Peer(word)));
                }
                Message::Ping(_) | Message::Frame(_) => {}
            }
        }
        Poll::Ready(None)
    }

    fn arrived(&mut self, news: News<'_>) {
        self.room.arrived(self.socket, &mut self.intake, news);
    }

    /// A frame that breaks the WebSocket rules the base wire names is told to the machine, which knows the close for it.
    fn failed(&mut self, error: &Error) -> End {
        let wire_error = match error {
            Error::Capacity(CapacityError::MessageTooLong { .. }) => WireError::TooLarge,
            Error::Utf8(_) => WireError::InvalidUtf8,
            Error::Protocol(_) => return End::Ours((1002, "websocket protocol error")),
            _ => return End::Broken,
        };
        self.arrived(News::Broken(wire_error));
        match self.wire.next_close() {
            Some(close) => End::Ours(close),
            None => End::Broken,
        }
    }
}
