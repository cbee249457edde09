//! A relay with one device, its owner's token, and what tests do with them.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::id::OperationId;
use holdfast_core::wire::worker::Report;
use holdfast_relay::people::Enrolled;
use holdfast_relay::{RelayOptions, start};
use holdfast_testkit::worker::FakeWorker;
use serde_json::{Value, json};

use crate::common::{Answer, Relay};

/// Longest any step may take; a test that waits longer is broken.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub struct Stage {
    pub relay: Relay,
    pub device: Enrolled,
    pub token: String,
}

impl Stage {
    pub async fn new() -> Stage {
        let (relay, device) = Relay::with_ada().await;
        let token = relay.token("ada").await;
        Stage { relay, device, token }
    }

    /// A recovered worker that has these operations.
    pub async fn worker_with(&self, has: Vec<Report>) -> FakeWorker {
        FakeWorker::live(self.relay.addr(), &self.device.token, 1, has).await
    }

    /// A recovered worker that has nothing.
    pub async fn worker(&self) -> FakeWorker {
        self.worker_with(Vec::new()).await
    }

    /// A socket on which nothing was said yet.
    pub async fn socket(&self, ledger: u8) -> FakeWorker {
        FakeWorker::open(self.relay.addr(), &self.device.token, ledger).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let path = format!("/api/operations{path}");
        tokio::time::timeout(PATIENCE, self.relay.get(&path, &[("authorization", &bearer)])).await.expect("an answer")
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let path = format!("/api/operations{path}");
        let headers = [("authorization", bearer.as_str())];
        tokio::time::timeout(PATIENCE, self.relay.post(&path, &body, &headers)).await.expect("an answer")
    }

    /// Starts `true`; its id.
    pub async fn start(&self) -> OperationId {
        self.start_with(json!({"request": exec()})).await
    }

    pub async fn start_with(&self, body: Value) -> OperationId {
        let answer = self.post("", body).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        id(&answer.json())
    }

    pub async fn view(&self, id: &OperationId) -> Value {
        let answer = self.get(&format!("/{id}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    pub async fn state(&self, id: &OperationId) -> String {
        self.view(id).await["state"].as_str().unwrap().to_owned()
    }

    /// Output of a stream from an offset, with where it goes on and whether that was all. Waits for it.
    pub async fn output(&self, id: &OperationId, stream: &str, offset: u64) -> (String, u64, bool) {
        let answer = self.get(&format!("/{id}/output?stream={stream}&offset={offset}&wait_ms=10000")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let next = answer.header("x-next-offset").unwrap().parse().unwrap();
        let end = answer.header("x-end").unwrap() == "true";
        (answer.body, next, end)
    }

    /// Output of a finished operation's `stdout` from an offset, as its device reads it.
    pub async fn bytes(&self, id: &OperationId, offset: usize) -> Vec<u8> {
        // Fails if another test has done it.
        drop(rustls::crypto::ring::default_provider().install_default());
        let path = format!("http://{}/api/operations/{id}/output?stream=stdout&offset={offset}", self.relay.addr());
        let answer =
            reqwest::Client::new().get(path).header("x-bridge-token", &self.device.token).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.bytes().await.unwrap().to_vec()
    }

    /// The relay goes away without a word, and comes back with what is on disk.
    pub async fn crash(self) -> Stage {
        self.crash_and(|| ()).await
    }

    /// The same, and something happens while it is away.
    pub async fn crash_and(self, meanwhile: impl FnOnce()) -> Stage {
        let Stage { relay: Relay { handle, clock, dir, port }, device, token } = self;
        drop(handle);
        meanwhile();
        // Its port may not be free yet.
        let mut options = RelayOptions::loopback(0, dir.path());
        options.clock = Arc::clone(&clock) as _;
        let handle = start(options).await.unwrap();
        Stage { relay: Relay { handle, clock, dir, port }, device, token }
    }
}

pub fn exec() -> Value {
    json!({"type": "exec", "command": {"argv": ["true"]}})
}

pub fn id(view: &Value) -> OperationId {
    OperationId::parse(view["id"].as_str().unwrap()).unwrap()
}

/// Polls what no event tells of.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let polled = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, polled).await.unwrap_or_else(|_| panic!("never: {what}"));
}
