//! A worker that says exactly what a test wants: the worker's socket spoken by hand.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use holdfast_core::id::{LedgerId, OperationId, RecoveryId, RunId, RuntimeId};
use holdfast_core::operation::{Exit, Operation, Outcome, State, Stream, Streams};
use holdfast_core::wire::TOKEN_HEADER;
use holdfast_core::wire::worker::{ControlFrame, HostInfo, OutputOffset, Report, WORKER_PATH, WorkerFrame};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

/// Longest any step may take; a test that waits longer is broken.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is on its way over loopback is there within this.
const MOMENT: Duration = Duration::from_millis(5);

/// What the relay asked for at the beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// This recovery.
    pub recovery: RecoveryId,
    /// Operations whose outcome is not committed.
    pub requests: Vec<OperationId>,
    /// What is committed of their output.
    pub offsets: Vec<OutputOffset>,
}

/// One socket of a worker. Dropping it cuts the connection without a word.
pub struct FakeWorker {
    ws: WebSocketStream<TcpStream>,
    /// What was said before the relay called it live, besides the lease.
    early: VecDeque<ControlFrame>,
    /// The ledger it presents.
    pub ledger: LedgerId,
    /// The process life it presents.
    pub runtime: RuntimeId,
}

impl FakeWorker {
    /// A socket on which nothing was said yet. Numbers stand for ledgers.
    ///
    /// # Panics
    /// If the relay does not take it.
    pub async fn open(relay: SocketAddr, credential: &str, ledger: u8) -> FakeWorker {
        let mut request = format!("ws://{relay}{WORKER_PATH}").into_client_request().expect("a request");
        request.headers_mut().insert(TOKEN_HEADER, credential.parse().expect("a header"));
        let stream = TcpStream::connect(relay).await.expect("a connection");
        let (ws, _) = tokio_tungstenite::client_async(request, stream).await.expect("an upgrade");
        FakeWorker {
            ws,
            early: VecDeque::new(),
            ledger: LedgerId::mint([ledger; 16]),
            runtime: RuntimeId::mint([ledger; 16]),
        }
    }

    /// A worker that has these operations, recovered.
    pub async fn live(relay: SocketAddr, credential: &str, ledger: u8, has: Vec<Report>) -> FakeWorker {
        let mut worker = FakeWorker::open(relay, credential, ledger).await;
        let wanted = worker.hello().await;
        worker.report(&wanted, has).await;
        worker.complete(&wanted).await;
        worker
    }

    /// Says hello; what the relay asks for.
    ///
    /// # Panics
    /// If it asks for something else.
    pub async fn hello(&mut self) -> Wanted {
        self.say_hello().await;
        match self.frame().await {
            ControlFrame::RecoveryRequest { recovery_id, requests, output_offsets } => {
                Wanted { recovery: recovery_id, requests, offsets: output_offsets }
            }
            other => panic!("no recovery_request: {other:?}"),
        }
    }

    /// Says hello.
    pub async fn say_hello(&mut self) {
        let hello = WorkerFrame::Hello {
            resumable_protocol: 1,
            runtime_id: self.runtime.clone(),
            ledger_id: self.ledger.clone(),
            startup_ready: true,
            host_info: HostInfo { hostname: "fake".into(), ..HostInfo::default() },
        };
        self.say(hello).await;
    }

    /// Tells what it has.
    pub async fn report(&mut self, wanted: &Wanted, operations: Vec<Report>) {
        let state = WorkerFrame::RecoveryState {
            recovery_id: wanted.recovery.clone(),
            runtime_id: self.runtime.clone(),
            ledger_id: self.ledger.clone(),
            operations,
        };
        self.say(state).await;
    }

    /// Says that all was sent, and waits until it is live. What the relay says meanwhile is kept for later.
    pub async fn complete(&mut self, wanted: &Wanted) {
        self.say(WorkerFrame::RecoveryComplete { recovery_id: wanted.recovery.clone() }).await;
        let mut early = VecDeque::new();
        loop {
            match self.frame().await {
                ControlFrame::RecoveryReady { recovery_id, .. } if recovery_id == wanted.recovery => break,
                ControlFrame::WorkerExecutionLease { .. } => {}
                other => early.push_back(other),
            }
        }
        self.early = early;
    }

    /// Says this.
    ///
    /// # Panics
    /// If the socket is gone.
    pub async fn say(&mut self, frame: WorkerFrame) {
        self.say_text(&frame.encode()).await;
    }

    /// Says any text.
    ///
    /// # Panics
    /// If the socket is gone.
    pub async fn say_text(&mut self, text: &str) {
        self.ws.send(Message::text(text)).await.expect("sent");
    }

    async fn message(&mut self) -> Option<Message> {
        loop {
            match tokio::time::timeout(PATIENCE, self.ws.next()).await.expect("no message came") {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(message)) => return Some(message),
                Some(Err(_)) | None => return None,
            }
        }
    }

    /// The next frame.
    ///
    /// # Panics
    /// If the socket ends, or says what is no frame.
    pub async fn frame(&mut self) -> ControlFrame {
        if let Some(early) = self.early.pop_front() {
            return early;
        }
        match self.message().await {
            Some(Message::Text(text)) => ControlFrame::decode(&text).expect("a frame"),
            other => panic!("no frame: {other:?}"),
        }
    }

    /// The next frame that came already, or comes within a moment.
    ///
    /// # Panics
    /// If the relay says what is no frame.
    pub async fn said(&mut self) -> Option<ControlFrame> {
        if let Some(early) = self.early.pop_front() {
            return Some(early);
        }
        loop {
            match tokio::time::timeout(MOMENT, self.ws.next()).await.ok()?? {
                Ok(Message::Text(text)) => return Some(ControlFrame::decode(&text).expect("a frame")),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                _ => return None,
            }
        }
    }

    /// The next operation; what else is said before it is passed over.
    pub async fn operation(&mut self) -> Operation {
        loop {
            if let ControlFrame::Operation(operation) = self.frame().await {
                return operation;
            }
        }
    }

    /// Code and reason of the close; what is said before it is passed over. `None`: the socket ended without.
    pub async fn closed(&mut self) -> Option<(u16, String)> {
        loop {
            if let Message::Close(frame) = self.message().await? {
                return frame.map(|frame| (frame.code.into(), frame.reason.as_str().into()));
            }
        }
    }

    /// Says that an operation stands in the ledger and runs.
    pub async fn runs(&mut self, operation: &Operation) {
        self.say(WorkerFrame::OperationReceived { request_id: operation.request_id.clone() }).await;
        self.say(WorkerFrame::OperationState(report(operation, State::Running))).await;
    }

    /// Sends output, and waits until all of it is acknowledged.
    ///
    /// # Panics
    /// If the socket ends before.
    pub async fn output(&mut self, run: &RunId, stream: Stream, offset: u64, data: &[u8]) {
        self.send_output(run, stream, offset, data).await;
        let end = offset + data.len() as u64;
        while self.acknowledged(run, stream).await < end {}
    }

    /// Sends output and does not wait.
    pub async fn send_output(&mut self, run: &RunId, stream: Stream, offset: u64, data: &[u8]) {
        let data = Bytes::copy_from_slice(data);
        self.say(WorkerFrame::ExecOutput { run_id: run.clone(), stream, offset, data }).await;
    }

    /// The next acknowledgement of a stream.
    pub async fn acknowledged(&mut self, run: &RunId, stream: Stream) -> u64 {
        loop {
            match self.frame().await {
                ControlFrame::ExecOutputAck { run_id, stream: of, next_offset } if run_id == *run && of == stream => {
                    return next_offset;
                }
                _ => {}
            }
        }
    }

    /// Says that a run ended with this exit code, and waits until that is acknowledged.
    pub async fn exits(&mut self, operation: &Operation, code: i32, written: Streams) {
        self.send_exit(operation, code, written).await;
        while !matches!(self.frame().await, ControlFrame::ExecTerminalAck { run_id } if Some(&run_id) == operation.run_id.as_ref())
        {
        }
    }

    /// Says that a run ended with this exit code.
    ///
    /// # Panics
    /// If the operation is no run.
    pub async fn send_exit(&mut self, operation: &Operation, code: i32, written: Streams) {
        let exit = Exit { code: Some(code), ..Exit::default() };
        let frame = WorkerFrame::ExecExit {
            request_id: operation.request_id.clone(),
            run_id: operation.run_id.clone().expect("a run"),
            outcome: Outcome::Completed { exit: Some(exit), value: None },
            written,
        };
        self.say(frame).await;
    }
}

/// How an operation stands, as a worker tells it.
pub fn report(operation: &Operation, state: State) -> Report {
    Report {
        request_id: operation.request_id.clone(),
        state,
        run_id: operation.run_id.clone(),
        written: Streams::new(),
        output_stalled: None,
        operation: None,
    }
}
