//! The machine against a scripted relay and scripted runners, with a ledger that keeps what it is told.

mod admission;
mod lease;
mod model;
mod output;
mod recovery;
mod runs;
mod work;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use super::fake::Ledger;
use super::*;
use crate::code::Code;
use crate::daemon::{SocketId, Traffic};
use crate::id::{LedgerId, OperationId, RecoveryId, RunId, RuntimeId};
use crate::operation::{Exit, Failure, Operation, Outcome, State, Stream, Streams};
use crate::run::{Ask, End};
use crate::status::LinkState;
use crate::time::Now;
use crate::wire::worker::{ControlFrame, HostInfo, OutputOffset, Report, WorkerFrame};

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn op(n: u8) -> OperationId {
    OperationId::mint([n; 16])
}

fn run(n: u8) -> RunId {
    RunId::mint([n; 16])
}

fn asked(n: u8, run_of: Option<u8>, request: &serde_json::Value) -> Operation {
    Operation {
        request_id: op(n),
        run_id: run_of.map(run),
        session_id: Some("s".into()),
        role: crate::policy::Role::Operator,
        client: None,
        after: None,
        request: serde_json::from_value(request.clone()).unwrap(),
    }
}

fn exec(n: u8) -> Operation {
    asked(n, Some(n), &json!({"type": "exec", "command": {"argv": ["work"]}}))
}

fn supervised(n: u8) -> Operation {
    asked(n, Some(n), &json!({"type": "exec", "command": {"argv": ["work"]}, "onLeaseExpiry": "stop"}))
}

fn input(n: u8, run_of: u8, data: &str) -> Operation {
    asked(n, Some(run_of), &json!({"type": "exec_stdin", "data": data}))
}

fn streams(stdout: u64) -> Streams {
    Streams::from([(Stream::Stdout, stdout)])
}

fn ended(code: i32, stdout: u64) -> End {
    End {
        exit: Some(exit(code)),
        written: streams(stdout),
        not_started: None,
        timed_out: false,
        killed: false,
        interrupted: false,
        lease_expired: None,
        dropped: 0,
        escaped: Vec::new(),
        at: 5,
    }
}

fn exit(code: i32) -> Exit {
    Exit { code: Some(code), signal: None, started_at: 1, ended_at: 2 }
}

fn completed(code: i32) -> Outcome {
    Outcome::Completed { exit: Some(exit(code)), value: None }
}

/// A worker, its time, its ledger, and the relay's side of its socket.
struct Rig {
    worker: Worker,
    now: Now,
    ledger: Ledger,
    /// Commits are not answered while this is set.
    holding: bool,
    /// Commits that change something fail with this.
    failing: Option<LedgerError>,
    held: VecDeque<(Ticket, Vec<Change>)>,
    out: VecDeque<Output>,
    socket: SocketId,
}

fn worker(now: Now, stored: Stored) -> Worker {
    Worker::new(now, Settings { runtime: RuntimeId::mint([2; 16]), host: HostInfo::default() }, stored, 1)
}

impl Rig {
    /// Started, not connected.
    fn new() -> Rig {
        Rig::with(Ledger::new(LedgerId::mint([1; 16])))
    }

    fn with(ledger: Ledger) -> Rig {
        let now = Now::at(S * 1000);
        let mut rig = Rig {
            worker: worker(now, ledger.stored(S)),
            now,
            ledger,
            holding: false,
            failing: None,
            held: VecDeque::new(),
            out: VecDeque::new(),
            socket: SocketId(0),
        };
        rig.tell(Input::Start);
        rig
    }

    /// Live.
    fn live() -> Rig {
        let mut rig = Rig::new();
        rig.connect();
        rig
    }

    /// The process dies with whatever was not committed, and another one starts.
    fn restart(&mut self) {
        self.now = self.now.plus(S);
        self.worker = worker(self.now, self.ledger.stored(S));
        (self.held, self.out, self.holding, self.failing) = Default::default();
        self.tell(Input::Start);
    }

    fn tell(&mut self, input: Input<'_>) {
        self.worker.handle(self.now, input);
        self.settle();
    }

    fn settle(&mut self) {
        self.worker.handle_timeout(self.now);
        loop {
            while let Some(output) = self.worker.poll_output() {
                match output {
                    Output::Commit(ticket, changes) => self.held.push_back((ticket, changes)),
                    Output::Changed | Output::Told(_) => {}
                    other => self.out.push_back(other),
                }
            }
            if self.holding || self.held.is_empty() {
                return;
            }
            self.commit_next();
        }
    }

    /// Answers the oldest commit.
    fn commit_next(&mut self) {
        let (ticket, changes) = self.held.pop_front().expect("a commit under way");
        let reads = changes.iter().all(|change| matches!(change, Change::Recall(_)));
        let result = match self.failing.filter(|_| !reads) {
            Some(error) => Err(error),
            None => Ok(self.ledger.commit(changes)),
        };
        self.worker.handle(self.now, Input::Committed(ticket, result));
    }

    fn release(&mut self) {
        self.holding = false;
        self.settle();
    }

    fn pass(&mut self, lasting: Duration) {
        let end = self.now.boot + lasting;
        while self.now.boot < end {
            let step = self.worker.poll_timeout(self.now).unwrap_or(S).clamp(MS, S).min(end - self.now.boot);
            self.now = self.now.plus(step);
            self.settle();
        }
    }

    /// Time on a connection that shows life.
    fn pass_live(&mut self, lasting: Duration) {
        for _ in 0..lasting.as_secs() {
            self.pass(S);
            self.life();
        }
    }

    fn life(&mut self) {
        let traffic = Traffic { read: 2, written: 2, drained: true };
        self.tell(Input::Traffic(self.socket, traffic));
    }

    fn sleep(&mut self, lasting: Duration) {
        self.now = self.now.slept(lasting);
        self.settle();
    }

    /// Takes the first output that fits out of the row.
    fn take<T>(&mut self, mut fits: impl FnMut(&Output) -> Option<T>) -> Option<T> {
        let at = self.out.iter().position(|output| fits(output).is_some())?;
        fits(&self.out.remove(at)?)
    }

    /// The latest dial.
    fn dial(&mut self) -> Option<SocketId> {
        let dial = |output: &Output| if let Output::Dial(socket) = output { Some(*socket) } else { None };
        std::iter::from_fn(|| self.take(dial)).last()
    }

    fn launched(&mut self) -> Option<Launch> {
        self.take(|output| if let Output::Launch(launch) = output { Some((**launch).clone()) } else { None })
    }

    fn asks(&mut self, of: u8) -> Vec<Ask> {
        let ask = |output: &Output| match output {
            Output::Tell(to, _, ask) if *to == run(of) && !matches!(ask, Ask::Quota { .. }) => Some(ask.clone()),
            _ => None,
        };
        std::iter::from_fn(|| self.take(ask)).collect()
    }

    fn has(&mut self, wanted: &Output) -> bool {
        self.take(|output| (output == wanted).then_some(())).is_some()
    }

    fn reads(&mut self) -> Vec<Read> {
        let read = |output: &Output| if let Output::Read(read) = output { Some(read.clone()) } else { None };
        std::iter::from_fn(|| self.take(read)).collect()
    }

    /// Answers every read with bytes that are their offset, modulo 251.
    fn spool(&mut self) {
        loop {
            let reads = self.reads();
            if reads.is_empty() {
                return;
            }
            for read in reads {
                let bytes: Vec<u8> = (read.offset..read.offset + read.max as u64).map(|at| (at % 251) as u8).collect();
                self.tell(Input::Piece(read.run, read.stream, read.offset, Piece::Bytes(Bytes::from(bytes))));
            }
        }
    }

    fn open(&mut self) {
        let waits = (0..20).find_map(|_| {
            self.dial().or_else(|| {
                self.pass(S);
                None
            })
        });
        self.socket = waits.expect("a dial");
        self.tell(Input::Opened(self.socket));
        assert_eq!(self.kinds(), ["hello"]);
    }

    /// From a dial to live, with nothing asked for.
    fn connect(&mut self) {
        self.open();
        self.recover(1, &[], &[]);
        self.out.clear();
    }

    fn request(&mut self, n: u8, requests: &[u8], offsets: &[(u8, u64)]) {
        let output_offsets = offsets
            .iter()
            .map(|(of, next_offset)| OutputOffset {
                run_id: run(*of),
                stream: Stream::Stdout,
                next_offset: *next_offset,
            })
            .collect();
        let requests = requests.iter().map(|n| op(*n)).collect();
        self.say(ControlFrame::RecoveryRequest { recovery_id: RecoveryId::mint([n; 16]), requests, output_offsets });
    }

    /// A whole recovery; returns what was said from `recovery_state` to `recovery_complete`.
    fn recover(&mut self, n: u8, requests: &[u8], offsets: &[(u8, u64)]) -> Vec<WorkerFrame> {
        self.written();
        self.request(n, requests, offsets);
        let mut frames = self.written();
        let complete = WorkerFrame::RecoveryComplete { recovery_id: RecoveryId::mint([n; 16]) };
        while frames.last() != Some(&complete) {
            self.spool();
            let more = self.written();
            assert!(!more.is_empty(), "stuck after {:?}", frames.iter().map(kind).collect::<Vec<_>>());
            frames.extend(more);
        }
        assert_eq!(kind(&frames[0]), "recovery_state");
        self.say(ControlFrame::RecoveryReady { recovery_id: RecoveryId::mint([n; 16]), lease_ms: 120_000 });
        assert_eq!(self.worker.state(), LinkState::Healthy);
        frames
    }

    fn say(&mut self, frame: ControlFrame) {
        self.tell(Input::Frame(self.socket, frame, Ok(())));
    }

    fn send(&mut self, operation: Operation) {
        self.say(ControlFrame::Operation(operation));
    }

    fn cancel(&mut self, n: u8) {
        self.say(ControlFrame::Cancel { request_id: op(n), run_id: None });
    }

    fn lose(&mut self) {
        self.tell(Input::Closed(self.socket, None));
    }

    /// Everything the worker writes now, but its news of living operations.
    fn written(&mut self) -> Vec<WorkerFrame> {
        let mut frames = self.all_written();
        frames.retain(|frame| !matches!(frame, WorkerFrame::OperationState(_)));
        frames
    }

    fn all_written(&mut self) -> Vec<WorkerFrame> {
        let mut frames = Vec::new();
        while let Some(text) = self.worker.poll_transmit(self.now, self.socket) {
            frames.push(WorkerFrame::decode(&text).expect("a frame"));
            self.settle();
        }
        frames
    }

    /// Names of what it writes.
    fn kinds(&mut self) -> Vec<&'static str> {
        self.written().iter().map(kind).collect()
    }

    /// Output it writes, as run, offset and length, for as long as there is some.
    fn output(&mut self) -> Vec<(u8, u64, u64)> {
        let mut pieces = Vec::new();
        loop {
            self.spool();
            let frames = self.written();
            if frames.is_empty() {
                return pieces;
            }
            pieces.extend(frames.into_iter().filter_map(|frame| match frame {
                WorkerFrame::ExecOutput { run_id, offset, data, .. } => {
                    let of = (0..=255).find(|n| run(*n) == run_id).expect("a run of ours");
                    Some((of, offset, data.len() as u64))
                }
                _ => None,
            }));
        }
    }

    fn ack(&mut self, of: u8, next_offset: u64) {
        self.say(ControlFrame::ExecOutputAck { run_id: run(of), stream: Stream::Stdout, next_offset });
    }

    fn run(&mut self, of: u8, attempt: u32, news: RunNews) {
        self.tell(Input::Run(run(of), attempt, news));
    }

    /// Sends and starts a run, up to its connected runner.
    fn started(&mut self, operation: Operation) {
        let of = (0..=255).find(|n| operation.run_id == Some(run(*n))).expect("a run of ours");
        self.send(operation);
        self.launched().expect("a launch");
        self.attach(of, 1, 0);
    }

    fn attach(&mut self, of: u8, attempt: u32, stdout: u64) {
        self.run(of, attempt, RunNews::Attached { written: streams(stdout), stalled: None });
    }

    fn state(&mut self, n: u8) -> State {
        self.ledger.row(&op(n)).expect("a row").state
    }

    fn outcome(&mut self, n: u8) -> Outcome {
        self.ledger.row(&op(n)).expect("a row").outcome.clone().expect("an end")
    }
}

fn kind(frame: &WorkerFrame) -> &'static str {
    match frame {
        WorkerFrame::Hello { .. } => "hello",
        WorkerFrame::RecoveryState { .. } => "recovery_state",
        WorkerFrame::RecoveryComplete { .. } => "recovery_complete",
        WorkerFrame::OperationReceived { .. } => "operation_received",
        WorkerFrame::OperationRejected { .. } => "operation_rejected",
        WorkerFrame::OperationState(_) => "operation_state",
        WorkerFrame::OperationCompleted { .. } => "operation_completed",
        WorkerFrame::ExecOutput { .. } => "exec_output",
        WorkerFrame::ExecGap { .. } => "exec_gap",
        WorkerFrame::ExecExit { .. } => "exec_exit",
        WorkerFrame::ExecError { .. } => "exec_error",
        WorkerFrame::CancelResult { .. } => "cancel_result",
        WorkerFrame::CancelSessionAck { .. } => "cancel_session_ack",
    }
}

/// The code with which the only frame refuses an operation.
fn refusal(frames: &[WorkerFrame]) -> Code {
    match frames {
        [WorkerFrame::OperationRejected { failure, .. }] => failure.code,
        other => panic!("not a refusal: {other:?}"),
    }
}
