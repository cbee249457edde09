//! From a request to a socket task.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use holdfast_core::wire::TOKEN_HEADER;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::{Room, pump};

/// Checks in the base wire's order: method, upgrade, (Origin, ours), and last by `enter`, which answers whom the presented
/// credential lets into which room. Any Host is accepted: the credential is something no browser page can add.
pub(crate) fn accept<R: Room>(
    mut request: Request,
    enter: impl FnOnce(&str) -> Result<Arc<R>, Box<Response>>,
) -> Response {
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
    let room = match enter(token.unwrap_or_default()) {
        Ok(room) => room,
        Err(refused) => return *refused,
    };
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

pub(crate) fn refusal(status: StatusCode, code: &str) -> Response {
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (status, no_store, axum::Json(serde_json::json!({ "error": code }))).into_response()
}
