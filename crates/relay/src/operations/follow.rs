//! Output as it comes, as server-sent events: `output` (base64), `gap` (what was not kept), and `end` (the operation). The id
//! of an event is the offset after it, so that `Last-Event-ID` goes on where a lost connection stopped.

use std::convert::Infallible;
use std::sync::Arc;

use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream;
use holdfast_core::id::OperationId;
use holdfast_core::limits;
use holdfast_core::operation::{Stream, Streams};
use http::{HeaderName, HeaderValue, header};
use serde_json::json;
use tokio::sync::broadcast;

use super::{Party, Piece};
use crate::principal::GrantId;
use crate::state::AppState;

/// One reader that follows one stream.
pub(super) struct Follow {
    state: Arc<AppState>,
    party: Party,
    grant: Option<GrantId>,
    revocations: broadcast::Receiver<GrantId>,
    operation: OperationId,
    stream: Stream,
    offset: u64,
    ended: bool,
}

impl Follow {
    pub(super) fn new(
        state: Arc<AppState>,
        party: Party,
        grant: Option<GrantId>,
        operation: OperationId,
        stream: Stream,
        offset: u64,
    ) -> Follow {
        let revocations = state.auth.revocations();
        Follow { state, party, grant, revocations, operation, stream, offset, ended: false }
    }

    pub(super) fn respond(self) -> Response {
        let events = stream::unfold(self, async |mut follow| {
            let event = follow.next().await?;
            Some((Ok::<_, Infallible>(event), follow))
        });
        let headers = [
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
        ];
        (headers, Sse::new(events)).into_response()
    }

    /// `None` after the end, and when the relay stops or the grant is revoked.
    async fn next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        let from = Streams::from([(self.stream, self.offset)]);
        let operations = &self.state.operations;
        let (piece, wait) = (limits::CONTROL_FOLLOW_PIECE, limits::SSE_COMMENT);
        let reading = tokio::select! {
            reading = operations.read(&self.party, &self.operation, &from, piece, wait) => reading,
            () = revoked(&self.state, self.grant.as_ref(), &mut self.revocations) => return None,
            () = self.state.stop.cancelled() => return None,
        };
        let mut reading = match reading {
            Ok(reading) => reading,
            Err(error) => {
                self.ended = true;
                return Some(event("error", &json!({"code": error.code, "message": error.message})));
            }
        };
        match reading.pieces.remove(&self.stream)? {
            Piece::Gone { first_available } => {
                self.offset = first_available;
                let gap = event("gap", &json!({"first_available": first_available}));
                Some(gap.id(first_available.to_string()))
            }
            Piece::Bytes { bytes, end: true, .. } if bytes.is_empty() => {
                self.ended = true;
                Some(event("end", &reading.operation))
            }
            Piece::Bytes { bytes, .. } if bytes.is_empty() => Some(Event::default().comment("")),
            Piece::Bytes { bytes, next, .. } => {
                self.offset = next;
                Some(Event::default().event("output").id(next.to_string()).data(STANDARD.encode(bytes)))
            }
        }
    }
}

fn event(kind: &str, data: &impl serde::Serialize) -> Event {
    // One line: JSON has no raw line break.
    Event::default().event(kind).data(serde_json::to_string(data).unwrap_or_default())
}

/// Resolves when the grant does not stand any more.
async fn revoked(state: &AppState, grant: Option<&GrantId>, told: &mut broadcast::Receiver<GrantId>) {
    let Some(grant) = grant else { return std::future::pending().await };
    while state.auth.is_live(grant) {
        if matches!(told.recv().await, Err(broadcast::error::RecvError::Closed)) {
            return std::future::pending().await;
        }
    }
}
