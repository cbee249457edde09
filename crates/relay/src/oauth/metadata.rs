//! Discovery: RFC 8414 and RFC 9728, with the variants for paths.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use http::header;
use serde_json::json;

use crate::http::Base;
use crate::http::error::ApiError;
use crate::principal::{ResourcePath, Scopes};
use crate::state::AppState;

/// `/.well-known/oauth-authorization-server`, also under the paths and the OpenID name that clients try.
pub(super) async fn authorization_server(
    Extension(Base(base)): Extension<Base>,
    path: Option<Path<String>>,
) -> Result<Response, ApiError> {
    known(path)?;
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(server(&base))).into_response())
}

/// The authorization server's metadata, as of an origin.
pub(crate) fn server(base: &str) -> serde_json::Value {
    json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/oauth/authorize"),
        "token_endpoint": format!("{base}/oauth/token"),
        "registration_endpoint": format!("{base}/oauth/register"),
        "revocation_endpoint": format!("{base}/oauth/revoke"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "scopes_supported": Scopes::NAMES,
        "authorization_response_iss_parameter_supported": true,
    })
}

/// `/.well-known/oauth-protected-resource`, for `/mcp` and for `/mcp/{device}`.
pub(super) async fn protected_resource(
    State(state): State<Arc<AppState>>,
    Extension(Base(base)): Extension<Base>,
    path: Option<Path<String>>,
) -> Result<Response, ApiError> {
    let resource = known(path)?;
    let body = Json(json!({
        "resource": format!("{base}{}", resource.to_path()),
        "authorization_servers": [&*base],
        // offline_access belongs to the authorization server, not to the resource.
        "scopes_supported": ["mcp"],
        "bearer_methods_supported": ["header"],
        "resource_name": format!("{} MCP", state.identity.server),
    }));
    Ok(([(header::CACHE_CONTROL, "no-store")], body).into_response())
}

/// Which resource the path behind the well-known name means. Whether that device exists is not told.
fn known(path: Option<Path<String>>) -> Result<ResourcePath, ApiError> {
    match path {
        None => Ok(ResourcePath::default()),
        Some(Path(path)) => ResourcePath::parse(&format!("/{path}")).ok_or_else(ApiError::not_found),
    }
}
