//! The relay's machine against a daemon that says anything at any time.
//!
//! Lines are a script: `{…` a frame on the newest socket, `c` a socket comes, `x` it breaks, `p` it answers the probe, `r` it
//! reports every resumed call as running (`R`: as never seen), `a` it answers the oldest call it got, `o` a client opens a
//! call (`O`: with a key), `l` the oldest waiter leaves, `t250` 250 ms pass.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::id::{AccountId, CallId, ProbeId};
use holdfast_core::policy::Role;
use holdfast_core::switchboard::{
    IdempotencyKey, Identity, Input, Intake, OpenCall, Output, SocketId, StoreAnswer, StoreRequest, Switchboard,
    WaiterId,
};
use holdfast_core::time::Now;
use holdfast_core::wire::{Authorization, DaemonFrame, RelayFrame, RelayProbeResult, ResumeReport, ToolResult};
use serde_json::value::RawValue;

struct Machine {
    board: Switchboard,
    now: Now,
    next: u64,
    socket: Option<(SocketId, Intake)>,
    open: HashSet<SocketId>,
    probe: Option<ProbeId>,
    resumed: Vec<CallId>,
    received: VecDeque<CallId>,
    /// Waiters without an end, and their calls once admitted.
    waiting: HashMap<WaiterId, Option<CallId>>,
    order: VecDeque<WaiterId>,
}

/// Every waiter hears its admission first and its end once; nothing is written to a closed socket.
pub fn switchboard_machine(bytes: &[u8]) {
    let Ok(script) = std::str::from_utf8(bytes) else { return };
    let identity = if script.starts_with('b') { Identity::base() } else { Identity::holdfast("1") };
    let mut machine = Machine {
        board: Switchboard::new(Arc::new(identity), [7; 32]),
        now: Now::at(Duration::from_secs(1000)),
        next: 1,
        socket: None,
        open: HashSet::new(),
        probe: None,
        resumed: Vec::new(),
        received: VecDeque::new(),
        waiting: HashMap::new(),
        order: VecDeque::new(),
    };
    for line in script.lines() {
        machine.step(line);
    }
    machine.tell(Input::Stop);
    for _ in 0..30 {
        machine.pass(Duration::from_secs(1));
    }
    assert!(machine.waiting.is_empty(), "a waiter never heard an end");
}

impl Machine {
    fn step(&mut self, line: &str) {
        match line.as_bytes().first() {
            Some(b'{') => self.frame(line),
            Some(b'c') => {
                let socket = SocketId(self.number());
                self.open.insert(socket);
                self.socket = Some((socket, Intake::default()));
                self.tell(Input::Connected { socket });
            }
            Some(b'x') => {
                if let Some((socket, _)) = self.socket.take().filter(|(socket, _)| self.open.remove(socket)) {
                    self.tell(Input::Closed { socket, word: None });
                }
            }
            Some(b'p') => {
                if let Some(id) = self.probe.take() {
                    self.frame(&DaemonFrame::RelayProbeResult(RelayProbeResult { id }).encode(None));
                }
            }
            Some(b'r') => {
                let running = std::mem::take(&mut self.resumed);
                self.frame(&DaemonFrame::ResumeReport(ResumeReport { running, ..Default::default() }).encode(None));
            }
            Some(b'R') => {
                let unknown = std::mem::take(&mut self.resumed);
                self.frame(&DaemonFrame::ResumeReport(ResumeReport { unknown, ..Default::default() }).encode(None));
            }
            Some(b'a') => {
                if let Some(id) = self.received.pop_front() {
                    let outcome = Ok(RawValue::from_string("\"done\"".into()).expect("JSON"));
                    self.frame(&DaemonFrame::ToolResult(ToolResult { id, outcome }).encode(None));
                }
            }
            Some(b'o') => self.open(None),
            Some(b'O') => self.open(Some(IdempotencyKey { key: line.chars().take(9).collect(), digest: [1; 32] })),
            Some(b'l') => {
                if let Some(waiter) = self.order.pop_front()
                    && let Some(Some(call)) = self.waiting.remove(&waiter)
                {
                    self.tell(Input::Leave { waiter, call });
                }
            }
            Some(b't') => self.pass(Duration::from_millis(line[1..].parse::<u16>().unwrap_or(1).into())),
            _ => {}
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn open(&mut self, key: Option<IdempotencyKey>) {
        let waiter = WaiterId(self.number());
        self.waiting.insert(waiter, None);
        self.order.push_back(waiter);
        let call = OpenCall {
            tool: "echo".into(),
            arguments: RawValue::from_string("{}".into()).expect("JSON"),
            budget: Duration::from_secs(5),
            authorization: Authorization {
                account_id: AccountId::mint([1; 18]),
                account_version: 1,
                role: Role::Owner,
                client: None,
                client_name: None,
            },
            principal: "p".into(),
            key,
            wants_progress: true,
            control: false,
            outlives: None,
        };
        self.tell(Input::Open { waiter, call: Box::new(call) });
    }

    fn frame(&mut self, text: &str) {
        let Some((socket, intake)) = &mut self.socket else { return };
        if !self.open.contains(socket) {
            return;
        }
        let (socket, arrival) = (*socket, intake.read(text));
        self.tell(Input::Heard { socket, at: self.now.boot, mid_frame: false });
        self.tell(Input::Arrived { socket, arrival });
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        self.board.handle_timeout(self.now);
        self.drain();
    }

    fn tell(&mut self, input: Input) {
        self.board.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        for round in 0.. {
            assert!(round < 10_000, "the machine never rests");
            let Some(output) = self.board.poll_output() else { break };
            match output {
                Output::Transmit { socket, text } => {
                    assert!(self.open.contains(&socket), "written to a closed socket");
                    match RelayFrame::decode(&text).expect("what we write we can read").frame {
                        RelayFrame::RelayProbe(probe) => self.probe = Some(probe.id),
                        RelayFrame::ResumeCalls(resume) => self.resumed = resume.ids,
                        RelayFrame::ToolCall(call) => self.received.push_back(call.id),
                        _ => {}
                    }
                }
                Output::Ping { socket, .. } => assert!(self.open.contains(&socket), "a ping to a closed socket"),
                Output::Close { socket, .. } => {
                    assert!(self.open.remove(&socket), "closed twice");
                }
                Output::Admitted { waiter, call } => {
                    if let Some(admitted) = self.waiting.get_mut(&waiter) {
                        assert!(admitted.replace(call).is_none(), "admitted twice");
                    }
                }
                Output::Progress { waiter, .. } => {
                    assert!(matches!(self.waiting.get(&waiter), Some(Some(_))), "progress out of place");
                }
                Output::End { waiter, .. } => {
                    let call = self.waiting.remove(&waiter).expect("an end for somebody who waits");
                    let call = call.expect("admitted first");
                    self.board.handle(self.now, Input::Commit { call });
                }
                Output::Store(request) => {
                    let call = match request {
                        StoreRequest::Reserve { call, .. }
                        | StoreRequest::Assign { call, .. }
                        | StoreRequest::Finish { call, .. } => call,
                        _ => continue,
                    };
                    self.board.handle(self.now, Input::Stored { call, answer: StoreAnswer::Committed });
                }
                _ => {}
            }
        }
    }
}
