//! A client of the 2025-11-25 revision: sessions, SSE answers, resumption.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::answer::{lost, whole};
use super::{Answer, Events, Lost};

/// The revision this client speaks.
const REVISION: &str = "2025-11-25";

/// An initialised session.
pub struct Session {
    http: reqwest::Client,
    url: String,
    token: String,
    id: String,
    initialized: Value,
    next_id: AtomicU64,
}

impl Session {
    /// Initialises a session at this endpoint (`…/mcp`).
    ///
    /// # Panics
    /// If the server refuses, with its answer.
    pub async fn open(url: impl Into<String>, token: impl Into<String>) -> Session {
        let mut session = Session {
            http: super::http(),
            url: url.into(),
            token: token.into(),
            id: String::new(),
            initialized: Value::Null,
            next_id: AtomicU64::new(1),
        };
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "holdfast-testkit", "version": "1"},
        });
        let response = session.post(&session.message(json!(0), "initialize", params)).await.expect("an answer");
        let id = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        let answer = whole(response).await.expect("a whole answer");
        session.id = id.unwrap_or_else(|| panic!("no session id: {answer:?}"));
        session.initialized = answer.result().clone();
        let status = session.notify("notifications/initialized", json!({})).await;
        assert_eq!(status, 202, "notifications/initialized is accepted");
        session
    }

    /// The session id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The result of `initialize`.
    pub fn initialized(&self) -> &Value {
        &self.initialized
    }

    /// The same session, used with another bearer token.
    #[must_use]
    pub fn stolen_by(&self, token: &str) -> Session {
        Session {
            http: self.http.clone(),
            url: self.url.clone(),
            token: token.into(),
            id: self.id.clone(),
            initialized: self.initialized.clone(),
            next_id: AtomicU64::new(1),
        }
    }

    fn message(&self, id: Value, method: &str, params: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    fn headers(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let request = request.bearer_auth(&self.token).header("accept", "application/json, text/event-stream");
        match self.id.is_empty() {
            true => request,
            false => request.header("mcp-session-id", &self.id).header("mcp-protocol-version", REVISION),
        }
    }

    /// Posts any JSON body within the session.
    pub async fn post(&self, body: &Value) -> Result<reqwest::Response, Lost> {
        let sent = self.headers(self.http.post(&self.url)).json(body).send().await;
        sent.map_err(lost)
    }

    /// A fresh JSON-RPC id.
    pub fn fresh_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts a request with this JSON-RPC id and leaves its stream open.
    pub async fn start(&self, id: impl Into<Value>, method: &str, params: Value) -> Result<Events, Lost> {
        Ok(Events::of(self.post(&self.message(id.into(), method, params)).await?))
    }

    /// Sends a request and waits for the whole answer.
    pub async fn request(&self, method: &str, params: Value) -> Result<Answer, Lost> {
        whole(self.post(&self.message(json!(self.fresh_id()), method, params)).await?).await
    }

    /// Calls a tool and waits for the whole answer.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Answer, Lost> {
        self.request("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Starts a tool call with this JSON-RPC id and leaves its stream open.
    pub async fn start_call(&self, id: impl Into<Value>, tool: &str, arguments: Value) -> Result<Events, Lost> {
        self.start(id, "tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Resumes a stream after this event.
    pub async fn resume(&self, last_event: &str) -> Result<Events, Lost> {
        let request = self.headers(self.http.get(&self.url)).header("last-event-id", last_event);
        Ok(Events::of(request.send().await.map_err(lost)?))
    }

    /// Sends a notification; the HTTP status.
    ///
    /// # Panics
    /// If no answer comes.
    pub async fn notify(&self, method: &str, params: Value) -> u16 {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.post(&body).await.expect("an answer").status().as_u16()
    }

    /// Cancels a request by notification.
    pub async fn cancel(&self, id: impl Into<Value>) -> u16 {
        self.notify("notifications/cancelled", json!({"requestId": id.into(), "reason": "the test says so"})).await
    }

    /// Deletes the session; the HTTP status.
    ///
    /// # Panics
    /// If no answer comes.
    pub async fn delete(&self) -> u16 {
        self.headers(self.http.delete(&self.url)).send().await.expect("an answer").status().as_u16()
    }
}
