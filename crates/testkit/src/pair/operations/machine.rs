//! One machine of a user: the worker's process, its ledger, and its runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use holdfast_core::code::Code;
use holdfast_core::daemon::{DialError, SocketId, Traffic};
use holdfast_core::id::{LedgerId, OperationId, RuntimeId};
use holdfast_core::operation::{Failure, Kind, Operation};
use holdfast_core::wire::worker::{ControlFrame, HostInfo};
use holdfast_core::worker::fake::Ledger;
use holdfast_core::worker::{Change, Input, LedgerError, Output, Settings, Ticket, Worker};
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use super::super::clock::Clock;
use super::super::net::{Conn, Item, Net, Side, What};
use super::runs::{Runs, Try};
use super::truth::Truth;

const ME: Side = Side::Daemon(0);

pub(super) struct Machine {
    rng: SmallRng,
    pub(super) clock: Clock,
    /// `None` while its process is down.
    worker: Option<Worker>,
    back: Option<Duration>,
    lives: u8,
    ledgers: u8,
    pub(super) ledger: Ledger,
    /// The disk is full.
    pub(super) full: bool,
    pub(super) runs: Runs,
    /// Commits under way, by the time (boot) they are made.
    commits: VecDeque<(Duration, Ticket, Vec<Change>)>,
    /// Work that is no run, by the time (awake) it ends.
    performing: Vec<(Duration, Box<Operation>)>,
    conns: BTreeMap<SocketId, Conn>,
    dials: BTreeSet<SocketId>,
    inputs: Vec<Input<'static>>,
    pongs: Vec<(Conn, u64)>,
    hangups: Vec<Conn>,
}

impl Machine {
    pub(super) fn new(t: Duration, seed: u64) -> Machine {
        let mut rng = SmallRng::seed_from_u64(seed);
        let runs = Runs::new(rng.random());
        let mut machine = Machine {
            rng,
            clock: Clock::new(t),
            worker: None,
            back: Some(t),
            lives: 0,
            ledgers: 1,
            ledger: Ledger::new(LedgerId::mint([1; 16])),
            full: false,
            runs,
            commits: VecDeque::new(),
            performing: Vec::new(),
            conns: BTreeMap::new(),
            dials: BTreeSet::new(),
            inputs: Vec::new(),
            pongs: Vec::new(),
            hangups: Vec::new(),
        };
        machine.boot(t);
        machine
    }

    fn boot(&mut self, t: Duration) {
        self.back = None;
        self.lives += 1;
        let stored = self.ledger.stored(Duration::from_secs(1));
        let tries = stored.rows.iter().filter_map(|l| Some((l.row.operation.run_id.clone()?, l.row.attempt)));
        self.runs.sweep(&tries.collect::<BTreeSet<Try>>());
        let settings = Settings { runtime: RuntimeId::mint([self.lives; 16]), host: HostInfo::default() };
        self.worker = Some(Worker::new(self.clock.turn(t), settings, stored, self.rng.random()));
        self.inputs.push(Input::Start);
    }

    /// The worker's process dies; of the commits under way some were made. It is back after `away`.
    pub(super) fn kill(&mut self, t: Duration, away: Duration) {
        let made = self.rng.random_range(0..=self.commits.len());
        for (_, _, changes) in self.commits.drain(..).take(made) {
            if !self.full {
                self.ledger.commit(changes);
            }
        }
        self.worker = None;
        self.back = Some(t + away);
        self.runs.unwatch();
        (self.performing, self.inputs, self.pongs, self.hangups) = Default::default();
        self.conns.clear();
        self.dials.clear();
    }

    /// The power goes.
    pub(super) fn power_off(&mut self, t: Duration, away: Duration, truth: &mut Truth) {
        self.kill(t, away);
        self.runs.power_off(truth);
    }

    /// Every runner is asked to end by the system; its worker with them.
    pub(super) fn log_out(&mut self, t: Duration, away: Duration) {
        self.runs.interrupt(self.clock.peek(t));
        self.kill(t, away);
    }

    /// The ledger is found damaged at the next start and set aside.
    pub(super) fn lose_ledger(&mut self, t: Duration, away: Duration) {
        self.kill(t, away);
        self.ledgers += 1;
        self.ledger = Ledger::new(LedgerId::mint([self.ledgers; 16]));
    }

    pub(super) fn input(&mut self, input: Input<'static>) {
        self.inputs.push(input);
    }

    pub(super) fn is_quiet(&self, t: Duration) -> bool {
        let Some(worker) = &self.worker else { return false };
        let snapshot = worker.snapshot(self.clock.peek(t));
        snapshot.live && snapshot.living.is_empty() && self.commits.is_empty()
    }

    /// What still waits, for a test that failed.
    pub(super) fn waiting(&self, t: Duration) -> String {
        let Some(worker) = &self.worker else { return "no worker".into() };
        let snapshot = worker.snapshot(self.clock.peek(t));
        format!("live {} cause {:?} living {:?}", snapshot.live, snapshot.cause, snapshot.living)
    }

    /// When something is due next.
    pub(super) fn next(&self, t: Duration) -> Option<Duration> {
        if self.clock.is_frozen() {
            return None;
        }
        let now = self.clock.peek(t);
        let worker = self.worker.as_ref().and_then(|worker| worker.poll_timeout(now)).map(|wait| t + wait);
        let runs = self.runs.next(now).map(|wait| t + wait);
        let commits = self.commits.front().map(|(at, ..)| *at);
        let work = self.performing.iter().map(|(at, _)| t + at.saturating_sub(now.awake)).min();
        [worker, runs, commits, work, self.back].into_iter().flatten().min()
    }

    pub(super) fn receive(&mut self, t: Duration, conn: Conn, what: What) {
        let now = self.clock.turn(t);
        let Some(worker) = &mut self.worker else { return };
        let socket = self.conns.iter().find(|(_, own)| **own == conn).map(|(socket, _)| *socket);
        match (what, socket) {
            (What::Open(socket), _) => {
                if self.dials.remove(&socket) {
                    self.conns.insert(socket, conn);
                    worker.handle(now, Input::Opened(socket));
                }
            }
            (What::Refused(socket), _) => {
                if self.dials.remove(&socket) {
                    worker.handle(now, Input::Refused(socket, DialError::Transport("refused".into())));
                }
            }
            (What::Taken(written, drained), Some(socket)) => {
                worker.handle(now, Input::Traffic(socket, Traffic { read: 0, written, drained }));
            }
            (What::Item(item, read), Some(socket)) => {
                worker.handle(now, Input::Traffic(socket, Traffic { read, written: 0, drained: false }));
                match item {
                    Item::Text(text) => {
                        let frame = ControlFrame::decode(&text).expect("a control frame");
                        worker.handle(now, Input::Frame(socket, frame, Ok(())));
                    }
                    Item::Ping(nonce) => self.pongs.push((conn, nonce)),
                    Item::Close(code, reason) => {
                        self.conns.remove(&socket);
                        self.hangups.push(conn);
                        worker.handle(now, Input::Closed(socket, Some((code, reason.into()))));
                    }
                    Item::End => {
                        self.conns.remove(&socket);
                        self.hangups.push(conn);
                        worker.handle(now, Input::Closed(socket, None));
                    }
                    Item::Pong(_) | Item::Part => {}
                }
            }
            (_, None) => {}
        }
    }

    /// Does everything that is due; whether anything was.
    pub(super) fn turn(&mut self, t: Duration, net: &mut Net, truth: &mut Truth) -> bool {
        if self.clock.is_frozen() {
            return false;
        }
        let now = self.clock.turn(t);
        if self.runs.next(now).is_some_and(|wait| wait.is_zero()) {
            self.runs.turn(now, truth);
        }
        if self.back.is_some_and(|at| at <= t) {
            self.boot(t);
        }
        let Some(mut worker) = self.worker.take() else { return false };
        let mut inputs = std::mem::take(&mut self.inputs);
        inputs.extend(self.runs.take_news());
        while self.commits.front().is_some_and(|(at, ..)| *at <= t) {
            let Some((_, ticket, changes)) = self.commits.pop_front() else { break };
            let reads = changes.iter().all(|change| matches!(change, Change::Recall(_)));
            let result = if self.full && !reads { Err(LedgerError::Full) } else { Ok(self.ledger.commit(changes)) };
            inputs.push(Input::Committed(ticket, result));
        }
        let (done, rest) = std::mem::take(&mut self.performing).into_iter().partition(|(at, _)| *at <= now.awake);
        self.performing = rest;
        inputs.extend(done.into_iter().map(|(_, operation): (_, Box<Operation>)| {
            let fails = self.rng.random_range(0..4) == 0;
            let failure = Failure::nothing_done(Code::NetworkError, "away");
            let result = if fails { Err(failure) } else { Ok(serde_json::json!({"done": true})) };
            Input::Performed(operation.request_id, result)
        }));
        for conn in self.hangups.drain(..) {
            net.close(t, conn, ME);
        }
        for (conn, nonce) in self.pongs.drain(..) {
            net.send(t, conn, ME, Item::Pong(nonce));
        }
        let mut moved = !inputs.is_empty();
        for input in inputs {
            worker.handle(now, input);
        }
        if worker.poll_timeout(now).is_some_and(|wait| wait.is_zero()) {
            moved = true;
            worker.handle_timeout(now);
        }
        while let Some(output) = worker.poll_output() {
            moved = true;
            self.output(t, output, net, truth);
        }
        for (socket, conn) in self.conns.clone() {
            while net.has_room(conn, ME) {
                let Some(text) = worker.poll_transmit(now, socket) else { break };
                moved = true;
                net.send(t, conn, ME, Item::Text(text));
            }
        }
        self.worker = Some(worker);
        moved || self.runs.has_news()
    }

    fn output(&mut self, t: Duration, output: Output, net: &mut Net, truth: &mut Truth) {
        let now = self.clock.peek(t);
        match output {
            Output::Dial(socket) => {
                self.dials.insert(socket);
                net.dial(t, 0, socket);
            }
            Output::Close(socket, code, reason) => self.let_go(t, socket, Some((code, reason)), net),
            Output::Drop(socket) => self.let_go(t, socket, None, net),
            Output::Ping(socket) => {
                if let Some(conn) = self.conns.get(&socket) {
                    net.send(t, *conn, ME, Item::Ping(0));
                }
            }
            Output::Commit(ticket, changes) => {
                let wait = Duration::from_millis(self.rng.random_range(1..12));
                let after = self.commits.back().map_or(t, |(at, ..)| *at).max(t + wait);
                self.commits.push_back((after, ticket, changes));
            }
            Output::Launch(launch) => self.runs.launch(now, &launch.operation, launch.attempt, launch.lease),
            Output::Attach(run, attempt) => self.runs.found(&(run, attempt)),
            Output::Void(run, attempt) => self.runs.void((run, attempt)),
            Output::Tell(run, attempt, ask) => self.runs.ask(now, (run, attempt), ask, truth),
            Output::Read(read) => {
                let piece = self.runs.read(&read.run, read.attempt, read.offset, read.max);
                self.inputs.push(Input::Piece(read.run, read.stream, read.offset, piece));
            }
            Output::Trim(run, attempt, _, offset) => self.runs.trim(&(run, attempt), offset),
            Output::Remove(run, attempt) => self.runs.remove(&(run, attempt)),
            Output::Perform(operation) => {
                let repeatable = operation.kind().is_repeatable();
                assert!(operation.kind() != Kind::Exec && !operation.kind().is_input());
                truth.performed(&operation.request_id, repeatable);
                let wait = Duration::from_millis(self.rng.random_range(1..4000));
                self.performing.push((now.awake + wait, operation));
            }
            Output::Abandon(id) => self.abandon(&id),
            Output::Step(_) | Output::Told(_) | Output::Changed | Output::AllowSleep | Output::Stopped => {}
        }
    }

    fn abandon(&mut self, id: &OperationId) {
        let before = self.performing.len();
        self.performing.retain(|(_, operation)| operation.request_id != *id);
        if self.performing.len() < before {
            self.inputs.push(Input::Performed(id.clone(), Err(Failure::new(Code::Cancelled, "stopped"))));
        }
    }

    fn let_go(&mut self, t: Duration, socket: SocketId, close: Option<(u16, &'static str)>, net: &mut Net) {
        if self.dials.remove(&socket) {
            net.abandon(t, 0, socket);
        }
        if let Some(conn) = self.conns.remove(&socket) {
            if let Some((code, reason)) = close {
                net.send(t, conn, ME, Item::Close(code, reason.to_owned()));
            }
            net.close(t, conn, ME);
        }
    }
}
