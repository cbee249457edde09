//! A scripted 1.2.10 daemon: what it does on one socket.

use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, http};

use super::Wire;

/// Upgrades on `<relay>/daemon/ws` with this token as a daemon does; a refusal is its status and body.
///
/// # Panics
/// If the relay cannot be reached.
pub async fn dial(relay: &str, token: &str) -> Result<Wire, (u16, String)> {
    let address = relay.trim_end_matches('/').strip_prefix("http://").expect("http://host:port");
    let mut request = format!("ws://{address}/daemon/ws").into_client_request().expect("a URL");
    let header = http::HeaderValue::from_str(token).expect("a token");
    request.headers_mut().insert("X-Bridge-Token", header);
    let stream = TcpStream::connect(address).await.expect("the relay listens");
    match client_async(request, stream).await {
        Ok((socket, _)) => Ok(Wire::new(socket)),
        Err(Error::Http(response)) => {
            let body = response.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            Err((response.status().as_u16(), body.into_owned()))
        }
        Err(error) => panic!("the upgrade failed: {error}"),
    }
}

/// A valid instance id that ends in this text.
pub fn instance(tail: &str) -> String {
    format!("daemon_{tail:0>24}")
}

/// The `hello` of the real daemon under the policy `full`.
pub fn hello(instance: &str, tools: &[&str]) -> Value {
    json!({
        "type": "hello",
        "instance_id": instance,
        "tools": tools,
        "policy": {
            "profile": "full", "origin": "default", "revision": 5, "allowWrite": true, "allowExec": true,
            "execMode": "shell", "unrestrictedPaths": true, "minimalEnv": false, "exposeAbsolutePaths": true,
        },
        "protocol_versions": ["2025-11-25"],
    })
}

impl Wire {
    /// As a daemon: goes through the handshake in the real daemon's order; the ids of `resume_calls`.
    ///
    /// # Panics
    /// If the relay deviates from the base wire's order.
    pub async fn become_ready(&mut self, instance: &str, tools: &[&str]) -> Vec<String> {
        self.send(hello(instance, tools)).await;
        for kind in ["welcome", "hello_ack"] {
            let who = self.expect(kind).await;
            assert_eq!((&who["server"], &who["version"]), (&json!("machine-bridge-mcp"), &json!("1.2.10")));
        }
        let probe = self.expect("relay_probe").await;
        self.send(json!({"type": "relay_probe_result", "id": probe["id"]})).await;
        let resumed = self.expect("resume_calls").await;
        self.expect("ready_ack").await;
        let ids = resumed["ids"].as_array().expect("ids").iter();
        ids.map(|id| id.as_str().expect("an id").to_owned()).collect()
    }

    /// As a daemon: answers a call with a result.
    pub async fn succeed(&mut self, call: &Value, result: Value) {
        self.send(json!({"type": "tool_result", "id": call["id"], "ok": true, "result": result})).await;
    }
}
