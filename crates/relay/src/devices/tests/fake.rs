//! A relay with one known device, and a daemon that says exactly what a test wants.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use holdfast_core::id::{AccountId, CallId, DeviceId, InstanceId};
use holdfast_core::policy::Role;
use holdfast_core::switchboard::{Identity, OpenCall};
use holdfast_core::wire::*;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::client::Request;

use crate::auth::DeviceAuthFailure;
use crate::clock::{Clock, ManualClock, SystemClock};
use crate::devices::{DeviceRoom, Devices, DevicesOptions, router};
use crate::store::{self, Store};

/// Longest any step of a test may take; a test that waits longer is broken.
const PATIENCE: Duration = Duration::from_secs(120);

pub const TOKEN: &str = "a-secret-of-one-device";

pub struct Relay {
    pub addr: SocketAddr,
    pub devices: Arc<Devices>,
    pub folder: Arc<TempDir>,
    pub store: Store,
}

pub fn device() -> DeviceId {
    DeviceId::mint([1; 12])
}

impl Relay {
    pub async fn start(identity: Identity) -> Relay {
        Relay::in_folder(identity, Arc::new(TempDir::new().expect("a folder"))).await
    }

    /// A relay whose time goes on only as the test says.
    pub async fn at(clock: Arc<ManualClock>, identity: Identity) -> Relay {
        Relay::open(identity, Arc::new(TempDir::new().expect("a folder")), clock).await
    }

    /// A relay that finds what an earlier one left there.
    pub async fn in_folder(identity: Identity, folder: Arc<TempDir>) -> Relay {
        Relay::open(identity, folder, Arc::new(SystemClock::default())).await
    }

    async fn open(identity: Identity, folder: Arc<TempDir>, clock: Arc<dyn Clock>) -> Relay {
        let store = store::open(folder.path()).expect("a store");
        let check = |token: &str| match token {
            TOKEN => Ok(device()),
            "revoked" => Err(DeviceAuthFailure::Revoked),
            _ => Err(DeviceAuthFailure::Unknown),
        };
        let options = DevicesOptions { identity, check: Arc::new(check), store: store.clone(), clock };
        let devices = Arc::new(Devices::open(options).expect("devices"));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let app = router(devices.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Relay { addr, devices, folder, store }
    }

    pub fn room(&self) -> Arc<DeviceRoom> {
        self.devices.room(&device())
    }

    pub fn request(&self) -> Request {
        let mut request = format!("ws://{}/daemon/ws", self.addr).into_client_request().expect("a request");
        request.headers_mut().insert(TOKEN_HEADER, TOKEN.parse().expect("a header"));
        request
    }

    pub async fn connect(&self) -> Daemon {
        let stream = TcpStream::connect(self.addr).await.expect("a connection");
        let (ws, _) = tokio_tungstenite::client_async(self.request(), stream).await.expect("an upgrade");
        Daemon { ws, n: None, sent: 0 }
    }

    /// A base daemon, ready.
    pub async fn base(&self, instance: u8) -> Daemon {
        let mut daemon = self.connect().await;
        daemon.hello(instance, None).await;
        assert_eq!(daemon.until("ready_ack").await.len(), 5);
        daemon
    }

    /// A Holdfast daemon with these features, ready; reports every named call as running.
    pub async fn holdfast(&self, instance: u8, features: Features) -> Daemon {
        let mut daemon = self.connect().await;
        daemon.hello(instance, Some(features)).await;
        daemon.until("ready_ack").await;
        daemon
    }
}

pub struct Daemon {
    pub ws: WebSocketStream<TcpStream>,
    n: Option<()>,
    sent: u64,
}

impl Daemon {
    pub async fn say(&mut self, frame: DaemonFrame) {
        self.sent += 1;
        let text = frame.encode(self.n.map(|()| self.sent));
        self.say_text(&text).await;
    }

    pub async fn say_text(&mut self, text: &str) {
        self.ws.send(Message::text(text)).await.expect("sent");
    }

    pub async fn hello(&mut self, instance: u8, features: Option<Features>) {
        self.n = features.filter(|f| f.has(Feature::Seq)).map(|_| ());
        let hello = Hello {
            instance_id: InstanceId::mint([instance; 18]),
            tools: vec!["run_process".into(), "list_dir".into()],
            policy: serde_json::json!({"profile": "agent", "allowWrite": true, "execMode": "direct"}),
            protocol_versions: vec![BASE_PROTOCOL.into()],
            link: features.map(|_| LinkRange::OURS),
            features,
            max_calls: features.map(|_| 64),
            version: None,
        };
        self.say(DaemonFrame::Hello(hello)).await;
    }

    /// The next message of any kind but pings; `None` at the end.
    pub async fn message(&mut self) -> Option<Message> {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.ws.next()).await.expect("no message came");
            match next {
                Some(Ok(Message::Ping(_))) => {}
                Some(Ok(message)) => return Some(message),
                Some(Err(_)) | None => return None,
            }
        }
    }

    pub async fn frame(&mut self) -> RelayFrame {
        match self.message().await {
            Some(Message::Text(text)) => RelayFrame::decode(&text).expect("a frame").frame,
            other => panic!("no frame: {other:?}"),
        }
    }

    /// Code and reason of the close, ignoring frames before it.
    pub async fn close(&mut self) -> (u16, String) {
        loop {
            match self.message().await {
                Some(Message::Close(Some(frame))) => return (frame.code.into(), frame.reason.as_str().into()),
                Some(Message::Text(_)) => {}
                other => panic!("no close: {other:?}"),
            }
        }
    }

    /// Answers probes and `resume_calls` until a frame of this type came. The types of all frames.
    pub async fn until(&mut self, last: &str) -> Vec<String> {
        let mut kinds = Vec::new();
        loop {
            let text = match self.message().await {
                Some(Message::Text(text)) => text,
                other => panic!("no {last}: {other:?}, after {kinds:?}"),
            };
            let kind: serde_json::Value = serde_json::from_str(&text).expect("json");
            let kind = kind["type"].as_str().expect("a type").to_owned();
            kinds.push(kind.clone());
            match RelayFrame::decode(&text).expect("a frame").frame {
                RelayFrame::RelayProbe(probe) => {
                    self.say(DaemonFrame::RelayProbeResult(RelayProbeResult { id: probe.id })).await;
                }
                RelayFrame::ResumeCalls(resume) if self.n.is_some() => {
                    let report = ResumeReport { running: resume.ids, ..ResumeReport::default() };
                    self.say(DaemonFrame::ResumeReport(report)).await;
                }
                _ => {}
            }
            if kind == last {
                return kinds;
            }
        }
    }

    /// The next call, ignoring acknowledgements and pongs.
    pub async fn call(&mut self) -> ToolCall {
        loop {
            if let RelayFrame::ToolCall(call) = self.frame().await {
                return call;
            }
        }
    }

    pub async fn ack(&mut self) -> ToolResultAck {
        loop {
            if let RelayFrame::ToolResultAck(ack) = self.frame().await {
                return ack;
            }
        }
    }

    pub async fn finish(&mut self, id: &CallId, raw: &str) {
        let outcome = Ok(RawValue::from_string(raw.into()).expect("json"));
        self.say(DaemonFrame::ToolResult(ToolResult { id: id.clone(), outcome })).await;
    }
}

pub fn call() -> OpenCall {
    OpenCall {
        tool: "run_process".into(),
        arguments: RawValue::from_string(r#"{"argv":["make"]}"#.into()).expect("json"),
        budget: Duration::from_secs(60),
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
    }
}

/// Waits until something holds, looking again after every change a test cannot await directly.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// What is logged on the thread that took its subscriber.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub fn subscriber(&self) -> impl tracing::Subscriber {
        let log = self.clone();
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || log.clone()).finish()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
