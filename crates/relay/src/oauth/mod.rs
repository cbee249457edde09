//! The authorization server: OAuth 2.1 with PKCE, for MCP clients.

use std::sync::Arc;

use axum::Router;

use crate::state::AppState;

/// What the authorization server keeps in memory.
#[derive(Debug, Default)]
pub(crate) struct OAuth {}

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
}
