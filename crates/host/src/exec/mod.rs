//! Runs tool calls: the seam the link talks to, and the executor of this machine behind it.
//!
//! The link knows only [`Executor`]: start, cancel, probe. Deadlines are the machine's (`holdfast_core::daemon`); the
//! executor's duty is that a cancelled call leaves no process behind. Nothing below this module logs arguments, paths,
//! environments or output.

mod ask;
pub(crate) mod awake;
mod bodies;
mod call;
mod dispatch;
mod env;
mod files;
pub(crate) mod git;
mod operation;
mod orient;
mod process;
mod results;
mod route;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use holdfast_core::code::{Code, ToolError};
pub use holdfast_core::daemon::{Advertised, CancelReason, Progress, Run};
use holdfast_core::id::CallId;
use holdfast_core::tools::Tool;
use serde_json::value::RawValue;

pub use ask::Told;
pub use bodies::{CallBody, Excerpt};
pub(crate) use call::io_error;
pub use dispatch::{ExecOptions, LocalExecutor, OpenError};
pub(crate) use env::Env;
pub(crate) use files::{Access, Spot, open_file};
pub(crate) use process::{End, HeadTail, Keep, Trees, end_escaped, own_environment, to_end};

/// How a call ended: its result as raw JSON, encoded once, or an error.
pub type Outcome = Result<Box<RawValue>, ToolError>;

/// Runs calls. Shared by the link and the local API; every method returns at once.
pub trait Executor: Send + Sync + 'static {
    /// Starts a call; its end arrives at the sink. Refusals (`busy`, `policy_denied`, `invalid_request` …) do too.
    fn start(&self, run: Run, sink: CallSink);

    /// Stops a call and kills its process tree. Its sink still finishes, after the tree is gone: with `timeout` for
    /// [`CancelReason::Timeout`], else `cancelled`, or with the result if the work was done by then. An unknown id is nothing.
    fn cancel(&self, id: &CallId, why: CancelReason);

    /// Sends a probe the way of a call, in a place no call can take.
    fn probe(&self, sink: ProbeSink);

    /// What `hello` says about this executor now.
    fn advertised(&self) -> Advertised;

    /// Refuses new calls, stops running ones, kills every process and process session, and waits for all of them.
    fn shutdown(&self) -> BoxFuture<'static, ()>;
}

/// News of a running call.
pub enum Update {
    /// It made progress.
    Progress(Progress),
    /// It ended; the last update of a call.
    Finished(Outcome),
}

impl fmt::Debug for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Update::Progress(progress) => write!(f, "Progress({progress:?})"),
            Update::Finished(outcome) => {
                write!(f, "Finished({})", outcome.as_ref().map_or_else(|error| error.code.as_str(), |_| "done"))
            }
        }
    }
}

/// Where a call's news goes. Non-blocking. Dropped unfinished, it reports `internal_error`.
pub struct CallSink {
    id: CallId,
    to: Option<Arc<dyn Fn(CallId, Update) + Send + Sync>>,
}

impl CallSink {
    /// A sink for one call. `to` must not block and may be shared by all calls of a link.
    pub fn new(id: CallId, to: Arc<dyn Fn(CallId, Update) + Send + Sync>) -> CallSink {
        CallSink { id, to: Some(to) }
    }

    /// Reports progress.
    pub fn progress(&self, progress: Progress) {
        if let Some(to) = &self.to {
            to(self.id.clone(), Update::Progress(progress));
        }
    }

    /// Something that reports progress beside the sink; what it says after the end is for nobody.
    fn reporter(&self) -> Option<Reporter> {
        let to = Arc::clone(self.to.as_ref()?);
        let id = self.id.clone();
        Some(Box::new(move |progress| to(id.clone(), Update::Progress(progress))))
    }

    /// Reports the end.
    pub fn finish(mut self, outcome: Outcome) {
        if let Some(to) = self.to.take() {
            to(self.id.clone(), Update::Finished(outcome));
        }
    }
}

type Reporter = Box<dyn Fn(Progress) + Send + Sync>;

impl Drop for CallSink {
    fn drop(&mut self) {
        if let Some(to) = self.to.take() {
            let lost = ToolError::new(Code::InternalError, "the tool ended without a result");
            to(self.id.clone(), Update::Finished(Err(lost)));
        }
    }
}

impl fmt::Debug for CallSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallSink").field(&self.id).finish()
    }
}

/// Hears that a probe went all the way. Dropped unheard, it proves nothing.
pub struct ProbeSink(Box<dyn FnOnce() + Send>);

impl ProbeSink {
    /// `proven` must not block.
    pub fn new(proven: impl FnOnce() + Send + 'static) -> ProbeSink {
        ProbeSink(Box::new(proven))
    }

    /// The executor accepts, starts and answers work.
    pub fn proven(self) {
        (self.0)();
    }
}

impl fmt::Debug for ProbeSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProbeSink")
    }
}

/// A tool that benches and tests bring along. The binaries register none.
#[derive(Clone)]
pub struct Extra {
    /// Its definition, used for policy gate and places as any other's.
    pub tool: Tool,
    /// Its work. Dropped when the call is cancelled.
    pub run: Arc<dyn Fn(Box<RawValue>) -> BoxFuture<'static, Outcome> + Send + Sync>,
}

impl fmt::Debug for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Extra").field(&self.tool.name).finish()
    }
}

#[cfg(test)]
mod tests;
