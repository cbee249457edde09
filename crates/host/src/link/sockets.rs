//! The sockets of a machine that dials: attempts, open connections, and close frames on their way.

use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use holdfast_core::daemon::{DialError, SocketId, Traffic};
use tokio::task::{AbortHandle, JoinSet};

use super::dial::Route;
use super::socket::{Happened, Socket};

/// What [`Sockets::next`] has to say.
pub(crate) enum News {
    /// An attempt came to its end.
    Dialled(SocketId, Result<(), DialError>),
    /// Something happened on an open socket.
    Happened(SocketId, Happened),
    /// A close frame is written, or was given up.
    SaidGoodbye,
}

/// See the module. Dropped, it drops all of them without a word.
pub(crate) struct Sockets {
    route: Arc<Route>,
    open: BTreeMap<SocketId, Socket>,
    dials: JoinSet<(SocketId, Result<Box<Socket>, DialError>)>,
    /// Attempts that are still wanted.
    wanted: HashMap<SocketId, AbortHandle>,
    goodbyes: JoinSet<()>,
}

impl Sockets {
    pub(crate) fn new(route: Route) -> Sockets {
        Sockets {
            route: Arc::new(route),
            open: BTreeMap::new(),
            dials: JoinSet::new(),
            wanted: HashMap::new(),
            goodbyes: JoinSet::new(),
        }
    }

    pub(crate) fn route(&self) -> &Route {
        &self.route
    }

    /// Begins an attempt. The machine bounds its time.
    pub(crate) fn dial(&mut self, id: SocketId) {
        let route = self.route.clone();
        let attempt = self.dials.spawn(async move { (id, route.open().await.map(Box::new)) });
        self.wanted.insert(id, attempt);
    }

    /// Says goodbye on a socket, or gives an attempt up.
    pub(crate) fn close(&mut self, id: SocketId, code: u16, reason: &'static str) {
        self.give_up(id);
        if let Some(socket) = self.open.remove(&id) {
            self.goodbyes.spawn(socket.close(code, reason));
        }
    }

    /// Drops a socket or an attempt without a word.
    pub(crate) fn drop(&mut self, id: SocketId) {
        self.give_up(id);
        self.open.remove(&id);
    }

    fn give_up(&mut self, id: SocketId) {
        if let Some(attempt) = self.wanted.remove(&id) {
            attempt.abort();
        }
    }

    /// Puts a ping in line.
    pub(crate) fn ping(&mut self, id: SocketId) {
        if let Some(socket) = self.open.get_mut(&id) {
            socket.ping();
        }
    }

    /// Whether close frames are still on their way.
    pub(crate) fn say_goodbye(&self) -> bool {
        !self.goodbyes.is_empty()
    }

    /// Fills the room that sockets have: `frame` is asked for one frame after the other.
    pub(crate) fn feed(&mut self, mut frame: impl FnMut(SocketId) -> Option<String>) {
        for (id, socket) in &mut self.open {
            while socket.has_room()
                && let Some(text) = frame(*id)
            {
                socket.feed(text);
            }
        }
    }

    /// Bytes that went through since the last question.
    pub(crate) fn traffic(&mut self) -> impl Iterator<Item = (SocketId, Traffic)> {
        self.open.iter_mut().filter_map(|(id, socket)| Some((*id, socket.traffic()?)))
    }

    /// The next thing that happens; never, when there is nothing.
    pub(crate) async fn next(&mut self) -> News {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// What happens at once, if anything.
    pub(crate) async fn try_next(&mut self) -> Option<News> {
        tokio::select! {
            biased;
            news = self.next() => Some(news),
            () = std::future::ready(()) => None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<News> {
        for (id, socket) in &mut self.open {
            if let Poll::Ready(happened) = socket.poll(cx) {
                let id = *id;
                if matches!(happened, Happened::Closed(_)) {
                    self.open.remove(&id);
                }
                return Poll::Ready(News::Happened(id, happened));
            }
        }
        while let Poll::Ready(Some(dialled)) = self.dials.poll_join_next(cx) {
            let (id, result) = match dialled {
                Ok((id, result)) if self.wanted.remove(&id).is_some() => (id, result),
                // Given up, or lost in a panic: then the machine's patience ends it.
                _ => continue,
            };
            let result = result.map(|socket| drop(self.open.insert(id, *socket)));
            return Poll::Ready(News::Dialled(id, result));
        }
        match self.goodbyes.poll_join_next(cx) {
            Poll::Ready(Some(_)) => Poll::Ready(News::SaidGoodbye),
            _ => Poll::Pending,
        }
    }
}
