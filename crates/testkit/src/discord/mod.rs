//! A chat service that behaves as Discord does, on 127.0.0.1: REST with its limits, nonces and refusals, and a gateway with
//! sessions that are resumed. Tests write and click as people do, break things, and look at what was posted by whom.

mod gateway;
mod http;
mod people;
mod rest;
#[cfg(test)]
mod tests;
mod world;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

pub use people::Written;
use world::World;
pub use world::{Acknowledged, Post, Seen};

/// How long something that should happen soon may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// What bots may ask to hear of unless a test says otherwise: everything.
const ALL_INTENTS: u64 = (1 << 26) - 1;
/// The privileged intent without which messages come without their text.
pub const MESSAGE_CONTENT: u64 = 1 << 15;

/// What goes wrong with one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// The connection ends before anything happened.
    CutBefore,
    /// It is carried out, and the connection ends without an answer.
    Cut,
    /// It is carried out, and the connection ends in the middle of the answer.
    Half,
    /// It is carried out, and the answer waits for [`FakeDiscord::release`].
    Hang,
    /// It is carried out, and the answer comes that much later.
    Delay(Duration),
    /// It is refused with this status.
    Refuse(u16),
    /// It is refused with 429.
    Limit {
        /// In seconds.
        after: f64,
        /// For every route.
        global: bool,
    },
}

/// How a gateway connection ends, or is disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// It ends without a word.
    Drop,
    /// The same, and what is under way is lost.
    Reset,
    /// With a close code. Up to 4003, 4005, 4007 and 4009 the session can be resumed.
    Close(u16),
    /// The client is told to come again.
    Reconnect,
    /// The session is invalid; whether it may be resumed.
    Invalid(bool),
}

/// A running service.
pub struct FakeDiscord {
    shared: Arc<Shared>,
    tasks: Vec<AbortHandle>,
}

impl Drop for FakeDiscord {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

struct Shared {
    world: Mutex<World>,
    changed: watch::Sender<u64>,
    http: SocketAddr,
    gateway: SocketAddr,
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no panic while held")
    }

    fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let result = change(&mut self.world());
        self.changed.send_modify(|n| *n += 1);
        result
    }
}

impl FakeDiscord {
    /// Starts it on free ports, with Discord's own limit: 5 messages in 5 s for each channel.
    ///
    /// # Panics
    /// If it cannot listen.
    pub async fn start() -> FakeDiscord {
        let listen = || TcpListener::bind("127.0.0.1:0");
        let (rest, ws) = (listen().await.expect("a free port"), listen().await.expect("a free port"));
        let (http, gateway) = (rest.local_addr().expect("an address"), ws.local_addr().expect("an address"));
        let world = Mutex::new(World::new(http, gateway));
        let shared = Arc::new(Shared { world, changed: watch::Sender::new(0), http, gateway });
        let (for_rest, for_ws) = (Arc::clone(&shared), Arc::clone(&shared));
        // Connections end with the loop that took them.
        let rest = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = rest.accept().await {
                connections.spawn(http::serve(stream, Arc::clone(&for_rest)));
            }
        });
        let ws = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = ws.accept().await {
                connections.spawn(gateway::serve(stream, Arc::clone(&for_ws)));
            }
        });
        FakeDiscord { shared, tasks: vec![rest.abort_handle(), ws.abort_handle()] }
    }

    /// The base address of the API for one caller, by which its requests are told apart.
    pub fn url(&self, caller: &str) -> String {
        format!("http://{}/{caller}", self.shared.http)
    }

    /// The gateway's address for a caller; the API names it as well.
    pub fn gateway_url(&self, caller: &str) -> String {
        format!("http://{}/{caller}", self.shared.gateway)
    }

    /// Makes a bot; returns its token.
    pub fn bot(&self, id: u64) -> String {
        self.shared.change(|world| world.make_bot(id))
    }

    /// Makes a token worthless. Its sessions end with close code 4004.
    pub fn revoke(&self, token: &str) {
        self.shared.change(|world| world.revoke(token));
    }

    /// Which intents bots may ask for, as switched on in the portal.
    pub fn intents(&self, allowed: u64) {
        self.shared.change(|world| world.intents = allowed);
    }

    /// How many messages may be posted in a channel in which time; none: as many as one likes.
    pub fn limit(&self, limit: Option<(u32, Duration)>) {
        self.shared.change(|world| world.limit = limit);
    }

    /// How long the gateway lets clients wait between heartbeats. For connections made from now on.
    pub fn heartbeats(&self, interval: Duration) {
        self.shared.change(|world| world.heartbeat = interval);
    }

    /// While mute, the gateway answers no heartbeats and sends nothing.
    pub fn mute(&self, mute: bool) {
        self.shared.change(|world| world.mute = mute);
    }

    /// As if nonces had been sent minutes ago.
    pub fn forget_nonces(&self) {
        self.shared.change(World::forget_nonces);
    }

    /// As if a day had passed: addresses of attachments that were given so far do not work any more.
    pub fn expire_links(&self) {
        self.shared.change(|world| world.signature += 1);
    }

    /// How often bots may still identify today.
    pub fn identifies_left(&self, left: u32) {
        self.shared.change(|world| world.identifies_left = left);
    }

    /// The next request of a route, such as `POST channels/*/messages`, goes wrong. Several wait for their turn.
    pub fn fault(&self, route: &str, fault: Fault) {
        self.shared.change(|world| {
            world.hanging |= fault == Fault::Hang;
            world.faults.push((route.to_owned(), fault));
        });
    }

    /// Answers that hang are sent.
    pub fn release(&self) {
        self.shared.change(|world| world.hanging = false);
    }

    /// Breaks the gateway connections of a caller.
    pub fn disturb(&self, caller: &str, how: Break) {
        self.shared.change(|world| world.disturb(caller, how));
    }

    /// Whether new gateway connections are taken. If not, they end at once.
    pub fn open(&self, open: bool) {
        self.shared.change(|world| world.closed = !open);
    }

    /// The bots may not look into a channel any more, or may again.
    pub fn forbid(&self, channel: u64, forbidden: bool) {
        self.shared.change(|world| world.forbid(channel, forbidden));
    }

    /// The bots may not write in a channel any more, or may again.
    pub fn silence(&self, channel: u64, silent: bool) {
        self.shared.change(|world| world.silence(channel, silent));
    }

    /// The bots may not read what was written in a channel before any more.
    pub fn forget(&self, channel: u64) {
        self.shared.change(|world| world.forgetful.insert(channel));
    }

    /// Removes a channel.
    pub fn delete(&self, channel: u64) {
        self.shared.change(|world| world.delete(channel));
    }

    /// What it has seen so far.
    pub fn seen(&self) -> Seen {
        self.shared.world().seen.clone()
    }

    /// Waits until something was seen.
    ///
    /// # Panics
    /// If it is not within two minutes.
    pub async fn until(&self, what: &str, found: impl Fn(&Seen) -> bool) -> Seen {
        let mut changes = self.shared.changed.subscribe();
        let waiting = changes.wait_for(|_| found(&self.shared.world().seen));
        let waited = tokio::time::timeout(PATIENCE, waiting).await.is_ok();
        let seen = self.seen();
        assert!(waited, "no {what} within {PATIENCE:?}: {seen:#?}");
        seen
    }
}
