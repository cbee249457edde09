//! The worker's shell on real sockets, with real runners, against a scripted relay.

mod full;
mod rules;
mod runs;
mod starts;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use holdfast_core::daemon::Told;
use holdfast_core::id::{LedgerId, OperationId, RecoveryId, RunId};
use holdfast_core::limits;
use holdfast_core::operation::{Operation, Outcome, State, Stream, Streams};
use holdfast_core::policy::{Policy, Profile, Role};
use holdfast_core::status::WorkerStatus;
use holdfast_core::wire::worker::{ControlFrame, OutputOffset, Report, WorkerFrame};
use holdfast_core::worker::Step;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::{Aside, WorkerHandle, WorkerObserver, WorkerOptions};
use crate::config::{ForwardConfig, SyncConfig};
use crate::exec::{ExecOptions, LocalExecutor};
use crate::link::Proxies;
use crate::paths::Dirs;
use crate::run::Starter;

/// Longer than anything here may take; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(120);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("in time")
}

fn id(n: u8) -> OperationId {
    OperationId::mint([n; 16])
}

fn run(n: u8) -> RunId {
    RunId::mint([n; 16])
}

fn operation(n: u8, request: Value) -> Operation {
    Operation {
        request_id: id(n),
        run_id: Some(run(n)),
        session_id: None,
        role: Role::Owner,
        client: Some("c".into()),
        after: None,
        request: serde_json::from_value(request).expect("a request"),
    }
}

/// Runs a line of the shell, its input open.
fn sh(n: u8, line: &str) -> Operation {
    operation(n, serde_json::json!({"type": "exec", "command": {"argv": ["sh", "-c", line]}, "stdin": true}))
}

/// The test binary as a runner: see the tests of runs.
fn starter() -> Starter {
    let binary = std::env::current_exe().expect("a path");
    let words = ["run::tests::the_runner_itself", "--exact", "--nocapture", "--test-threads=1"];
    Starter::of(std::iter::once(binary.into()).chain(words.map(Into::into)).collect())
}

#[derive(Default)]
struct Ears(Mutex<Vec<Aside>>);

impl WorkerObserver for Ears {
    fn status(&self, _: &WorkerStatus) {}
    fn step(&self, _: Step) {}
    fn told(&self, _: Told) {}
    fn set_aside(&self, why: Aside, _: &Path) {
        self.0.lock().push(why);
    }
}

/// Folders of a device, and the relay it dials.
struct Stage {
    home: tempfile::TempDir,
    relay: Relay,
    policy: Policy,
    forward: ForwardConfig,
    /// Where the relay in this process listens.
    relay_port: watch::Sender<Option<u16>>,
    ears: Arc<Ears>,
}

impl Stage {
    async fn new() -> Stage {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(home.path().join("work")).expect("a folder");
        Stage {
            home,
            relay: Relay::new().await,
            policy: Policy::of(Profile::Agent, "explicit"),
            forward: ForwardConfig::default(),
            relay_port: watch::Sender::new(None),
            ears: Arc::default(),
        }
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    fn workspace(&self) -> PathBuf {
        self.home.path().join("work")
    }

    /// Starts a worker that dials `at`.
    async fn worker_at(&self, at: SocketAddr, change: impl FnOnce(&mut ExecOptions)) -> WorkerHandle {
        let dirs = Dirs { config: self.home.path().join("config"), data: self.data() };
        dirs.prepare().expect("folders");
        let mut options = ExecOptions::new(self.workspace(), self.data(), self.policy.clone());
        change(&mut options);
        let options = WorkerOptions {
            relay: format!("http://{at}").parse().expect("a url"),
            token: "secret-of-at-least-16".to_owned().into(),
            ca_file: None,
            proxies: Proxies::Direct,
            dirs,
            executor: LocalExecutor::open(options).expect("an executor"),
            starter: starter(),
            sync: watch::Sender::new(SyncConfig::default()).subscribe(),
            forward: watch::Sender::new(self.forward.clone()).subscribe(),
            relay_port: self.relay_port.subscribe(),
        };
        let ears = Arc::clone(&self.ears);
        let worker = tokio::task::spawn_blocking(move || super::spawn(options, ears)).await.expect("no panic");
        let worker = worker.expect("a worker");
        worker.start();
        worker
    }

    async fn worker(&self) -> WorkerHandle {
        self.worker_at(self.relay.address(), |_| {}).await
    }

    /// A worker that is live, and its socket.
    async fn live(&self) -> (WorkerHandle, Peer) {
        let worker = self.worker().await;
        let peer = self.relay.live(&[], BTreeMap::new()).await;
        (worker, peer)
    }

    fn run_folder(&self, n: u8) -> PathBuf {
        crate::run::folder(&self.data().join("runs"), &run(n), 1)
    }
}

/// A relay that does what the test says.
struct Relay(TcpListener);

impl Relay {
    async fn new() -> Relay {
        Relay(TcpListener::bind("127.0.0.1:0").await.expect("a port"))
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("an address")
    }

    async fn accept(&self) -> Peer {
        let (tcp, _) = soon(self.0.accept()).await.expect("a connection");
        let ws = soon(tokio_tungstenite::accept_async(tcp)).await.expect("an upgrade");
        Peer { ws, ledger: None, received: BTreeMap::new(), lost: 0, heard: Vec::new(), reports: Vec::new() }
    }

    /// A socket, recovered: the relay asks for these operations, and has this much of their output.
    async fn live(&self, requests: &[OperationId], received: BTreeMap<(RunId, Stream), Vec<u8>>) -> Peer {
        let mut peer = self.accept().await;
        peer.received = received;
        match peer.frame().await {
            WorkerFrame::Hello { ledger_id, resumable_protocol: 1, .. } => peer.ledger = Some(ledger_id),
            other => panic!("no hello: {other:?}"),
        }
        let recovery_id = RecoveryId::mint([9; 16]);
        let offset = |((run, stream), bytes): (&(RunId, Stream), &Vec<u8>)| OutputOffset {
            run_id: run.clone(),
            stream: *stream,
            next_offset: bytes.len() as u64,
        };
        let output_offsets = peer.received.iter().map(offset).collect();
        let requests = requests.to_vec();
        peer.say(ControlFrame::RecoveryRequest { recovery_id: recovery_id.clone(), requests, output_offsets }).await;
        loop {
            match peer.frame().await {
                WorkerFrame::RecoveryState { operations, .. } => peer.reports = operations,
                WorkerFrame::RecoveryComplete { .. } => break,
                other => peer.keep(other),
            }
        }
        peer.say(ControlFrame::RecoveryReady { recovery_id, lease_ms: limits::WORKER_LEASE.as_millis() as u64 }).await;
        peer
    }
}

/// One socket of the relay. It keeps and acknowledges output as it comes.
struct Peer {
    ws: WebSocketStream<TcpStream>,
    ledger: Option<LedgerId>,
    received: BTreeMap<(RunId, Stream), Vec<u8>>,
    /// Bytes that the worker does not have.
    lost: u64,
    heard: Vec<WorkerFrame>,
    reports: Vec<Report>,
}

/// How a run ended, as the worker says it.
type End = (Outcome, Streams);

impl Peer {
    async fn say(&mut self, frame: ControlFrame) {
        self.ws.send(Message::text(frame.encode())).await.expect("sent");
    }

    async fn ask(&mut self, operation: Operation) {
        self.say(ControlFrame::Operation(operation)).await;
    }

    /// The next frame that is no output.
    async fn frame(&mut self) -> WorkerFrame {
        loop {
            if let Some(frame) = self.message().await {
                return frame;
            }
        }
    }

    /// The next message; nothing if it was output, which is kept and acknowledged, or no frame.
    async fn message(&mut self) -> Option<WorkerFrame> {
        match soon(self.ws.next()).await.expect("an open socket").expect("a message") {
            Message::Text(text) => match WorkerFrame::decode(&text).expect("valid") {
                WorkerFrame::ExecOutput { run_id, stream, offset, data } => {
                    let received = self.received.entry((run_id.clone(), stream)).or_default();
                    let known = received.len() as u64;
                    assert!(offset <= known, "a hole: {known} to {offset}");
                    let new = data.len().min((known - offset) as usize);
                    received.extend_from_slice(&data[new..]);
                    let next_offset = received.len() as u64;
                    self.say(ControlFrame::ExecOutputAck { run_id, stream, next_offset }).await;
                    None
                }
                WorkerFrame::ExecGap { run_id, stream, offset, next_offset } => {
                    let received = self.received.entry((run_id.clone(), stream)).or_default();
                    assert_eq!(offset, received.len() as u64);
                    self.lost += next_offset - offset;
                    received.resize(next_offset as usize, 0);
                    self.say(ControlFrame::ExecOutputAck { run_id, stream, next_offset }).await;
                    None
                }
                frame => Some(frame),
            },
            Message::Close(frame) => panic!("closed: {frame:?}"),
            _ => None,
        }
    }

    /// Waits until the output of a run is as wanted; what else is said is kept.
    async fn until_output(&mut self, n: u8, stream: Stream, wanted: impl Fn(&[u8]) -> bool) {
        while !wanted(self.output(n, stream)) {
            if let Some(frame) = self.message().await
                && !matches!(frame, WorkerFrame::OperationState(_))
            {
                self.keep(frame);
            }
        }
    }

    fn keep(&mut self, frame: WorkerFrame) {
        self.heard.push(frame);
    }

    /// The next frame that is neither output nor news, one that was kept first.
    async fn answer(&mut self) -> WorkerFrame {
        if !self.heard.is_empty() {
            return self.heard.remove(0);
        }
        loop {
            match self.frame().await {
                WorkerFrame::OperationState(_) => {}
                frame => return frame,
            }
        }
    }

    async fn received(&mut self, n: u8) {
        assert_eq!(self.answer().await, WorkerFrame::OperationReceived { request_id: id(n) });
    }

    /// Waits until the operation stands so.
    async fn state(&mut self, n: u8, wanted: State) {
        loop {
            if let WorkerFrame::OperationState(report) = self.frame().await
                && report.request_id == id(n)
                && report.state == wanted
            {
                return;
            }
        }
    }

    /// The end of a run and all of its output, acknowledged.
    async fn end(&mut self, n: u8) -> End {
        let (outcome, written) = match self.answer().await {
            WorkerFrame::ExecExit { request_id, outcome, written, .. }
            | WorkerFrame::ExecError { request_id, outcome, written, .. } => {
                assert_eq!(request_id, id(n));
                (outcome, written)
            }
            other => panic!("no end: {other:?}"),
        };
        for (stream, bytes) in &written {
            self.until_output(n, *stream, |output| output.len() as u64 == *bytes).await;
        }
        // Offered again on the way.
        self.heard.retain(|frame| !matches!(frame, WorkerFrame::ExecExit { .. } | WorkerFrame::ExecError { .. }));
        self.say(ControlFrame::ExecTerminalAck { run_id: run(n) }).await;
        (outcome, written)
    }

    fn output(&self, n: u8, stream: Stream) -> &[u8] {
        self.received.get(&(run(n), stream)).map_or(&[], Vec::as_slice)
    }
}

/// Waits until the worker says so of itself.
async fn status(worker: &WorkerHandle, wanted: impl FnMut(&Arc<WorkerStatus>) -> bool) -> Arc<WorkerStatus> {
    soon(worker.status().wait_for(wanted)).await.expect("a running worker").clone()
}

/// Whether a process lives; one that is dead and that nobody reaped does not.
fn lives(pid: u32) -> bool {
    let lives = crate::identity::lives(pid, crate::identity::started(pid).as_deref());
    // One that ends does nothing more.
    #[cfg(target_os = "linux")]
    let lives = lives && holdfast_testkit::stand::alive(pid.cast_signed());
    lives
}

/// Waits until a path is gone. What removes it says nothing.
async fn gone(path: &Path) {
    soon(async {
        while path.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
