//! A stream on disk: a row of files of [`limits::SPOOL_SEGMENT`] bytes, named by stream and number.

use std::ops::Range;

use crate::limits;
use crate::operation::Stream;

/// One segment of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    /// Which stream.
    pub stream: Stream,
    /// Which one, from 0.
    pub number: u64,
}

impl Segment {
    /// The segment that holds the byte at an offset.
    pub const fn at(stream: Stream, offset: u64) -> Segment {
        Segment { stream, number: offset / limits::SPOOL_SEGMENT }
    }

    /// Offset of its first byte; [`u64::MAX`] for a number that no stream reaches.
    pub const fn start(self) -> u64 {
        self.number.saturating_mul(limits::SPOOL_SEGMENT)
    }

    /// Offset behind its last byte, once it is full.
    pub const fn end(self) -> u64 {
        self.start().saturating_add(limits::SPOOL_SEGMENT)
    }

    /// Its file's name.
    pub fn name(self) -> String {
        format!("{}.{}", self.stream.as_str(), self.number)
    }

    /// The segment of a file's name; nothing if that is no segment's.
    pub fn parse(name: &str) -> Option<Segment> {
        let (stream, number) = name.split_once('.')?;
        let segment = Segment { stream: Stream::parse(stream)?, number: number.parse().ok()? };
        (segment.name() == name).then_some(segment)
    }
}

/// The numbers of the segments that lie wholly in a range of offsets.
pub const fn inside(range: Range<u64>) -> Range<u64> {
    range.start.div_ceil(limits::SPOOL_SEGMENT)..range.end / limits::SPOOL_SEGMENT
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_reads_back_and_nothing_else_is_a_segment() {
        let segment = Segment { stream: Stream::Stderr, number: 12 };
        assert_eq!(segment.name(), "stderr.12");
        assert_eq!(Segment::parse("stderr.12"), Some(segment));
        for other in ["stderr", "stderr.", "stderr.012", "stderr.+1", "stderr.-1", "stderr.1.2", "exit", "out.1", ""] {
            assert_eq!(Segment::parse(other), None, "{other}");
        }
    }

    #[test]
    fn only_whole_segments_lie_inside() {
        let s = limits::SPOOL_SEGMENT;
        assert_eq!(inside(0..s - 1), 0..0);
        assert_eq!(inside(0..s), 0..1);
        assert_eq!(inside(1..3 * s), 1..3);
        assert!(inside(s + 1..2 * s - 1).is_empty());
    }

    proptest! {
        #[test]
        fn every_offset_lies_in_its_segment(offset in 0..u64::MAX / 2) {
            let segment = Segment::at(Stream::Pty, offset);
            prop_assert!(segment.start() <= offset && offset < segment.end());
        }
    }
}
