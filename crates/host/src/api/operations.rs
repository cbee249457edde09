//! Durable operations of this machine, for the window and the command line: passed on to the relay, which keeps them.
//!
//! The relay answers for this device alone, because the device's credential is what it is asked with. The credential
//! stays here: who asks has this API's own.

use axum::Router;
use axum::body::{Body as Stream, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use holdfast_core::wire::TOKEN_HEADER;
use secrecy::ExposeSecret as _;

use super::routes::{Body, Refusal, refuse};
use crate::http_client;
use crate::resident::Resident;

/// What goes along of a request, and of an answer.
const PASSED: [HeaderName; 7] = [
    header::CONTENT_TYPE,
    header::ACCEPT,
    header::CACHE_CONTROL,
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("x-next-offset"),
    HeaderName::from_static("x-end"),
    HeaderName::from_static("x-state"),
];

pub(super) fn router() -> Router<Resident> {
    Router::new().route("/api/operations", any(pass_on)).route("/api/operations/{*rest}", any(pass_on))
}

async fn pass_on(
    State(resident): State<Resident>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let body: Bytes =
        body.map_err(|e| refuse(e.status(), "invalid_request", "the body is too large or did not arrive"))?;
    let away = |why: &str| refuse(StatusCode::SERVICE_UNAVAILABLE, "unavailable", why);
    let running = resident.running().map_err(|e| away(&e.message))?;
    let caller = running.link.as_ref().and_then(|link| link.caller());
    let (relay, token, ca_file) = caller.ok_or_else(|| away("this machine is joined to no relay, or runs none"))?;
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    // A path with `..` would lead elsewhere at the relay, under this device's credential.
    let url = relay.join(path).ok().filter(|url| url.path() == uri.path());
    let url = url.ok_or_else(|| away("the relay's address cannot be used"))?;
    let client = http_client::to_relay(ca_file.as_deref()).await.map_err(|e| away(&e.to_string()))?;
    let request = client.request(method, url).headers(passed(&headers)).body(body);
    let answer = request.header(TOKEN_HEADER, token.expose_secret()).send().await;
    let answer = answer.map_err(|e| away(&format!("the relay cannot be asked: {}", http_client::root_cause(&e))))?;
    let (status, headers) = (answer.status(), passed(answer.headers()));
    Ok((status, headers, Stream::from_stream(answer.bytes_stream())).into_response())
}

fn passed(headers: &HeaderMap) -> HeaderMap {
    headers
        .iter()
        .filter(|(name, _)| PASSED.contains(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
