//! What every request passes first: Host, Origin, source, body limits, its id, and the headers of every answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use holdfast_core::limits;
use holdfast_core::wire::TOKEN_HEADER;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Body as _;
use tower_http::timeout::TimeoutBody;

use super::error::ApiError;
use super::source::{Peer, source, trusted};
use crate::state::AppState;

/// Names one request in logs and in the answer's `x-request-id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId(pub u64);

impl RequestId {
    fn next() -> RequestId {
        static LAST: AtomicU64 = AtomicU64::new(0);
        RequestId(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// The origin to name ourselves by in the answer to this request; no slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base(pub Arc<str>);

/// Requests that carry a secret of their own, which no browser page can add.
fn carries_own_secret(request: &Request) -> bool {
    let path = request.uri().path();
    let as_device = path.starts_with(OPERATIONS) && request.headers().contains_key(TOKEN_HEADER);
    as_device || matches!(path, "/daemon/ws" | "/worker/ws" | "/api/enroll" | "/api/drill")
}

const OPERATIONS: &str = "/api/operations";

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// The guard itself.
pub(super) async fn guard(State(state): State<Arc<AppState>>, mut request: Request, next: Next) -> Response {
    let id = RequestId::next();
    // Without the query: an authorization request's state stands there.
    let logged =
        tracing::enabled!(tracing::Level::DEBUG).then(|| format!("{} {}", request.method(), request.uri().path()));
    let mut response = match admit(&state, &mut request, id) {
        Ok(Admitted::Preflight(answer)) => answer,
        Ok(Admitted::Request(cors)) => {
            let mut response = next.run(request).await;
            if let Some(origin) = cors {
                let headers = response.headers_mut();
                headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                headers.insert(
                    header::ACCESS_CONTROL_EXPOSE_HEADERS,
                    HeaderValue::from_static("www-authenticate, mcp-session-id, x-next-offset, x-end, x-state"),
                );
                headers.append(header::VARY, HeaderValue::from_static("Origin"));
            }
            response
        }
        Err(refusal) => {
            drain(request.into_body()).await;
            refusal.into_response()
        }
    };
    state.counters.answered(response.status());
    if let Some(request) = logged {
        tracing::debug!(id = id.0, request, status = response.status().as_u16(), "answered");
    }
    let headers = response.headers_mut();
    headers.insert(X_REQUEST_ID, HeaderValue::from(id.0));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    if state.site.is_https() {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    response
}

enum Admitted {
    /// Let through; the value is the foreign Origin that may read the answer.
    Request(Option<HeaderValue>),
    /// A CORS preflight, answered.
    Preflight(Response),
}

fn admit(state: &AppState, request: &mut Request, id: RequestId) -> Result<Admitted, ApiError> {
    let peer = request.extensions().get::<Peer>().copied();
    let peer = peer.ok_or_else(|| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "no peer"))?;
    if let Some(proxies) = state.site.proxies()
        && !trusted(peer.0.ip(), proxies)
        && !peer.0.ip().is_loopback()
    {
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "proxy_required",
            "this relay answers only through its proxy",
        ));
    }
    let source = source(peer.0.ip(), state.site.proxies().unwrap_or_default(), request.headers());
    let origin = single(request.headers(), header::ORIGIN)?.cloned();
    let mut cors = None;
    if carries_own_secret(request) {
        if origin.is_some() {
            return Err(forbidden_origin());
        }
    } else {
        let base = check_host(state, request)?;
        request.extensions_mut().insert(base);
        if let Some(origin) = origin {
            let allowed = origin.to_str().is_ok_and(|text| state.site.allows_origin(text));
            if !allowed {
                return Err(forbidden_origin());
            }
            cors = Some(origin);
        }
        if request.method() == Method::OPTIONS
            && let Some(origin) = &cors
        {
            return Ok(Admitted::Preflight(preflight(origin)));
        }
    }
    request.extensions_mut().insert(source);
    request.extensions_mut().insert(id);
    bound_body(state, request)?;
    Ok(Admitted::Request(cors))
}

fn forbidden_origin() -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "origin_not_allowed", "this origin may not talk to this relay")
}

/// The one value of a header; repeated, it is an attack or a defect.
fn single(headers: &HeaderMap, name: HeaderName) -> Result<Option<&HeaderValue>, ApiError> {
    let mut values = headers.get_all(&name).iter();
    let first = values.next();
    match values.next() {
        None => Ok(first),
        Some(_) => Err(ApiError::invalid(format!("{name} stands more than once"))),
    }
}

fn check_host(state: &AppState, request: &Request) -> Result<Base, ApiError> {
    let named = single(request.headers(), header::HOST)?.and_then(|v| v.to_str().ok());
    let authority = request.uri().authority().map(http::uri::Authority::as_str);
    // With an absolute form the two must agree, or a cache and we would see different hosts.
    let host = match (authority, named) {
        (Some(a), Some(b)) if !a.eq_ignore_ascii_case(b) => None,
        (a, b) => a.or(b),
    };
    match host {
        Some(host) if state.site.knows_host(host) => Ok(Base(state.site.origin_for(host))),
        _ => Err(ApiError::new(StatusCode::FORBIDDEN, "host_not_allowed", "this relay does not go by that name")),
    }
}

fn preflight(origin: &HeaderValue) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE, OPTIONS"));
    let allowed =
        "authorization, content-type, mcp-protocol-version, mcp-session-id, mcp-method, mcp-name, last-event-id";
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    response
}

/// Reads what a refused request still sends, within bounds: a client that is reset while it writes never reads why.
async fn drain(body: Body) {
    let mut body = Limited::new(body, limits::HTTP_DRAIN_MAX);
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    drop(tokio::time::timeout(limits::HTTP_BODY_IDLE, rest).await);
}

/// Bounds the body in size and in the time it may stand still.
fn bound_body(state: &AppState, request: &mut Request) -> Result<(), ApiError> {
    if request.body().is_end_stream() {
        return Ok(());
    }
    let max = match request.uri().path() {
        path if path.starts_with("/mcp") => state.body_max,
        path if path.starts_with(OPERATIONS) => limits::OPERATION_BODY_MAX,
        _ => limits::SMALL_BODY_MAX,
    };
    if request.body().size_hint().lower() > max as u64 {
        return Err(too_large());
    }
    let body = std::mem::take(request.body_mut());
    let body = TimeoutBody::new(limits::HTTP_BODY_IDLE, Limited::new(body, max));
    *request.body_mut() = Body::new(body.map_err(axum::Error::new));
    Ok(())
}

/// The answer to a body above its limit.
pub(crate) fn too_large() -> ApiError {
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "request_body_too_large", "the request's body is too large")
}
