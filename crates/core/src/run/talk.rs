//! What worker and runner say to each other over the runner's socket.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Identity, Lease};
use crate::id::OperationId;
use crate::operation::{Stream, Streams, bytes_text};
use crate::status::UnixMs;

/// The version this build writes.
pub const VERSION: u32 = 1;
/// The versions this build understands: the last two.
pub const VERSIONS: [u32; 1] = [1];

/// The worker asks.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// Input; answered by `done`. The same id again is answered and does nothing.
    Input {
        /// The operation that brings it.
        id: OperationId,
        /// The bytes.
        #[serde(with = "bytes_text")]
        data: Bytes,
        /// Whether that was all.
        close: bool,
    },
    /// Another size of the terminal; answered by `done`.
    Resize {
        /// The operation that brings it.
        id: OperationId,
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
    /// Ends the program: asked first, killed after [`crate::limits::TREE_KILL_WAIT`].
    Kill {},
    /// The lease from now on.
    Lease {
        /// Generation and end.
        lease: Lease,
    },
    /// Unacknowledged output it may hold from now on, in bytes.
    Quota {
        /// In bytes.
        bytes: u64,
    },
    /// Output up to here is acknowledged; segments before it go.
    Trim {
        /// Which stream.
        stream: Stream,
        /// Up to here.
        offset: u64,
    },
}

/// Input is not printed.
impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ask::Input { id, data, close } => write!(f, "Input({id}, {} bytes, close: {close})", data.len()),
            Ask::Resize { id, cols, rows } => write!(f, "Resize({id}, {cols} × {rows})"),
            Ask::Kill {} => f.write_str("Kill"),
            Ask::Lease { lease } => write!(f, "{lease:?}"),
            Ask::Quota { bytes } => write!(f, "Quota({bytes})"),
            Ask::Trim { stream, offset } => write!(f, "Trim({}, {offset})", stream.as_str()),
        }
    }
}

/// The runner tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tell", rename_all = "snake_case")]
pub enum Tell {
    /// The first line of a connection.
    Hello {
        /// Version of the talk.
        version: u32,
        /// Who speaks.
        identity: Identity,
        /// Written so far.
        written: Streams,
        /// Since when the program waits for room.
        stalled: Option<UnixMs>,
    },
    /// Output has grown; the latest counts.
    Grew {
        /// Written so far.
        written: Streams,
    },
    /// The program waits for room, or does so no longer.
    Stalled {
        /// Since when.
        since: Option<UnixMs>,
    },
    /// An input was given, or could not be.
    Done {
        /// Which.
        id: OperationId,
        /// Why it could not: the program's input is closed.
        error: Option<String>,
    },
    /// `exit` is written; the runner goes.
    Ended {},
}
