//! An operation as its readers see it: API, MCP tools, command line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Kind, Outcome, State, Stream};
use crate::id::{OperationId, RunId};
use crate::status::UnixMs;

/// One operation, as the relay has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Its identity.
    pub operation_id: OperationId,
    /// Its run, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// What kind of work it is.
    pub kind: Kind,
    /// What it does, in a few words; cleaned and redacted.
    pub summary: String,
    /// How it stands.
    pub state: State,
    /// The session it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// When it was admitted.
    pub created: UnixMs,
    /// When it expires if the worker has not come for it until then; only while it is certain that it was not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<UnixMs>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<UnixMs>,
    /// Somebody cancelled it; until its state says so, that is on its way.
    #[serde(default)]
    pub cancelled: bool,
    /// Since when its program waits for room for its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_stalled: Option<UnixMs>,
    /// Whether its worker is connected and live now; what is shown may be old otherwise.
    pub worker_live: bool,
    /// Its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Its output so far.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub output: BTreeMap<Stream, Extent>,
}

/// How far a stream has come, in bytes from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Extent {
    /// What the relay has committed.
    pub received: u64,
    /// What the program wrote in all; known once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<u64>,
}
