//! A client of the 2026-07-28 revision: stateless, one request and one answer, leaving means cancelling.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};

use super::answer::{lost, whole};
use super::{Answer, Lost};

/// The revision this client speaks.
const REVISION: &str = "2026-07-28";

/// A stateless client.
pub struct Modern {
    http: reqwest::Client,
    url: String,
    token: String,
    next_id: AtomicU64,
}

/// A request about to be sent.
pub struct ModernRequest<'a> {
    client: &'a Modern,
    method: String,
    params: Value,
    meta: Map<String, Value>,
    id: Value,
    headers: Vec<(String, String)>,
}

impl Modern {
    /// A client of this endpoint (`…/mcp`) with this bearer token.
    pub fn new(url: impl Into<String>, token: impl Into<String>) -> Modern {
        Modern { http: super::http(), url: url.into(), token: token.into(), next_id: AtomicU64::new(1) }
    }

    /// Any request.
    pub fn request(&self, method: &str, params: Value) -> ModernRequest<'_> {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": {"name": "holdfast-testkit", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let Value::Object(meta) = meta else { unreachable!("an object") };
        let id = json!(self.next_id.fetch_add(1, Ordering::Relaxed));
        let mut headers = vec![
            ("mcp-protocol-version".into(), REVISION.into()),
            ("mcp-method".into(), method.into()),
            ("accept".into(), "application/json, text/event-stream".into()),
        ];
        if let Some(name) = params["name"].as_str().or(params["taskId"].as_str()) {
            headers.push(("mcp-name".into(), name.into()));
        }
        ModernRequest { client: self, method: method.into(), params, meta, id, headers }
    }

    /// A tool call.
    pub fn call(&self, tool: &str, arguments: Value) -> ModernRequest<'_> {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Names of the tools listed.
    ///
    /// # Panics
    /// If the list does not come.
    pub async fn tools(&self) -> Vec<String> {
        let answer = self.request("tools/list", json!({})).send().await.expect("a list");
        let tools = answer.result()["tools"].as_array().expect("tools").clone();
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }
}

impl ModernRequest<'_> {
    /// Adds a `_meta` entry.
    #[must_use]
    pub fn meta(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// Asks for one execution however often this is sent.
    #[must_use]
    pub fn idempotency_key(self, key: &str) -> Self {
        self.meta("holdfast/idempotency-key", key)
    }

    /// Asks for progress.
    #[must_use]
    pub fn progress(self, token: &str) -> Self {
        self.meta("progressToken", token)
    }

    /// Declares that this client takes tasks.
    #[must_use]
    pub fn tasks(self) -> Self {
        let declared = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        self.meta("io.modelcontextprotocol/clientCapabilities", declared)
    }

    /// Uses this JSON-RPC id.
    #[must_use]
    pub fn id(mut self, id: impl Into<Value>) -> Self {
        self.id = id.into();
        self
    }

    /// Sends this header in place of the usual one, or none if the value is empty.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        if !value.is_empty() {
            self.headers.push((name.into(), value.into()));
        }
        self
    }

    /// Sends it and waits for the whole answer. Dropping the future closes the connection, which cancels the call.
    pub async fn send(self) -> Result<Answer, Lost> {
        let mut params = self.params;
        params["_meta"] = Value::Object(self.meta);
        let body = json!({"jsonrpc": "2.0", "id": self.id, "method": self.method, "params": params});
        let mut request = self.client.http.post(&self.client.url).bearer_auth(&self.client.token);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        whole(request.json(&body).send().await.map_err(lost)?).await
    }
}
