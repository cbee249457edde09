//! What goes into the machine, and what comes out.

use std::sync::Arc;

use super::Entry;
use super::cursor::{Cursor, FileId, Look, Place};

/// Where a transcript is begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// Where it was left.
    At(Cursor),
    /// After what stands there; with its first line, if there is no file yet.
    End,
    /// With its first line.
    Beginning,
    /// With its first line, if it is no larger than that; else after what stands there.
    Recent(u64),
}

/// Which transcript is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Its path, without links: the same text is the same transcript.
    pub transcript: Arc<str>,
    /// Where it is begun.
    pub start: Start,
    /// Of what is delivered, unless the start says it: higher than that of every cursor kept so far.
    pub generation: u64,
}

/// Everything that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Follow this one. If it is followed already, nothing changes; another one is read to its end first.
    Bind(Binding),
    /// Read to the end as it is at the next look, then let go: a writer that never pauses is not waited for.
    Finish,
    /// The file, or its folder, changed perhaps.
    Changed,
    /// Answers [`Output::Look`]: nothing, if no regular file is there.
    Looked(Option<Look>),
    /// Answers [`Output::Find`].
    Found(Option<Look>),
    /// Answers [`Output::Beside`]: oldest first, at most [`crate::limits::TRANSCRIPT_FILES`].
    Beside {
        /// Which.
        between: Vec<Look>,
        /// There are more after these; if there are none, they could not be told from others.
        more: bool,
    },
    /// Answers [`Output::Read`]; nothing at the end of the file.
    Bytes {
        /// As asked for.
        place: Place,
        /// As asked for.
        offset: u64,
        /// At most as many as asked for.
        bytes: Vec<u8>,
    },
    /// The last look, search or read failed.
    Failed(String),
    /// What [`Output::Entries`] gave is kept, and so is its cursor, or will be before anything that follows.
    Taken,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Open the file at this path, keep it open under its place, and say how it is. A place that is open already stays.
    Look(Arc<str>),
    /// Look for this file, known by its place, among those beside the path whose names begin as its own, and open it.
    Find(Arc<str>, FileId),
    /// Look for files that stood at the path after one and before another, both of them open, and open them: rotated ones
    /// beside it that were written last after the first and no later than the second; none, if the first was put away in
    /// another manner. Who comes and goes between two looks is found in no other way.
    Beside {
        /// The path.
        path: Arc<str>,
        /// The one that was read to its end.
        left: Place,
        /// The next that is known.
        next: Place,
    },
    /// Read of an open file.
    Read {
        /// Which.
        place: Place,
        /// First byte.
        offset: u64,
        /// At most this many.
        max: usize,
    },
    /// The file is not needed any more.
    Close(Place),
    /// Say this, keep the cursor with it, and tell by [`Input::Taken`]; nothing is read before.
    Entries {
        /// In order; may be empty where only the cursor moved.
        entries: Vec<Entry>,
        /// After them.
        cursor: Cursor,
    },
    /// Worth a line of the log.
    Told(Told),
    /// Everything that stood there when [`Input::Finish`] came was given out and taken. No file is open.
    Finished,
    /// The snapshot changed.
    Changed,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// There is no file yet. Whoever binds this transcript again before there is a cursor begins with its first line.
    Awaited,
    /// Another file stands at the path; the one before was read to its end.
    Rotated,
    /// Another file stands at the path, and the one before is gone: what it said last may be missing.
    Replaced,
    /// The file is shorter than what was read of it. What follows is new.
    Truncated,
    /// A line of more than [`crate::limits::TRANSCRIPT_LINE_MAX`] was skipped.
    LineTooLong,
    /// So many lines are no JSON, or too much of it.
    Unreadable(u64),
    /// A part may be missing: a file was replaced while nobody followed it, could not be read to its end, or was one of too
    /// many.
    Gap,
}

impl Told {
    /// How many lines are not said because of it.
    pub fn lines(self) -> u64 {
        match self {
            Told::LineTooLong => 1,
            Told::Unreadable(lines) => lines,
            Told::Awaited | Told::Rotated | Told::Replaced | Told::Truncated | Told::Gap => 0,
        }
    }
}

/// What is known about a transcript that is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowView {
    /// Its path.
    pub transcript: Arc<str>,
    /// How far, once there was a file.
    pub cursor: Option<Cursor>,
    /// Lines that could not be read, and that were too long.
    pub skipped: u64,
    /// Why it is not read at the moment.
    pub trouble: Option<String>,
}
