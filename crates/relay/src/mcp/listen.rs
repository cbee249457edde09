//! The standalone stream of a 2025-11-25 session: tells when the tools change, and otherwise only that it lives.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::Response;
use holdfast_core::limits;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Mcp;
use super::reply::{self, COMMENT};
use super::session::{Listener, Session};
use crate::Principal;
use crate::devices::Catalogue;

/// The id of its events. Nothing is kept for it: who comes back reads the list again, so a resumed one is a new one.
const EVENT_ID: &str = "listener";

/// Whether an event id is this stream's.
pub(super) fn is_listener(event_id: &str) -> bool {
    event_id == EVENT_ID
}

struct Open {
    changes: watch::Receiver<Arc<Catalogue>>,
    listener: watch::Receiver<Listener>,
    mine: Listener,
    stop: CancellationToken,
    first: bool,
}

/// Opens it. An earlier one of the same session ends.
pub(super) fn respond(mcp: &Mcp, session: &Session, principal: &Principal) -> Response {
    let (listener, mine) = session.listen();
    let changes = mcp.state.devices.room(&principal.device).catalogue_changes();
    let open = Open { changes, listener, mine, stop: mcp.state.stop.clone(), first: true };
    let events = futures_util::stream::unfold(open, |mut open| async {
        open.next().await.map(|bytes| (Ok::<_, Infallible>(bytes), open))
    });
    reply::event_stream(Body::from_stream(events))
}

impl Open {
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.first) {
            return Some(COMMENT);
        }
        let replaced = self.listener.wait_for(|current| *current != self.mine);
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            _ = replaced => None,
            changed = self.changes.changed() => {
                changed.ok()?;
                Some(reply::event(Some(EVENT_ID), br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#))
            }
            () = tokio::time::sleep(limits::SSE_COMMENT) => Some(COMMENT),
        }
    }
}
