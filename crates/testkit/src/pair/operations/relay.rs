//! The relay's process: the control machine of one device, the clients in front of it, and a store that survives it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use holdfast_core::control::fake::Store;
use holdfast_core::control::{
    Accepted, AskId, Change, Control, Input, Note, Output, Refused, SessionCancel, SocketId, Start, Ticket,
};
use holdfast_core::id::OperationId;
use holdfast_core::operation::Request;
use holdfast_core::policy::Role;
use holdfast_core::wire::worker::WorkerFrame;
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use super::super::clock::Clock;
use super::super::net::{Conn, Item, Net, Side, What};

/// What a client wants; it asks until it is answered.
#[derive(Debug, Clone)]
pub enum Wish {
    /// An operation, under a key of its own.
    Start {
        /// The key.
        key: u32,
        /// What.
        request: Request,
        /// For input: the key of the operation whose run it is for.
        input_for: Option<u32>,
        /// The session it belongs to.
        session: Option<String>,
        /// How long it may wait to be sent.
        ttl: Option<Duration>,
    },
    /// The end of what was started under this key.
    Cancel(u32),
    /// The end of a session, under a name of its own.
    CancelSession(String, u32),
}

pub(super) struct Relay {
    rng: SmallRng,
    pub(super) clock: Clock,
    /// `None` while the process is down.
    control: Option<Control>,
    back: Option<Duration>,
    pub(super) store: Store,
    /// The disk is full.
    pub(super) full: bool,
    /// Commits under way, by the time (boot) they are made.
    commits: VecDeque<(Duration, Ticket, Vec<Change>)>,
    conns: BTreeMap<SocketId, Conn>,
    /// What clients want and have no answer to, with the question under way.
    wishes: Vec<(Wish, Option<AskId>)>,
    asks: u64,
    /// What was accepted, by key.
    pub(super) accepted: BTreeMap<u32, OperationId>,
    /// When each was accepted.
    pub(super) accepted_at: BTreeMap<OperationId, Duration>,
    /// When the end of each was known here, unless the process died just then.
    pub(super) ended_at: BTreeMap<OperationId, Duration>,
    hangups: Vec<Conn>,
    pongs: Vec<(Conn, u64)>,
}

impl Relay {
    pub(super) fn new(t: Duration, seed: u64) -> Relay {
        let mut relay = Relay {
            rng: SmallRng::seed_from_u64(seed),
            clock: Clock::new(t),
            control: None,
            back: None,
            store: Store::default(),
            full: false,
            commits: VecDeque::new(),
            conns: BTreeMap::new(),
            wishes: Vec::new(),
            asks: 0,
            accepted: BTreeMap::new(),
            accepted_at: BTreeMap::new(),
            ended_at: BTreeMap::new(),
            hangups: Vec::new(),
            pongs: Vec::new(),
        };
        relay.boot(t);
        relay
    }

    fn boot(&mut self, t: Duration) {
        self.back = None;
        let mut seed = [0; 32];
        self.rng.fill(&mut seed);
        let passed = t.as_millis() as u64;
        let loaded = self.store.load(|record| {
            let due = record.created + record.ttl.as_millis() as u64;
            Duration::from_millis(due.saturating_sub(passed))
        });
        self.control = Some(Control::new(self.clock.turn(t), seed, loaded));
    }

    /// The process dies; of the commits under way some were made. It is back after `away`.
    pub(super) fn kill(&mut self, t: Duration, away: Duration) {
        let made = self.rng.random_range(0..=self.commits.len());
        for (_, _, changes) in self.commits.drain(..).take(made) {
            if !self.full {
                // A commit that is refused leaves nothing behind.
                drop(self.store.commit(&changes));
            }
        }
        self.control = None;
        self.back = Some(t + away);
        self.conns.clear();
        self.hangups.clear();
        self.pongs.clear();
        self.wishes.iter_mut().for_each(|(_, ask)| *ask = None);
    }

    pub(super) fn wish(&mut self, wish: Wish) {
        self.wishes.push((wish, None));
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.control.as_ref().is_some_and(|control| control.snapshot().held == 0)
            && self.wishes.is_empty()
            && self.commits.is_empty()
    }

    /// What still waits, for a test that failed.
    pub(super) fn waiting(&self) -> String {
        let views = self.control.as_ref().map(Control::views);
        format!("wishes {:?} {views:?}", self.wishes)
    }

    /// When something is due next.
    pub(super) fn next(&self, t: Duration) -> Option<Duration> {
        if self.clock.is_frozen() {
            return None;
        }
        let now = self.clock.peek(t);
        let control = self.control.as_ref().and_then(|control| control.poll_timeout(now)).map(|wait| t + wait);
        let commits = self.commits.front().map(|(at, ..)| *at);
        let asking = (self.control.is_some() && self.wishes.iter().any(|(_, ask)| ask.is_none())).then_some(t);
        [control, commits, self.back, asking].into_iter().flatten().min()
    }

    pub(super) fn receive(&mut self, t: Duration, conn: Conn, what: What) {
        let now = self.clock.turn(t);
        let Some(control) = &mut self.control else {
            return self.hangups.push(conn);
        };
        let socket = SocketId(conn);
        if matches!(what, What::Open(_)) {
            self.conns.insert(socket, conn);
            return control.handle(now, Input::Connected { socket });
        }
        let What::Item(item, bytes) = what else { return };
        if !self.conns.contains_key(&socket) {
            return;
        }
        if bytes > 0 {
            control.handle(now, Input::Heard { socket, at: now.boot });
        }
        match item {
            Item::Text(text) => {
                let frame = WorkerFrame::decode(&text).expect("a frame of a worker");
                control.handle(now, Input::Frame { socket, frame });
            }
            Item::Ping(nonce) => self.pongs.push((conn, nonce)),
            Item::Close(..) | Item::End => {
                self.conns.remove(&socket);
                self.hangups.push(conn);
                control.handle(now, Input::Closed { socket });
            }
            Item::Pong(_) | Item::Part => {}
        }
    }

    /// Does everything that is due; whether anything was.
    pub(super) fn turn(&mut self, t: Duration, net: &mut Net) -> bool {
        if self.clock.is_frozen() {
            return false;
        }
        let now = self.clock.turn(t);
        if self.back.is_some_and(|at| at <= t) {
            self.boot(t);
        }
        for conn in self.hangups.drain(..) {
            net.close(t, conn, Side::Relay);
        }
        for (conn, nonce) in self.pongs.drain(..) {
            net.send(t, conn, Side::Relay, Item::Pong(nonce));
        }
        let Some(mut control) = self.control.take() else { return false };
        let mut moved = self.ask(t, &mut control);
        while self.commits.front().is_some_and(|(at, ..)| *at <= t) {
            let Some((_, ticket, changes)) = self.commits.pop_front() else { break };
            moved = true;
            let result = if self.full { Err(Refused::Full) } else { self.store.commit(&changes) };
            control.handle(now, Input::Committed { ticket, result });
        }
        if control.poll_timeout(now).is_some_and(|wait| wait.is_zero()) {
            moved = true;
            control.handle_timeout(now);
        }
        while let Some(output) = control.poll_output() {
            moved = true;
            self.output(t, output, net);
        }
        for (socket, conn) in self.conns.clone() {
            while net.has_room(conn, Side::Relay) {
                let Some(frame) = control.poll_transmit(now, socket) else { break };
                moved = true;
                net.send(t, conn, Side::Relay, Item::Text(frame.encode()));
            }
        }
        self.control = Some(control);
        moved
    }

    /// Clients ask what they have no answer to.
    fn ask(&mut self, t: Duration, control: &mut Control) -> bool {
        let now = self.clock.peek(t);
        let mut moved = false;
        let mut given_up = Vec::new();
        for (at, (wish, asked)) in self.wishes.iter_mut().enumerate().filter(|(_, (_, asked))| asked.is_none()) {
            moved = true;
            self.asks += 1;
            let ask = AskId(self.asks);
            let input = match wish.clone() {
                Wish::Start { key, request, input_for, session, ttl } => {
                    let run = input_for.map(|of| self.accepted.get(&of).and_then(|id| self.store.rows.get(id)));
                    let run_id = match run {
                        None => None,
                        Some(Some(row)) => row.record.operation.run_id.clone(),
                        Some(None) => {
                            given_up.push(at);
                            continue;
                        }
                    };
                    let start = Start {
                        principal: "somebody".into(),
                        key: Some(key.to_string().into()),
                        role: Role::Operator,
                        client: None,
                        session_id: session,
                        run_id,
                        request,
                        ttl,
                        at: t.as_millis() as u64,
                    };
                    Input::Start { ask, start: Box::new(start) }
                }
                Wish::Cancel(key) => match self.accepted.get(&key) {
                    Some(id) => Input::Cancel { ask, id: id.clone() },
                    None => {
                        given_up.push(at);
                        continue;
                    }
                },
                Wish::CancelSession(session, n) => {
                    Input::CancelSession { ask, cancel: SessionCancel { cancellation: format!("c{n}"), session } }
                }
            };
            *asked = Some(ask);
            control.handle(now, input);
        }
        for at in given_up.into_iter().rev() {
            self.wishes.remove(at);
        }
        moved
    }

    fn output(&mut self, t: Duration, output: Output, net: &mut Net) {
        match output {
            Output::Commit { ticket, changes } => {
                let wait = Duration::from_millis(self.rng.random_range(1..12));
                let after = self.commits.back().map_or(t, |(at, ..)| *at).max(t + wait);
                self.commits.push_back((after, ticket, changes));
            }
            Output::Answer { ask, answer } => {
                let Some(at) = self.wishes.iter().position(|(_, asked)| *asked == Some(ask)) else { return };
                let (wish, _) = self.wishes.remove(at);
                if let (Wish::Start { key, .. }, Ok(Accepted::Operation(id))) = (wish, answer) {
                    assert!(self.store.rows.contains_key(&id), "accepted before it was committed");
                    self.accepted_at.entry(id.clone()).or_insert(t);
                    self.accepted.insert(key, id);
                }
            }
            Output::Ping { socket } => {
                if let Some(conn) = self.conns.get(&socket) {
                    net.send(t, *conn, Side::Relay, Item::Ping(0));
                }
            }
            Output::Close { socket, close: (code, reason) } => {
                if let Some(conn) = self.conns.remove(&socket) {
                    net.send(t, conn, Side::Relay, Item::Close(code, reason.to_owned()));
                    net.close(t, conn, Side::Relay);
                }
            }
            Output::Note(Note::Ended { id, .. }) => _ = self.ended_at.entry(id).or_insert(t),
            Output::Changed { .. } | Output::Note(_) => {}
        }
    }
}
