//! One connection: from `hello` through the replay of what the relay lacks to live, and whether it lives.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::daemon::{SocketId, Traffic};
use crate::id::{OperationId, RecoveryId};
use crate::limits;
use crate::time::{Due, Now, TimerTable};
use crate::wire::worker::WorkerFrame;

/// How far a connection is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// `hello` is said; the relay has not asked.
    Greeting,
    /// What it asked for is being looked up.
    Recalling(RecoveryId),
    /// Results and one window of stored output go out; `recovery_complete` is owed after that many bytes.
    Replaying(RecoveryId, u64),
    /// `recovery_complete` is said.
    Complete(RecoveryId),
    /// Everything goes.
    Live,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A step of recovery brought nothing.
    Step,
    /// A ping is due.
    Alive,
    /// Nothing was heard.
    Silence,
    /// After a wake or a change of the network nothing was heard.
    Check,
    /// No acknowledgement moved.
    Reoffer,
}

/// What is due on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overdue {
    /// Write a ping.
    Ping,
    /// It is dead.
    Dead(&'static str),
    /// A step of recovery brought nothing.
    Stuck,
    /// It should have shown life: make another one beside it.
    Doubtful,
    /// Offer what is not acknowledged again.
    Reoffer,
}

/// One open WebSocket.
#[derive(Debug)]
pub(super) struct Session {
    pub socket: SocketId,
    pub stage: Stage,
    /// What the relay did not ask for though it has not acknowledged its end.
    pub unasked: BTreeSet<OperationId>,
    timers: TimerTable<Timer>,
    control: VecDeque<WorkerFrame>,
    /// Ends to offer, in order.
    results: VecDeque<OperationId>,
    /// Living operations with news.
    news: BTreeSet<OperationId>,
    /// Everything written so far was taken by the network.
    drained: bool,
    /// Offers without an acknowledgement in a row.
    offers: u32,
    /// Nothing is offered again before then (boot time).
    not_before: Duration,
}

impl Session {
    /// A socket that just opened.
    pub fn new(now: Now, socket: SocketId, hello: WorkerFrame) -> Session {
        let mut session = Session {
            socket,
            stage: Stage::Greeting,
            unasked: BTreeSet::new(),
            timers: TimerTable::default(),
            control: VecDeque::from([hello]),
            results: VecDeque::new(),
            news: BTreeSet::new(),
            drained: true,
            offers: 0,
            not_before: Duration::ZERO,
        };
        session.timers.set(Timer::Alive, Due::boot(now, limits::WORKER_ALIVE));
        session.heard(now);
        session.step(now);
        session
    }

    pub fn is_live(&self) -> bool {
        self.stage == Stage::Live
    }

    /// Whether the relay knows what we have: it is live, or a replay goes on.
    pub fn is_known(&self) -> bool {
        !matches!(self.stage, Stage::Greeting | Stage::Recalling(_))
    }

    /// Whether output may go.
    pub fn takes_output(&self) -> bool {
        matches!(self.stage, Stage::Replaying(..) | Stage::Live)
    }

    /// Enters another stage, or the same one with something new.
    pub fn enter(&mut self, now: Now, stage: Stage) {
        self.stage = stage;
        self.step(now);
    }

    /// Recovery moves on.
    pub fn step(&mut self, now: Now) {
        match self.is_live() {
            true => self.timers.stop(&Timer::Step),
            false => self.timers.set(Timer::Step, Due::boot(now, limits::WORKER_HANDSHAKE)),
        }
    }

    /// Queues a frame ahead of results and output. Returns `false` when the peer makes us say too much at once.
    pub fn say(&mut self, frame: WorkerFrame) -> bool {
        self.control.push_back(frame);
        self.control.len() <= limits::WORKER_FRAMES_WAITING
    }

    /// Offers an end.
    pub fn offer(&mut self, id: &OperationId) {
        if self.stage != Stage::Greeting && !self.results.contains(id) {
            self.results.push_back(id.clone());
        }
    }

    /// A living operation has news; only the latest counts.
    pub fn tell(&mut self, id: &OperationId) {
        if self.is_live() {
            self.news.insert(id.clone());
        }
    }

    pub fn next_control(&mut self) -> Option<WorkerFrame> {
        self.control.pop_front()
    }

    pub fn next_result(&mut self) -> Option<OperationId> {
        self.results.pop_front()
    }

    pub fn next_news(&mut self) -> Option<OperationId> {
        self.news.pop_first()
    }

    /// Whether every queued end is written.
    pub fn has_no_results(&self) -> bool {
        self.results.is_empty()
    }

    /// Something was written.
    pub fn wrote(&mut self) {
        self.drained = false;
    }

    /// How long something may go without an acknowledgement before it is offered again.
    pub fn patience(&self, round_trip: Duration) -> Duration {
        limits::WORKER_REOFFER_MIN.max(round_trip * 4) * (1 << self.offers)
    }

    /// Something that has to be acknowledged was written, or was acknowledged: what has gone without a word for longest has
    /// done so since then, `None` if nothing has.
    pub fn expect(&mut self, since: Option<Duration>, round_trip: Duration) {
        match since {
            Some(since) => {
                let due = (since + self.patience(round_trip)).max(self.not_before);
                self.timers.set(Timer::Reoffer, Due::Boot(due));
            }
            None => self.timers.stop(&Timer::Reoffer),
        }
    }

    /// An acknowledgement moved.
    pub fn acked(&mut self, now: Now) {
        self.offers = 0;
        if !self.is_live() {
            self.step(now);
        }
    }

    /// Whether everything written so far has left. If not, it is looked at again later.
    pub fn has_left(&mut self, now: Now) -> bool {
        if !self.drained {
            self.not_before = now.boot + limits::WORKER_REOFFER_MIN;
        }
        self.drained
    }

    /// What is late was offered again: the next time it is waited for longer.
    pub fn offered_again(&mut self) {
        self.offers = (self.offers + 1).min(2);
    }

    /// Bytes went through the socket.
    pub fn traffic(&mut self, now: Now, traffic: Traffic) {
        if traffic.read > 0 {
            self.heard(now);
        }
        self.drained |= traffic.drained;
        // What is slow to leave is not late to be acknowledged.
        if traffic.written > 0 && matches!(self.stage, Stage::Replaying(..)) {
            self.step(now);
        }
    }

    /// The machine woke, or the network changed: the connection must show life soon.
    pub fn check(&mut self, now: Now) {
        self.timers.set(Timer::Check, Due::boot(now, limits::CHECK_TIMEOUT));
        self.timers.set(Timer::Silence, Due::boot(now, limits::WORKER_SILENCE));
        self.timers.set(Timer::Alive, Due::boot(now, limits::WORKER_ALIVE));
    }

    /// One thing that is due.
    pub fn handle_timeout(&mut self, now: Now) -> Option<Overdue> {
        match self.timers.expired(now)? {
            Timer::Step => Some(Overdue::Stuck),
            Timer::Silence => Some(Overdue::Dead("no life")),
            Timer::Check => Some(Overdue::Doubtful),
            Timer::Alive => {
                self.timers.set(Timer::Alive, Due::boot(now, limits::WORKER_ALIVE));
                Some(Overdue::Ping)
            }
            Timer::Reoffer => Some(Overdue::Reoffer),
        }
    }

    /// Time until something is due.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.timers.earliest(now)
    }

    fn heard(&mut self, now: Now) {
        self.timers.stop(&Timer::Check);
        self.timers.set(Timer::Silence, Due::boot(now, limits::WORKER_SILENCE));
    }
}
