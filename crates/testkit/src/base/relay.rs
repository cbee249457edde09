//! A scripted 1.2.10 relay.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;

use super::{Frame, Wire};

/// A scripted 1.2.10 relay that accepts daemons one after the other.
pub struct BaseRelay {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
}

impl BaseRelay {
    /// Listens on a free port of 127.0.0.1 and lets daemons in that know this token.
    ///
    /// # Panics
    /// If it cannot listen.
    pub async fn start(token: &str) -> BaseRelay {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("its address");
        BaseRelay { listener, address, token: token.into() }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next daemon that dials with the right token; others get 401 `Unauthorized daemon`.
    ///
    /// # Panics
    /// If none comes within two minutes.
    pub async fn accept(&self) -> Wire {
        let patience = Duration::from_secs(120);
        self.accept_within(patience).await.unwrap_or_else(|| panic!("no daemon dialled within {patience:?}"))
    }

    #[expect(clippy::result_large_err, reason = "the callback's signature is tungstenite's")]
    /// The next daemon, or `None` when none came in time.
    pub async fn accept_within(&self, patience: Duration) -> Option<Wire> {
        tokio::time::timeout(patience, async {
            loop {
                let Ok((stream, _)) = self.listener.accept().await else { continue };
                let path = Mutex::new(String::new());
                let upgraded = accept_hdr_async(stream, |request: &Request, response: Response| {
                    *path.lock().expect("not poisoned") = request.uri().path().to_owned();
                    let given = request.headers().get("X-Bridge-Token").map(|value| value.as_bytes());
                    if given == Some(self.token.as_bytes()) {
                        return Ok(response);
                    }
                    let mut refused = ErrorResponse::new(Some("Unauthorized daemon".into()));
                    *refused.status_mut() = StatusCode::UNAUTHORIZED;
                    Err(refused)
                })
                .await;
                if let Ok(socket) = upgraded {
                    assert_eq!(*path.lock().expect("not poisoned"), "/daemon/ws");
                    return Wire::new(socket);
                }
            }
        })
        .await
        .ok()
    }
}

/// A valid call id that ends in this text.
pub fn call_id(tail: &str) -> String {
    format!("call_{tail:0>43}")
}

impl Wire {
    /// As a relay: goes through the handshake in the real relay's order, naming these ids in `resume_calls`; the daemon's `hello`.
    ///
    /// # Panics
    /// If the daemon deviates from the base wire's order.
    pub async fn prove(&mut self, resume: &[&str]) -> Value {
        let hello = self.prove_up_to_resume(resume).await;
        self.ready().await;
        hello
    }

    /// As a relay: the handshake up to and including `resume_calls`.
    ///
    /// # Panics
    /// If the daemon deviates from the base wire's order.
    pub async fn prove_up_to_resume(&mut self, resume: &[&str]) -> Value {
        let who = |kind: &str| json!({"type": kind, "server": "machine-bridge-mcp", "version": "1.2.10"});
        self.send(who("welcome")).await;
        let hello = self.expect("hello").await;
        self.send(who("hello_ack")).await;
        let probe = format!("probe_{}", "p".repeat(43));
        self.send(json!({"type": "relay_probe", "id": probe})).await;
        let proof = self.expect_past_life("relay_probe_result").await;
        assert_eq!(proof, json!({"type": "relay_probe_result", "id": probe}));
        self.send(json!({"type": "resume_calls", "ids": resume})).await;
        hello
    }

    /// As a relay: sends `ready_ack`.
    pub async fn ready(&mut self) {
        self.send(json!({"type": "ready_ack", "server": "machine-bridge-mcp", "version": "1.2.10"})).await;
    }

    /// As a relay: sends a tool call of an owner.
    pub async fn call(&mut self, id: &str, tool: &str, arguments: Value) {
        self.send(json!({
            "type": "tool_call", "id": id, "tool": tool, "arguments": arguments, "timeout_ms": 65_000,
            "authorization": {"account_id": "acct_00000000000000000001", "account_version": 1, "role": "owner"},
        }))
        .await;
    }

    /// As a relay: the next `tool_result`; heartbeats before it are answered as the real relay does.
    ///
    /// # Panics
    /// If something else comes, or nothing.
    pub async fn result(&mut self) -> Value {
        loop {
            match self.next().await {
                Frame::Json(message) if message["type"] == "tool_result" => return message,
                Frame::Json(message) if message["type"] == "heartbeat" => {
                    self.send(json!({"type": "pong", "ts": message["ts"]})).await;
                }
                other => panic!("expected a tool_result, got {other:?}"),
            }
        }
    }
}
