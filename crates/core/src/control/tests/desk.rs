//! A control side with a store, clients and scripted workers around it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::super::fake::Store;
use super::super::*;
use crate::code::Code;
use crate::id::{LedgerId, OperationId, RecoveryId, RunId, RuntimeId};
use crate::limits;
use crate::operation::{Exit, Failure, Operation, Outcome, Request, State, Stream, Streams};
use crate::policy::Role;
use crate::time::Now;
use crate::wire::close::Close;
use crate::wire::worker::{ControlFrame, HostInfo, Report, WorkerFrame};

pub const S: Duration = Duration::from_secs(1);

pub fn ledger(n: u8) -> LedgerId {
    LedgerId::mint([n; 16])
}

/// How the store answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Prompt,
    Slow,
    Full,
}

pub struct Desk {
    pub control: Control,
    pub now: Now,
    pub store: Store,
    pub mood: Mood,
    pub waiting: VecDeque<(Ticket, Vec<Change>)>,
    /// Every change that was committed, as text.
    pub committed: Vec<String>,
    pub answers: BTreeMap<AskId, Result<Accepted, Failure>>,
    pub closes: BTreeMap<SocketId, Close>,
    pub pings: usize,
    pub changed: Vec<OperationId>,
    pub notes: Vec<Note>,
    born: Now,
    lives: u64,
    asked: u64,
    sockets: u64,
}

impl Desk {
    pub fn new() -> Desk {
        let now = Now::at(S * 1000);
        Desk {
            control: Control::new(now, [7; 32], Loaded::default()),
            now,
            store: Store::default(),
            mood: Mood::Prompt,
            waiting: VecDeque::new(),
            committed: Vec::new(),
            answers: BTreeMap::new(),
            closes: BTreeMap::new(),
            pings: 0,
            changed: Vec::new(),
            notes: Vec::new(),
            born: now,
            lives: 0,
            asked: 0,
            sockets: 0,
        }
    }

    /// The relay is killed and comes back: what the store has is all there is.
    pub fn crash(&mut self) {
        self.waiting.clear();
        self.changed.clear();
        let since = |record: &Record| Duration::from_millis(record.created) + self.born.boot + record.ttl;
        let loaded = self.store.load(|record| since(record).saturating_sub(self.now.boot));
        self.lives += 1;
        let mut seed = [7; 32];
        seed[..8].copy_from_slice(&self.lives.to_be_bytes());
        self.control = Control::new(self.now, seed, loaded);
    }

    pub fn tell(&mut self, input: Input) {
        self.control.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.control.poll_output() {
            match output {
                Output::Commit { ticket, changes } => self.waiting.push_back((ticket, changes)),
                Output::Answer { ask, answer } => {
                    assert!(self.answers.insert(ask, answer).is_none(), "answered twice");
                }
                Output::Changed { id } => self.changed.push(id),
                Output::Ping { .. } => self.pings += 1,
                Output::Close { socket, close } => _ = self.closes.insert(socket, close),
                Output::Note(note) => self.notes.push(note),
            }
        }
        if self.mood != Mood::Slow {
            self.answer_all();
        }
    }

    /// The store answers everything that waits, and what follows from it.
    pub fn answer_all(&mut self) {
        while self.answer_one() {}
    }

    pub fn answer_one(&mut self) -> bool {
        let Some((ticket, changes)) = self.waiting.pop_front() else { return false };
        let result = match self.mood {
            Mood::Full => Err(Refused::Full),
            _ => self.store.commit(&changes),
        };
        if result.is_ok() {
            self.committed.extend(changes.iter().map(|change| format!("{change:?}")));
        }
        self.tell(Input::Committed { ticket, result });
        true
    }

    /// Time passes without a word of the worker, until everything due was done.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now.boot + time;
        while let Some(next) = self.control.poll_timeout(self.now).filter(|next| self.now.boot + *next <= end) {
            self.now = self.now.plus(next);
            self.control.handle_timeout(self.now);
            self.drain();
        }
        self.now = Now::at(end);
    }

    /// Time passes, and this socket is heard each second.
    pub fn pass_alive(&mut self, socket: SocketId, time: Duration) {
        let end = self.now.boot + time;
        while self.now.boot < end {
            let at = self.now.boot;
            self.tell(Input::Heard { socket, at });
            self.pass(S.min(end - self.now.boot));
        }
    }

    pub fn ask(&mut self, input: impl FnOnce(AskId) -> Input) -> AskId {
        self.asked += 1;
        let ask = AskId(self.asked);
        self.tell(input(ask));
        ask
    }

    pub fn start_with(&mut self, change: impl FnOnce(&mut Start)) -> AskId {
        let mut start = Start {
            principal: "alice".into(),
            key: None,
            session_id: None,
            run_id: None,
            role: Role::Operator,
            client: None,
            request: exec("true"),
            ttl: None,
            at: u64::try_from((self.now.boot - self.born.boot).as_millis()).unwrap(),
        };
        change(&mut start);
        self.ask(|ask| Input::Start { ask, start: Box::new(start) })
    }

    /// A new operation, admitted at once.
    pub fn start(&mut self, line: &str) -> OperationId {
        let ask = self.start_with(|start| start.request = exec(line));
        self.id(ask)
    }

    pub fn input(&mut self, run: &RunId, text: &'static str) -> OperationId {
        let request = Request::ExecStdin { data: Bytes::from_static(text.as_bytes()), close: false };
        let ask = self.start_with(|start| (start.run_id, start.request) = (Some(run.clone()), request));
        self.id(ask)
    }

    pub fn id(&self, ask: AskId) -> OperationId {
        match self.answers.get(&ask) {
            Some(Ok(Accepted::Operation(id))) => id.clone(),
            other => panic!("{other:?}"),
        }
    }

    pub fn refusal(&self, ask: AskId) -> Code {
        match self.answers.get(&ask) {
            Some(Err(failure)) => failure.code,
            other => panic!("{other:?}"),
        }
    }

    pub fn cancel(&mut self, id: &OperationId) -> AskId {
        let id = id.clone();
        self.ask(|ask| Input::Cancel { ask, id })
    }

    pub fn cancel_session(&mut self, session: &str, cancellation: &str) -> AskId {
        let cancel = SessionCancel { cancellation: cancellation.into(), session: session.into() };
        self.ask(|ask| Input::CancelSession { ask, cancel })
    }

    pub fn record(&self, id: &OperationId) -> &Record {
        &self.store.rows[id].record
    }

    pub fn run(&self, id: &OperationId) -> RunId {
        self.record(id).operation.run_id.clone().unwrap()
    }

    pub fn outcome(&self, id: &OperationId) -> Option<Outcome> {
        self.record(id).outcome.clone()
    }

    pub fn connect(&mut self) -> SocketId {
        self.sockets += 1;
        let socket = SocketId(self.sockets);
        self.tell(Input::Connected { socket });
        socket
    }

    pub fn say(&mut self, socket: SocketId, frame: WorkerFrame) {
        self.tell(Input::Frame { socket, frame });
    }

    pub fn hello(&mut self, socket: SocketId, n: u8) {
        let frame = WorkerFrame::Hello {
            resumable_protocol: 1,
            runtime_id: RuntimeId::mint([n; 16]),
            ledger_id: ledger(n),
            startup_ready: true,
            host_info: HostInfo::default(),
        };
        self.say(socket, frame);
    }

    /// Everything that is to be written to a socket now.
    pub fn read(&mut self, socket: SocketId) -> Vec<ControlFrame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.control.poll_transmit(self.now, socket) {
            frames.push(frame);
            self.drain();
        }
        frames
    }

    /// As [`Desk::read`], as short texts.
    pub fn told(&mut self, socket: SocketId) -> Vec<String> {
        self.read(socket).iter().map(short).collect()
    }

    /// A socket that has said hello, and what it was asked.
    pub fn greet(&mut self, n: u8) -> (SocketId, RecoveryId, Vec<OperationId>) {
        let socket = self.connect();
        self.hello(socket, n);
        let first = self.read(socket).into_iter().next();
        let Some(ControlFrame::RecoveryRequest { recovery_id, requests, .. }) = first else { panic!("{first:?}") };
        (socket, recovery_id, requests)
    }

    pub fn state(&mut self, socket: SocketId, n: u8, recovery_id: &RecoveryId, operations: Vec<Report>) {
        let (recovery_id, runtime_id, ledger_id) = (recovery_id.clone(), RuntimeId::mint([n; 16]), ledger(n));
        self.say(socket, WorkerFrame::RecoveryState { recovery_id, runtime_id, ledger_id, operations });
    }

    /// A live worker with ledger `n` that knows these.
    pub fn live_knowing(&mut self, n: u8, known: &[(&OperationId, State)]) -> SocketId {
        let (socket, recovery, _) = self.greet(n);
        let reports = known.iter().map(|(id, state)| report(id, *state)).collect();
        self.state(socket, n, &recovery, reports);
        self.say(socket, WorkerFrame::RecoveryComplete { recovery_id: recovery });
        socket
    }

    /// A live worker that knows nothing, after its handshake was read.
    pub fn live(&mut self, n: u8) -> SocketId {
        let socket = self.live_knowing(n, &[]);
        self.read(socket);
        socket
    }

    /// A run that the worker has received and runs.
    pub fn running(&mut self, socket: SocketId) -> (OperationId, RunId) {
        let id = self.start("work");
        self.read(socket);
        self.say(socket, WorkerFrame::OperationReceived { request_id: id.clone() });
        self.say(socket, WorkerFrame::OperationState(report(&id, State::Running)));
        let run = self.run(&id);
        (id, run)
    }

    pub fn output(&mut self, socket: SocketId, run: &RunId, offset: u64, data: &'static [u8]) {
        let (run_id, data) = (run.clone(), Bytes::from_static(data));
        self.say(socket, WorkerFrame::ExecOutput { run_id, stream: Stream::Stdout, offset, data });
    }

    pub fn exit(&mut self, socket: SocketId, id: &OperationId, written: u64) {
        let (request_id, run_id) = (id.clone(), self.run(id));
        let written = Streams::from([(Stream::Stdout, written), (Stream::Stderr, 0)]);
        self.say(socket, WorkerFrame::ExecExit { request_id, run_id, outcome: done(0), written });
    }

    pub fn close(&mut self, socket: SocketId) {
        self.tell(Input::Closed { socket });
    }

    pub fn bytes(&self, id: &OperationId) -> Vec<u8> {
        let segments = self.store.rows[id].streams.get(&Stream::Stdout);
        segments.into_iter().flatten().fold(Vec::new(), |mut all, segment| {
            match segment {
                super::super::fake::Segment::Bytes(bytes) => all.extend(bytes),
                super::super::fake::Segment::Gap(from, to) => all.extend(format!("<{from}..{to}>").bytes()),
            }
            all
        })
    }
}

pub fn exec(line: &str) -> Request {
    serde_json::from_value(serde_json::json!({"type": "exec", "command": {"shell": line}})).unwrap()
}

pub fn done(code: i32) -> Outcome {
    Outcome::Completed { exit: Some(Exit { code: Some(code), ..Exit::default() }), value: None }
}

pub fn report(id: &OperationId, state: State) -> Report {
    Report {
        request_id: id.clone(),
        state,
        run_id: None,
        written: Streams::new(),
        output_stalled: None,
        operation: None,
    }
}

/// A frame in a few letters; operations by what they ask.
pub fn short(frame: &ControlFrame) -> String {
    match frame {
        ControlFrame::RecoveryRequest { requests, .. } => format!("request {}", requests.len()),
        ControlFrame::RecoveryReady { lease_ms, .. } => format!("ready {lease_ms}"),
        ControlFrame::WorkerExecutionLease { lease_ms } => format!("lease {lease_ms}"),
        ControlFrame::ExecOutputAck { stream, next_offset, .. } => format!("{} {next_offset}", stream.as_str()),
        ControlFrame::ExecTerminalAck { .. } => "terminal".into(),
        ControlFrame::OperationResultAck { .. } => "result".into(),
        ControlFrame::Cancel { .. } => "cancel".into(),
        ControlFrame::CancelSession { cancellation_id, .. } => format!("session {cancellation_id}"),
        ControlFrame::Operation(Operation { request: Request::ExecStdin { data, .. }, .. }) => {
            format!("stdin {}", String::from_utf8_lossy(data))
        }
        ControlFrame::Operation(Operation { request, .. }) => format!("op {}", request.summary()),
    }
}

pub const TTL: Duration = limits::OPERATIONS_QUEUE_TTL;

pub fn arc(text: &str) -> Arc<str> {
    text.into()
}
