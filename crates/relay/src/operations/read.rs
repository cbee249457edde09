//! Reading output, and waiting for more.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::id::OperationId;
use holdfast_core::limits;
use holdfast_core::operation::{Stream, Streams};
use rusqlite::Connection;
use tokio::sync::watch;

use super::output::{self, Found, Of};
use super::{OperationView, Operations, Party};
use crate::http::error::ApiError;
use crate::store::StoreError;

/// What a reader got.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// How the operation stands. If it has ended, nothing follows what is there now.
    pub operation: OperationView,
    /// What stands at the offsets that were asked for.
    pub pieces: BTreeMap<Stream, Piece>,
}

/// What stands at an offset of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Output.
    Bytes {
        /// The bytes from there on; may be none.
        bytes: Bytes,
        /// Where to go on.
        next: u64,
        /// The operation has ended and this is all of the stream.
        end: bool,
    },
    /// It was given up.
    Gone {
        /// Where output goes on, in bytes from the stream's beginning; the stream's end if nothing is left.
        first_available: u64,
    },
}

impl Reading {
    /// Whether there is something that a reader would not wait for any longer.
    fn says_something(&self) -> bool {
        let empty = |piece: &Piece| matches!(piece, Piece::Bytes { bytes, end: false, .. } if bytes.is_empty());
        self.operation.state.is_final() || !self.pieces.values().all(empty)
    }
}

impl Operations {
    /// Reads at most `max` bytes of each named stream from its offset; [`limits::CONTROL_READ_MAX`] whatever it says. If
    /// there is nothing yet, waits for it, for at most `wait` ([`limits::CONTROL_WAIT_MAX`]).
    pub async fn read(
        &self,
        party: &Party,
        id: &OperationId,
        from: &Streams,
        max: usize,
        wait: Duration,
    ) -> Result<Reading, ApiError> {
        let until = tokio::time::Instant::now() + wait.min(limits::CONTROL_WAIT_MAX);
        let mut changes = self.listen(party, id);
        let mut place = None;
        loop {
            changes.mark_unchanged();
            let reading = self.read_now(party, id, from, max).await?;
            if reading.says_something() || wait.is_zero() {
                return Ok(reading);
            }
            // Only who waits takes a place.
            if place.is_none() {
                place = Some(self.0.shared.readers.enter(party.account())?);
            }
            let changed = async {
                if changes.changed().await.is_err() {
                    // Its room is gone, and will tell nothing any more.
                    std::future::pending::<()>().await;
                }
            };
            if tokio::time::timeout_at(until, changed).await.is_err() {
                return Ok(reading);
            }
        }
    }

    /// Hears of every change of an operation from now on.
    fn listen(&self, party: &Party, id: &OperationId) -> watch::Receiver<()> {
        self.known(party.device()).map_or_else(|| watch::channel(()).1, |room| room.watch(id))
    }

    async fn read_now(&self, party: &Party, id: &OperationId, from: &Streams, max: usize) -> Result<Reading, ApiError> {
        let (from, max) = (from.clone(), max.clamp(1, limits::CONTROL_READ_MAX));
        let read = move |db: &Connection, operation: &OperationView| {
            let read = |(stream, offset): (Stream, u64)| {
                Ok::<_, StoreError>((stream, offset, output::read(db, Of(operation.row, stream), offset, max)?))
            };
            from.into_iter().map(read).collect::<Result<Vec<_>, _>>()
        };
        let (operation, found) = self.find(party, id, read).await?;
        let mut pieces = BTreeMap::new();
        for (stream, offset, found) in found {
            let piece = match found {
                Found::Gone { first_available } => Piece::Gone { first_available },
                Found::Beyond => return Err(ApiError::invalid("the offset lies beyond what has come")),
                Found::Bytes(bytes) => {
                    let next = offset + bytes.len() as u64;
                    let all = operation.received.get(&stream).copied().unwrap_or(0);
                    Piece::Bytes { bytes, next, end: operation.state.is_final() && next >= all }
                }
            };
            pieces.insert(stream, piece);
        }
        Ok(Reading { operation, pieces })
    }
}
