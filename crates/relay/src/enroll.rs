//! Enrolment of devices.

use std::sync::Arc;

use axum::Router;

use crate::state::AppState;

/// What enrolment keeps in memory.
#[derive(Debug, Default)]
pub(crate) struct Enrolment {}

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
}
