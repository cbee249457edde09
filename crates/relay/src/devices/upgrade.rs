//! `GET /daemon/ws`: from a request to a socket task.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use holdfast_core::wire::{LINK_PATH, TOKEN_HEADER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::{Devices, pump};
use crate::auth::DeviceAuthFailure;

/// The route of the link. Any Host is accepted there: the device's credential is something no browser page can add.
pub fn router<S: Clone + Send + Sync + 'static>(devices: Arc<Devices>) -> Router<S> {
    Router::new().route(LINK_PATH, any(accept)).with_state(devices)
}

/// Checks in the base wire's order: method, upgrade, (Origin, ours), credential.
async fn accept(State(devices): State<Arc<Devices>>, mut request: Request) -> Response {
    if request.method() != Method::GET {
        let allow = [(header::ALLOW, HeaderValue::from_static("GET"))];
        return (allow, refusal(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed")).into_response();
    }
    let Some(key) = websocket_key(&request) else {
        return (StatusCode::UPGRADE_REQUIRED, "Expected Upgrade: websocket").into_response();
    };
    if request.headers().contains_key(header::ORIGIN) {
        return refusal(StatusCode::FORBIDDEN, "origin_not_allowed");
    }
    let token = request.headers().get(HeaderName::from_static(TOKEN_HEADER)).and_then(|value| value.to_str().ok());
    let presented = || (devices.shared.check)(token.unwrap_or_default());
    let refused = |failure: DeviceAuthFailure| match devices.shared.identity.link {
        // A base daemon knows this text and no code.
        None => (StatusCode::UNAUTHORIZED, "Unauthorized daemon").into_response(),
        Some(_) => refusal(StatusCode::UNAUTHORIZED, failure.code()),
    };
    let device = match presented() {
        Ok(device) => device,
        Err(failure) => return refused(failure),
    };
    let room = devices.room(&device);
    // Whoever was revoked between that look and the making of the room left nothing to be told by.
    if let Err(failure) = presented() {
        devices.revoke(&device);
        return refused(failure);
    }
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        if let Ok(io) = upgrade.await {
            pump::run(room, TokioIo::new(io)).await;
        }
    });
    switching(&key)
}

fn switching(key: &[u8]) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key)) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    response
}

/// The key of a well-formed WebSocket upgrade of HTTP/1.1.
fn websocket_key(request: &Request) -> Option<Vec<u8>> {
    let headers = request.headers();
    let upgrades = request.version() == Version::HTTP_11
        && names(headers, &header::CONNECTION, "upgrade")
        && names(headers, &header::UPGRADE, "websocket")
        && headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY)?;
    upgrades.then(|| key.as_bytes().to_vec())
}

fn names(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case(token))
}

fn refusal(status: StatusCode, code: &str) -> Response {
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (status, no_store, axum::Json(serde_json::json!({ "error": code }))).into_response()
}
