//! Who may ask: `Host`, `Origin`, bearer, in this order; and what a browser may do with the answers.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use holdfast_core::limits;
use subtle::ConstantTimeEq as _;

use super::routes::refuse;

/// What a request is checked against.
struct Guard {
    bearer: String,
    hosts: [String; 3],
}

/// Puts the guard around every route, unknown ones included.
pub(super) fn guarded(router: Router, token: &str, port: u16) -> Router {
    let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
    let guard = Arc::new(Guard { bearer: format!("Bearer {token}"), hosts });
    router.layer(DefaultBodyLimit::max(limits::API_BODY_MAX)).layer(from_fn_with_state(guard, check))
}

async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let mut response = match guard.refusal(request.headers()) {
        Some((status, code, message)) => refuse(status, code, message).into_response(),
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

const HEADERS: [(&str, &str); 4] = [
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
];

impl Guard {
    fn refusal(&self, headers: &HeaderMap) -> Option<(StatusCode, &'static str, &'static str)> {
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
        let bearer = match only(header::AUTHORIZATION) {
            Some(Ok(bearer)) => bearer,
            _ => "",
        };
        if bool::from(bearer.as_bytes().ct_eq(self.bearer.as_bytes())) {
            None
        } else {
            Some((StatusCode::UNAUTHORIZED, "authentication_failed", "the token in api.json is needed"))
        }
    }
}
