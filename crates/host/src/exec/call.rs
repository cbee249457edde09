//! One call on its way through the executor, and the small things every tool needs of it.

use std::time::Duration;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::id::AccountId;
use holdfast_core::limits;
use holdfast_core::policy::Policy;
use holdfast_core::wire::Authorization;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Outcome, Progress, Reporter};

/// A call that passed the gate.
pub(super) struct Call {
    pub(super) owner: Owner,
    /// What device and role allow together.
    pub(super) policy: Policy,
    pub(super) arguments: Box<RawValue>,
    /// Tools end soon after this, with [`stopped`] unless their work was done.
    pub(super) stop: CancellationToken,
    /// Somebody who listens to progress.
    pub(super) progress: Option<Reporter>,
    /// What was left of its budget when the work began.
    pub(super) budget: Duration,
}

/// To whom process sessions and kept results belong: an account and one of its clients.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Owner {
    account: AccountId,
    client: Option<String>,
}

impl Owner {
    pub(super) fn of(authorization: &Authorization) -> Owner {
        Owner { account: authorization.account_id.clone(), client: authorization.client.clone() }
    }
}

impl Call {
    /// Reads the arguments: an object with known fields of the right kinds.
    pub(super) fn arguments<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ToolError> {
        // serde would read a struct from an array too.
        if !self.arguments.get().trim_start().starts_with('{') {
            return Err(invalid("arguments must be an object"));
        }
        serde_json::from_str(self.arguments.get()).map_err(|e| {
            let text = e.to_string();
            // The position counts in a text the caller never wrote.
            invalid(text.split(" at line ").next().unwrap_or_default())
        })
    }

    /// Does work, and meanwhile reports to whoever listens; `say` gets the time since the start.
    pub(super) async fn reporting<T>(&self, work: impl Future<Output = T>, say: impl Fn(Duration) -> Progress) -> T {
        reporting(self.progress.as_ref(), work, say).await
    }

    /// Ends a long loop when nobody wants its result.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        if self.stop.is_cancelled() { Err(stopped()) } else { Ok(()) }
    }
}

/// Does work, and meanwhile reports; `say` gets the time since the start.
pub(super) async fn reporting<T>(
    progress: Option<&Reporter>,
    work: impl Future<Output = T>,
    say: impl Fn(Duration) -> Progress,
) -> T {
    let Some(progress) = progress else { return work.await };
    let start = Instant::now();
    let mut turn = tokio::time::interval_at(start + limits::PROGRESS_EVERY, limits::PROGRESS_EVERY);
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            _ = turn.tick() => progress(say(start.elapsed())),
        }
    }
}

/// The end of work that was told to stop; the dispatcher says why.
pub(super) fn stopped() -> ToolError {
    ToolError::new(Code::Cancelled, "stopped")
}

/// Arguments that cannot be used.
pub(super) fn invalid(what: impl Into<String>) -> ToolError {
    ToolError::new(Code::InvalidRequest, what)
}

/// A number within the schema's bounds, or its default.
pub(super) fn bounded(
    name: &str,
    given: Option<u64>,
    min: usize,
    max: usize,
    default: usize,
) -> Result<usize, ToolError> {
    match given.map(usize::try_from) {
        None => Ok(default),
        Some(Ok(n)) if (min..=max).contains(&n) => Ok(n),
        Some(_) => Err(invalid(format!("{name} must be a whole number from {min} to {max}"))),
    }
}

/// A text within the schema's bounds.
pub(super) fn bounded_text<'a>(name: &str, text: &'a str, min: usize, max: usize) -> Result<&'a str, ToolError> {
    if (min..=max).contains(&text.len()) {
        Ok(text)
    } else {
        Err(invalid(format!("{name} must have {min} to {max} bytes")))
    }
}

/// Encodes a result, once.
pub(super) fn encode(value: &impl Serialize) -> Outcome {
    to_raw_value(value).map_err(|_| ToolError::new(Code::InternalError, "the result cannot be written as JSON"))
}

/// An error of the operating system, as a code. The text names no path.
pub(crate) fn io_error(what: &str, error: &std::io::Error) -> ToolError {
    use std::io::ErrorKind as Kind;
    let code = match error.kind() {
        Kind::NotFound => Code::NotFound,
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => Code::PermissionDenied,
        Kind::AlreadyExists => Code::Conflict,
        Kind::StorageFull | Kind::QuotaExceeded => Code::StorageFull,
        Kind::InvalidInput | Kind::InvalidFilename | Kind::IsADirectory | Kind::NotADirectory => Code::InvalidRequest,
        _ => Code::ExecutionFailed,
    };
    ToolError::new(code, format!("{what}: {}", plain(error)))
}

/// The words for an error, without what a library added to them.
fn plain(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => std::io::Error::from_raw_os_error(code).to_string(),
        None => error.kind().to_string(),
    }
}

/// 24 random bytes behind a prefix: a name nobody guesses.
pub(super) fn random_name(prefix: &str) -> Result<String, ToolError> {
    use base64::Engine as _;
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(|_| ToolError::new(Code::InternalError, "no random numbers"))?;
    Ok(format!("{prefix}{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)))
}
