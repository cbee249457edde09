//! Who may ask: `Host`, `Origin`, bearer, in this order; and what a browser may do with the answers.
//!
//! Without a bearer only the window's own files can be had, and a session for a code that `holdfast open` got with one.

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use holdfast_core::command::Secret;
use holdfast_core::limits;
use holdfast_relay::{Clock, SystemClock};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use super::routes::{Body, Refusal, read, refuse};
use super::{mint, session};

/// What a request is checked against.
struct Guard {
    token: String,
    port: u16,
    hosts: [String; 3],
    sessions: Mutex<session::Sessions>,
    clock: SystemClock,
}

/// Puts the guard around every route, unknown ones included.
pub(super) fn guarded(router: Router, token: &str, port: u16) -> Router {
    let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
    let (sessions, clock) = (Mutex::default(), SystemClock::default());
    let guard = Arc::new(Guard { token: token.into(), port, hosts, sessions, clock });
    let door = Router::new().route("/api/open", post(open)).route(SESSION, post(trade)).with_state(Arc::clone(&guard));
    bounded(router.merge(door)).layer(from_fn_with_state(guard, check))
}

/// Takes bodies of at most [`limits::API_BODY_MAX`].
pub(super) fn bounded(router: Router) -> Router {
    router.layer(DefaultBodyLimit::max(limits::API_BODY_MAX))
}

/// Where a code is traded.
const SESSION: &str = "/api/session";

/// An address that opens the window in a browser, once and within [`limits::OPEN_CODE_TTL`].
#[derive(Serialize, Deserialize)]
pub struct OpenAt {
    /// `http://127.0.0.1:PORT/#CODE`.
    pub url: String,
}

async fn open(State(guard): State<Arc<Guard>>) -> Result<Json<OpenAt>, Refusal> {
    let code = mint().map_err(no_random)?;
    guard.sessions.lock().offer(guard.clock.now().boot, &code);
    Ok(Json(OpenAt { url: format!("http://127.0.0.1:{}/#{code}", guard.port) }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trade {
    code: Secret,
}

#[derive(Serialize)]
struct Session {
    token: String,
}

async fn trade(State(guard): State<Arc<Guard>>, body: Body) -> Result<Json<Session>, Refusal> {
    let Trade { code: Secret(code) } = read(body)?;
    let token = mint().map_err(no_random)?;
    match guard.sessions.lock().trade(guard.clock.now().boot, &code, &token) {
        Ok(()) => Ok(Json(Session { token })),
        Err(session::Refusal::Wrong) => Err(refuse(
            StatusCode::UNAUTHORIZED,
            "authentication_failed",
            "this address was used already or is older than a minute; `holdfast open` makes a new one",
        )),
        Err(session::Refusal::TooMany) => Err(refuse(
            StatusCode::TOO_MANY_REQUESTS,
            "rate_limited",
            "too many wrong codes; wait a minute, then `holdfast open`",
        )),
    }
}

fn no_random(_: getrandom::Error) -> Refusal {
    refuse(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "no random bytes")
}

async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let mut response = match guard.refusal(request.method(), request.uri().path(), request.headers()) {
        Some((status, code, message)) => refuse(status, code, message).into_response(),
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// For answers that say nothing else; pages have a policy of their own.
const HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
];

impl Guard {
    fn refusal(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Option<(StatusCode, &'static str, &'static str)> {
        // A header that stands twice is nobody's honest request.
        let only = |name: HeaderName| {
            let mut all = headers.get_all(name).iter();
            let first = all.next();
            if all.next().is_some() { Some(Err(())) } else { first.map(|v| v.to_str().map_err(|_| ())) }
        };
        let known = |host: &str| self.hosts.iter().any(|h| h.eq_ignore_ascii_case(host));
        if !matches!(only(header::HOST), Some(Ok(host)) if known(host)) {
            return Some((StatusCode::FORBIDDEN, "host_refused", "the Host header is not this API's"));
        }
        match only(header::ORIGIN) {
            None => {}
            Some(Ok(origin)) if origin.strip_prefix("http://").is_some_and(known) => {}
            Some(_) => return Some((StatusCode::FORBIDDEN, "origin_refused", "a page from elsewhere may not ask")),
        }
        let open_to_all = !path.starts_with("/api") || (method == Method::POST && path == SESSION);
        if open_to_all {
            return None;
        }
        let token = match only(header::AUTHORIZATION) {
            Some(Ok(bearer)) => bearer.strip_prefix("Bearer ").unwrap_or_default(),
            _ => "",
        };
        if bool::from(token.as_bytes().ct_eq(self.token.as_bytes())) || self.sessions.lock().knows(token) {
            None
        } else {
            Some((StatusCode::UNAUTHORIZED, "authentication_failed", "the token in api.json is needed"))
        }
    }
}
