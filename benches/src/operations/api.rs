//! `holdfast serve` as it is shipped, and its API of operations.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::child::Running;

const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(5);

/// A relay with its own device and worker, one process.
pub struct Serve {
    /// The process.
    pub process: Running,
    /// Where it listens.
    pub address: SocketAddr,
    /// From its start until it said so.
    pub ready: Duration,
}

#[derive(Deserialize)]
struct Ready {
    mcp: String,
}

impl Serve {
    /// Starts it on what stands in this folder.
    pub async fn start(home: &Path) -> Result<Serve> {
        let began = Instant::now();
        let mut command = command(home, &["serve", "--json", "--listen", "127.0.0.1:0"])?;
        let workspace = home.join("workspace");
        std::fs::create_dir_all(&workspace)?;
        command.arg("--workspace").arg(workspace).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Running::start(&mut command).context("holdfast serve")?;
        let Ready { mcp } = process.hear().await?;
        let ready = began.elapsed();
        let address = url::Url::parse(&mcp)?.socket_addrs(|| None)?.first().copied().context("no address")?;
        Ok(Serve { process, address, ready })
    }

    /// A connection for an owner's token.
    pub async fn api(&self, home: &Path) -> Result<Api> {
        let created = command(home, &["token", "create", "--name", "bench", "--role", "owner"])?.output().await?;
        ensure!(created.status.success(), "token: {}", String::from_utf8_lossy(&created.stderr));
        Api::open(self.address, String::from_utf8(created.stdout)?.trim().to_owned()).await
    }
}

fn command(home: &Path, words: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?.with_file_name("holdfast"));
    command.args(words).env("HOLDFAST_SECRETS", "file");
    for folder in ["data-dir", "config-dir"] {
        let path = home.join(folder);
        std::fs::create_dir_all(&path)?;
        command.arg(format!("--{folder}")).arg(path);
    }
    Ok(command)
}

/// One keep-alive connection to `/api/operations`.
pub struct Api {
    address: SocketAddr,
    bearer: String,
    sender: SendRequest<Full<Bytes>>,
}

/// What is wanted of an operation's view.
#[derive(Debug, Deserialize)]
pub struct View {
    /// Which.
    pub id: String,
    /// How it stands.
    pub state: String,
    /// Whether its worker is there.
    pub worker_live: bool,
}

impl Api {
    /// Connects.
    pub async fn open(address: SocketAddr, bearer: String) -> Result<Api> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Api { address, bearer, sender })
    }

    /// The same token at another address.
    pub async fn again(&self, address: SocketAddr) -> Result<Api> {
        Api::open(address, self.bearer.clone()).await
    }

    async fn send(&mut self, method: Method, path: &str, body: String) -> Result<(StatusCode, HeaderMap, Bytes)> {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("/api/operations{path}"))
            .header(HOST, self.address.to_string())
            .header(AUTHORIZATION, format!("Bearer {}", self.bearer))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body.into()))?;
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        Ok((head.status, head.headers, body.collect().await?.to_bytes()))
    }

    /// Starts a program; answered when that is on disk.
    pub async fn exec(&mut self, argv: &[&str]) -> Result<View> {
        let body = json!({"request": {"type": "exec", "command": {"argv": argv}}});
        let (status, _, body) = self.send(Method::POST, "", body.to_string()).await?;
        ensure!(status == StatusCode::ACCEPTED, "{status}: {}", String::from_utf8_lossy(&body));
        Ok(serde_json::from_slice(&body)?)
    }

    /// How an operation stands.
    pub async fn view(&mut self, id: &str) -> Result<View> {
        let (status, _, body) = self.send(Method::GET, &format!("/{id}"), String::new()).await?;
        ensure!(status == StatusCode::OK, "{status}: {}", String::from_utf8_lossy(&body));
        Ok(serde_json::from_slice(&body)?)
    }

    /// Waits until an operation looks like this.
    pub async fn until(&mut self, id: &str, wanted: impl Fn(&View) -> bool) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let view = self.view(id).await?;
            if wanted(&view) {
                return Ok(());
            }
            ensure!(!["failed", "unknown", "expired", "cancelled"].contains(&&*view.state), "it became {view:?}");
            ensure!(Instant::now() < deadline, "it stays {view:?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Reads stdout to its end; returns its length, and how much of it came too late to be read.
    pub async fn read(&mut self, id: &str) -> Result<(u64, u64)> {
        let (mut at, mut gone) = (0, 0);
        loop {
            let path = format!("/{id}/output?offset={at}&wait_ms=20000");
            let (status, headers, body) = self.send(Method::GET, &path, String::new()).await?;
            if status == StatusCode::GONE {
                let next = serde_json::from_slice::<Value>(&body)?["first_available"].as_u64().context("no offset")?;
                gone += next - at;
                at = next;
                continue;
            }
            ensure!(status == StatusCode::OK, "{status}: {}", String::from_utf8_lossy(&body));
            at += body.len() as u64;
            if headers.get("x-end").is_some_and(|end| end == "true") {
                return Ok((at, gone));
            }
        }
    }
}
