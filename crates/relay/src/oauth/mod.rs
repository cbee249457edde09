//! The authorization server: OAuth 2.1 for MCP clients, PKCE S256 only.
//!
//! What lasts (clients, grants, hashes of tokens) is in the store; what lives minutes (open requests, authorization codes) is in
//! memory and gone with the process, after which a client simply asks again.

mod authorize;
mod code;
mod consent;
mod error;
pub(crate) mod metadata;
mod page;
mod pair;
mod params;
mod redirect;
mod register;
mod revoke;
mod token;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use holdfast_core::id::AccountId;
use holdfast_core::limits;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

pub(crate) use authorize::approve;
pub(crate) use pair::sweep;

use crate::state::AppState;

/// What the authorization server keeps in memory.
#[derive(Debug, Default)]
pub(crate) struct OAuth {
    consents: Mutex<consent::Consents>,
    codes: Mutex<code::Codes>,
    approvals: watch::Sender<Vec<ApprovalView>>,
}

/// An authorization request that waits for a typed code, as a window or the command line shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalView {
    /// Names it when it is refused; it opens nothing.
    pub id: String,
    /// What the client calls itself. A claim.
    pub client: String,
    /// Where the browser goes afterwards.
    pub redirect_host: String,
    /// The account the page named.
    pub account: String,
    /// What is asked for.
    pub scopes: String,
    /// Until it lapses.
    pub lapses_in: Duration,
}

/// A request that was just approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct Approved {
    /// What the client calls itself.
    pub client: String,
    /// Where the browser goes afterwards.
    pub redirect_host: String,
    /// Whose rights it will use.
    pub account: String,
}

impl OAuth {
    /// Requests that wait for a typed code.
    pub(crate) fn approvals(&self, now: Duration) -> Vec<ApprovalView> {
        self.consents.lock().waiting(now)
    }

    /// The same, as they come and go.
    pub(crate) fn watch_approvals(&self) -> watch::Receiver<Vec<ApprovalView>> {
        self.approvals.subscribe()
    }

    /// Refuses a request that waits for a typed code.
    pub(crate) fn deny(&self, now: Duration, id: &str) -> Option<ApprovalView> {
        self.consents.lock().deny(now, id)
    }

    /// The account changed or is gone: what it had open is void.
    pub(crate) fn forget_account(&self, account: &AccountId) {
        self.consents.lock().forget(Some(account));
        self.codes.lock().forget(Some(account));
    }

    /// Everything open is void.
    pub(crate) fn forget_all(&self) {
        self.consents.lock().forget(None);
        self.codes.lock().forget(None);
    }
}

/// Tells those who watch what waits, until the relay stops. What lapses is told when it does.
pub(crate) async fn tell_approvals(state: Arc<AppState>) {
    let changed = state.oauth.consents.lock().changed();
    let mut told = Vec::new();
    loop {
        let now = state.clock.now().boot;
        let waiting = state.oauth.approvals(now);
        let look_again = waiting.iter().map(|view| view.lapses_in.min(limits::SHELL_TURN_MAX)).min();
        // A browser may name another account, or ask for a new code, under the same id.
        let marks: Vec<_> =
            waiting.iter().map(|view| (view.id.clone(), view.account.clone(), now + view.lapses_in)).collect();
        if marks != told {
            told = marks;
            state.oauth.approvals.send_replace(waiting);
        }
        tokio::select! {
            () = state.stop.cancelled() => {
                state.oauth.approvals.send_replace(Vec::new());
                return;
            }
            () = changed.notified() => {}
            () = tokio::time::sleep(look_again.unwrap_or_default()), if look_again.is_some() => {}
        }
    }
}

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    let server = get(metadata::authorization_server);
    let resource = get(metadata::protected_resource);
    Router::new()
        .route("/.well-known/oauth-authorization-server", server.clone())
        .route("/.well-known/oauth-authorization-server/{*path}", server.clone())
        .route("/.well-known/openid-configuration", server.clone())
        .route("/.well-known/openid-configuration/{*path}", server)
        .route("/.well-known/oauth-protected-resource", resource.clone())
        .route("/.well-known/oauth-protected-resource/{*path}", resource)
        .route("/oauth/register", post(register::register))
        .route("/oauth/authorize", get(authorize::show).post(authorize::act))
        .route("/oauth/token", post(token::token))
        .route("/oauth/revoke", post(revoke::revoke))
}
