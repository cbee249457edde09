//! The machine against a scripted relay.

mod calls;
mod link;
mod resume;

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::value::RawValue;

use super::*;
use crate::code::ToolError;
use crate::id::{AccountId, CallId, InstanceId, ProbeId};
use crate::policy::Role;
use crate::status::LinkState;
use crate::time::Now;
use crate::wire::{self, DaemonFrame, Features, LinkRange, RelayFrame};

const S: Duration = Duration::from_secs(1);

fn call_id(n: u8) -> CallId {
    CallId::mint([n; 32])
}

/// A daemon, its time, and the relay's side of its current socket.
struct Rig {
    daemon: Daemon,
    now: Now,
    out: VecDeque<Output>,
    base: bool,
    /// Numbers written by the relay on each socket.
    n: std::collections::BTreeMap<SocketId, u64>,
}

impl Rig {
    fn new(compat: Compat) -> Rig {
        let now = Now::at(S * 1000);
        let settings = Settings {
            instance: InstanceId::mint([9; 18]),
            compat,
            features: Features::all(),
            version: "0.1.0".into(),
            advertised: Advertised {
                tools: vec!["echo".into(), "start_operation".into()],
                policy: serde_json::json!({"profile": "agent"}),
            },
        };
        let daemon = Daemon::new(now, settings, 1);
        Rig { daemon, now, out: VecDeque::new(), base: compat == Compat::Base, n: Default::default() }
    }

    /// A daemon that is ready on the returned socket.
    fn ready(compat: Compat) -> (Rig, SocketId) {
        let mut rig = Rig::new(compat);
        rig.input(Input::Start);
        let socket = rig.dialled();
        rig.handshake(socket, &[]);
        rig.out.clear();
        (rig, socket)
    }

    fn input(&mut self, input: Input<'_>) {
        self.daemon.handle(self.now, input);
        self.settle();
    }

    fn settle(&mut self) {
        self.daemon.handle_timeout(self.now);
        while let Some(output) = self.daemon.poll_output() {
            self.out.push_back(output);
        }
    }

    /// Lets time pass, doing what is due when it is due.
    fn pass(&mut self, lasting: Duration) {
        let end = self.now.boot + lasting;
        while self.now.boot < end {
            let step = self.daemon.poll_timeout(self.now).unwrap_or(S).min(S).min(end - self.now.boot);
            self.now = self.now.plus(step.max(Duration::from_millis(1)).min(end - self.now.boot));
            self.settle();
        }
    }

    /// Lets time pass on a connection that shows life every second.
    fn live(&mut self, socket: SocketId, lasting: Duration) {
        for _ in 0..lasting.as_secs() {
            self.pass(S);
            self.input(Input::Traffic(socket, Traffic { read: 2, written: 0, drained: true }));
            self.input(Input::Control(socket));
        }
    }

    /// Takes the first output that fits, dropping what came before it.
    fn take<T>(&mut self, mut fits: impl FnMut(&Output) -> Option<T>) -> Option<T> {
        while let Some(output) = self.out.pop_front() {
            if let Some(found) = fits(&output) {
                return Some(found);
            }
        }
        None
    }

    fn dial(&mut self) -> Option<SocketId> {
        self.take(|o| if let Output::Dial(socket) = o { Some(*socket) } else { None })
    }

    /// Dials and opens.
    fn dialled(&mut self) -> SocketId {
        let socket = self.dial().expect("a dial");
        self.input(Input::Opened(socket));
        socket
    }

    fn closed(&mut self) -> Option<(SocketId, u16, &'static str)> {
        self.take(|o| if let Output::Close(s, code, why) = o { Some((*s, *code, *why)) } else { None })
    }

    fn run(&mut self) -> Option<CallId> {
        self.take(|o| if let Output::Run(run) = o { Some(run.id.clone()) } else { None })
    }

    fn cancelled(&mut self) -> Vec<(CallId, CancelReason)> {
        let cancel = |o: &Output| if let Output::Cancel(id, why) = o { Some((id.clone(), *why)) } else { None };
        std::iter::from_fn(|| self.take(cancel)).collect()
    }

    fn told(&self) -> Vec<&Told> {
        self.out.iter().filter_map(|o| if let Output::Told(told) = o { Some(told) } else { None }).collect()
    }

    fn state(&self) -> LinkState {
        self.daemon.snapshot(self.now).state
    }

    /// Everything the daemon writes on a socket now.
    fn written(&mut self, socket: SocketId) -> Vec<wire::Numbered<DaemonFrame>> {
        let texts: Vec<String> = std::iter::from_fn(|| self.daemon.poll_transmit(self.now, socket)).collect();
        self.settle();
        texts.iter().map(|text| DaemonFrame::decode(text).expect("a valid frame")).collect()
    }

    /// Names of what it writes.
    fn kinds(&mut self, socket: SocketId) -> Vec<&'static str> {
        self.written(socket).iter().map(|f| kind(&f.frame)).collect()
    }

    /// Results it writes, as id and raw text or error code.
    fn results(&mut self, socket: SocketId) -> Vec<(CallId, String)> {
        self.written(socket)
            .into_iter()
            .filter_map(|f| match f.frame {
                DaemonFrame::ToolResult(result) => Some((
                    result.id,
                    match result.outcome {
                        Ok(raw) => raw.get().to_owned(),
                        Err(error) => error.code.as_str().to_owned(),
                    },
                )),
                _ => None,
            })
            .collect()
    }

    fn say(&mut self, socket: SocketId, frame: &RelayFrame) {
        let numbered = !self.base && !matches!(frame, RelayFrame::Welcome(_));
        let n = numbered.then(|| {
            let n = self.n.entry(socket).or_default();
            *n += 1;
            *n
        });
        let text = frame.encode(n);
        self.input(Input::Frame(socket, &text));
    }

    fn identity(&self) -> (String, String, Option<LinkRange>) {
        if self.base {
            (wire::BASE_SERVER.into(), wire::BASE_VERSION.into(), None)
        } else {
            ("holdfast".into(), "0.1.0".into(), Some(LinkRange::OURS))
        }
    }

    fn welcome(&mut self, socket: SocketId) {
        let (server, version, link) = self.identity();
        let features = link.map(|_| Features::all());
        self.say(socket, &RelayFrame::Welcome(wire::Welcome { server, version, link, features }));
    }

    fn hello_ack(&mut self, socket: SocketId) {
        let (server, version, link) = self.identity();
        let grace_ms = link.map(|_| 120_000);
        self.say(socket, &RelayFrame::HelloAck(wire::HelloAck { server, version, link, grace_ms }));
    }

    fn ready_ack(&mut self, socket: SocketId) {
        let (server, version, link) = self.identity();
        self.say(socket, &RelayFrame::ReadyAck(wire::ReadyAck { server, version, link }));
    }

    /// Everything up to the answered probe.
    fn probe(&mut self, socket: SocketId) {
        self.welcome(socket);
        assert_eq!(self.kinds(socket), ["hello"]);
        self.hello_ack(socket);
        self.say(socket, &RelayFrame::RelayProbe(wire::RelayProbe { id: ProbeId::mint([3; 32]) }));
        self.input(Input::Probed(socket));
        assert_eq!(self.kinds(socket), ["relay_probe_result"]);
    }

    /// `resume_calls`; returns the report.
    fn resume(&mut self, socket: SocketId, ids: &[CallId]) -> Option<wire::ResumeReport> {
        self.say(socket, &RelayFrame::ResumeCalls(wire::ResumeCalls { ids: ids.to_vec() }));
        self.written(socket).into_iter().find_map(|f| match f.frame {
            DaemonFrame::ResumeReport(report) => Some(report),
            _ => None,
        })
    }

    fn handshake(&mut self, socket: SocketId, ids: &[CallId]) {
        self.probe(socket);
        self.resume(socket, ids);
        self.ready_ack(socket);
        assert_eq!(self.state(), LinkState::Healthy);
    }

    fn call(&mut self, socket: SocketId, n: u8) {
        self.call_of(socket, n, "echo", 60_000);
    }

    fn call_of(&mut self, socket: SocketId, n: u8, tool: &str, timeout_ms: u64) {
        let call = wire::ToolCall {
            id: call_id(n),
            tool: tool.into(),
            arguments: RawValue::from_string("{}".into()).expect("raw"),
            timeout_ms,
            authorization: wire::Authorization {
                account_id: AccountId::mint([2; 18]),
                account_version: 1,
                role: Role::Owner,
                client: None,
                client_name: None,
            },
            progress: true,
        };
        self.say(socket, &RelayFrame::ToolCall(call));
    }

    fn finish(&mut self, n: u8, raw: &str) {
        let raw = RawValue::from_string(raw.to_owned()).expect("raw");
        self.input(Input::Finished(call_id(n), Ok(raw)));
    }

    fn fail(&mut self, n: u8, error: ToolError) {
        self.input(Input::Finished(call_id(n), Err(error)));
    }

    fn ack(&mut self, socket: SocketId, n: u8) {
        self.say(socket, &RelayFrame::ToolResultAck(wire::ToolResultAck { id: call_id(n), matched: true }));
    }
}

fn kind(frame: &DaemonFrame) -> &'static str {
    match frame {
        DaemonFrame::Hello(_) => "hello",
        DaemonFrame::RelayProbeResult(_) => "relay_probe_result",
        DaemonFrame::ToolResult(_) => "tool_result",
        DaemonFrame::Heartbeat(_) => "heartbeat",
        DaemonFrame::Ping(_) => "ping",
        DaemonFrame::ResumeReport(_) => "resume_report",
        DaemonFrame::ToolProgress(_) => "tool_progress",
        DaemonFrame::ToolResultChunk(_) => "tool_result_chunk",
        DaemonFrame::Suspending(_) => "suspending",
    }
}
