//! What comes back from an MCP endpoint: one JSON document, or a stream that ends with the answer.

use serde_json::Value;

use super::{Event, SseReader};

/// What ended a request's stream before its answer came. `last_event` is where a session client can resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The last event id seen on the stream.
    pub last_event: Option<String>,
    /// The transport's words, for a failing test's message.
    pub cause: String,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Notifications and requests that came before the answer on its stream.
    pub before: Vec<Value>,
    /// The answer's text, byte for byte.
    pub text: String,
    /// The same as JSON; null when the body was empty or no JSON.
    pub message: Value,
}

impl Answer {
    /// The JSON-RPC result.
    ///
    /// # Panics
    /// If it is an error, with the whole answer.
    pub fn result(&self) -> &Value {
        self.message.get("result").unwrap_or_else(|| panic!("no result: {self:?}"))
    }

    /// The JSON-RPC error's code.
    pub fn rpc_error(&self) -> Option<i64> {
        self.message["error"]["code"].as_i64()
    }

    /// The stable code of a tool's failure, or of a refused HTTP request.
    pub fn code(&self) -> Option<&str> {
        let tool = &self.message["result"]["structuredContent"]["error"]["code"];
        [tool, &self.message["error"]["data"]["code"], &self.message["code"], &self.message["error"]]
            .into_iter()
            .find_map(Value::as_str)
    }

    /// Whether a tool's failure may simply be tried again.
    pub fn retryable(&self) -> Option<bool> {
        self.message["result"]["structuredContent"]["error"]["retryable"].as_bool()
    }

    /// The structured result of a tool that succeeded.
    ///
    /// # Panics
    /// If it failed, with the whole answer.
    pub fn content(&self) -> &Value {
        let result = self.result();
        assert_ne!(result["isError"], true, "the tool failed: {self:?}");
        &result["structuredContent"]
    }
}

/// The open stream of one request, or a resumed one.
pub struct Events {
    status: u16,
    reader: SseReader,
    before: Vec<Value>,
}

impl Events {
    pub(super) fn of(response: reqwest::Response) -> Events {
        Events { status: response.status().as_u16(), reader: SseReader::new(response), before: Vec::new() }
    }

    /// HTTP status of the stream.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The last event id seen: where to resume.
    pub fn last_event(&self) -> Option<&str> {
        self.reader.last_event()
    }

    /// The next event, priming ones included.
    pub async fn next(&mut self) -> Result<Option<Event>, Lost> {
        self.reader.next().await
    }

    /// Waits for the answer at the end of this stream.
    pub async fn answer(mut self) -> Result<Answer, Lost> {
        while let Some(event) = self.reader.next().await? {
            let message: Value = serde_json::from_str(&event.data).unwrap_or_default();
            if message.get("result").is_some() || message.get("error").is_some() {
                return Ok(Answer { status: self.status, before: self.before, text: event.data, message });
            }
            if !message.is_null() {
                self.before.push(message);
            }
        }
        let last_event = self.reader.last_event().map(str::to_owned);
        Err(Lost { last_event, cause: "the stream ended without an answer".into() })
    }
}

/// Reads an answer that is JSON or a stream.
pub(super) async fn whole(response: reqwest::Response) -> Result<Answer, Lost> {
    let status = response.status().as_u16();
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/event-stream") {
        return Events::of(response).answer().await;
    }
    let text = response.text().await.map_err(lost)?;
    let message = serde_json::from_str(&text).unwrap_or_default();
    Ok(Answer { status, before: Vec::new(), text, message })
}

/// A transport error before any event.
pub(super) fn lost(error: reqwest::Error) -> Lost {
    Lost { last_event: None, cause: format!("{error:?}") }
}
