//! Errors in the words of RFC 6749, 7591 and 8707.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use crate::http::error::ApiError;
use crate::store::StoreError;

/// An error of the token, registration and revocation endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OAuthError(ApiError);

impl OAuthError {
    pub(super) fn new(code: &'static str, description: &str) -> Self {
        OAuthError(ApiError::new(StatusCode::BAD_REQUEST, code, description))
    }

    pub(super) fn invalid_request(description: &str) -> Self {
        OAuthError::new("invalid_request", description)
    }

    /// The one answer to every code or refresh token that does not count: which reason, is not told.
    pub(super) fn invalid_grant() -> Self {
        OAuthError::new("invalid_grant", "the code or token is wrong, used, expired or revoked")
    }
}

impl<E: Into<ApiError>> From<E> for OAuthError
where
    E: SourceOfFailure,
{
    fn from(error: E) -> Self {
        OAuthError(error.into())
    }
}

/// Failures that are passed on with their own status and code.
pub(super) trait SourceOfFailure {}
impl SourceOfFailure for ApiError {}
impl SourceOfFailure for StoreError {}
impl SourceOfFailure for rusqlite::Error {}

impl IntoResponse for OAuthError {
    fn into_response(self) -> Response {
        let ApiError { status, code, message, retry_after } = self.0;
        let body = Json(json!({"error": code, "error_description": message}));
        let mut response = (status, [(header::CACHE_CONTROL, "no-store")], body).into_response();
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
