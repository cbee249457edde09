//! The one load client: HTTP/1.1 keep-alive, one connection per call in flight, every answer checked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// MCP 2026-07-28: each request stands alone.
    Stateless,
    /// MCP 2025-11-25: one session for all connections of a row.
    Session,
    /// The same bytes as 2026-07-28, sent to something that only echoes.
    Floor,
}

/// A server under load.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where it listens.
    pub address: SocketAddr,
    /// Path of its MCP endpoint.
    pub path: String,
    /// Bearer token, if it wants one.
    pub bearer: Option<String>,
    /// How it is spoken to.
    pub era: Era,
    session: Option<(String, String)>,
}

/// One measurement.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Median latency.
    pub p50: Duration,
    /// 99th percentile of the latency.
    pub p99: Duration,
    /// Calls done per second.
    pub per_second: f64,
    /// Calls done.
    pub calls: u64,
}

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    /// After this time.
    Time(Duration),
    /// After this many calls.
    Calls(u64),
}

impl Target {
    /// A target without a session yet.
    pub fn new(address: SocketAddr, path: &str, bearer: Option<String>, era: Era) -> Target {
        Target { address, path: path.into(), bearer, era, session: None }
    }

    /// Opens the session a 2025-11-25 target needs.
    pub async fn open(mut self) -> Result<Target> {
        if self.era != Era::Session {
            return Ok(self);
        }
        let mut connection = Connection::open(&self).await?;
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"holdfast-bench","version":"1"}}}"#;
        let (head, body) = connection.send(&self, hello.into(), None).await.context("initialize")?;
        ensure!(head.status.is_success(), "initialize: {}: {}", head.status, String::from_utf8_lossy(&body));
        let session = head.headers.get("mcp-session-id").context("no session id")?.to_str()?.to_owned();
        let text = String::from_utf8_lossy(&body);
        let version = text.split(r#""protocolVersion":""#).nth(1).and_then(|rest| rest.split('"').next());
        self.session = Some((session, version.context("no protocol version")?.to_owned()));
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        connection.send(&self, initialized.into(), None).await.context("initialized")?;
        Ok(self)
    }

    fn request(&self, body: Bytes, tool: Option<&str>) -> Result<http::Request<Full<Bytes>>> {
        let mut request = http::Request::post(self.path.as_str())
            .header(HOST, self.address.to_string())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(bearer) = &self.bearer {
            request = request.header(AUTHORIZATION, format!("Bearer {bearer}"));
        }
        if let Some((session, version)) = &self.session {
            request = request.header("mcp-session-id", session).header("mcp-protocol-version", version);
        } else if self.era != Era::Session {
            request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/call");
            if let Some(tool) = tool {
                request = request.header("mcp-name", tool);
            }
        }
        Ok(request.body(Full::new(body))?)
    }

    /// A `tools/call` of the tool `echo` as bytes.
    pub fn echo(&self, id: u64, arguments: &str) -> Bytes {
        let meta = match self.era {
            Era::Session => "",
            Era::Stateless | Era::Floor => {
                r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"holdfast-bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#
            }
        };
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{arguments}{meta}}}}}"#
        )
        .into()
    }
}

/// One keep-alive connection.
pub struct Connection(SendRequest<Full<Bytes>>);

impl Connection {
    /// Connects.
    pub async fn open(target: &Target) -> Result<Connection> {
        let stream =
            TcpStream::connect(target.address).await.with_context(|| format!("connecting to {}", target.address))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(2 * 1024 * 1024)
            .handshake(TokioIo::new(stream))
            .await?;
        tokio::spawn(connection);
        Ok(Connection(sender))
    }

    async fn send(
        &mut self,
        target: &Target,
        body: Bytes,
        tool: Option<&str>,
    ) -> Result<(http::response::Parts, Bytes)> {
        self.0.ready().await?;
        let (head, body) = self.0.send_request(target.request(body, tool)?).await?.into_parts();
        Ok((head, body.collect().await?.to_bytes()))
    }

    /// Sends a body and reads whatever is answered; its HTTP status.
    pub async fn any(&mut self, target: &Target, body: Bytes) -> Result<u16> {
        let (head, _) = self.send(target, body, Some("echo")).await?;
        Ok(head.status.as_u16())
    }

    /// One call of `echo`; `expect` must stand in the answer. Returns the time until the answer was there, and reads the rest of the
    /// response so that the connection can be used again.
    pub async fn call(&mut self, target: &Target, arguments: &str, expect: &str) -> Result<Duration> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let body = target.echo(NEXT.fetch_add(1, Ordering::Relaxed), arguments);
        self.0.ready().await?;
        let started = Instant::now();
        let response = self.0.send_request(target.request(body, Some("echo"))?).await?;
        ensure!(response.status().is_success(), "call: {}", response.status());
        let mut body = response.into_body();
        let mut read = BytesMut::new();
        let mut answered = None;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            read.extend_from_slice(&data);
            // Looking for the end of the message is cheap; looking through a megabyte at each frame is not.
            if answered.is_none() && read.trim_ascii_end().ends_with(b"}") {
                answered = Some(started.elapsed());
            }
        }
        let answered = answered.context("no answer")?;
        let text = std::str::from_utf8(&read)?;
        if !text.contains(expect) || text.contains(r#""isError":true"#) {
            bail!("wrong answer: {}", text.chars().take(300).collect::<String>());
        }
        Ok(answered)
    }
}

/// Keeps `in_flight` calls going until `until`, after `warm_up` calls that do not count.
pub async fn run(
    target: &Target,
    arguments: &str,
    expect: &str,
    in_flight: usize,
    warm_up: u64,
    until: Until,
) -> Result<Measured> {
    let mut connections = Vec::new();
    for _ in 0..in_flight {
        connections.push(Connection::open(target).await?);
    }
    let target = Arc::new(target.clone());
    let (arguments, expect): (Arc<str>, Arc<str>) = (arguments.into(), expect.into());
    for _ in 0..warm_up.div_ceil(in_flight as u64) {
        for connection in &mut connections {
            connection.call(&target, &arguments, &expect).await?;
        }
    }
    let left = Arc::new(AtomicU64::new(match until {
        Until::Calls(calls) => calls,
        Until::Time(_) => u64::MAX,
    }));
    let started = Instant::now();
    let deadline = match until {
        Until::Time(time) => started + time,
        Until::Calls(_) => started + Duration::from_secs(600),
    };
    let workers: Vec<_> = connections
        .into_iter()
        .map(|mut connection| {
            let (target, arguments, expect) = (target.clone(), arguments.clone(), expect.clone());
            let left = left.clone();
            tokio::spawn(async move {
                let mut times = Vec::with_capacity(4096);
                while Instant::now() < deadline {
                    if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_err() {
                        break;
                    }
                    times.push(connection.call(&target, &arguments, &expect).await?);
                }
                anyhow::Ok(times)
            })
        })
        .collect();
    let mut times = Vec::new();
    for worker in workers {
        times.extend(worker.await??);
    }
    let elapsed = started.elapsed();
    ensure!(!times.is_empty(), "no call ended in time");
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    Ok(Measured {
        p50: at(0.5),
        p99: at(0.99),
        per_second: times.len() as f64 / elapsed.as_secs_f64(),
        calls: times.len() as u64,
    })
}
