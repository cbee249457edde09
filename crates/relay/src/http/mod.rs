//! The HTTP surface: one router, one guard in front of it, and the listeners below it.

pub(crate) mod api;
pub(crate) mod bearer;
mod drill;
pub mod error;
mod guard;
pub(crate) mod json;
pub(crate) mod listen;
pub(crate) mod metrics;
mod site;
mod socket;
pub(crate) mod source;
pub(crate) mod tls;

pub use guard::{Base, RequestId};
pub use source::Source;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use crate::http::error::ApiError;
use crate::state::AppState;

/// Everything this relay answers.
pub(crate) fn app(state: &Arc<AppState>) -> Router {
    Router::new()
        .route("/", get(site::root))
        .route("/healthz", get(site::healthz))
        .route("/metrics", get(metrics::metrics))
        .merge(crate::oauth::router())
        .merge(api::router())
        .merge(crate::enroll::router())
        .merge(crate::operations::router())
        .with_state(state.clone())
        .merge(crate::devices::router(state.devices.clone()))
        .merge(crate::operations::socket_router(state.operations.clone()))
        .merge(crate::mcp::router(state.clone()))
        .fallback(async || ApiError::not_found())
        .method_not_allowed_fallback(async || ApiError::method_not_allowed())
        .layer(axum::middleware::from_fn_with_state(state.clone(), guard::guard))
}
