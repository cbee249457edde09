//! `tools/call` of 2026-07-28: one request, one answer, and leaving is cancelling.
//!
//! A fast call is one JSON document. A slow one, or one with progress, becomes an event stream, so that its connection
//! stays alive. Either way the call lives in the response: when that is dropped, the call is left.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use holdfast_core::id::KeptId;
use holdfast_core::limits;
use http::StatusCode;
use serde_json::value::RawValue;

use super::envelope::RpcId;
use super::lasting::{self, Form};
use super::reply::{self, COMMENT};
use super::revoked::Revoked;
use super::{Era, Mcp, outcome, progress, tasks};
use crate::devices::{CallEnd, CallEvent, CallHandle};

/// A call of a self-contained request, as long as its response is open.
pub(super) struct Waiting {
    pub mcp: Arc<Mcp>,
    pub id: RpcId,
    pub call: CallHandle,
    pub progress_token: Option<Box<RawValue>>,
    /// How the client takes the handle of a call that goes on.
    pub form: Form,
    pub revoked: Revoked,
}

enum Event {
    Progress(Vec<u8>),
    Answer(Vec<u8>),
    /// The call goes on without this request.
    Kept(KeptId),
}

impl Waiting {
    /// The response. `streams`: the client reads event streams.
    pub async fn respond(mut self, streams: bool) -> Response {
        if !streams {
            loop {
                let body = match self.next().await {
                    Event::Answer(body) => body,
                    Event::Kept(handle) => self.taken(&handle).await,
                    Event::Progress(_) => continue,
                };
                return reply::json(StatusCode::OK, body.into());
            }
        }
        let first = match tokio::time::timeout(limits::SSE_AFTER, self.next()).await {
            Ok(Event::Answer(body)) => return reply::json(StatusCode::OK, body.into()),
            Ok(Event::Kept(handle)) => return reply::json(StatusCode::OK, self.taken(&handle).await.into()),
            Ok(Event::Progress(data)) => reply::event(None, &data),
            Err(_) => COMMENT,
        };
        let events = futures_util::stream::unfold((Some(first), Some(self)), |(first, waiting)| async move {
            if let Some(first) = first {
                return Some((Ok::<_, Infallible>(first), (None, waiting)));
            }
            let mut waiting = waiting?;
            let (bytes, waiting) = match tokio::time::timeout(limits::SSE_COMMENT, waiting.next()).await {
                Ok(Event::Answer(data)) => (reply::event(None, &data), None),
                Ok(Event::Kept(handle)) => (reply::event(None, &waiting.taken(&handle).await), None),
                Ok(Event::Progress(data)) => (reply::event(None, &data), Some(waiting)),
                Err(_) => (COMMENT, Some(waiting)),
            };
            Some((Ok(bytes), (None, waiting)))
        });
        reply::event_stream(Body::from_stream(events))
    }

    /// The answer with the handle. Dropping it is not leaving any more.
    async fn taken(&self, handle: &KeptId) -> Vec<u8> {
        // Revoked while its record was being made: whoever stops the calls of that grant did not find it.
        if !self.revoked.auth.is_live(&self.revoked.principal.grant) {
            self.call.cancel();
        }
        match self.form {
            Form::Task => tasks::created(&self.mcp, &self.revoked.principal, &self.id, handle.as_str()).await,
            form => outcome::answer(&self.id, &lasting::in_progress(handle, form), Era::Stateless),
        }
    }

    async fn next(&mut self) -> Event {
        loop {
            let event = tokio::select! {
                biased;
                event = self.call.next() => event,
                () = self.revoked.next() => {
                    self.call.cancel();
                    continue;
                }
            };
            match (event, &self.progress_token) {
                (CallEvent::Progress(progress), Some(token)) => {
                    return Event::Progress(progress::notification(token, &progress));
                }
                (CallEvent::Progress(_), None) => {}
                (CallEvent::Kept(handle), _) => return Event::Kept(handle),
                (CallEvent::End(CallEnd { outcome, commit }), _) => {
                    let body = outcome::answer(&self.id, &outcome, Era::Stateless);
                    commit.done();
                    return Event::Answer(body);
                }
            }
        }
    }
}
