//! Hearing that a grant does not stand any more.

use std::sync::Arc;

use tokio::sync::watch;

use crate::{Auth, Principal};

/// One caller's grant, watched while something of it is open.
pub(super) struct Revoked {
    pub auth: Auth,
    pub principal: Arc<Principal>,
    /// Changes with every revocation.
    pub changes: watch::Receiver<()>,
}

impl Revoked {
    /// Resolves when grants were revoked and this one is among them; again at every later revocation.
    pub async fn next(&mut self) {
        while self.changes.changed().await.is_ok() {
            if !self.auth.is_live(&self.principal.grant) {
                return;
            }
        }
        // The endpoint is gone: nothing will be told any more.
        std::future::pending().await
    }
}
