//! A chat service in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::chat::inbox::{Missed, Thread};
use holdfast_core::chat::outbox::Posted;
use holdfast_core::chat::{Attachment, ChannelId, Draft, Incoming, MessageId, Scope, SendError, UserId};
use holdfast_core::seat::Failed;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

use crate::channel::{Bot, ChannelBackend, Event, Examined};

/// What is posted, and what goes wrong.
#[derive(Debug)]
pub struct Service {
    world: watch::Sender<World>,
    /// A message is posted, and its answer never comes.
    pub hangs: AtomicBool,
    /// Reactions take a while.
    pub slow: AtomicBool,
    /// The next message keeps its thread until the other end of this is gone.
    pub blocks: Mutex<Option<std::sync::mpsc::Receiver<()>>>,
    /// Refusals of what comes next.
    pub refusals: Mutex<Vec<SendError>>,
    pub resets: AtomicUsize,
    /// What is given to whoever asks for missed messages.
    pub missed: Mutex<Vec<Incoming>>,
    /// Threads that go on.
    pub threads: Mutex<Vec<Thread>>,
    /// Where the bot is alone with whom.
    pub direct: Mutex<BTreeMap<UserId, ChannelId>>,
    /// What is written from now on has later ids.
    pub moment: Mutex<Option<MessageId>>,
    /// How far its calendar is ahead of this machine's, in milliseconds.
    pub ahead: AtomicI64,
}

#[derive(Debug, Default, Clone)]
pub struct World {
    /// Channel, number, text, nonce.
    pub posts: Vec<(ChannelId, u64, String, String)>,
    /// Messages with a nonce that stood there already.
    pub repeated: usize,
    /// It forgot the nonces of posts before this one.
    pub remembered_from: usize,
    /// What was done besides, in order.
    pub done: Vec<String>,
}

impl Default for Service {
    fn default() -> Service {
        Service {
            world: watch::Sender::new(World::default()),
            hangs: AtomicBool::new(false),
            slow: AtomicBool::new(false),
            blocks: Mutex::default(),
            refusals: Mutex::default(),
            resets: AtomicUsize::new(0),
            missed: Mutex::default(),
            threads: Mutex::default(),
            direct: Mutex::default(),
            moment: Mutex::default(),
            ahead: AtomicI64::new(0),
        }
    }
}

impl Service {
    pub fn world(&self) -> World {
        self.world.borrow().clone()
    }

    pub fn change(&self, change: impl FnOnce(&mut World)) {
        self.world.send_modify(change);
    }

    /// The texts of a channel, in order.
    pub fn texts(&self, channel: &str) -> Vec<String> {
        let world = self.world.borrow();
        world.posts.iter().filter(|(at, ..)| at.as_str() == channel).map(|(_, _, text, _)| text.clone()).collect()
    }

    pub async fn until(&self, what: &str, found: impl Fn(&World) -> bool) -> World {
        let mut world = self.world.subscribe();
        super::soon(what, world.wait_for(|world| found(world))).await.unwrap().clone()
    }

    fn done(&self, what: String) {
        self.change(|world| world.done.push(what));
    }
}

impl ChannelBackend for Service {
    fn prove(&self) -> BoxFuture<'_, Result<Bot, Failed>> {
        async { Ok(Bot { id: "1".into(), name: "bot".into() }) }.boxed()
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), Failed>> {
        async { Ok(()) }.boxed()
    }

    fn listen(&self, _: mpsc::Sender<Event>) -> BoxFuture<'_, Failed> {
        std::future::pending().boxed()
    }

    fn chunk(&self) -> usize {
        200
    }

    fn send<'a>(&'a self, draft: &'a Draft) -> BoxFuture<'a, Result<MessageId, SendError>> {
        async {
            let blocks = self.blocks.lock().take();
            if let Some(blocks) = blocks {
                let _ = blocks.recv();
            }
            if let Some(refusal) = self.refusals.lock().pop() {
                return Err(refusal);
            }
            let mut number = 0;
            self.change(|world| {
                let known = world.posts[world.remembered_from..].iter().find(|(.., nonce)| *nonce == draft.nonce);
                if let Some((_, known, ..)) = known {
                    number = *known;
                    world.repeated += 1;
                    return;
                }
                number = 1000 + world.posts.len() as u64;
                world.posts.push((draft.channel.clone(), number, draft.text.clone(), draft.nonce.clone()));
            });
            if self.hangs.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            Ok(super::id(number))
        }
        .boxed()
    }

    fn edit<'a>(
        &'a self,
        _: &'a ChannelId,
        message: &'a MessageId,
        text: &'a str,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        async move {
            self.done(format!("edit {message}: {text}"));
            Ok(())
        }
        .boxed()
    }

    fn typing<'a>(&'a self, channel: &'a ChannelId) -> BoxFuture<'a, ()> {
        async move { self.done(format!("typing {channel}")) }.boxed()
    }

    fn react<'a>(&'a self, _: &'a ChannelId, message: &'a MessageId, sign: &'a str, there: bool) -> BoxFuture<'a, ()> {
        async move {
            if self.slow.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            self.done(format!("{} {message} {sign}", if there { "react" } else { "unreact" }));
        }
        .boxed()
    }

    fn answer<'a>(&'a self, click: &'a str, text: &'a str) -> BoxFuture<'a, ()> {
        async move { self.done(format!("answer {click}: {text}")) }.boxed()
    }

    fn fetch_after<'a>(&'a self, at: &'a ChannelId, after: &'a MessageId) -> BoxFuture<'a, Result<Missed, SendError>> {
        async move {
            let missed = self.missed.lock();
            let there = |message: &&Incoming| message.channel == *at && message.id > *after;
            let messages = missed.iter().filter(there).cloned().collect();
            Ok(Missed { messages, more: false })
        }
        .boxed()
    }

    fn threads<'a>(&'a self, of: &'a [ChannelId]) -> BoxFuture<'a, Result<Vec<Thread>, SendError>> {
        async { Ok(self.threads.lock().iter().filter(|thread| of.contains(&thread.parent)).cloned().collect()) }.boxed()
    }

    fn direct<'a>(&'a self, person: &'a UserId) -> BoxFuture<'a, Result<Option<ChannelId>, SendError>> {
        async { Ok(self.direct.lock().get(person).cloned()) }.boxed()
    }

    fn moment(&self) -> Option<MessageId> {
        self.moment.lock().clone()
    }

    fn unix_ms(&self) -> u64 {
        crate::status_hub::unix_ms().saturating_add_signed(self.ahead.load(Ordering::SeqCst))
    }

    fn posted<'a>(
        &'a self,
        channel: &'a ChannelId,
        after: Option<&'a MessageId>,
        _: Duration,
    ) -> BoxFuture<'a, Result<Option<Vec<Posted>>, SendError>> {
        async move {
            let world = self.world.borrow();
            let there = world
                .posts
                .iter()
                .filter(|(at, number, ..)| at == channel && after.is_none_or(|after| super::id(*number) > *after));
            let posted = there.map(|(_, number, text, _)| Posted { id: super::id(*number), text: text.clone() });
            Ok(Some(posted.collect()))
        }
        .boxed()
    }

    fn download<'a>(
        &'a self,
        _: &'a Incoming,
        _: &'a Attachment,
        _: &'a mut tokio::fs::File,
    ) -> BoxFuture<'a, Result<u64, String>> {
        async { Err("there are no files here".into()) }.boxed()
    }

    fn reset(&self) {
        self.resets.fetch_add(1, Ordering::SeqCst);
    }

    fn hears(&self) -> BoxFuture<'_, Result<(), Failed>> {
        async { Ok(()) }.boxed()
    }

    fn examine<'a>(&'a self, channel: &'a ChannelId) -> BoxFuture<'a, Result<Examined, SendError>> {
        async move { Ok(Examined { name: format!("#{channel}"), lacks: Vec::new() }) }.boxed()
    }
}

/// A refusal of everything in a channel.
pub fn channel_is_gone() -> SendError {
    SendError::Permanent { scope: Scope::Channel, code: "10003".into(), text: "Unknown Channel".into() }
}
