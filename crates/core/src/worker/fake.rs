//! A ledger in memory, for tests: it does what the words of [`Change`] say, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Change, Found, Known, Living, Row, Stored};
use crate::id::{LedgerId, OperationId, RunId};
use crate::operation::{Digest, State, Stream};

/// What a ledger holds.
#[derive(Debug, Clone)]
pub struct Ledger {
    /// Its life.
    pub id: LedgerId,
    /// In the order of admission.
    pub rows: Vec<Row>,
    /// Acknowledged output.
    pub offsets: BTreeMap<(RunId, Stream), u64>,
    /// Operations that must never start.
    pub tombstones: BTreeSet<OperationId>,
    /// Cancelled sessions.
    pub sessions: BTreeSet<String>,
    /// The lease's.
    pub generation: u64,
    /// Digest of the workspace's configuration.
    pub config: Option<Digest>,
}

impl Ledger {
    /// An empty one.
    pub fn new(id: LedgerId) -> Ledger {
        Ledger {
            id,
            rows: Vec::new(),
            offsets: BTreeMap::new(),
            tombstones: BTreeSet::new(),
            sessions: BTreeSet::new(),
            generation: 0,
            config: None,
        }
    }

    /// The row of an operation.
    pub fn row(&self, id: &OperationId) -> Option<&Row> {
        self.rows.iter().find(|row| row.operation.request_id == *id)
    }

    /// What a worker starts from. Ages are `age`.
    pub fn stored(&self, age: Duration) -> Stored {
        Stored {
            ledger: self.id.clone(),
            generation: self.generation,
            config: self.config,
            rows: self.rows.iter().filter(|row| !row.acked).map(|row| Living { row: row.clone(), age }).collect(),
            offsets: self.offsets.iter().map(|((run, stream), offset)| (run.clone(), *stream, *offset)).collect(),
        }
    }

    /// Carries out a commit.
    ///
    /// # Panics
    /// When an operation would end twice, or a change names a row that is not there: no machine may ask for that.
    pub fn commit(&mut self, changes: Vec<Change>) -> Vec<Found> {
        changes.into_iter().map(|change| self.carry_out(change)).collect()
    }

    fn at(&mut self, id: &OperationId) -> &mut Row {
        let row = self.rows.iter_mut().find(|row| row.operation.request_id == *id);
        row.unwrap_or_else(|| panic!("no row of {id}"))
    }

    fn find(&self, id: &OperationId) -> Found {
        let known = self.row(id).map(|row| Known {
            run_id: row.operation.run_id.clone(),
            kind: row.operation.kind(),
            digest: row.digest,
            state: row.state,
            outcome: row.outcome.clone(),
            written: row.written.clone(),
        });
        Found { known, cancelled: self.tombstones.contains(id) }
    }

    fn carry_out(&mut self, change: Change) -> Found {
        match change {
            Change::Admit(row) => {
                let mut found = self.find(&row.operation.request_id);
                found.cancelled |= row.operation.session_id.as_ref().is_some_and(|s| self.sessions.contains(s));
                if found == Found::default() {
                    self.rows.push(*row);
                }
                return found;
            }
            Change::Recall(id) => return self.find(&id),
            Change::Settle(row) => {
                assert!(self.row(&row.operation.request_id).is_none(), "settled twice");
                self.rows.push(*row);
            }
            Change::Cancel { id } => {
                let found = self.find(&id);
                match found.known {
                    Some(_) => self.at(&id).cancelled = true,
                    None => _ = self.tombstones.insert(id),
                }
                return found;
            }
            Change::CancelSession { session, .. } => {
                for row in self.rows.iter_mut().filter(|row| row.operation.session_id.as_ref() == Some(&session)) {
                    row.cancelled |= !row.state.is_final();
                }
                self.sessions.insert(session);
            }
            Change::Offset { run, stream, offset } => {
                let had = self.offsets.entry((run, stream)).or_default();
                *had = offset.max(*had);
            }
            Change::Generation(generation) => self.generation = generation.max(self.generation),
            Change::Configured(digest) => self.config = Some(digest),
            Change::Starting { id, attempt, generation } => {
                let row = self.at(&id);
                assert!(row.outcome.is_none() && attempt == row.attempt + 1, "a try out of turn");
                (row.state, row.attempt, row.generation) = (State::Starting, attempt, generation);
            }
            Change::Running { id } => {
                let row = self.at(&id);
                assert!(row.outcome.is_none(), "running after its end");
                row.state = State::Running;
            }
            Change::Ended { id, outcome, written } => {
                let row = self.at(&id);
                assert!(row.outcome.is_none(), "ended twice");
                (row.state, row.outcome, row.written) = (outcome.state(), Some(outcome), written);
            }
            Change::Acked { id } => {
                let row = self.at(&id);
                assert!(row.outcome.is_some(), "acknowledged before its end");
                row.acked = true;
            }
        }
        Found::default()
    }
}
