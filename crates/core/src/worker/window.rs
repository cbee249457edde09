//! Output on its way: one window of unacknowledged bytes over all runs, shared fairly between their streams.
//!
//! A stream is read from its spool piece by piece, a little ahead of the socket, and nothing of it is kept once it is
//! written: what has to go again is read again. For each stream `acked ≤ sent ≤ read ≤ written`, and the pieces that stand
//! ready are those from `sent` to `read`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::io::{Piece, Read};
use crate::id::RunId;
use crate::limits;
use crate::operation::{Stream, Streams};
use crate::time::Now;
use crate::wire::worker::WorkerFrame;

type Key = (RunId, Stream);

#[derive(Debug, Default)]
struct Cursor {
    attempt: u32,
    acked: u64,
    sent: u64,
    read: u64,
    written: u64,
    /// Stands in the ring.
    queued: bool,
    /// Since when an acknowledgement is awaited, or the last one that moved (boot time).
    moved: Duration,
    /// A sent piece whose acknowledgement is timed: its end, and when it went.
    timed: Option<(u64, Duration)>,
}

impl Cursor {
    /// Whether something is written and not acknowledged.
    const fn waits(&self) -> bool {
        self.sent > self.acked
    }
}

/// Acknowledged output that is not yet durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Acked {
    pub run: RunId,
    pub attempt: u32,
    pub stream: Stream,
    pub offset: u64,
}

/// All output that the relay has not acknowledged.
#[derive(Debug, Default)]
pub(super) struct Window {
    streams: BTreeMap<Key, Cursor>,
    /// Streams with something to read, in the order of their turns.
    ring: VecDeque<Key>,
    /// Reads under way: from where, and the room that is kept for them.
    reads: BTreeMap<Key, (u64, usize)>,
    ready: VecDeque<(Key, u64, Piece)>,
    /// Streams whose spool could not be read.
    aside: BTreeSet<Key>,
    /// Bytes sent and not acknowledged.
    in_flight: u64,
    /// Bytes that stand ready or are being read.
    ahead: u64,
    round_trip: Duration,
    /// What was sent up to then has arrived: something sent then is acknowledged, and nothing overtakes on a socket.
    arrived: Duration,
    dirty: BTreeSet<Key>,
}

impl Window {
    /// A run has this much output; what is known already is only raised.
    pub fn track(&mut self, run: &RunId, attempt: u32, written: &Streams) {
        for (stream, written) in written {
            let key = (run.clone(), *stream);
            let cursor = self.streams.entry(key.clone()).or_default();
            cursor.attempt = attempt;
            cursor.written = cursor.written.max(*written);
            self.enqueue(&key);
        }
    }

    /// The relay had committed this much of a stream, as the ledger knows it.
    pub fn restore(&mut self, run: &RunId, attempt: u32, stream: Stream, offset: u64) {
        let cursor = self.streams.entry((run.clone(), stream)).or_default();
        *cursor = Cursor { attempt, acked: offset, sent: offset, read: offset, ..Cursor::default() };
        cursor.written = offset;
    }

    /// A run is over and everything of it acknowledged: no offset of it needs to be durable by itself any more.
    pub fn settled(&mut self, run: &RunId) {
        self.dirty.retain(|(of, _)| of != run);
    }

    /// Nothing is kept of a run.
    pub fn forget(&mut self, run: &RunId) {
        for stream in Stream::ALL {
            let key = (run.clone(), stream);
            self.unready(&key);
            if let Some(cursor) = self.streams.remove(&key) {
                self.in_flight -= cursor.sent - cursor.acked;
            }
            self.dirty.remove(&key);
            self.aside.remove(&key);
        }
        self.ring.retain(|(of, _)| of != run);
    }

    /// Everything unacknowledged goes again, from its first byte.
    pub fn rewind(&mut self) {
        self.ahead -= self.ready.drain(..).map(|(_, _, piece)| len(&piece)).sum::<u64>();
        self.in_flight = 0;
        let keys: Vec<Key> = self.streams.keys().cloned().collect();
        for key in keys {
            if let Some(cursor) = self.streams.get_mut(&key) {
                (cursor.sent, cursor.read, cursor.timed) = (cursor.acked, cursor.acked, None);
            }
            self.enqueue(&key);
        }
    }

    /// The same with the streams that wait for an acknowledgement since before then. Says whether there were any.
    pub fn rewind_late(&mut self, before: Duration) -> bool {
        let late = |(_, cursor): &(&Key, &Cursor)| cursor.waits() && cursor.moved <= before;
        let keys: Vec<Key> = self.streams.iter().filter(late).map(|(key, _)| key.clone()).collect();
        let any = !keys.is_empty();
        for key in keys {
            self.unready(&key);
            if let Some(cursor) = self.streams.get_mut(&key) {
                self.in_flight -= cursor.sent - cursor.acked;
                (cursor.sent, cursor.read, cursor.timed) = (cursor.acked, cursor.acked, None);
            }
            self.enqueue(&key);
        }
        any
    }

    /// Since when an acknowledgement is awaited that did not move for longest.
    pub fn waits_since(&self) -> Option<Duration> {
        self.streams.values().filter(|cursor| cursor.waits()).map(|cursor| cursor.moved).min()
    }

    /// The relay says where it wants a stream from; its word counts, in either direction. Only after [`Window::rewind`].
    pub fn wanted(&mut self, run: &RunId, attempt: u32, stream: Stream, offset: u64) {
        let key = (run.clone(), stream);
        let cursor = self.streams.entry(key.clone()).or_default();
        if cursor.acked < offset {
            self.dirty.insert(key.clone());
        }
        cursor.attempt = attempt;
        (cursor.acked, cursor.sent, cursor.read) = (offset, offset, offset);
        self.enqueue(&key);
    }

    /// The relay does not name a run and may have nothing of it: it is offered from its beginning. What is gone is told as a gap.
    /// Only after [`Window::rewind`].
    pub fn unasked(&mut self, run: &RunId) {
        for stream in Stream::ALL {
            let key = (run.clone(), stream);
            if let Some(cursor) = self.streams.get_mut(&key) {
                (cursor.acked, cursor.sent, cursor.read) = (0, 0, 0);
                self.enqueue(&key);
            }
        }
    }

    /// The relay has committed a stream up to here. Returns whether that is news.
    pub fn ack(&mut self, now: Now, run: &RunId, stream: Stream, offset: u64) -> bool {
        let key = (run.clone(), stream);
        let Some(cursor) = self.streams.get_mut(&key) else { return false };
        if offset <= cursor.acked || offset > cursor.written {
            return false;
        }
        self.in_flight -= offset.min(cursor.sent) - cursor.acked;
        (cursor.acked, cursor.moved) = (offset, now.boot);
        let timed = cursor.timed.take_if(|(end, _)| *end <= offset);
        if offset > cursor.sent {
            // It was sent before a rewind.
            (cursor.sent, cursor.read) = (offset, offset);
            self.unready(&key);
            self.enqueue(&key);
        }
        if let Some((_, at)) = timed {
            self.arrived = self.arrived.max(at);
            let sample = now.boot.saturating_sub(at);
            self.round_trip = if self.round_trip.is_zero() { sample } else { (self.round_trip * 7 + sample) / 8 };
        }
        self.dirty.insert(key);
        true
    }

    /// The next read, while there is room for what it brings.
    pub fn next_read(&mut self) -> Option<Read> {
        while self.reads.len() + self.ready.len() < limits::WORKER_READ_AHEAD {
            let room = (limits::WORKER_WINDOW as u64).saturating_sub(self.in_flight + self.ahead);
            let key = self.ring.front()?.clone();
            let cursor = self.streams.get_mut(&key)?;
            let left = cursor.written - cursor.read.min(cursor.written);
            let max = left.min(limits::WORKER_OUTPUT_PIECE as u64);
            if room < max {
                return None;
            }
            self.ring.pop_front();
            cursor.queued = false;
            if max == 0 {
                continue;
            }
            self.ahead += max;
            let max = usize::try_from(max).unwrap_or(limits::WORKER_OUTPUT_PIECE);
            self.reads.insert(key.clone(), (cursor.read, max));
            let (run, stream) = key;
            return Some(Read { run, attempt: cursor.attempt, stream, offset: cursor.read, max });
        }
        None
    }

    /// What a read found.
    pub fn piece(&mut self, run: &RunId, stream: Stream, offset: u64, piece: Piece) {
        let key = (run.clone(), stream);
        let Some((_, max)) = self.reads.get(&key).copied().filter(|(at, _)| *at == offset) else { return };
        self.reads.remove(&key);
        self.ahead -= max as u64;
        let Some(cursor) = self.streams.get_mut(&key) else { return };
        if cursor.read == offset {
            match piece {
                Piece::Bytes(bytes) if !bytes.is_empty() => {
                    let bytes = bytes.slice(..bytes.len().min(max));
                    cursor.read += bytes.len() as u64;
                    self.ahead += bytes.len() as u64;
                    self.ready.push_back((key.clone(), offset, Piece::Bytes(bytes)));
                }
                Piece::Gap(next) if next > offset => {
                    (cursor.read, cursor.written) = (next, cursor.written.max(next));
                    self.ready.push_back((key.clone(), offset, piece));
                }
                _ => {
                    self.aside.insert(key);
                    return;
                }
            }
        }
        self.enqueue(&key);
    }

    /// Whether a spool could not be read and has to be tried again.
    pub fn has_unreadable(&self) -> bool {
        !self.aside.is_empty()
    }

    /// Tries those again.
    pub fn retry(&mut self) {
        for key in std::mem::take(&mut self.aside) {
            self.enqueue(&key);
        }
    }

    /// The next frame of output, and how many bytes of its stream it covers.
    pub fn transmit(&mut self, now: Now) -> Option<(WorkerFrame, u64)> {
        let (key, offset, piece) = self.ready.pop_front()?;
        self.ahead -= len(&piece);
        let cursor = self.streams.get_mut(&key)?;
        let end = match &piece {
            Piece::Gap(next) => *next,
            _ => offset + len(&piece),
        };
        if !cursor.waits() {
            cursor.moved = now.boot;
        }
        cursor.sent = end;
        self.in_flight += end - offset;
        cursor.timed.get_or_insert((end, now.boot));
        let (run_id, stream) = key;
        let frame = match piece {
            Piece::Bytes(data) => WorkerFrame::ExecOutput { run_id, stream, offset, data },
            _ => WorkerFrame::ExecGap { run_id, stream, offset, next_offset: end },
        };
        Some((frame, end - offset))
    }

    /// Nothing is ready, being read, or could be read now.
    pub fn is_drained(&self) -> bool {
        self.ready.is_empty() && self.reads.is_empty() && self.ring.is_empty()
    }

    /// What was sent up to then has arrived, whatever became of it there (boot time).
    pub fn arrived(&self) -> Duration {
        self.arrived
    }

    /// Smoothed time from sending a piece to its acknowledgement; zero until there was one.
    pub fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// Output of a run, in bytes per stream.
    pub fn written(&self, run: &RunId) -> Streams {
        let of_run = |stream| Some((stream, self.streams.get(&(run.clone(), stream))?.written));
        Stream::ALL.into_iter().filter_map(of_run).filter(|(_, written)| *written > 0).collect()
    }

    /// Bytes of a run that are not acknowledged.
    pub fn behind(&self, run: &RunId) -> u64 {
        let of_run = Stream::ALL.iter().filter_map(|stream| self.streams.get(&(run.clone(), *stream)));
        of_run.map(|cursor| cursor.written.saturating_sub(cursor.acked)).sum()
    }

    /// Bytes of all runs that are not acknowledged.
    pub fn behind_in_all(&self) -> u64 {
        self.streams.values().map(|cursor| cursor.written.saturating_sub(cursor.acked)).sum()
    }

    /// Whether nothing is kept of any stream.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        let idle = self.reads.is_empty() && self.ready.is_empty() && self.ring.is_empty() && self.dirty.is_empty();
        self.streams.is_empty() && idle && self.in_flight == 0 && self.ahead == 0
    }

    /// Whether offsets wait to be made durable.
    pub fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Takes the acknowledged offsets that are not durable yet.
    pub fn take_dirty(&mut self) -> Vec<Acked> {
        let dirty = std::mem::take(&mut self.dirty);
        let acked = |(run, stream): Key| {
            let cursor = self.streams.get(&(run.clone(), stream))?;
            Some(Acked { run, attempt: cursor.attempt, stream, offset: cursor.acked })
        };
        dirty.into_iter().filter_map(acked).collect()
    }

    /// They could not be made durable.
    pub fn put_back(&mut self, acked: Vec<Acked>) {
        self.dirty.extend(acked.into_iter().map(|acked| (acked.run, acked.stream)));
    }

    fn enqueue(&mut self, key: &Key) {
        if let Some(cursor) = self.streams.get_mut(key)
            && !cursor.queued
            && cursor.read < cursor.written
            && !self.aside.contains(key)
            && !self.reads.contains_key(key)
        {
            cursor.queued = true;
            self.ring.push_back(key.clone());
        }
    }

    fn unready(&mut self, key: &Key) {
        let ahead = &mut self.ahead;
        self.ready.retain(|(of, _, piece)| {
            let keep = of != key;
            *ahead -= if keep { 0 } else { len(piece) };
            keep
        });
    }
}

fn len(piece: &Piece) -> u64 {
    match piece {
        Piece::Bytes(bytes) => bytes.len() as u64,
        Piece::Gap(_) | Piece::Unreadable => 0,
    }
}
