//! What the store keeps, and how it changes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::id::{LedgerId, OperationId};
use crate::operation::{Digest, Operation, Outcome, State, Stream, Streams};
use crate::status::UnixMs;

/// An operation as the store keeps it.
#[derive(Clone, PartialEq)]
pub struct Record {
    /// Its identity, its run and what it asks.
    pub operation: Arc<Operation>,
    /// Tells a repetition under the same key from a conflict.
    pub digest: Digest,
    /// Whose it is, as the shell names principals.
    pub principal: Arc<str>,
    /// The client's key: one operation per principal and device. Free again (`None` in the store) after
    /// [`Change::End`] with `frees_key`.
    pub key: Option<Arc<str>>,
    /// How it stands.
    pub state: State,
    /// The ledger it may have been sent to; `None`: it certainly was not sent.
    pub sent_to: Option<LedgerId>,
    /// Somebody cancelled it.
    pub cancelled: bool,
    /// Output that is committed here, in bytes per stream, gaps that were told included.
    pub received: Streams,
    /// All of its output by the worker's word; known at its end.
    pub written: Streams,
    /// Its one end; present exactly if `state` is final.
    pub outcome: Option<Outcome>,
    /// Place in the row of this device's living operations: they are sent in this order.
    pub order: u64,
    /// When it was admitted.
    pub created: UnixMs,
    /// How long from `created` until it expires, if it was not sent.
    pub ttl: Duration,
}

/// What an operation asks can hold secrets.
impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("id", &self.operation.request_id)
            .field("kind", &self.operation.kind())
            .field("state", &self.state)
            .field("sent_to", &self.sent_to)
            .field("cancelled", &self.cancelled)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}

/// A cancelled session. The store keeps it until the worker has it, and as long as what ended
/// ([`crate::limits::OPERATIONS_KEPT_FOR`]); the machine holds it until the worker has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCancel {
    /// Names this cancellation, at most [`crate::limits::OPERATION_SESSION_MAX`] bytes.
    pub cancellation: String,
    /// The session, at most [`crate::limits::OPERATION_SESSION_MAX`] bytes. On one device it is one principal's: the shell
    /// names sessions so.
    pub session: String,
}

/// What a machine begins with: everything of this device that is not over.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// Operations that have not ended, each with what is left of its time to live; zero when it is over.
    pub living: Vec<(Record, Duration)>,
    /// Cancelled sessions that the worker has not confirmed.
    pub sessions: Vec<SessionCancel>,
}

/// One change. All changes of one [`super::Output::Commit`] happen, or none does, and those of a device happen and are
/// answered in the order in which they were asked for. A change of an operation that has ended, or that the store does not
/// have, changes nothing and is no error.
#[derive(Clone, PartialEq)]
pub enum Change {
    /// A new operation, unless its principal used its key before at this device ([`Found::Known`]) or its session is
    /// cancelled ([`Found::SessionCancelled`]); then nothing is written, and a `Sent` beside it names nothing. Always first in
    /// its commit, which answers for it.
    Admit(Box<Record>),
    /// An operation that the worker has and the store does not, because the store was lost: whose it was nobody knows, and it has
    /// no key. If its id or its run stands there, nothing is written ([`Found::Known`]). Always alone
    /// in its commit.
    Adopt(Box<Record>),
    /// Only looks for a key, as `Admit` does. Always alone in its commit.
    Recall {
        /// Whose key.
        principal: Arc<str>,
        /// The key.
        key: Arc<str>,
    },
    /// It is about to be sent to this ledger.
    Sent {
        /// Which.
        id: OperationId,
        /// Where to.
        ledger: LedgerId,
    },
    /// How it stands at the worker; never a final state.
    State {
        /// Which.
        id: OperationId,
        /// How.
        state: State,
    },
    /// Somebody cancelled it.
    Cancel {
        /// Which.
        id: OperationId,
    },
    /// Output. `offset` is what the store has committed of the stream; where it has more, only what lies beyond is added,
    /// and where it has less the commit fails, because a hole is never stored.
    Output {
        /// Whose.
        id: OperationId,
        /// Which stream.
        stream: Stream,
        /// Where it begins.
        offset: u64,
        /// At most [`crate::limits::WORKER_OUTPUT_PIECE`] bytes from an honest worker, several of its pieces joined; never
        /// empty.
        bytes: Bytes,
    },
    /// Output that the worker gave up: the stream goes on at `next`. As `Output`, but nothing is kept of what lies between.
    Gap {
        /// Whose.
        id: OperationId,
        /// Which stream.
        stream: Stream,
        /// Where the gap begins.
        offset: u64,
        /// Where output goes on.
        next: u64,
    },
    /// Its one end. The store notes the time.
    End {
        /// Which.
        id: OperationId,
        /// How.
        outcome: Outcome,
        /// All of its output, in bytes per stream.
        written: Streams,
        /// Its client's key is free again: nothing was done.
        frees_key: bool,
    },
    /// A result that came for an operation that is not living. If it stands as [`State::Unknown`] here and has no evidence
    /// yet, this becomes its evidence (see [`evidence`]); otherwise nothing changes.
    Late {
        /// Which.
        id: OperationId,
        /// What the worker said.
        outcome: Outcome,
    },
    /// This session is cancelled: nothing of it is admitted as long as the store keeps this. Once more changes nothing, under
    /// whatever name.
    CancelSession(SessionCancel),
    /// The worker has this cancellation in its ledger: it need not be loaded again.
    SessionConfirmed {
        /// Which.
        cancellation: String,
    },
}

/// Output and requests are not printed.
impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Admit(record) => f.debug_tuple("Admit").field(record).finish(),
            Change::Adopt(record) => f.debug_tuple("Adopt").field(record).finish(),
            Change::Recall { .. } => f.write_str("Recall"),
            Change::Sent { id, ledger } => write!(f, "Sent({id}, {ledger})"),
            Change::State { id, state } => write!(f, "State({id}, {})", state.as_str()),
            Change::Cancel { id } => write!(f, "Cancel({id})"),
            Change::Output { id, stream, offset, bytes } => {
                write!(f, "Output({id}, {}, {offset}+{})", stream.as_str(), bytes.len())
            }
            Change::Gap { id, stream, offset, next } => write!(f, "Gap({id}, {}, {offset}..{next})", stream.as_str()),
            Change::End { id, outcome, frees_key, .. } => {
                write!(f, "End({id}, {}{})", outcome.state().as_str(), if *frees_key { ", key freed" } else { "" })
            }
            Change::Late { id, outcome } => write!(f, "Late({id}, {})", outcome.state().as_str()),
            Change::CancelSession(_) => f.write_str("CancelSession"),
            Change::SessionConfirmed { .. } => f.write_str("SessionConfirmed"),
        }
    }
}

/// What stood in the store when a commit succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Found {
    /// Nothing that matters: `Admit` was written, `Recall` knows no such key, anything else is done.
    #[default]
    Nothing,
    /// The key's operation, living or ended; of `Adopt`, the operation itself.
    Known {
        /// Its id.
        id: OperationId,
        /// Its digest.
        digest: Digest,
    },
    /// `Admit`: the session was cancelled; nothing was written.
    SessionCancelled,
}

/// What the end of an operation becomes when a result comes for it late: an unknown one gets its first evidence, and nothing
/// else ever changes. `None`: it stays as it is.
#[must_use]
pub fn evidence(end: &Outcome, late: &Outcome) -> Option<Outcome> {
    match end {
        Outcome::Unknown { reason, evidence: None } => {
            // An outcome is plain data: nothing in it fails to serialise.
            let evidence = serde_json::to_value(late).ok();
            Some(Outcome::Unknown { reason: reason.clone(), evidence })
        }
        _ => None,
    }
}
