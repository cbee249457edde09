//! One process of the device: the daemon machine, an executor that takes time, and an outbox folder.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::daemon::{
    Advertised, CancelReason, Compat, Daemon, DialError, Input, Output, Settings, SocketId, Traffic,
};
use holdfast_core::id::{CallId, InstanceId};
use holdfast_core::status::LinkState;
use holdfast_core::wire::Features;
use serde_json::value::RawValue;

use super::Wire;
use super::clock::Clock;
use super::net::{Conn, Item, Net, Side, What};
use super::truth::Truth;

/// How long a stopped tool takes to end.
const KILL: Duration = Duration::from_millis(200);
/// How long the disk takes.
const DISK: Duration = Duration::from_millis(2);

pub(super) struct Machine {
    number: usize,
    daemon: Daemon,
    pub(super) clock: Clock,
    alive: bool,
    conns: BTreeMap<SocketId, Conn>,
    dials: BTreeSet<SocketId>,
    work: BTreeMap<CallId, Work>,
    disk: BTreeMap<CallId, Arc<str>>,
    /// Disk operations under way, by the time (boot) they end.
    doing: Vec<(Duration, Deed)>,
    inputs: Vec<Input<'static>>,
    probes: Vec<SocketId>,
    /// Pings to be answered.
    pongs: Vec<(Conn, u64)>,
    /// Connections whose other end is gone.
    hangups: Vec<Conn>,
    pub(super) may_sleep: bool,
}

/// A call at the executor; its end is due in awake time.
struct Work {
    ends: Duration,
    outcome: Result<Box<RawValue>, ToolError>,
}

enum Deed {
    Stored(CallId, Arc<str>),
    Loaded(CallId),
}

/// What a call is asked to do, in its arguments.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct Task {
    /// How long it runs.
    pub millis: u64,
    /// How many bytes it answers with.
    pub bytes: usize,
}

impl Machine {
    pub(super) fn new(number: usize, wire: Wire, t: Duration, seed: u64) -> Machine {
        let settings = Settings {
            instance: InstanceId::mint([u8::try_from(number).unwrap_or(u8::MAX); 18]),
            compat: if wire == Wire::Base { Compat::Base } else { Compat::Holdfast },
            features: Features::all(),
            version: "0.1.0".into(),
            advertised: Advertised { tools: vec!["run_process".into()], policy: serde_json::json!({}) },
        };
        let mut clock = Clock::new(t);
        let daemon = Daemon::new(clock.turn(t), settings, seed);
        Machine {
            number,
            daemon,
            clock,
            alive: true,
            conns: BTreeMap::new(),
            dials: BTreeSet::new(),
            work: BTreeMap::new(),
            disk: BTreeMap::new(),
            doing: Vec::new(),
            inputs: vec![Input::Start],
            probes: Vec::new(),
            pongs: Vec::new(),
            hangups: Vec::new(),
            may_sleep: false,
        }
    }

    pub(super) fn kill(&mut self, truth: &mut Truth) {
        self.alive = false;
        for id in std::mem::take(&mut self.work).into_keys() {
            truth.stopped(&id);
        }
    }

    pub(super) fn input(&mut self, input: Input<'static>) {
        self.inputs.push(input);
    }

    pub(super) fn is_ready(&self, t: Duration) -> bool {
        self.alive && self.daemon.snapshot(self.clock.peek(t)).state == LinkState::Healthy
    }

    pub(super) fn is_quiet(&self, t: Duration) -> bool {
        !self.alive || self.work.is_empty() && self.daemon.snapshot(self.clock.peek(t)).calls.queued_results == 0
    }

    pub(super) fn running(&self) -> usize {
        self.work.len()
    }

    /// When something is due next.
    pub(super) fn next(&self, t: Duration) -> Option<Duration> {
        if !self.alive || self.clock.is_frozen() {
            return None;
        }
        let now = self.clock.peek(t);
        let work = self.work.values().map(|work| t + work.ends.saturating_sub(now.awake));
        let disk = self.doing.iter().map(|(at, _)| *at);
        let daemon = self.daemon.poll_timeout(now).map(|wait| t + wait);
        work.chain(disk).chain(daemon).min()
    }

    pub(super) fn receive(&mut self, t: Duration, conn: Conn, what: What) {
        if !self.alive {
            return;
        }
        let now = self.clock.turn(t);
        let socket = self.conns.iter().find(|(_, own)| **own == conn).map(|(socket, _)| *socket);
        match (what, socket) {
            (What::Open(socket), _) => {
                if self.dials.remove(&socket) {
                    self.conns.insert(socket, conn);
                    self.daemon.handle(now, Input::Opened(socket));
                }
            }
            (What::Refused(socket), _) => {
                if self.dials.remove(&socket) {
                    self.daemon.handle(now, Input::Refused(socket, DialError::Transport("refused".into())));
                }
            }
            (What::Taken(written, drained), Some(socket)) => {
                self.daemon.handle(now, Input::Traffic(socket, Traffic { read: 0, written, drained }));
            }
            (What::Item(item, read), Some(socket)) => {
                self.daemon.handle(now, Input::Traffic(socket, Traffic { read, written: 0, drained: false }));
                match item {
                    Item::Text(text) => self.daemon.handle(now, Input::Frame(socket, &text)),
                    Item::Ping(nonce) => {
                        self.daemon.handle(now, Input::Control(socket));
                        self.pongs.push((conn, nonce));
                    }
                    Item::Pong(_) => self.daemon.handle(now, Input::Control(socket)),
                    Item::Close(code, reason) => {
                        self.conns.remove(&socket);
                        self.hangups.push(conn);
                        self.daemon.handle(now, Input::Closed(socket, Some((code, reason.into()))));
                    }
                    Item::End => {
                        self.conns.remove(&socket);
                        self.hangups.push(conn);
                        self.daemon.handle(now, Input::Closed(socket, None));
                    }
                    Item::Part => {}
                }
            }
            (_, None) => {}
        }
    }

    /// Does everything that is due; whether anything was.
    pub(super) fn turn(&mut self, t: Duration, net: &mut Net, truth: &mut Truth) -> bool {
        if !self.alive || self.clock.is_frozen() {
            return false;
        }
        let now = self.clock.turn(t);
        let mut moved = false;
        for conn in self.hangups.drain(..) {
            net.close(t, conn, Side::Daemon(self.number));
        }
        for (conn, nonce) in self.pongs.drain(..) {
            net.send(t, conn, Side::Daemon(self.number), Item::Pong(nonce));
        }
        for input in std::mem::take(&mut self.inputs) {
            moved = true;
            self.daemon.handle(now, input);
        }
        for socket in std::mem::take(&mut self.probes) {
            moved = true;
            self.daemon.handle(now, Input::Probed(socket));
        }
        let ended: Vec<CallId> =
            self.work.iter().filter(|(_, work)| work.ends <= now.awake).map(|(id, _)| id.clone()).collect();
        for id in ended {
            moved = true;
            if let Some(work) = self.work.remove(&id) {
                truth.finished(&id, &work.outcome);
                self.daemon.handle(now, Input::Finished(id, work.outcome));
            }
        }
        let (due, later) = std::mem::take(&mut self.doing).into_iter().partition(|(at, _)| *at <= t);
        self.doing = later;
        for (_, deed) in due {
            moved = true;
            match deed {
                Deed::Stored(id, text) => {
                    self.disk.insert(id.clone(), text);
                    self.daemon.handle(now, Input::Stored(id, true));
                }
                Deed::Loaded(id) => {
                    let text = self.disk.get(&id).cloned();
                    self.daemon.handle(now, Input::Loaded(id, text));
                }
            }
        }
        if self.daemon.poll_timeout(now).is_some_and(|wait| wait.is_zero()) {
            moved = true;
            self.daemon.handle_timeout(now);
        }
        while let Some(output) = self.daemon.poll_output() {
            moved = true;
            self.output(t, output, net, truth);
        }
        for (socket, conn) in self.conns.clone() {
            while net.has_room(conn, Side::Daemon(self.number)) {
                let Some(text) = self.daemon.poll_transmit(now, socket) else { break };
                moved = true;
                net.send(t, conn, Side::Daemon(self.number), Item::Text(text));
            }
        }
        moved
    }

    fn output(&mut self, t: Duration, output: Output, net: &mut Net, truth: &mut Truth) {
        let me = Side::Daemon(self.number);
        let awake = self.clock.peek(t).awake;
        match output {
            Output::Dial(socket) => {
                self.dials.insert(socket);
                net.dial(t, self.number, socket);
            }
            Output::Close(socket, code, reason) => {
                if self.dials.remove(&socket) {
                    net.abandon(t, self.number, socket);
                }
                if let Some(conn) = self.conns.remove(&socket) {
                    net.send(t, conn, me, Item::Close(code, reason.to_owned()));
                    net.close(t, conn, me);
                }
            }
            Output::Drop(socket) => {
                if self.dials.remove(&socket) {
                    net.abandon(t, self.number, socket);
                }
                if let Some(conn) = self.conns.remove(&socket) {
                    net.close(t, conn, me);
                }
            }
            Output::Probe(socket) => self.probes.push(socket),
            Output::Run(run) => {
                truth.started(&run.id, self.number);
                let task: Task = serde_json::from_str(run.arguments.get()).expect("a task");
                let outcome = Ok(answer(&run.id, task.bytes));
                self.work.insert(run.id, Work { ends: awake + Duration::from_millis(task.millis), outcome });
            }
            Output::Cancel(id, why) => {
                truth.cancelled(&id, why);
                if let Some(work) = self.work.get_mut(&id) {
                    let code = if why == CancelReason::Timeout { Code::Timeout } else { Code::Cancelled };
                    *work = Work { ends: awake + KILL, outcome: Err(ToolError::new(code, "stopped")) };
                }
            }
            Output::Store(id, text) => self.doing.push((t + DISK, Deed::Stored(id, text))),
            Output::Load(id) => self.doing.push((t + DISK, Deed::Loaded(id))),
            Output::Remove(id) => drop(self.disk.remove(&id)),
            Output::AllowSleep => self.may_sleep = true,
            Output::Step(_) | Output::Told(_) | Output::Changed | Output::Stopped => {}
        }
    }
}

/// What a call answers: unlike that of any other call, and with the text forms that a careless copy would change.
fn answer(id: &CallId, bytes: usize) -> Box<RawValue> {
    let text = format!(r#"{{"id":"{id}","n":[1.10,1e2,"\u00e9"],"pad":"{}"}}"#, "x".repeat(bytes));
    RawValue::from_string(text).expect("json")
}
