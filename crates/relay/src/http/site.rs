//! The two answers that need no state: what this is, and that it lives.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use holdfast_core::switchboard::Identity;
use serde_json::{Value, json};

use crate::state::AppState;

/// `GET /`: what this is and where its MCP endpoint stands.
pub(super) async fn root(State(state): State<Arc<AppState>>) -> Json<Value> {
    let Identity { server, version, .. } = &state.identity;
    Json(json!({"ok": true, "server": server, "version": version, "mcp": state.site.mcp_url()}))
}

/// `GET /healthz`: no secrets, no locks, no store.
pub(super) async fn healthz(State(state): State<Arc<AppState>>) -> Json<Value> {
    let Identity { server, version, .. } = &state.identity;
    Json(json!({"ok": true, "server": server, "version": version}))
}
