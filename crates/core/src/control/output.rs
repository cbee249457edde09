//! Output on its way into the store: duplicates and overlaps are trimmed, a hole is never accepted.

use std::collections::VecDeque;
use std::iter::Peekable;

use bytes::{Bytes, BytesMut};

use super::life::Living;
use super::machine::Control;
use super::record::Change;
use crate::id::{OperationId, RunId};
use crate::limits;
use crate::operation::{Stream, Streams};

/// What comes next in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Bytes(Bytes),
    /// Given up by the worker, up to this offset.
    Gap(u64),
}

impl Piece {
    /// Where the stream goes on after it; `None`: beyond what a store can count.
    fn end(&self, offset: u64) -> Option<u64> {
        let end = match self {
            Piece::Bytes(bytes) => offset.checked_add(bytes.len() as u64),
            Piece::Gap(next) => Some(*next),
        };
        end.filter(|end| i64::try_from(*end).is_ok())
    }
}

/// A stream between the socket and the store. Pieces that come while a commit is in flight make up the next one.
#[derive(Debug, Default)]
pub(super) struct Arriving {
    /// Everything up to here is committed, in flight or gathered.
    pub(super) taken: u64,
    /// Where the gathered pieces begin.
    from: u64,
    pieces: VecDeque<Piece>,
}

/// What became of a piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Gathered: this many bytes are new.
    New(usize),
    /// Nothing in it is new.
    Old,
    /// Something before it is missing, or there is no room: it will be offered again.
    Dropped,
}

impl Arriving {
    pub(super) fn at(committed: u64) -> Arriving {
        Arriving { taken: committed, from: committed, pieces: VecDeque::new() }
    }

    /// Gathered, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| if let Piece::Bytes(bytes) = piece { bytes.len() } else { 0 }).sum()
    }

    fn take(&mut self, offset: u64, piece: Piece, room: usize) -> Taken {
        let Some(end) = piece.end(offset) else { return Taken::Dropped };
        if end <= self.taken {
            return Taken::Old;
        }
        if offset > self.taken || self.pieces.len() >= limits::CONTROL_PIECES_MAX {
            return Taken::Dropped;
        }
        let (piece, new) = match piece {
            Piece::Bytes(mut bytes) => {
                let known = usize::try_from(self.taken - offset).unwrap_or(usize::MAX);
                let bytes = bytes.split_off(known.min(bytes.len()));
                let new = bytes.len();
                (Piece::Bytes(bytes), new)
            }
            gap => (gap, 0),
        };
        if new > room {
            return Taken::Dropped;
        }
        self.taken = end;
        self.pieces.push_back(piece);
        Taken::New(new)
    }

    /// Everything gathered, as changes; it is in flight from now on. Nothing: `None`. A change costs the store much the same
    /// whatever its size, so bytes that follow each other are joined.
    pub(super) fn send(&mut self, id: &OperationId, stream: Stream, changes: &mut Vec<Change>) -> Option<u64> {
        if self.pieces.is_empty() {
            return None;
        }
        let mut offset = self.from;
        let mut pieces = self.pieces.drain(..).peekable();
        while let Some(piece) = pieces.next() {
            let id = id.clone();
            match piece {
                Piece::Bytes(first) => {
                    let bytes = join(first, &mut pieces);
                    let next = offset + bytes.len() as u64;
                    changes.push(Change::Output { id, stream, offset, bytes });
                    offset = next;
                }
                Piece::Gap(next) => {
                    changes.push(Change::Gap { id, stream, offset, next });
                    offset = next;
                }
            }
        }
        drop(pieces);
        self.from = self.taken;
        Some(self.taken)
    }
}

/// The bytes that begin with `first`, up to a frame's worth.
fn join(first: Bytes, rest: &mut Peekable<impl Iterator<Item = Piece>>) -> Bytes {
    let mut joined = BytesMut::from(first);
    let fits = |joined: &BytesMut, next: &Bytes| joined.len() + next.len() <= limits::WORKER_OUTPUT_PIECE;
    while let Some(Piece::Bytes(next)) =
        rest.next_if(|piece| matches!(piece, Piece::Bytes(next) if fits(&joined, next)))
    {
        joined.extend_from_slice(&next);
    }
    joined.freeze()
}

impl Living {
    /// Whether all of this output is committed or on its way.
    pub(super) fn has_all(&self, written: &Streams) -> bool {
        written.iter().all(|(stream, bytes)| {
            let taken = self.arriving.get(stream).map_or_else(|| self.received(*stream), |arriving| arriving.taken);
            taken >= *bytes
        })
    }
}

impl Control {
    /// Output came, or the word that there is none up to some offset.
    pub(super) fn output(&mut self, run: RunId, stream: Stream, offset: u64, piece: Piece) {
        let Some(end) = piece.end(offset) else { return };
        let Some(id) = self.runs.get(&run).cloned() else {
            // Of an operation that is over here, or of nobody's: the worker may forget it.
            return self.acknowledge_late_output(run, stream, end);
        };
        let room = limits::WORKER_WINDOW.saturating_sub(self.gathered);
        let Some(living) = self.living.get_mut(&id).filter(|living| living.sent && !living.is_decided()) else {
            return;
        };
        let committed = living.received(stream);
        let arriving = living.arriving.entry(stream).or_insert_with(|| Arriving::at(committed));
        match arriving.take(offset, piece, room) {
            Taken::New(bytes) => {
                living.has_written(&Streams::from([(stream, end)]));
                self.gathered += bytes;
                self.flush(&id);
            }
            // The acknowledgement was lost with its socket.
            Taken::Old if end <= committed => self.acknowledge_output(run, stream, committed),
            Taken::Old | Taken::Dropped => {}
        }
    }

    pub(super) fn acknowledge_output(&mut self, run: RunId, stream: Stream, next: u64) {
        if let Some(line) = &mut self.line {
            line.acks.output.insert((run, stream), next);
        }
    }

    pub(super) fn acknowledge_late_output(&mut self, run: RunId, stream: Stream, end: u64) {
        if let Some(line) = &mut self.line
            && line.acks.len() < limits::CONTROL_LATE_MAX
        {
            let next = line.acks.output.entry((run, stream)).or_default();
            *next = (*next).max(end);
        }
    }
}
