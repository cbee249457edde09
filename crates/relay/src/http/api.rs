//! `/api/…`: what people and devices ask of the relay outside MCP.

use std::sync::Arc;

use axum::Router;

use crate::state::AppState;

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
}
