//! `/api/operations`: operations for programs, with a bearer token of the scope `operations`, or for a device with its own
//! credential.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use holdfast_core::id::OperationId;
use holdfast_core::limits;
use holdfast_core::operation::{Request, Stream, Streams};
use holdfast_core::wire::TOKEN_HEADER;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::follow::Follow;
use super::{OperationView, Order, Page, Party, Piece};
use crate::http::bearer::bearer;
use crate::http::error::ApiError;
use crate::http::json::Body;
use crate::principal::{AuthFailure, GrantId};
use crate::state::AppState;

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/operations", get(list).post(start))
        .route("/api/operations/cancel-session", post(cancel_session))
        .route("/api/operations/{id}", get(one))
        .route("/api/operations/{id}/input", post(input))
        .route("/api/operations/{id}/cancel", post(cancel))
        .route("/api/operations/{id}/output", get(output))
}

/// Who asks.
struct Caller {
    party: Party,
    /// The grant it asks by, unless it is a device.
    grant: Option<GrantId>,
}

impl Caller {
    /// A body may come slowly: a grant that was revoked meanwhile starts nothing.
    fn still(self, state: &AppState) -> Result<Party, ApiError> {
        match self.grant.is_none_or(|grant| state.auth.is_live(&grant)) {
            true => Ok(self.party),
            false => Err(ApiError::new(StatusCode::UNAUTHORIZED, "authentication_failed", "the grant was revoked")),
        }
    }
}

impl FromRequestParts<Arc<AppState>> for Caller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<AppState>) -> Result<Self, Response> {
        // Whoever presents a device's credential is judged by it alone.
        if let Some(credential) = parts.headers.get(TOKEN_HEADER) {
            let device = state.auth.device(credential.to_str().unwrap_or_default()).map_err(|failure| {
                let why = "the device's credential is not accepted";
                ApiError::new(StatusCode::UNAUTHORIZED, failure.code(), why).into_response()
            })?;
            return Ok(Caller { party: Party::device_itself(&device), grant: None });
        }
        let presented = bearer(parts).ok_or(None);
        let principal =
            presented.and_then(|token| state.auth.check_operations(token).map_err(Some)).map_err(refusal)?;
        let party = Party::of(&principal).map_err(ApiError::into_response)?;
        Ok(Caller { party, grant: Some(principal.grant.clone()) })
    }
}

/// RFC 6750: what was wrong with the token.
fn refusal(failure: Option<AuthFailure>) -> Response {
    let unauthorized = |why: &str| ApiError::new(StatusCode::UNAUTHORIZED, "authentication_failed", why);
    let (challenge, error) = match failure {
        None => ("Bearer", unauthorized("a bearer token is required")),
        Some(AuthFailure::InsufficientScope) => (
            "Bearer error=\"insufficient_scope\", scope=\"operations\"",
            ApiError::new(StatusCode::FORBIDDEN, "authorization_denied", "the token lacks the scope operations"),
        ),
        Some(failure) => ("Bearer error=\"invalid_token\"", unauthorized(&failure.to_string())),
    };
    let mut response = error.into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}

fn id(text: &str) -> Result<OperationId, ApiError> {
    OperationId::parse(text).map_err(|_| ApiError::not_found())
}

/// A query string, with our errors.
struct Asked<T>(T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let read = Query::<T>::try_from_uri(&parts.uri);
        read.map(|query| Asked(query.0)).map_err(|_| ApiError::invalid("the query is not as documented"))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    request: Request,
    session: Option<String>,
    key: Option<String>,
    ttl_ms: Option<u64>,
}

async fn start(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    Body(new): Body<New>,
) -> Result<(StatusCode, Json<OperationView>), ApiError> {
    let New { request, session, key, ttl_ms } = new;
    let order = Order { request, session, key, ttl: ttl_ms.map(Duration::from_millis) };
    let party = caller.still(&state)?;
    Ok((StatusCode::ACCEPTED, Json(state.operations.start(&party, order).await?)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only those that have not ended.
    #[serde(default)]
    living: bool,
    before: Option<String>,
    limit: Option<usize>,
}

#[derive(Serialize)]
struct Listed {
    operations: Vec<OperationView>,
}

async fn list(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    Asked(query): Asked<ListQuery>,
) -> Result<Json<Listed>, ApiError> {
    let before = query.before.as_deref().map(id).transpose()?;
    let page = Page { living: query.living, before, limit: query.limit };
    Ok(Json(Listed { operations: state.operations.list(&caller.party, page).await? }))
}

async fn one(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    Path(operation): Path<String>,
) -> Result<Json<OperationView>, ApiError> {
    Ok(Json(state.operations.get(&caller.party, &id(&operation)?).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    request: Request,
    key: Option<String>,
}

async fn input(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    Path(operation): Path<String>,
    Body(given): Body<Given>,
) -> Result<(StatusCode, Json<OperationView>), ApiError> {
    let party = caller.still(&state)?;
    let taken = state.operations.input(&party, &id(&operation)?, given.request, given.key).await?;
    Ok((StatusCode::ACCEPTED, Json(taken)))
}

async fn cancel(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    Path(operation): Path<String>,
) -> Result<Json<OperationView>, ApiError> {
    Ok(Json(state.operations.cancel(&caller.party, &id(&operation)?).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Session {
    session: String,
}

async fn cancel_session(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    Body(Session { session }): Body<Session>,
) -> Result<StatusCode, ApiError> {
    state.operations.cancel_session(&caller.party, &session).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputQuery {
    stream: Option<Stream>,
    offset: Option<u64>,
    /// Bytes of one answer.
    max: Option<usize>,
    /// How long to wait if there is nothing yet.
    #[serde(default)]
    wait_ms: u64,
    /// `1`: goes on as an event stream until the end.
    #[serde(default)]
    follow: u8,
}

const NEXT_OFFSET: HeaderName = HeaderName::from_static("x-next-offset");
const END: HeaderName = HeaderName::from_static("x-end");
const STATE: HeaderName = HeaderName::from_static("x-state");

/// Output from an offset: bytes, or with `follow=1` server-sent events.
async fn output(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    Path(operation): Path<String>,
    Asked(query): Asked<OutputQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let operation = id(&operation)?;
    let found = state.operations.get(&caller.party, &operation).await?;
    let stream = match query.stream.or(found.streams().first().copied()) {
        Some(stream) if found.streams().contains(&stream) => stream,
        _ => return Err(ApiError::invalid("this operation has no such stream")),
    };
    if query.follow == 1 {
        // The id of the last event is the offset after it.
        let resumed = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
        let offset = resumed.or(query.offset).unwrap_or(0);
        return Ok(Follow::new(state, caller.party, caller.grant, operation, stream, offset).respond());
    }
    let offset = query.offset.unwrap_or(0);
    let max = query.max.unwrap_or(limits::CONTROL_READ_MAX);
    let (from, wait) = (Streams::from([(stream, offset)]), Duration::from_millis(query.wait_ms));
    let mut reading = state.operations.read(&caller.party, &operation, &from, max, wait).await?;
    match reading.pieces.remove(&stream) {
        Some(Piece::Bytes { bytes, next, end }) => {
            let headers = [
                (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
                (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
                (NEXT_OFFSET, HeaderValue::from(next)),
                (END, HeaderValue::from_static(if end { "true" } else { "false" })),
                (STATE, HeaderValue::from_static(reading.operation.state.as_str())),
            ];
            Ok((headers, bytes).into_response())
        }
        Some(Piece::Gone { first_available }) => Ok(gone(first_available)),
        None => Err(ApiError::not_found()),
    }
}

/// 410 `offset_gone`.
fn gone(first_available: u64) -> Response {
    let body = serde_json::json!({
        "code": "offset_gone",
        "message": "this part of the output was not kept",
        "first_available": first_available,
    });
    (StatusCode::GONE, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}
