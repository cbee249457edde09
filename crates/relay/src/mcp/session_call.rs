//! A call of a 2025-11-25 session while it runs: its events go into its stream, whoever reads that.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::envelope::RpcId;
use super::session::Session;
use super::stream::{Stop, Stream};
use super::{Era, Mcp, outcome, progress};
use crate::devices::{CallEnd, CallEvent, CallHandle};

/// One running call.
pub(super) struct Running {
    pub mcp: Arc<Mcp>,
    pub session: Arc<Session>,
    pub stream: Arc<Stream>,
    pub id: RpcId,
    pub call: CallHandle,
    pub progress: Option<Box<RawValue>>,
}

impl Running {
    /// Runs until the call's end stands in the session, or nobody may have it.
    pub async fn run(mut self) {
        loop {
            let event = tokio::select! {
                biased;
                event = self.call.next() => event,
                why = self.stream.stopped() => {
                    if why == Stop::Cancel {
                        self.call.cancel();
                    }
                    // Dropping the call is leaving it.
                    return;
                }
            };
            match event {
                CallEvent::Progress(told) => {
                    if let Some(token) = &self.progress {
                        self.stream.progress(&progress::notification(token, &told));
                    }
                }
                CallEvent::End(CallEnd { outcome, commit }) => {
                    let body = outcome::answer(&self.id, &outcome, Era::Sessions);
                    if self.session.answer(&self.id, &self.stream, &body, self.mcp.now()) {
                        commit.done();
                        self.mcp.sessions.relieve();
                    }
                    return;
                }
            }
        }
    }
}
