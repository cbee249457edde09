//! What goes into a runner's machine, and what comes out of it.

use bytes::Bytes;

use super::{Ask, End, Segment, Tell};
use crate::id::OperationId;
use crate::operation::{Exit, Stream};

/// What happens to a runner.
#[derive(Debug, Clone, PartialEq)]
pub enum RunnerInput {
    /// The program runs.
    Started,
    /// The program could not be started, in the system's words.
    NotStarted(String),
    /// Output stands in the spool.
    Wrote {
        /// Which stream.
        stream: Stream,
        /// How many bytes.
        bytes: u64,
    },
    /// The disk had no room for output, or for the end.
    DiskFull,
    /// What found no room stands in the spool after all.
    DiskRoom,
    /// A stream ended, or gives nothing more after [`RunnerOutput::ReadOut`].
    Closed(Stream),
    /// The program ended.
    Exited(Exit),
    /// After [`RunnerOutput::Signal`]: nothing of the program's tree lives any more.
    Gone {
        /// Processes that left the tree and live on.
        escaped: Vec<u32>,
    },
    /// An input was given, or could not be.
    Given {
        /// Which.
        id: OperationId,
        /// Why it could not.
        error: Option<String>,
    },
    /// The worker asks.
    Asked(Ask),
    /// The system asks the runner to end.
    Interrupted,
}

/// What a tree hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Its terminal is gone.
    HangUp,
    /// It is asked to end.
    Term,
    /// It is ended.
    Kill,
}

/// What a runner does.
#[derive(Debug, Clone, PartialEq)]
pub enum RunnerOutput {
    /// Start the program; answered by `Started` or `NotStarted`.
    Start,
    /// Give input to the program; answered by `Given`.
    Give {
        /// Which.
        id: OperationId,
        /// The bytes.
        data: Bytes,
        /// Whether that was all.
        close: bool,
    },
    /// Give the terminal another size; answered by `Given`.
    Resize {
        /// Which.
        id: OperationId,
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
    /// Signal the tree, and say when nothing of it lives any more.
    Signal(Signal),
    /// Nobody of the tree writes any more: read what its pipes still hold, at most [`RUNNER_PIPE`](crate::limits::RUNNER_PIPE) each,
    /// then say `Closed` of every stream.
    ReadOut,
    /// Remove a segment.
    Remove(Segment),
    /// Write again what found no room; answered by `DiskRoom` or `DiskFull`.
    Retry,
    /// Tell the worker, if one is connected.
    Tell(Tell),
    /// The program waits for room, or does so no longer: tell the worker since when.
    Stalled(bool),
    /// Make everything durable, write the end with its time, tell `ended`, and go. `DiskFull` if that finds no room.
    Finish(End),
}
