//! What a room and one socket's task share: the queue of frames to write, and the meter of bytes read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use holdfast_core::limits;
use holdfast_core::switchboard::SocketId;
use holdfast_core::wire::close::Close;
use parking_lot::Mutex;

/// Something to write.
pub(crate) enum Item {
    Text(String),
    Ping(u64),
}

/// One socket as its room sees it.
#[derive(Default)]
pub(crate) struct Wire {
    queue: Mutex<Queue>,
    meter: Meter,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    close: Option<Close>,
    cut: bool,
    /// The room may have a frame to give.
    ready: bool,
    waker: Option<Waker>,
}

/// What the socket's task is to do next.
pub(crate) enum Next {
    Write(Item),
    Close(Close),
    Cut,
    Nothing,
}

impl Wire {
    /// Queues a frame. A socket that does not take its frames is dead: above [`limits::SOCKET_QUEUE_MAX`] it is closed.
    pub(crate) fn put(&self, item: Item) {
        let waker = {
            let mut queue = self.queue.lock();
            if queue.close.is_some() {
                return;
            }
            if queue.items.len() >= limits::SOCKET_QUEUE_MAX {
                queue.items.clear();
                queue.close = Some(holdfast_core::wire::close::LIVENESS);
            } else {
                queue.items.push_back(item);
            }
            queue.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The room may have a frame to give, if it is asked.
    pub(crate) fn nudge(&self) {
        self.change(|queue| queue.ready = true);
    }

    /// Ends it without a word.
    pub(crate) fn cut(&self) {
        self.change(|queue| queue.cut = true);
    }

    fn change(&self, change: impl FnOnce(&mut Queue)) {
        let waker = {
            let mut queue = self.queue.lock();
            change(&mut queue);
            queue.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Closes after what is queued was written. The first close stands.
    pub(crate) fn close(&self, close: Close) {
        self.change(|queue| {
            queue.close.get_or_insert(close);
        });
    }

    /// The socket's task runs and looks by itself: nobody wakes it.
    pub(crate) fn attend(&self) {
        self.queue.lock().waker = None;
    }

    /// The socket's task goes to sleep until something is queued, or until the socket takes more if it is blocked.
    /// `false`: there is something to do already. A close is worth waking up for even then.
    pub(crate) fn wait(&self, cx: &mut Context<'_>, blocked: bool) -> bool {
        let mut queue = self.queue.lock();
        let sleep = queue.close.is_none() && !queue.cut && (blocked || (queue.items.is_empty() && !queue.ready));
        if sleep {
            queue.waker = Some(cx.waker().clone());
        }
        sleep
    }

    /// Whether frames wait.
    pub(crate) fn has_items(&self) -> bool {
        !self.queue.lock().items.is_empty()
    }

    /// Takes the next thing. After `Nothing` the room is to be asked for a frame.
    pub(crate) fn next(&self) -> Next {
        let mut queue = self.queue.lock();
        queue.ready = false;
        if queue.cut {
            return Next::Cut;
        }
        match (queue.items.pop_front(), queue.close) {
            (Some(item), _) => Next::Write(item),
            (None, Some(close)) => Next::Close(close),
            (None, None) => Next::Nothing,
        }
    }

    /// The close, if one is queued; what stands before it is not written.
    pub(crate) fn next_close(&self) -> Option<Close> {
        self.queue.lock().close
    }

    /// Whether it is to end without a word.
    pub(crate) fn is_cut(&self) -> bool {
        self.queue.lock().cut
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }
}

/// Bytes of one socket below the WebSocket layer.
#[derive(Default)]
pub(crate) struct Meter {
    read: AtomicU64,
    written: AtomicU64,
    heard_ns: AtomicU64,
    mid_frame: AtomicBool,
}

impl Meter {
    pub(crate) fn add_read(&self, bytes: usize, boot: Duration) {
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        self.heard_ns.store(u64::try_from(boot.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.mid_frame.store(true, Ordering::Relaxed);
    }

    pub(crate) fn add_written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A whole frame was taken out of what was read.
    pub(crate) fn frame_complete(&self) {
        self.mid_frame.store(false, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(crate) fn heard(&self) -> Duration {
        Duration::from_nanos(self.heard_ns.load(Ordering::Relaxed))
    }

    pub(crate) fn mid_frame(&self) -> bool {
        self.mid_frame.load(Ordering::Relaxed)
    }
}

/// The sockets of a room that its machine still knows.
#[derive(Default)]
pub(crate) struct Wires(Vec<(SocketId, Arc<Wire>)>);

impl Wires {
    pub(crate) fn add(&mut self, socket: SocketId) -> Arc<Wire> {
        let wire = Arc::new(Wire::default());
        self.0.push((socket, Arc::clone(&wire)));
        wire
    }

    pub(crate) fn remove(&mut self, socket: SocketId) {
        self.0.retain(|(id, _)| *id != socket);
    }

    pub(crate) fn put(&self, socket: SocketId, item: Item) {
        if let Some((_, wire)) = self.0.iter().find(|(id, _)| *id == socket) {
            wire.put(item);
        }
    }

    /// Closes a socket; the room gives it nothing more.
    pub(crate) fn close(&mut self, socket: SocketId, close: Close) {
        if let Some((_, wire)) = self.0.iter().find(|(id, _)| *id == socket) {
            wire.close(close);
        }
        self.remove(socket);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SocketId, &Arc<Wire>)> {
        self.0.iter().map(|(socket, wire)| (*socket, wire))
    }
}
