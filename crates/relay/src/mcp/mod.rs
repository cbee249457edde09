//! The MCP endpoint: `/mcp` and `/mcp/{device}`, revisions 2025-11-25 (sessions, resumable streams) and 2026-07-28
//! (every request stands for itself).
//!
//! A *front* of our own reads the envelope, keeps the sessions and answers `tools/call`; payloads pass it raw. Behind it
//! rmcp answers everything else, always statelessly: a session is ours alone, so none of rmcp's session defects can reach
//! a client, and an idle session costs a few hundred bytes instead of a task and its channels.

mod admit;
mod arguments;
mod bootstrap;
mod call;
mod envelope;
mod front;
mod lasting;
mod listen;
mod operations;
mod outcome;
mod progress;
mod reply;
mod rest;
mod results;
mod revision;
mod revoked;
mod server_info;
mod session;
mod session_call;
mod stateless;
mod stream;
mod tasks;
mod tools;

use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use holdfast_core::limits;
use tokio::sync::{broadcast, watch};

pub use tools::ExtraTool;

use crate::AppState;
use rest::Rest;
use session::Sessions;
use tools::ToolSet;

/// The two ways of one endpoint. Which one a request means stands in the request itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    /// Up to 2025-11-25: `initialize`, a session, resumable streams; dropping a connection is not leaving.
    Sessions,
    /// 2026-07-28: every request stands for itself; dropping its connection is leaving.
    Stateless,
}

/// What the endpoint's requests share.
struct Mcp {
    state: Arc<AppState>,
    tools: Arc<ToolSet>,
    sessions: Sessions,
    rest: Rest,
}

impl Mcp {
    /// Boot time, which sessions and kept answers are measured in.
    fn now(&self) -> Duration {
        self.state.clock.now().boot
    }
}

/// The routes of the endpoint. Inside a tokio runtime.
pub fn router(state: Arc<AppState>) -> Router {
    let tools = Arc::new(ToolSet::new(&state.extra_tools));
    let revocations = state.auth.revocations();
    let (revoked, changes) = watch::channel(());
    let rest = Rest::new(&state, &tools, changes);
    let mcp = Arc::new(Mcp { state, tools, sessions: Sessions::default(), rest });
    tokio::spawn(keep_house(Arc::downgrade(&mcp), revocations, revoked));
    let methods = || {
        post(front::post).get(front::get).delete(front::delete).head(front::other_method).fallback(front::other_method)
    };
    Router::new().route("/mcp", methods()).route("/mcp/", methods()).route("/mcp/{device}", methods()).with_state(mcp)
}

/// Follows revocations and sweeps, as long as the endpoint is there.
async fn keep_house(mcp: Weak<Mcp>, mut revocations: broadcast::Receiver<crate::GrantId>, revoked: watch::Sender<()>) {
    let mut sweep = tokio::time::interval(limits::SESSION_SWEEP);
    // Grants may have ended while the relay was down.
    let mut told = true;
    let mut missed = false;
    loop {
        if told || missed {
            let Some(mcp) = mcp.upgrade() else { return };
            mcp.sessions.end_revoked(|grant| mcp.state.auth.is_live(grant));
            revoked.send_replace(());
            let stopped = mcp.state.devices.cancel_kept_of_revoked(|grant| mcp.state.auth.is_live(grant)).await;
            missed = stopped.is_err();
            if let Err(error) = stopped {
                tracing::warn!(%error, "promoted calls of a revoked grant could not be found; the next sweep looks again");
            }
        }
        told = tokio::select! {
            told = revocations.recv() => match told {
                // How many were missed does not matter: every session is looked at.
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => true,
                Err(broadcast::error::RecvError::Closed) => return,
            },
            _ = sweep.tick() => false,
        };
        if !told {
            let Some(mcp) = mcp.upgrade() else { return };
            mcp.sessions.sweep(mcp.now());
        }
    }
}
