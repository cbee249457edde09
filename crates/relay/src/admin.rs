//! What the owner of the data folder may ask, beside or without a running relay.

use std::sync::Arc;

use crate::state::AppState;

/// Administration of one relay. Whoever holds one is trusted fully.
#[derive(Debug, Clone)]
pub struct Admin {
    pub(crate) state: Arc<AppState>,
}
