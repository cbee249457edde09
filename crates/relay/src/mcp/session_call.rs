//! A call of a 2025-11-25 session while it runs: its events go into its stream, whoever reads that.

use std::pin::Pin;
use std::sync::Arc;

use holdfast_core::limits;
use serde_json::value::RawValue;

use super::envelope::RpcId;
use super::lasting::{self, Form};
use super::session::Session;
use super::stream::{Stop, Stream};
use super::{Era, Mcp, outcome, progress};
use crate::devices::{CallEnd, CallEvent, CallHandle};

/// A call that runs in its client's request for a moment, and from then on, or when that request is dropped, in a task of
/// its own: a fast one costs no task and no second write, and leaving never cancels.
pub(super) struct Driven(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Driven {
    /// Gives the call [`limits::PRIMING_HOLD`] to end.
    pub async fn hold(mut self) {
        if let Some(running) = &mut self.0
            && tokio::time::timeout(limits::PRIMING_HOLD, running).await.is_ok()
        {
            self.0 = None;
        }
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        // A runtime that is ending takes no task; its calls end with it.
        if let (Some(running), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(running);
        }
    }
}

/// One running call.
pub(super) struct Running {
    pub mcp: Arc<Mcp>,
    pub session: Arc<Session>,
    pub stream: Arc<Stream>,
    pub id: RpcId,
    pub call: CallHandle,
    pub progress: Option<Box<RawValue>>,
    /// How the client takes the handle of a call that goes on.
    pub form: Form,
}

impl Running {
    /// Begins.
    pub fn driven(self) -> Driven {
        Driven(Some(Box::pin(self.run())))
    }

    /// Runs until the call's end stands in the session, or nobody may have it.
    async fn run(mut self) {
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
                CallEvent::Kept(handle) => {
                    let body = outcome::answer(&self.id, &lasting::in_progress(&handle, self.form), Era::Sessions);
                    match self.session.answer(&self.id, &self.stream, &body, self.mcp.now()) {
                        true => self.mcp.sessions.relieve(),
                        // Nobody may have the handle, so nobody waits.
                        false => self.call.cancel(),
                    }
                    return;
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    fn waiting() -> (oneshot::Sender<()>, oneshot::Receiver<()>, Driven) {
        let ((go, gone), (end, ended)) = (oneshot::channel(), oneshot::channel());
        let running = async move {
            let _ = gone.await;
            let _ = end.send(());
        };
        (go, ended, Driven(Some(Box::pin(running))))
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_whose_request_is_dropped_while_it_is_held_runs_on() {
        let (go, ended, driven) = waiting();
        let held = tokio::time::timeout(limits::PRIMING_HOLD / 2, driven.hold()).await;
        assert!(held.is_err());
        go.send(()).unwrap();
        assert_eq!(ended.await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_call_lets_its_answer_begin_after_the_hold_and_runs_on() {
        let (go, ended, driven) = waiting();
        let began = tokio::time::Instant::now();
        driven.hold().await;
        // The clock of the runtime counts in whole milliseconds.
        assert!((limits::PRIMING_HOLD..limits::PRIMING_HOLD * 2).contains(&began.elapsed()));
        go.send(()).unwrap();
        assert_eq!(ended.await, Ok(()));
    }
}
