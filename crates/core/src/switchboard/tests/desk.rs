//! A switchboard with scripted daemons and waiting requests around it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::super::*;
use crate::code::{Code, ToolError};
use crate::id::{AccountId, CallId, KeptId};
use crate::policy::Role;
use crate::time::Now;
use crate::wire::close::Close;
use crate::wire::*;

pub const MS: Duration = Duration::from_millis(1);
pub const S: Duration = Duration::from_secs(1);

/// Which daemon speaks.
#[derive(Clone)]
pub struct Speaker {
    pub instance: InstanceId,
    pub features: Option<Features>,
    pub max_calls: Option<u32>,
}

pub fn holdfast(n: u8) -> Speaker {
    Speaker { instance: InstanceId::mint([n; 18]), features: Some(Features::all()), max_calls: Some(64) }
}

pub fn base(n: u8) -> Speaker {
    Speaker { instance: InstanceId::mint([n; 18]), features: None, max_calls: None }
}

pub struct Desk {
    pub board: Switchboard,
    pub now: Now,
    pub frames: HashMap<SocketId, Vec<RelayFrame>>,
    pub numbers: HashMap<SocketId, Vec<Option<u64>>>,
    pub closes: HashMap<SocketId, Close>,
    pub pings: Vec<(SocketId, u64)>,
    pub admitted: HashMap<WaiterId, CallId>,
    pub ends: HashMap<WaiterId, Outcome>,
    pub kept: HashMap<WaiterId, KeptId>,
    pub progress: Vec<(WaiterId, f64)>,
    pub store: Vec<StoreRequest>,
    pub notes: Vec<Note>,
    pub catalogues: Vec<Arc<Catalogue>>,
    pub stopped: usize,
    sent: HashMap<SocketId, u64>,
    numbered: HashMap<SocketId, bool>,
    next: u64,
}

impl Desk {
    pub fn new() -> Self {
        Self::with(Identity::holdfast("1.0.0"))
    }

    pub fn with(identity: Identity) -> Self {
        Desk {
            board: Switchboard::new(Arc::new(identity), [7; 32]),
            now: Now::at(S * 1000),
            frames: HashMap::new(),
            numbers: HashMap::new(),
            closes: HashMap::new(),
            pings: Vec::new(),
            admitted: HashMap::new(),
            ends: HashMap::new(),
            kept: HashMap::new(),
            progress: Vec::new(),
            store: Vec::new(),
            notes: Vec::new(),
            catalogues: Vec::new(),
            stopped: 0,
            sent: HashMap::new(),
            numbered: HashMap::new(),
            next: 0,
        }
    }

    pub fn tell(&mut self, input: Input) {
        self.board.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.board.poll_output() {
            match output {
                Output::Transmit { socket, text } => {
                    let read = RelayFrame::decode(&text).expect("our own frames decode");
                    self.frames.entry(socket).or_default().push(read.frame);
                    self.numbers.entry(socket).or_default().push(read.n);
                }
                Output::Ping { socket, nonce } => self.pings.push((socket, nonce)),
                Output::Close { socket, close } => assert_eq!(self.closes.insert(socket, close), None, "closed twice"),
                Output::Admitted { waiter, call } => assert_eq!(self.admitted.insert(waiter, call), None),
                Output::Progress { waiter, progress, .. } => self.progress.push((waiter, progress)),
                Output::Kept { waiter, handle } => {
                    assert!(!self.ends.contains_key(&waiter), "a handle after the end");
                    assert_eq!(self.kept.insert(waiter, handle), None, "a second handle");
                }
                Output::End { waiter, outcome } => {
                    assert!(!self.kept.contains_key(&waiter), "an end after the handle");
                    assert!(self.ends.insert(waiter, outcome).is_none(), "a second end");
                }
                Output::Store(request) => self.store.push(request),
                Output::Catalogue(catalogue) => self.catalogues.push(catalogue),
                Output::Note(note) => self.notes.push(note),
                Output::Stopped => self.stopped += 1,
            }
        }
    }

    /// Lets time pass, both clocks alike, timer by timer.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now.plus(time);
        while let Some(left) = self.board.poll_timeout(self.now) {
            if self.now.plus(left).boot > end.boot {
                break;
            }
            self.now = self.now.plus(left);
            self.board.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    /// Lets time pass while a daemon shows its life every second, as a real one does.
    pub fn pass_alive(&mut self, socket: SocketId, time: Duration) {
        let mut left = time;
        while left > Duration::ZERO {
            let step = left.min(S);
            self.pass(step);
            let at = self.now.boot;
            self.tell(Input::Heard { socket, at, mid_frame: false });
            left -= step;
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub fn connect(&mut self) -> SocketId {
        let socket = SocketId(self.number());
        self.tell(Input::Connected { socket });
        socket
    }

    /// A frame with the next number, if this socket's daemon numbers its frames.
    pub fn say(&mut self, socket: SocketId, frame: DaemonFrame) {
        let n = self.sent.entry(socket).or_default();
        *n += 1;
        let n = self.numbered.get(&socket).copied().unwrap_or(true).then_some(*n);
        let text = frame.encode(n);
        self.say_text(socket, &text);
    }

    pub fn say_text(&mut self, socket: SocketId, text: &str) {
        let arrival = Intake::default().read(text);
        self.tell(Input::Arrived { socket, arrival });
    }

    pub fn hello(&mut self, socket: SocketId, who: &Speaker) {
        self.numbered.insert(socket, who.features.is_some_and(|f| f.has(Feature::Seq)));
        let hello = Hello {
            instance_id: who.instance.clone(),
            tools: vec!["list_dir".into(), "run_process".into()],
            policy: serde_json::json!({"profile": "agent", "allowWrite": true, "execMode": "direct"}),
            protocol_versions: vec![BASE_PROTOCOL.into()],
            link: who.features.map(|_| LinkRange::OURS),
            features: who.features,
            max_calls: who.max_calls,
            version: None,
        };
        self.say(socket, DaemonFrame::Hello(hello));
    }

    pub fn answer_probe(&mut self, socket: SocketId) {
        let probe = self.frames[&socket].iter().find_map(|frame| match frame {
            RelayFrame::RelayProbe(probe) => Some(probe.id.clone()),
            _ => None,
        });
        self.say(socket, DaemonFrame::RelayProbeResult(RelayProbeResult { id: probe.expect("a probe") }));
    }

    /// Connects up to `resume_calls`.
    pub fn prove(&mut self, who: &Speaker) -> SocketId {
        let socket = self.connect();
        self.hello(socket, who);
        self.answer_probe(socket);
        socket
    }

    /// Connects and becomes ready; every named call is reported as running.
    pub fn ready(&mut self, who: &Speaker) -> SocketId {
        let socket = self.prove(who);
        if who.features.is_some_and(|f| f.has(Feature::Report)) {
            let running = self.named(socket);
            self.say(socket, DaemonFrame::ResumeReport(ResumeReport { running, ..ResumeReport::default() }));
        }
        assert!(self.is_ready(socket), "{:?}", self.closes.get(&socket));
        socket
    }

    pub fn is_ready(&self, socket: SocketId) -> bool {
        self.kinds(socket).contains(&"ready_ack")
    }

    pub fn named(&self, socket: SocketId) -> Vec<CallId> {
        let named = self.frames[&socket].iter().find_map(|frame| match frame {
            RelayFrame::ResumeCalls(resume) => Some(resume.ids.clone()),
            _ => None,
        });
        named.expect("resume_calls")
    }

    /// The types of the frames written to a socket.
    pub fn kinds(&self, socket: SocketId) -> Vec<&'static str> {
        self.frames.get(&socket).map_or(Vec::new(), |frames| frames.iter().map(kind).collect())
    }

    /// Ids of the calls written to a socket.
    pub fn calls(&self, socket: SocketId) -> Vec<CallId> {
        let calls = self.frames.get(&socket).into_iter().flatten().filter_map(|frame| match frame {
            RelayFrame::ToolCall(call) => Some(call.id.clone()),
            _ => None,
        });
        calls.collect()
    }

    /// Acknowledgements written to a socket.
    pub fn acks(&self, socket: SocketId) -> Vec<(CallId, bool)> {
        let acks = self.frames.get(&socket).into_iter().flatten().filter_map(|frame| match frame {
            RelayFrame::ToolResultAck(ack) => Some((ack.id.clone(), ack.matched)),
            _ => None,
        });
        acks.collect()
    }

    pub fn cancels(&self, socket: SocketId) -> Vec<CallId> {
        let cancels = self.frames.get(&socket).into_iter().flatten().filter_map(|frame| match frame {
            RelayFrame::CancelCall(cancel) => Some(cancel.id.clone()),
            _ => None,
        });
        cancels.collect()
    }

    pub fn open(&mut self) -> WaiterId {
        self.open_with(|_| {})
    }

    pub fn open_with(&mut self, change: impl FnOnce(&mut OpenCall)) -> WaiterId {
        let waiter = WaiterId(self.number());
        let mut call = OpenCall {
            tool: "run_process".into(),
            arguments: RawValue::from_string(r#"{"argv":["make"]}"#.into()).expect("json"),
            budget: S * 60,
            authorization: Authorization {
                account_id: AccountId::mint([1; 18]),
                account_version: 1,
                role: Role::Owner,
                client: None,
                client_name: None,
            },
            principal: "anna".into(),
            key: None,
            wants_progress: false,
            control: false,
            outlives: None,
        };
        change(&mut call);
        self.tell(Input::Open { waiter, call: Box::new(call) });
        waiter
    }

    pub fn id(&self, waiter: WaiterId) -> CallId {
        self.admitted[&waiter].clone()
    }

    pub fn finish(&mut self, socket: SocketId, call: &CallId, raw: &str) {
        let outcome = Ok(RawValue::from_string(raw.into()).expect("json"));
        self.say(socket, DaemonFrame::ToolResult(ToolResult { id: call.clone(), outcome }));
    }

    pub fn fail(&mut self, socket: SocketId, call: &CallId, code: Code) {
        let outcome = Err(ToolError::nothing_done(code, "failed"));
        self.say(socket, DaemonFrame::ToolResult(ToolResult { id: call.clone(), outcome }));
    }

    pub fn commit(&mut self, waiter: WaiterId) {
        let call = self.id(waiter);
        self.tell(Input::Commit { call });
    }

    pub fn leave(&mut self, waiter: WaiterId) {
        let call = self.id(waiter);
        self.tell(Input::Leave { waiter, call });
    }

    pub fn lose(&mut self, socket: SocketId) {
        self.tell(Input::Closed { socket, word: None });
    }

    /// The result a waiter got.
    pub fn got(&self, waiter: WaiterId) -> Option<&str> {
        self.ends.get(&waiter).and_then(|end| end.as_ref().ok()).map(|raw| raw.get())
    }

    /// The error a waiter got.
    pub fn error(&self, waiter: WaiterId) -> Option<(Code, bool)> {
        self.ends.get(&waiter).and_then(|end| end.as_ref().err()).map(|error| (error.code, error.retryable))
    }

    pub fn heartbeat(&mut self, socket: SocketId) {
        self.say(socket, DaemonFrame::Heartbeat(Heartbeat { ts: None }));
    }

    pub fn pending(&self) -> PendingCalls {
        self.board.snapshot(self.now).pending
    }
}

pub fn kind(frame: &RelayFrame) -> &'static str {
    match frame {
        RelayFrame::Welcome(_) => "welcome",
        RelayFrame::HelloAck(_) => "hello_ack",
        RelayFrame::RelayProbe(_) => "relay_probe",
        RelayFrame::ResumeCalls(_) => "resume_calls",
        RelayFrame::ReadyAck(_) => "ready_ack",
        RelayFrame::ToolCall(_) => "tool_call",
        RelayFrame::CancelCall(_) => "cancel_call",
        RelayFrame::Pong(_) => "pong",
        RelayFrame::Error(_) => "error",
        RelayFrame::ToolResultAck(_) => "tool_result_ack",
        RelayFrame::SuspendingAck(_) => "suspending_ack",
    }
}
