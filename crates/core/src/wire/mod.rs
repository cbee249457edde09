//! Frames of the link: exactly the base wire, plus the fields and frames of negotiated features.
//!
//! Payloads (`arguments`, `result`) stay raw JSON from end to end. Decoding is strict where the base wire is: one JSON
//! object with a string `type`, known fields of the right kind, each at most once; unknown *fields* are ignored,
//! unknown *types* are an error of their own, because the base wire treats them differently from malformed JSON.

mod daemon;
mod features;
mod redact;
mod relay;
pub mod worker;

pub use daemon::*;
pub use features::*;
pub use relay::*;

use serde::{Deserialize, Serialize};

use crate::limits;

/// Name a base relay presents.
pub const BASE_SERVER: &str = "machine-bridge-mcp";
/// The one base version spoken.
pub const BASE_VERSION: &str = "1.2.10";
/// The MCP revision on the base wire.
pub const BASE_PROTOCOL: &str = "2025-11-25";
/// Header that carries the device's token.
pub const TOKEN_HEADER: &str = "x-bridge-token";
/// Path of the link on the relay.
pub const LINK_PATH: &str = "/daemon/ws";

/// Close codes and reasons both sides act on; those of the base wire are word for word its own.
pub mod close {
    /// A close as code and reason.
    pub type Close = (u16, &'static str);

    /// The daemon stops.
    pub const SHUTDOWN: Close = (1000, "daemon shutdown");
    /// A frame is missing, noticed by its numbers.
    pub const FRAME_GAP: Close = (1012, "frame gap");
    /// The same instance is proven on a newer socket.
    pub const MOVED: Close = (1001, "moved to a newer connection");
    /// Another proven instance took over (base wire).
    pub const REPLACED: Close = (1012, "replaced by verified daemon");
    /// A newer candidate came (base wire).
    pub const NEWER_CANDIDATE: Close = (1012, "replaced by newer daemon candidate");
    /// The device answers on another socket.
    pub const IN_USE: Close = (1013, "device_in_use");
    /// The relay stops.
    pub const RELAY_STOPS: Close = (1012, "relay shutting down");
    /// No life within the deadline. 1012, because a base daemon takes most other closes as final, and this one as a reason to retry.
    pub const LIVENESS: Close = (1012, "daemon liveness timeout");
    /// hello did not come.
    pub const HELLO_TIMEOUT: Close = (1008, "daemon hello timeout");
    /// Readiness was not proven in time.
    pub const READY_TIMEOUT: Close = (1008, "daemon ready timeout");
    /// Something else than hello came first.
    pub const HELLO_REQUIRED: Close = (1008, "daemon hello required");
    /// A second hello.
    pub const DUPLICATE_HELLO: Close = (1002, "duplicate daemon hello");
    /// hello without a valid instance id.
    pub const INSTANCE_REQUIRED: Close = (1002, "daemon instance id required");
    /// A wrong answer to the probe.
    pub const BAD_PROBE: Close = (1002, "invalid daemon readiness result");
    /// An unknown type.
    pub const UNKNOWN_TYPE: Close = (1002, "unknown daemon message type");
    /// Not a JSON object.
    pub const NOT_AN_OBJECT: Close = (1002, "daemon message must be an object");
    /// Not JSON.
    pub const INVALID_JSON: Close = (1007, "invalid JSON");
    /// Not UTF-8.
    pub const INVALID_UTF8: Close = (1007, "invalid UTF-8");
    /// Longer than [`crate::limits::FRAME_MAX`].
    pub const TOO_LARGE: Close = (1009, "message too large");
    /// A `resume_report` that does not name exactly the ids of `resume_calls`.
    pub const BAD_REPORT: Close = (1002, "invalid resume report");
    /// A chunk out of order, or a whole that does not have its digest.
    pub const BAD_CHUNK: Close = (1002, "invalid result chunk");
    /// No common link version.
    pub const INCOMPATIBLE: Close = (1002, "no common link version");
    /// The credential was revoked.
    pub const REVOKED: Close = (1008, "device_revoked");
}

/// Why a frame was not understood. No part of the frame is kept: it may hold secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Longer than [`crate::limits::FRAME_MAX`].
    #[error("message too large")]
    TooLarge,
    /// A binary frame that is not UTF-8.
    #[error("invalid UTF-8")]
    InvalidUtf8,
    /// Not JSON.
    #[error("invalid JSON")]
    InvalidJson,
    /// JSON, but not an object with a string `type`.
    #[error("not a message object")]
    NotAnObject,
    /// An object of a type this side does not know.
    #[error("unknown message type")]
    UnknownType,
    /// A known type with a missing, repeated or wrong field.
    #[error("malformed {0}")]
    Malformed(&'static str),
}

/// A frame with its number on this connection and direction (feature `seq`).
///
/// The first numbered frame has number 1: `hello` from the daemon, `welcome` (or at the latest `hello_ack`) from the relay.
/// From there every frame on that socket has the next number, heartbeats and pongs too, so that a swallowed last
/// frame is noticed with the next sign of life.
#[derive(Debug, Clone)]
pub struct Numbered<F> {
    /// The number; absent on the base wire.
    pub n: Option<u64>,
    /// The frame.
    pub frame: F,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, rename = "type")]
    kind: std::borrow::Cow<'a, str>,
    #[serde(default)]
    n: Option<u64>,
}

/// Splits a frame's text into type and number.
fn head(text: &str) -> Result<Head<'_>, WireError> {
    if text.len() > limits::FRAME_MAX {
        return Err(WireError::TooLarge);
    }
    if let Some(head) = peek(text).filter(|_| text.len() > limits::FRAME_PEEK_ABOVE) {
        return Ok(head);
    }
    // serde would read a struct from an array too; on this wire only an object is a message.
    let is_object = text.trim_start().starts_with('{');
    serde_json::from_str::<Head<'_>>(text)
        .map_err(|e| match e.classify() {
            serde_json::error::Category::Data => WireError::NotAnObject,
            _ => WireError::InvalidJson,
        })
        .and_then(|head| if is_object { Ok(head) } else { Err(WireError::NotAnObject) })
}

/// The head of a frame that begins as [`write`] begins a numbered one. Big frames are then read once instead of twice; a
/// second `type` or `n` further on is passed over like any unknown field.
fn peek(text: &str) -> Option<Head<'_>> {
    let (n, rest) = text.strip_prefix("{\"n\":")?.split_once(",\"type\":\"")?;
    let (kind, rest) = rest.split_once('"')?;
    let plain = |kind: &str| kind.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    (rest.starts_with(',') && plain(kind)).then_some(Head { kind: kind.into(), n: Some(n.parse().ok()?) })
}

/// Reads the fields of a known type.
fn body<'a, T: Deserialize<'a>>(text: &'a str, kind: &'static str) -> Result<T, WireError> {
    serde_json::from_str(text).map_err(|_| WireError::Malformed(kind))
}

/// Writes a frame as text, the number first when it has one.
fn write<F: Serialize>(frame: &F, n: Option<u64>) -> String {
    let mut text = n.map(|n| format!("{{\"n\":{n}")).unwrap_or_default().into_bytes();
    let begun = text.len();
    // Only a map with keys that are no strings, or a failing Serialize, can fail here; frames have neither.
    let written = serde_json::to_writer(&mut text, frame);
    debug_assert!(written.is_ok(), "a frame always serialises");
    if let Some(brace) = text.get_mut(begun).filter(|_| n.is_some()) {
        *brace = b',';
    }
    String::from_utf8(text).unwrap_or_default()
}

/// The transfer rule of both sides: whether a direction in transfer that moved this many bytes within one
/// [`limits::TRANSFER_WINDOW`] is dead.
pub const fn too_slow(moved: u64) -> bool {
    moved < limits::TRANSFER_MIN_RATE as u64 * limits::TRANSFER_WINDOW.as_secs()
}

/// What both sides know of the link's version range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRange {
    /// Lowest link version spoken.
    pub min: u32,
    /// Highest link version spoken.
    pub max: u32,
}

impl LinkRange {
    /// The range of this build.
    pub const OURS: LinkRange = LinkRange { min: 1, max: 1 };

    /// Whether both can speak one version.
    pub fn overlaps(self, other: LinkRange) -> bool {
        self.min <= other.max && other.min <= self.max
    }
}
