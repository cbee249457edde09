//! The link's shell on real sockets, against a scripted relay.

mod dial;
mod frames;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use holdfast_core::daemon::{CallStep, Compat, Told};
use holdfast_core::id::{AccountId, CallId, InstanceId, ProbeId};
use holdfast_core::policy::Role;
use holdfast_core::status::LinkState;
use holdfast_core::wire::{self, DaemonFrame, Features, LinkRange, RelayFrame};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use super::stream::BoxStream;
use super::*;
use crate::exec::{Advertised, CallSink, CancelReason, Executor, ProbeSink, Run};

/// Longer than anything here may take; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(120);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("in time")
}

/// An executor whose calls the test ends.
#[derive(Default)]
struct Hands {
    sinks: Mutex<HashMap<CallId, CallSink>>,
    cancelled: Mutex<Vec<(CallId, CancelReason)>>,
    started: Mutex<Option<mpsc::UnboundedSender<CallId>>>,
}

impl Executor for Hands {
    fn start(&self, run: Run, sink: CallSink) {
        self.sinks.lock().insert(run.id.clone(), sink);
        if let Some(started) = &*self.started.lock() {
            started.send(run.id).expect("a listening test");
        }
    }
    fn cancel(&self, id: &CallId, why: CancelReason) {
        self.cancelled.lock().push((id.clone(), why));
    }
    fn probe(&self, sink: ProbeSink) {
        sink.proven();
    }
    fn advertised(&self) -> Advertised {
        Advertised { tools: vec!["echo".into()], policy: serde_json::json!({"profile": "agent"}) }
    }
    fn shutdown(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}

impl Hands {
    fn finish(&self, n: u8, raw: &str) {
        let sink = self.sinks.lock().remove(&id(n)).expect("a running call");
        sink.finish(Ok(RawValue::from_string(raw.to_owned()).expect("raw")));
    }
}

#[derive(Default)]
struct Ears(Mutex<Vec<Told>>);

impl LinkObserver for Ears {
    fn step(&self, _: CallStep) {}
    fn told(&self, told: Told) {
        self.0.lock().push(told);
    }
}

fn id(n: u8) -> CallId {
    CallId::mint([n; 32])
}

/// A link that dials `at`, and what it needs.
struct Rig {
    link: LinkHandle,
    hands: Arc<Hands>,
    ears: Arc<Ears>,
    started: mpsc::UnboundedReceiver<CallId>,
    data: tempfile::TempDir,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.link.close();
    }
}

fn options(relay: &str, data: &std::path::Path) -> LinkOptions {
    LinkOptions {
        relay: relay.parse().expect("a url"),
        token: "secret-of-at-least-16".to_owned().into(),
        compat: Compat::Holdfast,
        features: Features::all(),
        instance: InstanceId::mint([9; 18]),
        ca_file: None,
        data_dir: data.to_owned(),
        proxies: Proxies::Direct,
    }
}

impl Rig {
    fn new(relay: &str, change: impl FnOnce(&mut LinkOptions)) -> Rig {
        let data = tempfile::tempdir().expect("a folder");
        let mut options = options(relay, data.path());
        change(&mut options);
        let (hands, ears) = (Arc::new(Hands::default()), Arc::new(Ears::default()));
        let (tell, started) = mpsc::unbounded_channel();
        *hands.started.lock() = Some(tell);
        let link = spawn(options, hands.clone(), ears.clone()).expect("a link");
        link.start();
        Rig { link, hands, ears, started, data }
    }

    async fn state(&self, wanted: LinkState) -> Arc<LinkSnapshot> {
        let mut status = self.link.status();
        soon(status.wait_for(|s| s.link.state == wanted)).await.expect("a running link").clone()
    }

    async fn cause(&self, part: &str) {
        let mut status = self.link.status();
        soon(status.wait_for(|s| s.link.cause.as_deref().is_some_and(|cause| cause.contains(part))))
            .await
            .expect("a running link");
    }

    async fn started(&mut self) -> CallId {
        soon(self.started.recv()).await.expect("a call")
    }
}

/// A relay that does what the test says.
struct Relay {
    listener: TcpListener,
    base: bool,
    tls: Option<tokio_rustls::TlsAcceptor>,
}

impl Relay {
    async fn new() -> Relay {
        Relay { listener: TcpListener::bind("127.0.0.1:0").await.expect("a port"), base: false, tls: None }
    }

    fn url(&self) -> String {
        format!("http://{}", self.listener.local_addr().expect("an address"))
    }

    async fn tcp(&self) -> TcpStream {
        soon(self.listener.accept()).await.expect("a connection").0
    }

    async fn accept(&self) -> Peer {
        let tcp = self.tcp().await;
        let stream: BoxStream = match &self.tls {
            Some(tls) => Box::new(soon(tls.accept(tcp)).await.expect("a TLS handshake")),
            None => Box::new(tcp),
        };
        let ws = soon(tokio_tungstenite::accept_async(stream)).await.expect("an upgrade");
        Peer { ws, n: 0, base: self.base }
    }

    async fn ready(&self, ids: &[CallId]) -> Peer {
        let mut peer = self.accept().await;
        peer.handshake(ids).await;
        peer
    }

    /// Answers the next request with these bytes and closes.
    async fn answer(&self, response: &str) -> String {
        let mut tcp = self.tcp().await;
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(soon(tcp.read_u8()).await.expect("a byte"));
        }
        tcp.write_all(response.as_bytes()).await.expect("written");
        tcp.shutdown().await.expect("closed");
        String::from_utf8(request).expect("text")
    }
}

/// One socket of the relay.
struct Peer {
    ws: WebSocketStream<BoxStream>,
    n: u64,
    base: bool,
}

impl Peer {
    async fn say(&mut self, frame: &RelayFrame) {
        let n = (!self.base && !matches!(frame, RelayFrame::Welcome(_))).then(|| {
            self.n += 1;
            self.n
        });
        self.ws.send(Message::text(frame.encode(n))).await.expect("sent");
    }

    async fn hear(&mut self) -> DaemonFrame {
        loop {
            match soon(self.ws.next()).await.expect("an open socket").expect("a message") {
                Message::Text(text) => match DaemonFrame::decode(&text).expect("valid").frame {
                    DaemonFrame::Heartbeat(beat) => {
                        self.say(&RelayFrame::Pong(wire::Pong { ts: beat.ts, in_use: false })).await
                    }
                    frame => return frame,
                },
                Message::Close(frame) => panic!("closed: {frame:?}"),
                _ => {}
            }
        }
    }

    /// The close frame, whatever comes before it.
    async fn closed(&mut self) -> Option<(u16, String)> {
        loop {
            match soon(self.ws.next()).await {
                Some(Ok(Message::Close(frame))) => return frame.map(|f| (f.code.into(), f.reason.to_string())),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }

    async fn close(mut self, code: u16, reason: &'static str) {
        self.ws.close(Some(CloseFrame { code: code.into(), reason: reason.into() })).await.expect("closed");
    }

    fn identity(&self) -> (String, String, Option<LinkRange>) {
        if self.base {
            (wire::BASE_SERVER.into(), wire::BASE_VERSION.into(), None)
        } else {
            ("holdfast".into(), "0.1.0".into(), Some(LinkRange::OURS))
        }
    }

    async fn handshake(&mut self, ids: &[CallId]) {
        let (server, version, link) = self.identity();
        let (s, v, features) = (server.clone(), version.clone(), link.map(|_| Features::all()));
        self.say(&RelayFrame::Welcome(wire::Welcome { server: s, version: v, link, features })).await;
        assert!(matches!(self.hear().await, DaemonFrame::Hello(_)));
        let grace_ms = link.map(|_| 120_000);
        let (s, v) = (server.clone(), version.clone());
        self.say(&RelayFrame::HelloAck(wire::HelloAck { server: s, version: v, link, grace_ms })).await;
        self.say(&RelayFrame::RelayProbe(wire::RelayProbe { id: ProbeId::mint([3; 32]) })).await;
        assert!(matches!(self.hear().await, DaemonFrame::RelayProbeResult(_)));
        self.say(&RelayFrame::ResumeCalls(wire::ResumeCalls { ids: ids.to_vec() })).await;
        if !self.base {
            assert!(matches!(self.hear().await, DaemonFrame::ResumeReport(_)));
        }
        self.say(&RelayFrame::ReadyAck(wire::ReadyAck { server, version, link })).await;
    }

    async fn call(&mut self, n: u8) {
        let call = wire::ToolCall {
            id: id(n),
            tool: "echo".into(),
            arguments: RawValue::from_string("{}".into()).expect("raw"),
            timeout_ms: 60_000,
            authorization: wire::Authorization {
                account_id: AccountId::mint([2; 18]),
                account_version: 1,
                role: Role::Owner,
                client: None,
                client_name: None,
            },
            progress: false,
        };
        self.say(&RelayFrame::ToolCall(call)).await;
    }

    async fn result(&mut self) -> (CallId, String) {
        match self.hear().await {
            DaemonFrame::ToolResult(result) => (result.id, result.outcome.expect("ok").get().to_owned()),
            other => panic!("{other:?}"),
        }
    }

    async fn ack(&mut self, n: u8) {
        self.say(&RelayFrame::ToolResultAck(wire::ToolResultAck { id: id(n), matched: true })).await;
    }
}
