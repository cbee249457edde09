//! Errors as JSON: `{"code", "message"}` with a stable code.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use crate::store::StoreError;

/// An error of the HTTP surface.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// Status of the answer.
    pub status: StatusCode,
    /// What programs match on.
    pub code: &'static str,
    /// One sentence for people. Never holds what the request said.
    pub message: String,
    /// Seconds after which trying again makes sense.
    pub retry_after: Option<u64>,
}

impl ApiError {
    /// An error without `Retry-After`.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        ApiError { status, code, message: message.into(), retry_after: None }
    }

    /// 404 `not_found`.
    pub fn not_found() -> Self {
        ApiError::new(StatusCode::NOT_FOUND, "not_found", "there is no such thing, or it is not yours")
    }

    /// 405 `method_not_allowed`; the router adds `Allow`.
    pub fn method_not_allowed() -> Self {
        ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path takes another method")
    }

    /// 400 `invalid_request`.
    pub fn invalid(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    /// 429 with `Retry-After` in seconds.
    pub fn too_many(code: &'static str, message: impl Into<String>, retry_after: u64) -> Self {
        ApiError { retry_after: Some(retry_after), ..ApiError::new(StatusCode::TOO_MANY_REQUESTS, code, message) }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let code = error.code().as_str();
        match error {
            StoreError::Full => ApiError::new(StatusCode::INSUFFICIENT_STORAGE, code, "the relay's disk is full"),
            StoreError::Busy | StoreError::Closed | StoreError::Slow | StoreError::ReadOnly { .. } => {
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code, "the relay cannot store this now")
            }
            StoreError::Newer | StoreError::Damaged | StoreError::Sqlite(_) => {
                tracing::error!(%error, "store");
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, code, "the relay failed to store this")
            }
        }
    }
}

impl From<rusqlite::Error> for ApiError {
    fn from(error: rusqlite::Error) -> Self {
        StoreError::from(error).into()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = Json(json!({"code": self.code, "message": self.message}));
        let mut response = (self.status, [(header::CACHE_CONTROL, "no-store")], body).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
