//! How an operation stands, and how it ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::code::{Code, ToolError};
use crate::limits;
use crate::status::UnixMs;

/// A stream of a run's output. Offsets count bytes from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output of a program.
    Stdout,
    /// Standard error of a program.
    Stderr,
    /// What a terminal shows.
    Pty,
}

impl Stream {
    /// All streams.
    pub const ALL: [Stream; 3] = [Stream::Stdout, Stream::Stderr, Stream::Pty];

    /// Its name on the wire and on disk.
    pub const fn as_str(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
            Stream::Pty => "pty",
        }
    }

    /// The stream of a name.
    pub fn parse(text: &str) -> Option<Stream> {
        Stream::ALL.into_iter().find(|stream| stream.as_str() == text)
    }
}

/// A number of bytes per stream: sizes, or offsets.
pub type Streams = BTreeMap<Stream, u64>;

/// How an operation stands, in the order of its life; the last five are ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Admitted by the relay; the worker has not confirmed it. Only the relay knows this state.
    Queued,
    /// In the worker's ledger.
    Received,
    /// About to start: whether it did is decided by the run's claim.
    Starting,
    /// It runs.
    Running,
    /// It ran to its end; the exit code may be any.
    Completed,
    /// It did not start, or was ended by something else than itself.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
    /// It never started in its time.
    Expired,
    /// It started, is over, and its outcome will not be known.
    Unknown,
}

impl State {
    /// All states.
    pub const ALL: [State; 9] = [
        State::Queued,
        State::Received,
        State::Starting,
        State::Running,
        State::Completed,
        State::Failed,
        State::Cancelled,
        State::Expired,
        State::Unknown,
    ];

    /// Whether nothing changes it any more.
    pub const fn is_final(self) -> bool {
        matches!(self, State::Completed | State::Failed | State::Cancelled | State::Expired | State::Unknown)
    }

    /// Its name in stores and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Queued => "queued",
            State::Received => "received",
            State::Starting => "starting",
            State::Running => "running",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
            State::Expired => "expired",
            State::Unknown => "unknown",
        }
    }

    /// The state of a name.
    pub fn parse(text: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Exit {
    /// Its exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// When it started, in milliseconds since 1970 by the device's calendar.
    #[serde(default)]
    pub started_at: UnixMs,
    /// When it ended, the same way.
    #[serde(default)]
    pub ended_at: UnixMs,
}

/// Why an operation failed or was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What happened.
    pub code: Code,
    /// One sentence for people, at most [`crate::limits::ERROR_MESSAGE_MAX`] characters on the wire.
    pub message: String,
    /// `true` means: nothing was done, the same may be asked again.
    #[serde(default)]
    pub retryable: bool,
}

impl Failure {
    /// A failure after which the same must not simply be asked again.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), retryable: false }
    }

    /// A failure before which nothing was done.
    pub fn nothing_done(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), retryable: true }
    }

    /// The same within its bound, whoever said it.
    #[must_use]
    pub fn bounded(mut self) -> Failure {
        cut(&mut self.message);
        self
    }
}

fn cut(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(limits::ERROR_MESSAGE_MAX) {
        text.truncate(end);
    }
}

impl From<ToolError> for Failure {
    fn from(ToolError { code, message, retryable, .. }: ToolError) -> Failure {
        Failure { code, message, retryable }
    }
}

/// The end of an operation: exactly one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Outcome {
    /// It ran to its end.
    Completed {
        /// Of a program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
        /// Of anything else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
    },
    /// It failed.
    Failed {
        /// Why.
        error: Failure,
        /// Whether it had started.
        started: bool,
        /// A late exit status or another trace; never the result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Value>,
    },
    /// Somebody cancelled it.
    Cancelled {
        /// Whether it had started.
        started: bool,
        /// How the program ended, if it had started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
    },
    /// It never started in its time.
    Expired {},
    /// It started, is over, and its outcome will not be known.
    Unknown {
        /// Why nobody knows, in one sentence.
        reason: String,
        /// What is known all the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Value>,
    },
}

impl Outcome {
    /// The state an operation with this end is in.
    pub const fn state(&self) -> State {
        match self {
            Outcome::Completed { .. } => State::Completed,
            Outcome::Failed { .. } => State::Failed,
            Outcome::Cancelled { .. } => State::Cancelled,
            Outcome::Expired {} => State::Expired,
            Outcome::Unknown { .. } => State::Unknown,
        }
    }

    /// What is known all the same of an end that nobody knows, in a few words for people: from its evidence, whatever that is.
    pub fn known(&self) -> Option<String> {
        let Outcome::Unknown { evidence: Some(evidence), .. } = self else { return None };
        let mut known = Vec::new();
        let exit = &evidence["exit"];
        match (exit["code"].as_i64(), exit["signal"].as_i64()) {
            (Some(code), _) => known.push(format!("its program ended with exit code {code}")),
            (None, Some(signal)) => known.push(format!("its program ended by signal {signal}")),
            (None, None) => {}
        }
        let left = &evidence["left"];
        let some = |name: &str| left[name].as_array().filter(|all| !all.is_empty());
        if let Some(living) = some("living") {
            let pids: Vec<String> = living.iter().filter_map(Value::as_u64).map(|pid| pid.to_string()).collect();
            known.push(format!("processes of it that still live: {}", pids.join(", ")));
        } else if some("ended").is_some() || left["group_ended"] == true {
            known.push("what it left running was ended".into());
        } else if left.is_object() {
            known.push("nothing of it was found running".into());
        }
        if left["may_have_escaped"] == true {
            known.push("a process that had left its group may run on".into());
        }
        (!known.is_empty()).then(|| known.join("; "))
    }

    /// The same within its bounds, whoever said it: sentences are cut to [`limits::ERROR_MESSAGE_MAX`] characters, and what is
    /// larger than [`limits::OPERATION_OUTCOME_MAX`] becomes `{"omittedBytes": …}`.
    #[must_use]
    pub fn bounded(self) -> Outcome {
        self.within(limits::OPERATION_OUTCOME_MAX)
    }

    /// The same with another bound for value and evidence, in bytes.
    #[must_use]
    pub fn within(mut self, most: usize) -> Outcome {
        match &mut self {
            Outcome::Failed { error, .. } => cut(&mut error.message),
            Outcome::Unknown { reason, .. } => cut(reason),
            Outcome::Completed { .. } | Outcome::Cancelled { .. } | Outcome::Expired {} => {}
        }
        if let Some(detail) = self.detail() {
            let bytes = detail.as_ref().map_or(0, |detail| detail.to_string().len());
            if bytes > most {
                *detail = Some(serde_json::json!({"omittedBytes": bytes}));
            }
        }
        self
    }

    /// The same without value and evidence, as lists tell it.
    #[must_use]
    pub fn brief(mut self) -> Outcome {
        if let Some(detail) = self.detail() {
            *detail = None;
        }
        self
    }

    /// Its value or evidence.
    const fn detail(&mut self) -> Option<&mut Option<Value>> {
        match self {
            Outcome::Completed { value: detail, .. }
            | Outcome::Failed { evidence: detail, .. }
            | Outcome::Unknown { evidence: detail, .. } => Some(detail),
            Outcome::Cancelled { .. } | Outcome::Expired {} => None,
        }
    }

    /// The exit of its program, if that is the result.
    pub const fn exit(&self) -> Option<&Exit> {
        match self {
            Outcome::Completed { exit, .. } | Outcome::Cancelled { exit, .. } => exit.as_ref(),
            _ => None,
        }
    }
}
