//! The daemon machine against a relay that says anything at any time.
//!
//! Lines are a script: `{…` a frame from the relay, `x` the connection breaks, `f` the oldest call finishes, `F` with a result
//! that goes to disk, `n` the network changes, `t250` 250 ms pass, `s250` the machine sleeps that long.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use holdfast_core::daemon::{Advertised, Compat, Daemon, Input, Output, Settings, SocketId, Traffic};
use holdfast_core::id::{CallId, InstanceId};
use holdfast_core::time::Now;
use holdfast_core::wire::{DaemonFrame, Features};
use serde_json::value::RawValue;

struct Machine {
    daemon: Daemon,
    now: Now,
    socket: Option<SocketId>,
    ran: HashSet<CallId>,
    running: VecDeque<CallId>,
}

/// No call runs twice, and every frame we write can be read.
pub fn daemon_machine(bytes: &[u8]) {
    let Ok(script) = std::str::from_utf8(bytes) else { return };
    let settings = Settings {
        instance: InstanceId::mint([7; 18]),
        compat: if script.starts_with('b') { Compat::Base } else { Compat::Holdfast },
        features: Features::all(),
        version: "1".into(),
        advertised: Advertised::default(),
    };
    let now = Now::at(Duration::from_secs(1000));
    let mut machine = Machine {
        daemon: Daemon::new(now, settings, 1),
        now,
        socket: None,
        ran: HashSet::new(),
        running: VecDeque::new(),
    };
    machine.tell(Input::Start);
    for line in script.lines() {
        machine.step(line);
    }
    machine.tell(Input::Stop { patient: false });
    for _ in 0..100 {
        machine.pass(Duration::from_secs(1), false);
    }
}

impl Machine {
    fn step(&mut self, line: &str) {
        let number = || Duration::from_millis(line[1..].parse::<u16>().unwrap_or(1).into());
        match line.as_bytes().first() {
            Some(b'{') => {
                if let Some(socket) = self.socket {
                    let read = line.len() as u64;
                    self.tell(Input::Traffic(socket, Traffic { read, written: 1, drained: true }));
                    self.tell(Input::Frame(socket, line));
                }
            }
            Some(b'x') => {
                if let Some(socket) = self.socket.take() {
                    self.tell(Input::Closed(socket, None));
                }
            }
            Some(b'f' | b'F') => {
                let size = if line.starts_with('F') { 100_000 } else { 4 };
                if let Some(id) = self.running.pop_front() {
                    let raw = RawValue::from_string(format!("\"{}\"", "r".repeat(size))).expect("JSON");
                    self.tell(Input::Finished(id, Ok(raw)));
                }
            }
            Some(b'n') => self.tell(Input::NetworkChanged),
            Some(b't') => self.pass(number(), false),
            Some(b's') => self.pass(number() * 100, true),
            _ => {}
        }
    }

    fn pass(&mut self, time: Duration, asleep: bool) {
        self.now = if asleep { self.now.slept(time) } else { self.now.plus(time) };
        self.daemon.handle_timeout(self.now);
        self.drain();
    }

    fn tell(&mut self, input: Input<'_>) {
        self.daemon.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        for round in 0.. {
            assert!(round < 10_000, "the machine never rests");
            while let Some(text) = self.socket.and_then(|socket| self.daemon.poll_transmit(self.now, socket)) {
                assert!(DaemonFrame::decode(&text).is_ok());
            }
            let Some(output) = self.daemon.poll_output() else { break };
            let answer = match output {
                Output::Dial(socket) => {
                    self.socket = Some(socket);
                    Input::Opened(socket)
                }
                Output::Probe(socket) => Input::Probed(socket),
                Output::Run(run) => {
                    assert!(self.ran.insert(run.id.clone()), "a call ran twice");
                    self.running.push_back(run.id);
                    continue;
                }
                Output::Cancel(id, _) => {
                    self.running.retain(|running| *running != id);
                    continue;
                }
                Output::Store(id, _) => Input::Stored(id, true),
                Output::Load(id) => Input::Loaded(id, None),
                _ => continue,
            };
            self.daemon.handle(self.now, answer);
        }
    }
}
