//! Who is calling: the bearer token, and what a client without a good one is told.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};

use super::Mcp;
use crate::http::bearer::bearer;
use crate::{ApiError, AuthFailure, Base, Principal, ResourcePath};

/// The caller of a request. Looked at before the body is read.
pub(super) fn admit(mcp: &Mcp, parts: &Parts) -> Result<Arc<Principal>, Box<Response>> {
    let resource =
        ResourcePath::parse(parts.uri.path()).ok_or_else(|| Box::new(ApiError::not_found().into_response()))?;
    let refused = |failure: Option<AuthFailure>| Box::new(refusal(mcp, parts, &resource, failure));
    let bearer = bearer(parts).ok_or_else(|| refused(None))?;
    mcp.state.auth.check(bearer, &resource).map_err(|failure| refused(Some(failure)))
}

/// RFC 6750 and RFC 9728: where to get a token, and what was wrong with this one.
fn refusal(mcp: &Mcp, parts: &Parts, resource: &ResourcePath, failure: Option<AuthFailure>) -> Response {
    let origin = parts.extensions.get::<Base>().map_or_else(|| mcp.state.site.origin(), |base| &base.0);
    let metadata = format!("{origin}/.well-known/oauth-protected-resource{}", resource.to_path());
    let mut challenge = format!("Bearer resource_metadata=\"{metadata}\"");
    let error = match failure {
        None => ApiError::new(StatusCode::UNAUTHORIZED, "authentication_failed", "a bearer token is required"),
        Some(AuthFailure::InsufficientScope) => {
            challenge.push_str(", error=\"insufficient_scope\", scope=\"mcp\"");
            ApiError::new(StatusCode::FORBIDDEN, "authorization_denied", "the token lacks the scope mcp")
        }
        Some(failure) => {
            challenge.push_str(&format!(", error=\"invalid_token\", error_description=\"{failure}\""));
            ApiError::new(StatusCode::UNAUTHORIZED, "authentication_failed", failure.to_string())
        }
    };
    let mut response = error.into_response();
    if let Ok(challenge) = HeaderValue::from_str(&challenge) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}
