//! Calls that wait for the person at this machine: the waiting itself; `holdfast_core::ask` decides.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::ask::{AskRule, Asks, Gate};
use holdfast_core::code::{Code, ToolError};
use holdfast_core::id::CallId;
use holdfast_core::status::Question;
use holdfast_core::tools::{Effect, Tool};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::call::{reporting, stopped};
use super::{Progress, Reporter, Run, awake};
use crate::status_hub::unix_ms;

/// Where the questions that wait are told, each time they are others. Must not block and not ask back.
pub type Told = Arc<dyn Fn(Vec<Question>) + Send + Sync>;

pub(super) struct Asking {
    desk: Mutex<Desk>,
    told: Told,
}

struct Desk {
    asks: Asks,
    replies: HashMap<CallId, oneshot::Sender<bool>>,
}

/// One question; withdrawn on drop, so that no way out of a call leaves it.
struct Waiting<'a> {
    asking: &'a Asking,
    call: &'a CallId,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut desk = self.asking.desk.lock();
        desk.replies.remove(self.call);
        if desk.asks.withdraw(self.call) {
            self.asking.tell(&desk);
        }
    }
}

impl Asking {
    pub(super) fn new(rule: AskRule, told: Told) -> Asking {
        Asking { desk: Mutex::new(Desk { asks: Asks::new(rule), replies: HashMap::new() }), told }
    }

    pub(super) fn set_rule(&self, rule: AskRule) {
        self.desk.lock().asks.set_rule(rule);
    }

    /// Whether work with this effect would ask, if it were a call of this client.
    pub(super) fn would_ask(&self, effect: Effect, client: Option<&str>) -> bool {
        self.desk.lock().asks.would_ask(effect, client)
    }

    /// Whether that question waited.
    pub(super) fn answer(&self, question: &str, allow: bool, remember: bool) -> bool {
        let mut desk = self.desk.lock();
        let answered = desk.asks.answer(question, allow, remember);
        for call in &answered {
            if let Some(reply) = desk.replies.remove(call) {
                // A call that just ended has no use for it.
                let _ = reply.send(allow);
            }
        }
        if !answered.is_empty() {
            self.tell(&desk);
        }
        !answered.is_empty()
    }

    /// Lets a call through, at once or after a *yes*; returns how much of its budget that took.
    pub(super) async fn pass(
        &self,
        tool: &Tool,
        run: &Run,
        stop: &CancellationToken,
        progress: Option<&Reporter>,
    ) -> Result<Duration, ToolError> {
        let (lasting, reply) = match self.meet(tool, run)? {
            Some(asked) => asked,
            None => return Ok(Duration::ZERO),
        };
        let _waiting = Waiting { asking: self, call: &run.id };
        let began = Instant::now();
        let answered = async {
            tokio::select! {
                biased;
                () = stop.cancelled() => Err(stopped()),
                allowed = reply => if allowed == Ok(true) { Ok(()) } else { Err(refused()) },
                () = awake::pass(lasting) => Err(unanswered(lasting)),
            }
        };
        // Far below what the tool itself will report, because progress must grow.
        let say = |elapsed: Duration| Progress {
            progress: elapsed.as_secs_f64() / 1000.0,
            total: None,
            message: Some("waits for the person at the machine to allow it".into()),
        };
        reporting(progress, answered, say).await?;
        Ok(began.elapsed().min(lasting))
    }

    fn meet(&self, tool: &Tool, run: &Run) -> Result<Option<(Duration, oneshot::Receiver<bool>)>, ToolError> {
        let mut desk = self.desk.lock();
        match desk.asks.meet(unix_ms(), tool, run) {
            Gate::Open => Ok(None),
            Gate::Closed => Err(refused()),
            Gate::Full => {
                Err(ToolError::nothing_done(Code::Busy, "too many calls wait for the person at this machine"))
            }
            Gate::Asked(lasting) => {
                let (reply, replied) = oneshot::channel();
                desk.replies.insert(run.id.clone(), reply);
                self.tell(&desk);
                Ok(Some((lasting, replied)))
            }
        }
    }

    /// Under the lock, so that the last word told is the last word.
    fn tell(&self, desk: &Desk) {
        (self.told)(desk.asks.questions().cloned().collect());
    }
}

fn refused() -> ToolError {
    ToolError::new(Code::PolicyDenied, "the person at this machine said no; nothing was done")
        .with_details(&json!({"asked": true, "answer": "no"}))
}

fn unanswered(lasting: Duration) -> ToolError {
    let message = format!(
        "this machine asks its person before it runs this, and nobody answered within {} s; nothing was done",
        lasting.as_secs()
    );
    ToolError::nothing_done(Code::Unavailable, message).with_details(&json!({"asked": true, "answer": null}))
}
