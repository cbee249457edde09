//! A step that is tried again while the network is what fails.

use std::time::Duration;

use holdfast_core::code::Code;
use holdfast_core::operation::Failure;
use holdfast_core::worker::Retry;
use tokio_util::sync::CancellationToken;

use crate::exec::awake;

/// Why a try failed.
#[derive(Debug)]
pub(super) enum Broken {
    /// The network did, or the server for now: `why`, in a few words without an address. `progress` tells that something came.
    Network { why: String, progress: bool },
    /// Something another try does not mend.
    ForGood(Failure),
}

impl Broken {
    /// The network failed before anything came.
    pub(super) fn network(why: impl Into<String>) -> Broken {
        Broken::Network { why: why.into(), progress: false }
    }
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Broken {
        Broken::ForGood(failure)
    }
}

/// The tries of one step.
pub(super) struct Tries<'a> {
    stop: &'a CancellationToken,
    retry: Retry,
}

impl<'a> Tries<'a> {
    /// None was made yet. No try shall be made any more after `stop`; one under way ends by itself.
    pub(super) fn new(stop: &'a CancellationToken) -> Tries<'a> {
        Tries { stop, retry: Retry::new(rand::random()) }
    }

    /// Makes a try. Nothing means that the network failed and that it is time for another one; it fails when the try failed
    /// for good, or when the network has kept failing for [`holdfast_core::limits::SYNC_RETRY_FOR`].
    pub(super) async fn make<T>(
        &mut self,
        attempt: impl Future<Output = Result<T, Broken>>,
    ) -> Result<Option<T>, Failure> {
        let (why, took) = match awake::measured(attempt).await {
            (Ok(done), _) => return Ok(Some(done)),
            (Err(Broken::ForGood(failure)), _) => return Err(failure),
            (Err(Broken::Network { why, progress: true }), _) => {
                self.retry.progressed();
                (why, Duration::ZERO)
            }
            (Err(Broken::Network { why, .. }), took) => (why, took),
        };
        let Some(wait) = self.retry.failed(took) else {
            return Err(Failure {
                code: Code::NetworkError,
                message: format!("{why}, and so it stayed"),
                retryable: true,
            });
        };
        tracing::debug!(why, wait_ms = wait.as_millis() as u64, "a step of an operation failed on the network");
        tokio::select! {
            () = awake::pass(wait) => Ok(None),
            () = self.stop.cancelled() => Err(stopped()),
        }
    }
}

/// The end of an operation that was told to stop.
pub(super) fn stopped() -> Failure {
    Failure::new(Code::Cancelled, "stopped")
}

/// Work that may be left at any moment, until it is to stop.
pub(super) async fn or_stopped<T>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T, Broken>>,
) -> Result<T, Broken> {
    stop.run_until_cancelled(work).await.unwrap_or_else(|| Err(stopped().into()))
}
