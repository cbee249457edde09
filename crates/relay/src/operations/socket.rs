//! `GET /worker/ws`: which room a credential lets into.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use holdfast_core::wire::worker::WORKER_PATH;
use http::StatusCode;

use super::Operations;
use super::room::WorkerRoom;
use crate::auth::DeviceAuthFailure;
use crate::socket::upgrade;

/// The route of the worker's socket.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(operations: Operations) -> Router<S> {
    Router::new().route(WORKER_PATH, any(accept)).with_state(operations)
}

async fn accept(State(operations): State<Operations>, request: Request) -> Response {
    upgrade::accept(request, |token| enter(&operations, token))
}

fn enter(operations: &Operations, token: &str) -> Result<Arc<WorkerRoom>, Box<Response>> {
    let room = (operations.0.shared.check)(token)
        .and_then(|device| operations.room(&device).ok_or(DeviceAuthFailure::Revoked));
    room.map_err(|failure| Box::new(upgrade::refusal(StatusCode::UNAUTHORIZED, failure.code())))
}
