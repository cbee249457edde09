//! Room for the output of one run: what may be read from the program now, and what is removed.

use std::collections::BTreeMap;
use std::ops::Range;

use super::segment::{Segment, inside};
use crate::limits;
use crate::operation::{OnFull, Stream, Streams};

/// Counts a run's unacknowledged output against what it may hold.
///
/// The last [`limits::RUNNER_PIPE`] bytes per stream are kept for what is still in the pipes when the program ends: that is
/// read without asking, so an ended program never waits for an acknowledgement.
#[derive(Debug)]
pub struct Room {
    on_full: OnFull,
    quota: u64,
    tracks: BTreeMap<Stream, Track>,
    /// The program waits until there is room for more than a few bytes.
    full: bool,
    dropped: u64,
}

/// One stream.
#[derive(Debug, Default)]
struct Track {
    written: u64,
    acked: u64,
    /// Segments given up beyond what is acknowledged.
    gap: Range<u64>,
    /// Segments below this one are gone, but for the gap's.
    kept_from: u64,
}

impl Track {
    /// Bytes on disk that nobody acknowledged.
    fn held(&self) -> u64 {
        self.written - self.acked - (self.gap.end - self.gap.start) * limits::SPOOL_SEGMENT
    }

    /// The segment with the newest byte; it always stays.
    fn last(&self) -> u64 {
        self.written.saturating_sub(1) / limits::SPOOL_SEGMENT
    }

    /// The segment of the middle that goes first: behind the head and what is given up already, before the newest.
    fn middle(&self) -> Option<u64> {
        let first = if self.gap.is_empty() { self.acked / limits::SPOOL_SEGMENT + 1 } else { self.gap.end };
        (first < self.last()).then_some(first)
    }
}

impl Room {
    /// Of a run with these streams.
    pub fn new(on_full: OnFull, quota: u64, streams: &[Stream]) -> Room {
        let tracks = streams.iter().map(|stream| (*stream, Track::default())).collect();
        Room { on_full, quota, tracks, full: false, dropped: 0 }
    }

    /// Bytes that may be read from the program now; 0 means that it waits.
    pub fn room(&self) -> u64 {
        if self.full { 0 } else { self.left() }
    }

    fn left(&self) -> u64 {
        let held: u64 = self.tracks.values().map(Track::held).sum();
        let pipes = limits::RUNNER_PIPE.saturating_mul(self.tracks.len() as u64);
        self.quota.saturating_sub(held).saturating_sub(pipes)
    }

    /// Output came. Returns what is to be removed to make room for more.
    pub fn wrote(&mut self, stream: Stream, bytes: u64) -> Vec<Segment> {
        self.tracks.entry(stream).or_default().written += bytes;
        self.settle()
    }

    /// Output up to an offset is acknowledged. Returns what is to be removed.
    pub fn acked(&mut self, stream: Stream, offset: u64) -> Vec<Segment> {
        let Some(track) = self.tracks.get_mut(&stream) else { return Vec::new() };
        let offset = offset.min(track.written);
        let mut gone: Vec<u64> = Vec::new();
        if !track.gap.is_empty() && offset >= track.gap.start * limits::SPOOL_SEGMENT {
            // Whoever read up to the gap goes on behind it.
            gone.extend(track.kept_from..track.gap.start);
            track.kept_from = track.gap.end;
            track.acked = track.gap.end * limits::SPOOL_SEGMENT;
            track.gap = 0..0;
        }
        track.acked = track.acked.max(offset);
        let below = inside(0..track.acked).end.min(track.last()).max(track.kept_from);
        gone.extend(track.kept_from..below);
        track.kept_from = below;
        let mut removed: Vec<Segment> = gone.into_iter().map(|number| Segment { stream, number }).collect();
        removed.extend(self.settle());
        removed
    }

    /// Another bound. Returns what is to be removed.
    pub fn quota(&mut self, bytes: u64) -> Vec<Segment> {
        self.quota = bytes;
        self.settle()
    }

    /// The disk is full: gives up one segment of the middle, if that may be.
    pub fn disk_full(&mut self) -> Option<Segment> {
        if self.on_full == OnFull::Wait {
            return None;
        }
        let (stream, track) = self
            .tracks
            .iter_mut()
            .filter(|(_, track)| track.middle().is_some())
            .max_by_key(|(_, track)| track.held())?;
        let number = track.middle()?;
        track.gap = if track.gap.is_empty() { number..number + 1 } else { track.gap.start..number + 1 };
        self.dropped += limits::SPOOL_SEGMENT;
        Some(Segment { stream: *stream, number })
    }

    fn settle(&mut self) -> Vec<Segment> {
        let mut removed = Vec::new();
        while self.left() == 0
            && let Some(segment) = self.disk_full()
        {
            removed.push(segment);
        }
        self.full = if self.full { self.left() < limits::RUNNER_RESUME } else { self.left() == 0 };
        removed
    }

    /// Written so far, per stream that has any.
    pub fn written(&self) -> Streams {
        let written = self.tracks.iter().map(|(stream, track)| (*stream, track.written));
        written.filter(|(_, bytes)| *bytes > 0).collect()
    }

    /// Bytes given up.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = limits::SPOOL_SEGMENT;
    const BOTH: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

    fn out(number: u64) -> Segment {
        Segment { stream: Stream::Stdout, number }
    }

    #[test]
    fn a_full_spool_is_read_into_again_only_when_there_is_room_worth_it() {
        let mut room = Room::new(OnFull::Wait, 4 * S, &BOTH);
        let bound = 4 * S - 2 * limits::RUNNER_PIPE;
        assert_eq!(room.room(), bound);
        assert_eq!(room.wrote(Stream::Stdout, bound), []);
        assert_eq!(room.room(), 0);
        room.acked(Stream::Stdout, limits::RUNNER_RESUME - 1);
        assert_eq!(room.room(), 0);
        room.acked(Stream::Stdout, limits::RUNNER_RESUME);
        assert_eq!(room.room(), limits::RUNNER_RESUME);
        assert_eq!(room.dropped(), 0);
    }

    #[test]
    fn acknowledged_segments_go_once_and_the_last_one_stays() {
        let mut room = Room::new(OnFull::Wait, 16 * S, &BOTH);
        room.wrote(Stream::Stdout, 3 * S);
        assert_eq!(room.acked(Stream::Stdout, S - 1), []);
        assert_eq!(room.acked(Stream::Stdout, S), [out(0)]);
        assert_eq!(room.acked(Stream::Stdout, S / 2), []);
        // More than was written is no more than that.
        assert_eq!(room.acked(Stream::Stdout, 9 * S), [out(1)]);
        room.wrote(Stream::Stdout, 1);
        assert_eq!(room.acked(Stream::Stdout, 3 * S), [out(2)]);
    }

    #[test]
    fn the_middle_goes_and_head_and_newest_stay() {
        let mut room = Room::new(OnFull::DropMiddle, 4 * S + limits::RUNNER_PIPE, &[Stream::Stdout]);
        assert_eq!(room.wrote(Stream::Stdout, 4 * S), [out(1)]);
        assert_eq!(room.wrote(Stream::Stdout, S), [out(2)]);
        assert_eq!((room.room(), room.dropped()), (S, 2 * S));
        // The head is read, then what is behind the gap.
        assert_eq!(room.acked(Stream::Stdout, S), [out(0)]);
        assert_eq!(room.room(), 2 * S);
        assert_eq!(room.acked(Stream::Stdout, 4 * S), [out(3)]);
        assert_eq!(room.wrote(Stream::Stdout, 3 * S), [out(5)]);
    }

    #[test]
    fn a_full_disk_takes_from_the_stream_that_holds_most() {
        let mut room = Room::new(OnFull::DropMiddle, 64 * S, &BOTH);
        room.wrote(Stream::Stderr, 2 * S);
        room.wrote(Stream::Stdout, 5 * S);
        assert_eq!(room.disk_full(), Some(out(1)));
        assert_eq!(room.disk_full(), Some(out(2)));
        assert_eq!(room.disk_full(), Some(out(3)));
        assert_eq!(room.disk_full(), None);
        assert_eq!(Room::new(OnFull::Wait, 64 * S, &BOTH).disk_full(), None);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Write(bool, u64),
        Ack(bool, u64),
        Quota(u64),
        DiskFull,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (any::<bool>(), 1..2 * S).prop_map(|(err, bytes)| Step::Write(err, bytes)),
            2 => (any::<bool>(), 0..40 * S).prop_map(|(err, offset)| Step::Ack(err, offset)),
            1 => (4 * S..16 * S).prop_map(Step::Quota),
            1 => Just(Step::DiskFull),
        ]
    }

    proptest! {
        #[test]
        fn what_is_held_is_what_was_written_less_what_was_acknowledged_or_dropped(
            drop in any::<bool>(),
            steps in prop::collection::vec(step(), 1..200),
        ) {
            let on_full = if drop { OnFull::DropMiddle } else { OnFull::Wait };
            let mut room = Room::new(on_full, 8 * S, &BOTH);
            // What is on disk, as a shell would have it.
            let mut disk: std::collections::BTreeSet<Segment> = Default::default();
            let mut written = [0_u64; 2];
            for step in steps {
                let stream = |err: bool| BOTH[usize::from(err)];
                let removed = match step {
                    Step::Write(err, bytes) => {
                        let bytes = bytes.min(room.room());
                        if bytes == 0 { continue }
                        let at = &mut written[usize::from(err)];
                        disk.extend((*at / S..=(*at + bytes - 1) / S).map(|number| Segment { stream: stream(err), number }));
                        *at += bytes;
                        room.wrote(stream(err), bytes)
                    }
                    Step::Ack(err, offset) => room.acked(stream(err), offset),
                    Step::Quota(bytes) => room.quota(bytes),
                    Step::DiskFull => room.disk_full().into_iter().collect(),
                };
                for segment in removed {
                    prop_assert!(disk.remove(&segment), "{segment:?} was there");
                }
                for (stream, written) in BOTH.into_iter().zip(written) {
                    let mine: Vec<u64> = disk.iter().filter(|s| s.stream == stream).map(|s| s.number).collect();
                    let holes = mine.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
                    prop_assert!(holes <= 1, "one gap: {mine:?}");
                    prop_assert_eq!(mine.last().copied(), written.checked_sub(1).map(|last| last / S));
                    let track = &room.tracks[&stream];
                    let head = track.acked / S;
                    prop_assert!(written <= track.acked || mine.contains(&head), "the head stays");
                }
                prop_assert_eq!(room.dropped() % S, 0);
                prop_assert!(drop || room.dropped() == 0);
            }
        }
    }
}
