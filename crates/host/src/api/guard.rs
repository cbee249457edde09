//! Who may ask: `Host`, `Origin`, bearer, in this order; and what a browser may do with the answers.
//!
//! Without a bearer only the window's own files can be had, and a session for a code that `holdfast open` got with one.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use holdfast_core::command::Secret;
use holdfast_core::limits;
use holdfast_relay::{Clock, SystemClock};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::routes::{Body, Refusal, read, refuse};
use super::serve::Known;
use super::{channel, mint, session};

/// What a request is checked against.
struct Guard {
    token: String,
    port: u16,
    hosts: [String; 3],
    sessions: Mutex<session::Sessions>,
    clock: SystemClock,
    places: Places,
}

/// Puts the guard around every route, unknown ones included.
pub(super) fn guarded(router: Router, token: &str, port: u16) -> Router {
    let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
    let (sessions, clock) = (Mutex::default(), SystemClock::default());
    let places = Places::default();
    let guard = Arc::new(Guard { token: token.into(), port, hosts, sessions, clock, places });
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
    let mut response = match guard.admit(request.method(), request.uri().path(), request.headers()) {
        Err((status, code, message)) => refuse(status, code, message).into_response(),
        Ok(asker) => serve(&guard.places, asker, request, next).await.unwrap_or_else(IntoResponse::into_response),
    };
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Serves what the guard let pass: the body first, for which nobody keeps a place.
async fn serve(places: &Places, asker: Asker, request: Request, next: Next) -> Result<Response, Refusal> {
    if asker == Asker::Known
        && let Some(known) = request.extensions().get::<Known>()
    {
        known.set();
    }
    let request = arrived(request).await?;
    if asker == Asker::Anybody {
        return Ok(next.run(request).await);
    }
    let place = places.take(request.uri().path())?;
    Ok(next.run(request).await.map(|body| axum::body::Body::new(Held { body, _place: place })))
}

/// The request with all of its body.
async fn arrived(request: Request) -> Result<Request, Refusal> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, limits::API_BODY_MAX).collect();
    let status = match tokio::time::timeout(limits::API_BODY_TIMEOUT, body).await {
        Ok(Ok(body)) => return Ok(Request::from_parts(head, body.to_bytes().into())),
        Ok(Err(e)) if e.is::<LengthLimitError>() => StatusCode::PAYLOAD_TOO_LARGE,
        Ok(Err(_)) => StatusCode::BAD_REQUEST,
        Err(_) => StatusCode::REQUEST_TIMEOUT,
    };
    Err(refuse(status, "invalid_request", "the body is too large or did not arrive"))
}

/// Where commands go.
const COMMAND: &str = "/api/command";

/// How many requests with a token are served at once; the last places are for commands. Agents have their own: they wait for
/// long.
struct Places {
    all: Arc<Semaphore>,
    commands: Arc<Semaphore>,
    agents: Arc<Semaphore>,
}

impl Default for Places {
    fn default() -> Places {
        let places = |many| Arc::new(Semaphore::new(many));
        Places {
            all: places(limits::API_REQUESTS),
            commands: places(limits::API_COMMANDS_RESERVED),
            agents: places(limits::API_AGENTS),
        }
    }
}

impl Places {
    fn take(&self, path: &str) -> Result<OwnedSemaphorePermit, Refusal> {
        let all = if path.starts_with(channel::PATH) { &self.agents } else { &self.all };
        let place = Arc::clone(all).try_acquire_owned();
        let place =
            if path == COMMAND { place.or_else(|_| Arc::clone(&self.commands).try_acquire_owned()) } else { place };
        place.map_err(|_| refuse(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many requests are served already"))
    }
}

/// An answer that keeps its place until all of it is sent.
struct Held {
    body: axum::body::Body,
    _place: OwnedSemaphorePermit,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
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

/// Whose request passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asker {
    /// It showed a token.
    Known,
    /// It asks for what everybody on this machine may have.
    Anybody,
}

impl Guard {
    fn admit(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Asker, (StatusCode, &'static str, &'static str)> {
        // A header that stands twice is nobody's honest request.
        let only = |name: HeaderName| {
            let mut all = headers.get_all(name).iter();
            let first = all.next();
            if all.next().is_some() { Some(Err(())) } else { first.map(|v| v.to_str().map_err(|_| ())) }
        };
        let known = |host: &str| self.hosts.iter().any(|h| h.eq_ignore_ascii_case(host));
        if !matches!(only(header::HOST), Some(Ok(host)) if known(host)) {
            return Err((StatusCode::FORBIDDEN, "host_refused", "the Host header is not this API's"));
        }
        match only(header::ORIGIN) {
            None => {}
            Some(Ok(origin)) if origin.strip_prefix("http://").is_some_and(known) => {}
            Some(_) => return Err((StatusCode::FORBIDDEN, "origin_refused", "a page from elsewhere may not ask")),
        }
        let open_to_all = !path.starts_with("/api") || (method == Method::POST && path == SESSION);
        if open_to_all {
            return Ok(Asker::Anybody);
        }
        let token = match only(header::AUTHORIZATION) {
            Some(Ok(bearer)) => bearer.strip_prefix("Bearer ").unwrap_or_default(),
            _ => "",
        };
        if bool::from(token.as_bytes().ct_eq(self.token.as_bytes())) || self.sessions.lock().knows(token) {
            Ok(Asker::Known)
        } else {
            Err((StatusCode::UNAUTHORIZED, "authentication_failed", "the token in api.json is needed"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_that_wait_take_nobody_elses_places() {
        let places = Places::default();
        let waiting: Vec<_> = (0..limits::API_AGENTS).map(|_| places.take("/api/channel/ask").ok()).collect();
        assert!(waiting.iter().all(Option::is_some) && places.take("/api/channel/listen").is_err());
        let asking: Vec<_> = (0..limits::API_REQUESTS).map(|_| places.take("/api/status").ok()).collect();
        assert!(asking.iter().all(Option::is_some) && places.take("/api/status").is_err());
        assert!(places.take(COMMAND).is_ok(), "commands have a reserve");
        drop(waiting);
        assert!(places.take("/api/channel/ask").is_ok());
    }
}
