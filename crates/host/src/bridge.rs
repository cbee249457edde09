//! The loopback API for a window in this process: whole answers, and long ones line by line. The shell carries them.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use futures_util::StreamExt as _;
use holdfast_core::limits;
use http::{Request, Response, header};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use tokio::task::AbortHandle;

use crate::api;
use crate::resident::Resident;

/// The endpoints, and the streams a window follows. Clones are handles of the same one.
#[derive(Debug, Clone)]
pub struct Bridge {
    resident: Resident,
    streams: Arc<Mutex<HashMap<u32, AbortHandle>>>,
}

/// A whole answer.
#[derive(Debug, Clone, Serialize)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// JSON; a text that is none is a string.
    pub body: Value,
}

/// A part of a stream.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// A line of an event stream or of ndjson.
    Line(String),
    /// Nothing comes any more; a refusal stands here.
    End(Option<Answer>),
}

/// A request that could not be asked.
#[derive(Debug, Clone, Serialize, thiserror::Error)]
#[serde(transparent)]
#[error("{0}")]
pub struct NotAsked(String);

impl Bridge {
    /// A bridge to these engines.
    pub fn new(resident: Resident) -> Bridge {
        Bridge { resident, streams: Arc::default() }
    }

    /// Asks an endpoint.
    pub async fn request(&self, method: &str, path: &str, body: Option<Value>) -> Result<Answer, NotAsked> {
        Ok(whole(self.ask(method, path, body).await?).await)
    }

    /// Follows an endpoint: its lines go to `send`, which says whether anybody still listens, then its end. At most
    /// [`limits::WINDOW_STREAMS`] at once.
    pub async fn stream(
        &self,
        id: u32,
        path: &str,
        body: Option<Value>,
        send: impl Fn(Piece) -> bool + Send + Sync + 'static,
    ) -> Result<(), NotAsked> {
        let method = if body.is_some() { "POST" } else { "GET" };
        let response = self.ask(method, path, body).await?;
        let mut streams = self.streams.lock();
        streams.retain(|_, stream| !stream.is_finished());
        if streams.len() >= limits::WINDOW_STREAMS {
            return Err(NotAsked("the window follows too many streams".into()));
        }
        let following = tokio::spawn(follow(response, send));
        if let Some(before) = streams.insert(id, following.abort_handle()) {
            before.abort();
        }
        Ok(())
    }

    /// Ends a stream.
    pub fn unstream(&self, id: u32) {
        if let Some(stream) = self.streams.lock().remove(&id) {
            stream.abort();
        }
    }

    /// Ends all streams: the page that followed them is gone.
    pub fn page_gone(&self) {
        for (_, stream) in self.streams.lock().drain() {
            stream.abort();
        }
    }

    async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Result<Response<Body>, NotAsked> {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
        let request = request.body(body.into()).map_err(|e| NotAsked(e.to_string()))?;
        Ok(self.resident.request(request).await)
    }
}

async fn follow(response: Response<Body>, send: impl Fn(Piece) -> bool) {
    if !response.status().is_success() {
        send(Piece::End(Some(whole(response).await)));
        return;
    }
    let mut lines = Box::pin(api::lines(response.into_body().into_data_stream()));
    while let Some(line) = lines.next().await {
        // Between events, and a comment now and then: nothing that a page has to be woken for.
        let says_something = !line.is_empty() && !line.starts_with(':');
        if says_something && !send(Piece::Line(line)) {
            return;
        }
    }
    send(Piece::End(None));
}

async fn whole(response: Response<Body>) -> Answer {
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), limits::FRAME_MAX).await.unwrap_or_default();
    let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
    Answer { status, body }
}
