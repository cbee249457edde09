//! The forwarder's task: turns what the machines say into I/O, and everything that happens into inputs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use holdfast_core::chat::asks::{self, Asks};
use holdfast_core::chat::inbox::{self, Back, Inbox, Message, Missed, Prepared, Thread, Undelivered};
use holdfast_core::chat::outbox::{self, Key, Outbox, Posted};
use holdfast_core::chat::signs::{self, Signs};
use holdfast_core::chat::{ChannelId, CommitError, Incoming, MessageId, Scope, SendError, Ticket, UserId};
use holdfast_core::limits;
use holdfast_core::status::UnixMs;
use holdfast_core::time::Now;
use holdfast_core::transcript::Bookmark;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::access::access;
use super::begin;
use super::callers::Callers;
use super::desk::Request;
use super::sources::{Hearing, Sought, Source};
use super::store::{Opened, SeatStore};
use super::strangers::Strangers;
use super::{Means, News, Order, Post};
use crate::channel::Event as Heard;
use crate::config::ChannelConfig;
use crate::deliver::Courier;
use crate::link::clock::Turns;
use crate::transcript::Found;

/// What comes of something that was begun.
#[derive(Debug)]
pub(super) enum Event {
    OutboxCommitted(Ticket, Result<Vec<Key>, CommitError>),
    InboxCommitted(Ticket, Result<Vec<u64>, CommitError>),
    AsksCommitted(Ticket, Result<(), CommitError>),
    Sent(outbox::Attempt, ChannelId, Result<MessageId, SendError>),
    Compared(outbox::Attempt, Result<Option<Vec<Posted>>, SendError>),
    Fetched(ChannelId, Result<Missed, SendError>),
    Threads(Result<Vec<Thread>, SendError>),
    Direct(Vec<(UserId, Option<ChannelId>)>),
    Prepared(u64, Prepared),
    /// And whether a hand-over waits for it.
    Delivered {
        attempt: inbox::Attempt,
        waits: bool,
        result: Result<(), Undelivered>,
    },
    /// A person's wish to stop was carried out.
    Stopped(Box<Message>, Result<String, String>),
    /// What the agent of a binding says, by the key of it; where the store has it, if it had it before; what it answers.
    Known(Arc<str>, Arc<str>, Box<Say>, Option<ChannelId>, Option<Box<Incoming>>),
    /// As the service calls a channel.
    Named(ChannelId, Option<String>),
    TakenBack(inbox::Attempt, Back),
    /// A path of a transcript was looked for.
    Sought(Sought),
    /// What a binding looked for, by the number of the look, since then by the calendar.
    Found {
        binding: Arc<str>,
        look: u64,
        looked: UnixMs,
        found: Vec<Found>,
    },
    /// This message of our bot is not in the store.
    Strange(ChannelId, MessageId),
    Signed,
    Done,
}

/// Words of an agent on their way.
#[derive(Debug)]
pub(super) struct Say {
    pub channel: ChannelId,
    pub text: String,
    pub reply_to: Option<MessageId>,
}

/// How far a hand-over is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Serving,
    /// Transcripts are read to their ends; since then.
    Finishing(Duration),
    /// What is prepared is sent; since the hand-over began.
    Draining(Duration),
    /// Only deliveries that are under way are waited for, and reactions that are still taken away.
    Drained(Duration),
}

pub(super) struct Shell {
    pub post: Post,
    pub means: Means,
    pub config: Arc<ChannelConfig>,
    pub courier: Courier,
    pub store: SeatStore,
    pub turns: Turns,
    pub outbox: Outbox,
    pub inbox: Inbox,
    pub asks: Asks,
    /// Why prompts are not stored.
    pub asks_stuck: Option<CommitError>,
    pub signs: Signs,
    pub sources: BTreeMap<Arc<str>, Source>,
    /// Which transcripts were bound when this holder began.
    pub bound: BTreeMap<Arc<str>, super::store::Bound>,
    /// How far every transcript was read, by its path.
    pub marks: BTreeMap<String, Bookmark>,
    pub hearing: FuturesUnordered<Hearing>,
    pub followers: u64,
    /// Looks for transcripts that were begun.
    pub looks: u64,
    pub callers: Callers,
    pub strangers: Strangers,
    /// What people call each other.
    pub names: BTreeMap<UserId, String>,
    /// What services call channels; none: it is being asked for, or not told.
    pub called: BTreeMap<ChannelId, Option<String>>,
    pub skipped: BTreeMap<ChannelId, u64>,
    pub last_sent: BTreeMap<ChannelId, UnixMs>,
    /// Signs that are not given yet; one is given at a time.
    pub signing: VecDeque<signs::Output>,
    /// Room for answers to clicks.
    pub answering: Arc<Semaphore>,
    pub sending: usize,
    /// Deliveries that a hand-over waits for.
    pub giving: usize,
    /// Deliveries under way, and what ends when nothing is left of one.
    pub given: BTreeMap<inbox::Attempt, (AbortHandle, oneshot::Receiver<()>)>,
    pub doing: JoinSet<Event>,
    pub events: mpsc::UnboundedSender<Event>,
    pub phase: Phase,
    pub over: Option<News>,
    pub unpublished: bool,
    pub published_at: Duration,
}

/// Opens the store and serves until it is told to leave, cut off, or cannot go on.
pub(super) async fn run(post: Post, means: Means, mut orders: mpsc::UnboundedReceiver<Order>, cut: CancellationToken) {
    let (opened, courier, set_aside) = match begin::open(&post, &means, &cut).await {
        Ok(all) => all,
        Err(Some(news)) => return (post.told)(news),
        Err(None) => return,
    };
    let store = opened.store.clone();
    let heard = match begin::connected(&post, set_aside, &mut orders, &cut).await {
        Ok(heard) => heard,
        Err(news) => {
            courier.close().await;
            begin::close(store).await;
            return news.into_iter().for_each(|news| (post.told)(news));
        }
    };
    let (events, happened) = mpsc::unbounded_channel();
    let (requests, named) = means.desk.open();
    let mut shell = Shell::new(post, means, opened, courier, events);
    shell.arrange();
    shell.begin_channels();
    for (binding, transcript) in named {
        // Nobody waits for the answer any more.
        shell.name(&binding, &transcript, None);
    }
    let news = tokio::select! {
        biased;
        () = cut.cancelled() => None,
        news = shell.serve(heard, &mut orders, requests, happened) => Some(news),
    };
    let Shell { post, means, courier, mut doing, sources, .. } = shell;
    means.desk.close();
    // What hangs in a call of the system's that never returns must not keep the seat.
    let _ = tokio::time::timeout(limits::SEAT_DISK, doing.shutdown()).await;
    drop(sources);
    courier.close().await;
    begin::close(store).await;
    if let Some(news) = news {
        (post.told)(news);
    }
}

impl Shell {
    pub(super) fn new(
        post: Post,
        means: Means,
        opened: Opened,
        courier: Courier,
        events: mpsc::UnboundedSender<Event>,
    ) -> Shell {
        let mut turns = Turns::new();
        let (now, config) = (turns.now(), means.config.borrow().clone());
        let Opened { store, outbox, mut inbox, asks, bookmarks, bound, set_aside: _ } = opened;
        let today = post.backend.unix_ms();
        for message in &mut inbox.messages {
            message.incoming.age = Duration::from_millis(today.saturating_sub(message.incoming.at));
        }
        let mut marks = BTreeMap::<String, Bookmark>::new();
        for mark in bookmarks {
            let newer = marks.get(&mark.transcript).is_none_or(|m| m.cursor.generation < mark.cursor.generation);
            if newer {
                marks.insert(mark.transcript.clone(), mark);
            }
        }
        let generation = post.generation;
        Shell {
            outbox: Outbox::new(now, generation, post.backend.chunk(), outbox, rand::random()),
            inbox: Inbox::new(now, generation, access(&config), inbox, rand::random()),
            asks: Asks::new(now, asks),
            asks_stuck: None,
            signs: Signs::default(),
            post,
            means,
            config,
            courier,
            store,
            turns,
            sources: BTreeMap::new(),
            bound,
            marks,
            hearing: FuturesUnordered::new(),
            followers: 0,
            looks: 0,
            callers: Callers::default(),
            strangers: Strangers::default(),
            names: BTreeMap::new(),
            called: BTreeMap::new(),
            skipped: BTreeMap::new(),
            last_sent: BTreeMap::new(),
            signing: VecDeque::new(),
            answering: Arc::new(Semaphore::new(limits::FORWARDER_ANSWERS)),
            sending: 0,
            giving: 0,
            given: BTreeMap::new(),
            doing: JoinSet::new(),
            events,
            phase: Phase::Serving,
            over: None,
            unpublished: true,
            published_at: now.boot,
        }
    }

    async fn serve(
        &mut self,
        first: mpsc::Receiver<Heard>,
        orders: &mut mpsc::UnboundedReceiver<Order>,
        mut requests: mpsc::Receiver<Request>,
        mut happened: mpsc::UnboundedReceiver<Event>,
    ) -> News {
        let mut heard = Some(first);
        self.asks.handle(self.turns.now(), asks::Input::Serving(true));
        loop {
            let now = self.turns.now();
            let wait = self.turn(now);
            if let Some(over) = self.over.take() {
                return over;
            }
            tokio::select! {
                Some(order) = orders.recv() => match order {
                    Order::Connected(events) => {
                        heard = Some(events);
                        self.asks.handle(now, asks::Input::Serving(true));
                    }
                    Order::Lost => {
                        heard = None;
                        self.asks.handle(now, asks::Input::Serving(false));
                    }
                    Order::Leave => self.leave(),
                },
                // The task holds a sender of its own, so this never ends.
                Some(event) = happened.recv() => self.take(event),
                Some(done) = self.doing.join_next() => match done {
                    Ok(event) => self.take(event),
                    // A delivery that was taken back.
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => tracing::error!("a part of the forwarder failed: {error}"),
                },
                event = next(&mut heard) => match event {
                    Some(event) => self.hear(event),
                    None => heard = None,
                },
                Some(followed) = self.hearing.next() => self.followed(followed),
                Some(request) = requests.recv(), if self.phase == Phase::Serving => self.asked(request),
                Ok(()) = self.means.config.changed() => {
                    self.config = self.means.config.borrow_and_update().clone();
                    let now = self.turns.now();
                    self.inbox.handle(now, inbox::Input::Access(access(&self.config)));
                    self.begin_channels();
                    self.arrange();
                    self.call_channels();
                }
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// What is due, and everything that follows from it; how long nothing else is.
    fn turn(&mut self, now: Now) -> Duration {
        self.outbox.handle_timeout(now);
        self.inbox.handle_timeout(now);
        self.asks.handle_timeout(now);
        self.signs.handle_timeout(now);
        self.say_on(now);
        self.carry_out(now);
        self.look_for(now);
        self.look_at_strangers(now);
        self.go_on_leaving(now);
        self.carry_out(now);
        let machines = [
            self.outbox.poll_timeout(now),
            self.inbox.poll_timeout(now),
            self.asks.poll_timeout(now),
            self.signs.poll_timeout(now),
            self.looks_again(now),
        ];
        let wait = machines.into_iter().flatten().fold(limits::FORWARDER_IDLE, Duration::min);
        wait.min(self.publish(now))
    }

    pub(super) fn take(&mut self, event: Event) {
        let now = self.turns.now();
        match event {
            Event::OutboxCommitted(ticket, result) => {
                if result.is_ok() {
                    self.callers.committed(ticket);
                }
                self.outbox.handle(now, outbox::Input::Committed(ticket, result));
            }
            Event::InboxCommitted(ticket, result) => self.inbox.handle(now, inbox::Input::Committed(ticket, result)),
            Event::AsksCommitted(ticket, result) => {
                if let Err(CommitError::Superseded(generation)) = result {
                    self.over = Some(News::Superseded(generation));
                }
                self.unpublished |= std::mem::replace(&mut self.asks_stuck, result.err()) != self.asks_stuck;
                self.asks.handle(now, asks::Input::Committed(ticket, result));
            }
            Event::Sent(attempt, channel, result) => {
                self.sending -= 1;
                if let Ok(message) = &result {
                    self.strangers.sent(channel.clone(), message.clone());
                    self.last_sent.insert(channel, self.turns.unix_ms());
                }
                self.outbox.handle(now, outbox::Input::Sent(attempt, result));
            }
            Event::Compared(attempt, result) => self.outbox.handle(now, outbox::Input::Compared(attempt, result)),
            Event::Fetched(channel, result) => self.fetched(now, channel, result),
            Event::Threads(found) => {
                if let Some(found) = self.looked(found) {
                    self.inbox.handle(now, inbox::Input::Threads(found));
                }
            }
            Event::Direct(found) => self.inbox.handle(now, inbox::Input::Direct(found)),
            Event::Prepared(seq, prepared) => self.inbox.handle(now, inbox::Input::Prepared(seq, Ok(prepared))),
            Event::Delivered { attempt, waits, result } => {
                self.giving -= usize::from(waits);
                self.given.remove(&attempt);
                self.inbox.handle(now, inbox::Input::Delivered(attempt, result));
            }
            Event::Stopped(message, result) => self.stopped(now, &message, result),
            Event::Known(source, binding, say, known, answered) => {
                self.say(now, source, &binding, *say, known, answered.map(|answered| *answered));
            }
            Event::Named(channel, name) => self.is_called(channel, name),
            Event::Sought(sought) => self.sought(sought),
            Event::Found { binding, look, looked, found } => self.found(&binding, look, looked, found),
            Event::Strange(channel, message) => {
                tracing::warn!(%channel, %message, "this message of the bot was not sent by this seat");
                (self.post.told)(News::Stranger);
            }
            Event::TakenBack(attempt, back) => self.inbox.handle(now, inbox::Input::TakenBack(attempt, back)),
            Event::Signed => self.sign_on(),
            Event::Done => {}
        }
    }

    /// From the moment on in which a channel is first served, what is written there may be missed.
    fn begin_channels(&mut self) {
        if let Some(moment) = self.post.backend.moment() {
            let now = self.turns.now();
            self.inbox.handle(now, inbox::Input::Moment(moment));
        }
    }

    fn hear(&mut self, heard: Heard) {
        let now = self.turns.now();
        match heard {
            Heard::Ready => {
                self.outbox.handle(now, outbox::Input::Online);
                self.inbox.handle(now, inbox::Input::Connected);
                // Those that were not told may be told now.
                self.called.retain(|_, name| name.is_some());
                self.call_channels();
            }
            Heard::Message(incoming, kept) => {
                self.knows(&incoming.author, &incoming.author_name);
                if let Some(kept) = kept {
                    self.callers.brings(incoming.channel.clone(), incoming.id.clone(), kept);
                }
                self.inbox.handle(now, inbox::Input::Message(*incoming));
            }
            Heard::Click(click) => self.inbox.handle(now, inbox::Input::Click(click)),
            Heard::Ours(channel, message) => self.strangers.heard(now, channel, message),
        }
    }

    fn fetched(&mut self, now: Now, channel: ChannelId, result: Result<Missed, SendError>) {
        let Some(result) = self.looked(result) else { return };
        for missed in result.iter().flat_map(|missed| &missed.messages) {
            self.knows(&missed.author, &missed.author_name);
        }
        self.inbox.handle(now, inbox::Input::Fetched(channel, result));
    }

    /// What the service says of what was missed. None: it does not know the bot any more.
    fn looked<T: Default>(&mut self, result: Result<T, SendError>) -> Option<Result<T, String>> {
        match result {
            Ok(found) => Some(Ok(found)),
            Err(SendError::Permanent { scope: Scope::Seat, text, .. }) => {
                self.over = Some(News::Failed(text));
                None
            }
            // Nobody writes where the bot may not look any more.
            Err(SendError::Permanent { .. }) => Some(Ok(T::default())),
            Err(SendError::Limited { .. }) => Some(Err("the service asks for a pause".to_owned())),
            Err(SendError::Unknown(why) | SendError::Lost(why) | SendError::Later(why)) => Some(Err(why)),
        }
    }

    /// Messages of our bot that nobody here sent are looked for in the store: an earlier holder may have.
    fn look_at_strangers(&mut self, now: Now) {
        let waiting = |channel: &ChannelId| self.outbox.is_busy(channel);
        for (channel, message) in self.strangers.found(now, waiting) {
            let store = self.store.clone();
            self.doing.spawn(async move {
                match store.sent(channel.clone(), message.clone()).await {
                    Ok(false) => Event::Strange(channel, message),
                    Ok(true) | Err(_) => Event::Done,
                }
            });
        }
    }

    fn leave(&mut self) {
        if self.phase != Phase::Serving {
            return;
        }
        let now = self.turns.now();
        self.phase = Phase::Finishing(now.boot);
        self.inbox.handle(now, inbox::Input::Stop);
        self.signs.handle(now, signs::Input::Stop);
        self.asks.handle(now, asks::Input::Serving(false));
        self.keep_looks();
        for source in self.sources.values_mut() {
            source.finish();
        }
    }

    fn go_on_leaving(&mut self, now: Now) {
        let late = |since: Duration, most: Duration| now.boot >= since + most;
        match self.phase {
            Phase::Finishing(since) => {
                let finished = self.sources.values().all(|source| !source.is_following());
                if finished || late(since, limits::FORWARDER_FINISH) {
                    self.phase = Phase::Draining(since);
                    self.outbox.handle(now, outbox::Input::Drain);
                }
            }
            Phase::Drained(since)
                if (self.giving == 0 && self.inbox.is_stored() && self.signing.is_empty())
                    || late(since, limits::FORWARDER_LEAVE) =>
            {
                self.over.get_or_insert(News::Drained);
            }
            Phase::Serving | Phase::Draining(_) | Phase::Drained(_) => {}
        }
    }
}

async fn next(heard: &mut Option<mpsc::Receiver<Heard>>) -> Option<Heard> {
    match heard {
        Some(heard) => heard.recv().await,
        None => std::future::pending().await,
    }
}

/// Waits for something of which a defect must not be the end.
pub(super) async fn guarded<T, E: From<String>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let guarded = std::panic::AssertUnwindSafe(work).catch_unwind().await;
    guarded.unwrap_or_else(|_| Err("it failed unexpectedly".to_owned().into()))
}
