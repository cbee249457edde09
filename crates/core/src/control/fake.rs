//! A store in memory, for tests: commits are atomic and answered in order, a hole is refused, an end is for good.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Change, Found, Loaded, Record, Refused, SessionCancel, evidence};
use crate::id::OperationId;
use crate::operation::{State, Stream};

/// What a stream holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Output.
    Bytes(Vec<u8>),
    /// Output that was given up, from and to.
    Gap(u64, u64),
}

/// An operation.
#[derive(Debug, Clone)]
pub struct Row {
    /// As the machine wrote it.
    pub record: Record,
    /// Its output.
    pub streams: BTreeMap<Stream, Vec<Segment>>,
    /// How often an end was written.
    pub ends: usize,
    /// How many were admitted before.
    pub place: usize,
}

/// Everything of one device.
#[derive(Default, Clone)]
pub struct Store {
    /// All operations.
    pub rows: BTreeMap<OperationId, Row>,
    /// Cancellation by session, and whether the worker has it.
    pub sessions: BTreeMap<String, (String, bool)>,
}

impl Store {
    /// All of it or nothing.
    ///
    /// # Panics
    /// When an id is admitted twice.
    pub fn commit(&mut self, changes: &[Change]) -> Result<Found, Refused> {
        let mut next = self.clone();
        let mut found = Found::Nothing;
        for change in changes {
            let answer = next.apply(change)?;
            found = if answer == Found::Nothing { found } else { answer };
        }
        *self = next;
        Ok(found)
    }

    fn keyed(&self, principal: &str, key: Option<&str>) -> Option<Found> {
        let key = key?;
        let row = self
            .rows
            .values()
            .find(|row| *row.record.principal == *principal && row.record.key.as_deref() == Some(key))?;
        Some(Found::Known { id: row.record.operation.request_id.clone(), digest: row.record.digest })
    }

    fn living(&mut self, id: &OperationId) -> Option<&mut Row> {
        self.rows.get_mut(id).filter(|row| row.record.outcome.is_none())
    }

    fn apply(&mut self, change: &Change) -> Result<Found, Refused> {
        match change {
            Change::Admit(record) => {
                if let Some(known) = self.keyed(&record.principal, record.key.as_deref()) {
                    return Ok(known);
                }
                if record.operation.session_id.as_ref().is_some_and(|session| self.sessions.contains_key(session)) {
                    return Ok(Found::SessionCancelled);
                }
                let row =
                    Row { record: Record::clone(record), streams: BTreeMap::new(), ends: 0, place: self.rows.len() };
                assert!(self.rows.insert(record.operation.request_id.clone(), row).is_none(), "an id twice");
            }
            Change::Adopt(record) => {
                let (id, digest) = (record.operation.request_id.clone(), record.digest);
                if self.rows.contains_key(&id) {
                    return Ok(Found::Known { id, digest });
                }
                let row =
                    Row { record: Record::clone(record), streams: BTreeMap::new(), ends: 0, place: self.rows.len() };
                self.rows.insert(id, row);
            }
            Change::Recall { principal, key } => return Ok(self.keyed(principal, Some(key)).unwrap_or_default()),
            Change::Sent { id, ledger } => {
                if let Some(row) = self.living(id) {
                    row.record.sent_to = Some(ledger.clone());
                }
            }
            Change::State { id, state } => {
                assert!(!state.is_final());
                if let Some(row) = self.living(id) {
                    row.record.state = *state;
                }
            }
            Change::Cancel { id } => {
                if let Some(row) = self.living(id) {
                    row.record.cancelled = true;
                }
            }
            Change::Output { id, stream, offset, bytes } => {
                let end = *offset + bytes.len() as u64;
                if let Some(have) = self.extend(id, *stream, *offset, end)? {
                    let new = bytes[(have - offset) as usize..].to_vec();
                    self.rows.get_mut(id).unwrap().streams.entry(*stream).or_default().push(Segment::Bytes(new));
                }
            }
            Change::Gap { id, stream, offset, next } => {
                if let Some(have) = self.extend(id, *stream, *offset, *next)? {
                    self.rows.get_mut(id).unwrap().streams.entry(*stream).or_default().push(Segment::Gap(have, *next));
                }
            }
            Change::End { id, outcome, written, frees_key } => {
                if let Some(row) = self.living(id) {
                    row.record.state = outcome.state();
                    row.record.outcome = Some(outcome.clone());
                    row.record.written = written.clone();
                    row.ends += 1;
                    if *frees_key {
                        row.record.key = None;
                    }
                }
            }
            Change::Late { id, outcome } => {
                if let Some(row) = self.rows.get_mut(id).filter(|row| row.record.state == State::Unknown) {
                    let end = row.record.outcome.as_ref().unwrap();
                    if let Some(end) = evidence(end, outcome) {
                        row.record.outcome = Some(end);
                    }
                }
            }
            Change::CancelSession(cancel) => {
                self.sessions.entry(cancel.session.clone()).or_insert((cancel.cancellation.clone(), false));
            }
            Change::SessionConfirmed { cancellation } => {
                if let Some((_, confirmed)) = self.sessions.values_mut().find(|(name, _)| name == cancellation) {
                    *confirmed = true;
                }
            }
        }
        Ok(Found::Nothing)
    }

    /// Where new bytes of a stream begin, if there are any.
    fn extend(&mut self, id: &OperationId, stream: Stream, offset: u64, end: u64) -> Result<Option<u64>, Refused> {
        let Some(row) = self.living(id) else { return Ok(None) };
        let have = row.record.received.entry(stream).or_default();
        if offset > *have {
            return Err(Refused::Unavailable);
        }
        let from = *have;
        *have = from.max(end);
        Ok((end > from).then_some(from))
    }

    /// What a new machine begins with.
    pub fn load(&self, left: impl Fn(&Record) -> Duration) -> Loaded {
        let living = self.rows.values().filter(|row| row.record.outcome.is_none());
        let sessions = self.sessions.iter().filter(|(_, (_, confirmed))| !confirmed);
        Loaded {
            living: living.map(|row| (row.record.clone(), left(&row.record))).collect(),
            sessions: sessions
                .map(|(session, (cancellation, _))| SessionCancel {
                    cancellation: cancellation.clone(),
                    session: session.clone(),
                })
                .collect(),
        }
    }
}
