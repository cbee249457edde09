//! What the ledger keeps, and the words in which the machine tells it.
//!
//! Every durable step is an [`super::Output::Commit`]: a few [`Change`]s that are carried out all or not at all, in the order
//! of their tickets. What depends on it waits for [`super::Input::Committed`]. Identity is an insert: the ledger's
//! primary key is the arbiter, and the machine asks it nothing beforehand.

use std::time::Duration;

use crate::id::{LedgerId, OperationId, RunId};
use crate::operation::{Digest, Kind, Operation, Outcome, State, Stream, Streams};

/// Names a commit of this process life; grows by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// An operation as the ledger keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What was asked. Of an ended operation the ledger need not keep the request, only its kind.
    pub operation: Operation,
    /// Digest of what was asked.
    pub digest: Digest,
    /// How it stands; never [`State::Queued`].
    pub state: State,
    /// Tries to start its run so far; the last one's folder is the one that counts. 0: none.
    pub attempt: u32,
    /// Its end, exactly when the state is final.
    pub outcome: Option<Outcome>,
    /// All of its output once it has ended, in bytes per stream.
    pub written: Streams,
    /// Whether the relay has acknowledged its end and all of its output.
    pub acked: bool,
    /// Whether somebody cancelled it or its session.
    pub cancelled: bool,
    /// Of the lease under which its last try to start was made.
    pub generation: u64,
}

impl Row {
    /// A row of an operation that was just received.
    pub fn received(operation: Operation) -> Row {
        Row {
            digest: Digest::of(&operation),
            operation,
            state: State::Received,
            attempt: 0,
            outcome: None,
            written: Streams::new(),
            acked: false,
            cancelled: false,
            generation: 0,
        }
    }
}

/// One step of a commit.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Inserts the row, unless its id stands there already, or a tombstone of it, or the cancellation of its session:
    /// then nothing is inserted and [`Found`] says what stood there.
    Admit(Box<Row>),
    /// Changes nothing and says what stands there.
    Recall(OperationId),
    /// Inserts a row that has ended before it began (its state is final), in place of a tombstone if there is one.
    Settle(Box<Row>),
    /// State `starting`, with the number of the try and the lease's generation.
    Starting {
        /// Which.
        id: OperationId,
        /// From 1.
        attempt: u32,
        /// The lease's.
        generation: u64,
    },
    /// State `running`.
    Running {
        /// Which.
        id: OperationId,
    },
    /// The end; the state is the outcome's.
    Ended {
        /// Which.
        id: OperationId,
        /// Its end.
        outcome: Outcome,
        /// All of its output, in bytes per stream.
        written: Streams,
    },
    /// The relay has acknowledged its end and all of its output: it is not loaded at the next start, its offsets may go,
    /// and so may its request.
    Acked {
        /// Which.
        id: OperationId,
    },
    /// Marks the row as cancelled, or stores a tombstone if there is none. Says what stood there.
    Cancel {
        /// Which.
        id: OperationId,
    },
    /// Stores that this session is cancelled and marks its rows that have not ended. The same again changes nothing.
    CancelSession {
        /// Which.
        session: String,
        /// Names the cancellation.
        cancellation: String,
    },
    /// Output up to here is acknowledged. Never goes back.
    Offset {
        /// Whose.
        run: RunId,
        /// Which stream.
        stream: Stream,
        /// In bytes from its beginning.
        offset: u64,
    },
    /// The lease's generation from now on. Never goes back.
    Generation(u64),
    /// Digest of the workspace's configuration from now on.
    Configured(Digest),
}

/// What stood in the ledger when a [`Change`] was carried out; empty for those that look at nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// The operation of that id.
    pub known: Option<Known>,
    /// A tombstone of that id, or the cancellation of that session.
    pub cancelled: bool,
}

/// What an answer to a repeated operation needs of its row.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// Its run.
    pub run_id: Option<RunId>,
    /// Its kind.
    pub kind: Kind,
    /// Digest of what was asked.
    pub digest: Digest,
    /// How it stands.
    pub state: State,
    /// Its end.
    pub outcome: Option<Outcome>,
    /// All of its output once it has ended.
    pub written: Streams,
}

/// Why a commit was not made. Nothing of it is in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// The disk is full, its reserve too if the commit was allowed to use it.
    #[error("the disk is full")]
    Full,
    /// Anything else.
    #[error("the ledger could not be written")]
    Failed,
}

/// What a worker starts from: all that the ledger holds and that is not over.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The ledger's life.
    pub ledger: LedgerId,
    /// The lease's generation; 0 in a new ledger.
    pub generation: u64,
    /// Digest of the workspace's configuration.
    pub config: Option<Digest>,
    /// Every row that has not ended, or whose end or output is not acknowledged, in the order of admission.
    pub rows: Vec<Living>,
    /// Acknowledged output of their runs.
    pub offsets: Vec<(RunId, Stream, u64)>,
}

/// A row that is not over.
#[derive(Debug, Clone)]
pub struct Living {
    /// The row, with its request.
    pub row: Row,
    /// How long ago its state last changed, by the calendar; for people only.
    pub age: Duration,
}
