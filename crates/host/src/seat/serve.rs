//! What serves while the seat is held: the connection, and the forwarder behind it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;
use holdfast_core::limits;
use holdfast_core::seat::{ConnId, Failed, Input, Look};
use holdfast_core::time::Now;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::run::{Event, Run, tell};
use crate::channel::{self, ChannelBackend};
use crate::forwarder::{Forwarder, News, Post};

/// A connection, or an attempt at one.
pub(super) struct Conn {
    pub id: ConnId,
    pub task: JoinHandle<()>,
    /// What was heard, until somebody serves.
    pub heard: Option<mpsc::Receiver<channel::Event>>,
}

impl Run {
    /// Connects anew.
    pub(super) fn connect(&mut self, conn: ConnId) {
        let (backend, events) = (Arc::clone(&self.backend), self.events.clone());
        let (hears, heard) = mpsc::channel(limits::FORWARDER_EVENTS);
        let told = events.clone();
        let connected = AssertUnwindSafe(stay_connected(backend, conn, hears, events)).catch_unwind();
        let task = tokio::spawn(async move {
            // Without a word the seat would go on as if it heard.
            if connected.await.is_err() {
                let why = Failed::ForNow { reason: "the connection failed unexpectedly".into(), after: None };
                tell(&told, Event::Lost(conn, why));
            }
        });
        self.conn = Some(Conn { id: conn, task, heard: Some(heard) });
    }

    /// What a forwarder says, as far as it concerns the seat.
    pub(super) async fn news(&mut self, now: Now, number: u64, news: News) -> Option<Input> {
        if matches!(news, News::Noticed(..)) {
            self.notices.fetch_sub(1, Ordering::Relaxed);
        }
        self.forwarder.as_ref().filter(|(current, _)| *current == number)?;
        match news {
            News::Drained => {
                self.part();
                None
            }
            News::Opened => self.opening.take().map(|conn| Input::Opened(conn, Ok(()))),
            News::Broken(why) => match self.opening.take() {
                Some(conn) => {
                    tracing::warn!(code = why.code.as_str(), "the seat's store is not open: {}", why.reason);
                    // It has ended.
                    self.forwarder = None;
                    Some(Input::Opened(conn, Err(why)))
                }
                None => self.give_up(Failed::ForNow { reason: why.reason, after: None }).await,
            },
            News::Failed(reason) => self.give_up(Failed::ForGood(reason)).await,
            News::Superseded(generation) => Some(Input::Looked(Look::Intact { generation, connected: None })),
            News::Doubt => Some(Input::Looked(self.look(None).await)),
            News::Noticed(notice, text) => {
                self.shown.noticed(notice, &text);
                None
            }
            News::SetAside(to) => {
                self.shown.set_aside(&to);
                None
            }
            News::Stranger => {
                self.stranger = Some(now.boot + limits::SEAT_SETTLED);
                None
            }
        }
    }

    /// Nothing can be forwarded; why.
    async fn give_up(&mut self, why: Failed) -> Option<Input> {
        let conn = self.conn.as_ref().map(|conn| conn.id);
        tracing::warn!(?why, "nothing is forwarded any more");
        self.cut().await;
        conn.map(|conn| Input::Lost(conn, why))
    }

    pub(super) fn is_conn(&self, conn: ConnId) -> bool {
        self.conn.as_ref().is_some_and(|open| open.id == conn)
    }

    /// Opens what the seat keeps, if it is not open yet.
    pub(super) fn open(&mut self, conn: ConnId, generation: u64) -> Option<Input> {
        if self.forwarder.is_some() {
            return Some(Input::Opened(conn, Ok(())));
        }
        self.minted += 1;
        let (number, events, notices) = (self.minted, self.events.clone(), Arc::clone(&self.notices));
        let post = Post {
            backend: Arc::clone(&self.backend),
            folder: self.disk.path().to_path_buf(),
            generation,
            holds: Arc::new(self.disk.holds(generation)),
            told: Arc::new(move |news| {
                // Of all that is told only this comes as often as messages do, and nothing hangs on it.
                let lossy = matches!(news, News::Noticed(..));
                if lossy && notices.fetch_add(1, Ordering::Relaxed) >= limits::SEAT_NOTICES {
                    notices.fetch_sub(1, Ordering::Relaxed);
                    return;
                }
                tell(&events, Event::Forwarder(number, news));
            }),
        };
        self.opening = Some(conn);
        self.forwarder = Some((number, Forwarder::open(post, self.means.clone())));
        None
    }

    /// Serves with a connection that counts.
    pub(super) fn serve(&mut self, conn: ConnId) {
        let heard = self.conn.as_mut().filter(|open| open.id == conn).and_then(|open| open.heard.take());
        if let (Some(heard), Some((_, forwarder))) = (heard, &self.forwarder) {
            forwarder.connected(heard);
        }
    }

    /// Ends the connection, if there is one, and tells when that is done.
    pub(super) fn part(&mut self) {
        let (conn, left) = (self.conn.take(), self.leaving.take());
        let events = self.events.clone();
        tokio::spawn(async move {
            if let Some(conn) = conn {
                conn.task.abort();
                // It has ended either way.
                let _ = conn.task.await;
            }
            if let Some(left) = left {
                tell(&events, Event::Left(left));
            }
        });
    }

    /// Ends the connection and whatever serves: when this returns, nothing is sent any more.
    pub(super) async fn cut(&mut self) {
        if let Some(conn) = self.conn.take() {
            conn.task.abort();
        }
        (self.opening, self.leaving) = (None, None);
        if let Some((_, forwarder)) = self.forwarder.take() {
            forwarder.cut().await;
        }
    }
}

async fn stay_connected(
    backend: Arc<dyn ChannelBackend>,
    conn: ConnId,
    hears: mpsc::Sender<channel::Event>,
    events: mpsc::WeakUnboundedSender<Event>,
) {
    let why = match backend.connect().await {
        Err(why) => why,
        Ok(()) => {
            tell(&events, Event::Connected(conn));
            backend.listen(hears).await
        }
    };
    tell(&events, Event::Lost(conn, why));
}
