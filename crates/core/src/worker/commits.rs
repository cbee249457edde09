//! Commits under way: what each is for, and which are made again because the disk was full.

use std::collections::BTreeMap;

use super::ledger::{Change, Row, Ticket};
use super::window::Acked;
use crate::daemon::SocketId;
use crate::id::{OperationId, RecoveryId};
use crate::operation::{Digest, Failure, Outcome, Streams};
use crate::wire::worker::OutputOffset;

/// What a commit is for.
#[derive(Debug, Clone)]
pub(super) enum Doing {
    /// A new operation, unless it is known.
    Admit(Box<Row>),
    /// An operation that is refused unless it is known. Without a digest it could not be read.
    Refuse(Refused),
    /// An operation that was cancelled before it came.
    Settle(Box<Row>),
    /// A try to start a run.
    Start { id: OperationId, attempt: u32, generation: u64 },
    /// State `running`.
    Run(OperationId),
    /// An end; of a workspace's configuration with what is configured from now on.
    End { id: OperationId, outcome: Box<Outcome>, written: Streams, configured: Option<Digest> },
    /// The relay has everything.
    Leave(OperationId),
    /// A cancel.
    Cancel(OperationId),
    /// The cancel of a session.
    CancelSession { session: String, cancellation: String },
    /// Acknowledged output.
    Offsets(Vec<Acked>),
    /// The lease's generation.
    Generation(u64),
    /// What the relay asks for in a recovery and is not living.
    Recall { recovery: RecoveryId, ids: Vec<OperationId>, wanted: Vec<OutputOffset> },
}

impl Doing {
    fn changes(&self) -> Vec<Change> {
        match self.clone() {
            Doing::Admit(row) => vec![Change::Admit(row)],
            Doing::Refuse(Refused { id, .. }) => vec![Change::Recall(id)],
            Doing::Settle(row) => vec![Change::Settle(row)],
            Doing::Start { id, attempt, generation } => vec![Change::Starting { id, attempt, generation }],
            Doing::Run(id) => vec![Change::Running { id }],
            Doing::End { id, outcome, written, configured } => {
                let end = Change::Ended { id, outcome: *outcome, written };
                std::iter::once(end).chain(configured.map(Change::Configured)).collect()
            }
            Doing::Leave(id) => vec![Change::Acked { id }],
            Doing::Cancel(id) => vec![Change::Cancel { id }],
            Doing::CancelSession { session, cancellation } => vec![Change::CancelSession { session, cancellation }],
            Doing::Offsets(acked) => {
                let offset =
                    |acked: Acked| Change::Offset { run: acked.run, stream: acked.stream, offset: acked.offset };
                acked.into_iter().map(offset).collect()
            }
            Doing::Generation(generation) => vec![Change::Generation(generation)],
            Doing::Recall { ids, .. } => ids.into_iter().map(Change::Recall).collect(),
        }
    }
}

/// A refusal to be checked.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    pub id: OperationId,
    pub digest: Option<Digest>,
    pub failure: Failure,
    /// Where it came.
    pub socket: Option<SocketId>,
}

/// Commits under way and those to make again.
#[derive(Debug, Default)]
pub(super) struct Commits {
    issued: u64,
    pending: BTreeMap<Ticket, Doing>,
    again: Vec<Doing>,
}

impl Commits {
    /// Begins a commit.
    pub fn issue(&mut self, doing: Doing) -> (Ticket, Vec<Change>) {
        self.issued += 1;
        let ticket = Ticket(self.issued);
        let changes = doing.changes();
        self.pending.insert(ticket, doing);
        (ticket, changes)
    }

    /// A commit ended; what it was for.
    pub fn ended(&mut self, ticket: Ticket) -> Option<Doing> {
        self.pending.remove(&ticket)
    }

    /// It failed and has to be made again.
    pub fn again(&mut self, doing: Doing) {
        self.again.push(doing);
    }

    /// Takes those, in their order.
    pub fn take_failed(&mut self) -> Vec<Doing> {
        std::mem::take(&mut self.again)
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.again.is_empty()
    }

    /// Commits under way and to make again.
    pub fn len(&self) -> usize {
        self.pending.len() + self.again.len()
    }
}
