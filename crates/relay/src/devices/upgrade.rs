//! `GET /daemon/ws`: which room a credential lets into.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use holdfast_core::wire::LINK_PATH;
use http::StatusCode;

use super::{DeviceRoom, Devices};
use crate::auth::DeviceAuthFailure;
use crate::socket::upgrade;

/// The route of the link.
pub fn router<S: Clone + Send + Sync + 'static>(devices: Arc<Devices>) -> Router<S> {
    Router::new().route(LINK_PATH, any(accept)).with_state(devices)
}

async fn accept(State(devices): State<Arc<Devices>>, request: Request) -> Response {
    upgrade::accept(request, |token| enter(&devices, token))
}

fn enter(devices: &Devices, token: &str) -> Result<Arc<DeviceRoom>, Box<Response>> {
    let presented = || (devices.shared.check)(token);
    let refused = |failure: DeviceAuthFailure| {
        Box::new(match devices.shared.identity.link {
            // A base daemon knows this text and no code.
            None => (StatusCode::UNAUTHORIZED, "Unauthorized daemon").into_response(),
            Some(_) => upgrade::refusal(StatusCode::UNAUTHORIZED, failure.code()),
        })
    };
    let device = presented().map_err(refused)?;
    let room = devices.room(&device);
    // Whoever was revoked between that look and the making of the room left nothing to be told by.
    presented().map_err(|failure| {
        devices.revoke(&device);
        refused(failure)
    })?;
    Ok(room)
}
