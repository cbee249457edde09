//! A stand with an eye on operations: starts them, waits for their end, reads what they wrote.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdfast_testkit::stand::{Stand, WireKind, until};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// How long an operation may stand still that should end soon, on a machine that does much else.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// See the module.
pub struct Desk {
    /// Relay, device, token.
    pub stand: Stand,
    http: reqwest::Client,
}

impl Desk {
    /// Everything up, the worker live.
    pub async fn start() -> Desk {
        let desk = Desk { stand: Stand::start(WireKind::Feature).await, http: holdfast_testkit::mcp::http() };
        desk.live().await;
        desk
    }

    /// Waits until the worker is live.
    pub async fn live(&self) {
        let wait = async {
            loop {
                let status = self.stand.home.run(&["status", "--json"]).await;
                let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
                if status["worker"]["lease"]["renewed"] == true {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("the worker becomes live");
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}/api/operations{path}", self.stand.relay.url);
        self.http.request(method, url).bearer_auth(&self.stand.token)
    }

    /// The relay's answer: its status and what it says.
    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let answer = self.request(Method::POST, path).json(&body).send().await.expect("an answer");
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    /// Starts an operation; its id.
    pub async fn begin(&self, request: Value) -> String {
        let (status, view) = self.post("", json!({"request": request})).await;
        assert_eq!(status, 202, "{view}");
        view["id"].as_str().expect("an id").to_owned()
    }

    /// Starts a shell script in the workspace; its id.
    pub async fn script(&self, script: &str) -> String {
        self.begin(json!({"type": "exec", "command": {"argv": ["/bin/sh", "-c", script]}})).await
    }

    /// How an operation stands; nothing while the relay is away.
    pub async fn view(&self, id: &str) -> Option<Value> {
        let answer = self.request(Method::GET, &format!("/{id}")).send().await.ok()?;
        assert!(answer.status().is_success() || answer.status().is_server_error(), "{}", answer.status());
        answer.json().await.ok()
    }

    /// Waits for a state, as long as something of the operation changes: much output takes long on a busy machine.
    pub async fn state(&self, id: &str, wanted: &[&str]) -> Value {
        let (mut last, mut since) = (None, Instant::now());
        loop {
            let view = self.view(id).await;
            if let Some(view) = &view
                && wanted.iter().any(|state| view["state"] == *state)
            {
                return view.clone();
            }
            if view != last {
                (last, since) = (view, Instant::now());
            }
            assert!(
                since.elapsed() < PATIENCE,
                "{id} does not become {wanted:?}: {last:?}\n{}",
                self.stand.device.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits for the end.
    pub async fn end(&self, id: &str) -> Value {
        self.state(id, &["completed", "failed", "cancelled", "expired", "unknown"]).await
    }

    /// All of a stream that the relay has.
    pub async fn output(&self, id: &str, stream: &str) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let path = format!("/{id}/output?stream={stream}&offset={}", all.len());
            let answer = self.request(Method::GET, &path).send().await.expect("an answer");
            assert_eq!(answer.status(), 200, "{stream} of {id} at {}", all.len());
            let bytes = answer.bytes().await.expect("its body");
            if bytes.is_empty() {
                return all;
            }
            all.extend_from_slice(&bytes);
        }
    }

    /// Reads streams while they grow, whatever dies meanwhile.
    pub fn reader(&self) -> Reader {
        let url = format!("{}/api/operations", self.stand.relay.url);
        Reader { http: self.http.clone(), url, token: self.stand.token.clone() }
    }

    /// What runs were started in the workspace: each leaves a line.
    pub fn started(&self, name: &str) -> usize {
        self.stand.journal().iter().filter(|line| **line == format!("started {name}")).count()
    }

    /// A file in the workspace.
    pub fn file(&self, name: &str) -> PathBuf {
        self.stand.home.workspace().join(name)
    }

    /// Folders of runs that the worker has.
    pub fn runs(&self) -> Vec<PathBuf> {
        let folders = std::fs::read_dir(self.stand.home.data().join("runs"));
        folders.map(|all| all.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
    }

    /// The runner of the only run there is, as its claim names it.
    pub async fn runner(&self) -> i32 {
        let mut found = None;
        let there = until(|| {
            found = self.runs().iter().find_map(|folder| runner_of(folder));
            found.is_some()
        });
        assert!(there.await, "no runner put its claim in place");
        found.expect("a runner")
    }
}

/// See [`Desk::reader`].
#[derive(Clone)]
pub struct Reader {
    http: reqwest::Client,
    url: String,
    token: String,
}

/// What came of reading a stream to its end.
#[derive(Debug, PartialEq, Eq)]
pub struct Read {
    /// How long it is.
    pub length: usize,
    /// How much of it was not kept, and told so.
    pub gone: usize,
}

impl Reader {
    /// Reads to the end of the operation and compares every byte with what its program writes.
    pub async fn compare(&self, id: &str, stream: &str, written: &[u8]) -> Read {
        let mut read = Read { length: 0, gone: 0 };
        let header = |answer: &reqwest::Response, name: &str| {
            answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        loop {
            let url = format!("{}/{id}/output?stream={stream}&offset={}&wait_ms=10000", self.url, read.length);
            let answer = self.http.get(url).bearer_auth(&self.token).send().await;
            match answer {
                Ok(answer) if answer.status() == 200 => {
                    let (next, end) = (header(&answer, "x-next-offset"), header(&answer, "x-end") == "true");
                    let Ok(bytes) = answer.bytes().await else { continue };
                    let expected = written.get(read.length..read.length + bytes.len());
                    assert!(expected == Some(&bytes[..]), "{stream} of {id} differs after byte {}", read.length);
                    read.length += bytes.len();
                    assert_eq!(next, read.length.to_string());
                    if end {
                        return read;
                    }
                }
                Ok(answer) if answer.status() == 410 => {
                    let Ok(gone) = answer.json::<Value>().await else { continue };
                    let first = gone["first_available"].as_u64().and_then(|first| usize::try_from(first).ok());
                    let first = first.expect("where output goes on");
                    read.gone += first - read.length;
                    read.length = first;
                }
                // The relay is away, or comes back.
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }
}

/// The runner of a run, if it put its claim in place.
pub fn runner_of(folder: &Path) -> Option<i32> {
    let claim: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("claim")).ok()?).ok()?;
    claim["runner"]["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok())
}

/// Bytes of every value, nowhere the same for long; another seed, other bytes.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    use rand::{RngCore as _, SeedableRng as _};
    let mut bytes = vec![0; length];
    rand::rngs::SmallRng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}
