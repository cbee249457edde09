//! Error codes: what UI and clients match on. Texts are for people and may change.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

macro_rules! codes {
    ($(#[doc = $meaning:literal] $name:ident = $text:literal),+ $(,)?) => {
        /// A stable error code. The first group is the base wire's, the second is ours.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "ts", derive(ts_rs::TS))]
        pub enum Code { $(#[doc = $meaning] #[cfg_attr(feature = "ts", ts(rename = $text))] $name),+ }

        impl Code {
            /// Every code, in the order of this table.
            pub const ALL: &'static [Code] = &[$(Code::$name),+];

            /// The code as clients see it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text),+ }
            }

            /// What it says, in one sentence: the row of `docs/errors.md`.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$name => $meaning),+ }
            }

            /// The code of a text; an unknown one becomes [`Code::ExecutionFailed`], as on the base wire.
            pub fn parse(text: &str) -> Code {
                match text { $($text => Code::$name,)+ _ => Code::ExecutionFailed }
            }
        }
    };
}

codes! {
    /// The caller stopped it.
    Cancelled = "cancelled",
    /// The daemon's word that the deadline passed and the process tree was killed.
    Timeout = "timeout",
    /// No valid credential.
    AuthenticationFailed = "authentication_failed",
    /// The account's role does not allow this.
    AuthorizationDenied = "authorization_denied",
    /// The device's own policy does not allow this.
    PolicyDenied = "policy_denied",
    /// The request is malformed.
    InvalidRequest = "invalid_request",
    /// No such thing, or not yours.
    NotFound = "not_found",
    /// The same identity with other content, or a precondition that does not hold.
    Conflict = "conflict",
    /// A bound was reached (base wire).
    LimitExceeded = "limit_exceeded",
    /// The operating system refused.
    PermissionDenied = "permission_denied",
    /// A path outside what the policy allows.
    PathBoundary = "path_boundary",
    /// A network operation failed.
    NetworkError = "network_error",
    /// The peer broke the protocol.
    ProtocolError = "protocol_error",
    /// Not started; nothing was done.
    Unavailable = "unavailable",
    /// A digest or size does not match.
    IntegrityError = "integrity_error",
    /// The tool ran and failed.
    ExecutionFailed = "execution_failed",
    /// A defect of ours.
    InternalError = "internal_error",
    /// Every place is taken; nothing was done.
    Busy = "busy",
    /// Sent, and no word of its outcome will come.
    OutcomeUnknown = "outcome_unknown",
    /// The tool ran; its result does not fit the link and waits under a handle.
    ResultTooLarge = "result_too_large",
    /// The disk is full; nothing was acknowledged.
    StorageFull = "storage_full",
    /// Work that must not run unsupervised was killed because nobody renewed its lease.
    LeaseExpired = "lease_expired",
    /// Still running; fetch it later with the handle.
    InProgress = "in_progress",
}

impl Code {
    /// The code an unmodified base peer understands.
    pub const fn on_base_wire(self) -> Code {
        match self {
            Code::Busy | Code::ResultTooLarge | Code::StorageFull => Code::LimitExceeded,
            Code::OutcomeUnknown | Code::LeaseExpired | Code::InProgress => Code::ExecutionFailed,
            other => other,
        }
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        ser.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(de)?;
        Ok(Code::parse(&text))
    }
}

/// An error as a client sees it: `{code, message, retryable, details?}`.
#[derive(Clone, Serialize, Deserialize, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct ToolError {
    /// What happened.
    pub code: Code,
    /// One sentence for people, at most [`crate::limits::ERROR_MESSAGE_MAX`] characters on the wire.
    pub message: String,
    /// `true` means that sending the same call again does no harm: nothing was done, or what was done changed nothing.
    #[serde(default)]
    pub retryable: bool,
    /// More for programs: a handle, the output so far, the limit that was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<RawValue>>,
}

impl ToolError {
    /// An error after which the same call must not simply be sent again.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        ToolError { code, message: message.into(), retryable: false, details: None }
    }

    /// An error before which nothing was done, so that the same call may be sent again.
    pub fn nothing_done(code: Code, message: impl Into<String>) -> Self {
        ToolError { code, message: message.into(), retryable: true, details: None }
    }

    /// Adds details for programs; a value that cannot be serialised is left out.
    #[must_use]
    pub fn with_details(mut self, details: &impl Serialize) -> Self {
        self.details = serde_json::value::to_raw_value(details).ok();
        self
    }
}

// Message and details are the tool's words, a program's output among them: they are never printed.
impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolError({}{})", self.code.as_str(), if self.retryable { ", retryable" } else { "" })
    }
}

impl PartialEq for ToolError {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
            && self.message == other.message
            && self.retryable == other.retryable
            && self.details.as_ref().map(|d| d.get()) == other.details.as_ref().map(|d| d.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_the_wire_and_an_unknown_one_becomes_execution_failed() {
        for code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), *code);
        }
        assert_eq!(Code::parse("weird"), Code::ExecutionFailed);
    }

    #[test]
    fn what_a_tool_said_is_not_printed() {
        let error = ToolError::nothing_done(Code::Busy, "secret").with_details(&"secret");
        assert_eq!(format!("{error:?}"), "ToolError(busy, retryable)");
    }
}
