//! A place in an open file, and the lines that are found there.

use super::cursor::{Cursor, FileId, Look, Place};
use super::line::{Line, read_line};
use super::{Entry, Told};
use crate::limits;

/// How much of a file is still read now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// It was so long when we looked.
    Size(u64),
    /// To its end, because it is not at the path any more.
    Empty,
}

#[derive(Debug)]
pub(super) struct Position {
    pub cursor: Cursor,
    pub until: Until,
    /// What stands at the path instead of this file.
    pub next: Option<Look>,
    /// The cursor is to be kept even if nothing is said.
    pub fresh: bool,
    /// As far as the file is known, for finding out whether it is still the same.
    head: Vec<u8>,
    /// The beginning of a line whose end was not read yet; follows the cursor.
    tail: Vec<u8>,
    /// Where the next read begins.
    read_to: u64,
    /// A line that is too long is being skipped.
    skipping: bool,
}

/// What came of a look at the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Same,
    Truncated,
    Replaced,
}

impl Position {
    pub fn new(look: &Look, generation: u64, offset: u64) -> Position {
        Position {
            cursor: Cursor { generation, file: FileId::of(look), offset },
            until: Until::Size(look.size),
            next: None,
            fresh: true,
            head: look.head.clone(),
            tail: Vec::new(),
            read_to: offset,
            skipping: false,
        }
    }

    /// In the middle of a line that is too long.
    pub fn inside(look: &Look, generation: u64) -> Position {
        Position { skipping: true, ..Position::new(look, generation, look.size) }
    }

    pub fn place(&self) -> Place {
        self.cursor.file.place
    }

    pub fn read_to(&self) -> u64 {
        self.read_to
    }

    /// A new look at the same place.
    pub fn look(&mut self, look: &Look) -> Seen {
        let known = self.head.len().min(look.head.len());
        self.next = None;
        let seen = if self.head[..known] != look.head[..known] {
            self.begin(look, 0);
            Seen::Replaced
        } else if look.size < self.cursor.offset {
            self.begin(look, look.size);
            Seen::Truncated
        } else {
            if look.size < self.read_to {
                // Only of a line that was not whole.
                self.tail.clear();
                self.skipping = false;
                self.read_to = self.cursor.offset;
            }
            Seen::Same
        };
        self.head.clone_from(&look.head);
        self.cursor.file = FileId::of(look);
        self.until = Until::Size(look.size);
        seen
    }

    fn begin(&mut self, look: &Look, offset: u64) {
        *self = Position::new(look, self.cursor.generation + 1, offset);
    }

    /// More of the file, from [`Position::read_to`] on. The entries of all lines that are whole now; whether the cursor moved.
    pub fn read(&mut self, bytes: &[u8], skipped: &mut u64, told: &mut Vec<Told>) -> (Vec<Entry>, bool) {
        self.read_to += bytes.len() as u64;
        let mut entries = Vec::new();
        let before = self.cursor.offset;
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            let (line, after) = rest.split_at(end + 1);
            rest = after;
            if self.skipping {
                self.skipping = false;
                self.cursor.offset = self.read_to - rest.len() as u64;
            } else if self.tail.len() + line.len() > limits::TRANSCRIPT_LINE_MAX {
                self.too_long(skipped, told);
                self.skipping = false;
                self.cursor.offset = self.read_to - rest.len() as u64;
            } else if self.tail.is_empty() {
                self.line(line, skipped, &mut entries);
            } else {
                let mut whole = std::mem::take(&mut self.tail);
                whole.extend_from_slice(line);
                self.line(&whole, skipped, &mut entries);
            }
        }
        if !self.skipping {
            if self.tail.len() + rest.len() > limits::TRANSCRIPT_LINE_MAX {
                self.too_long(skipped, told);
            } else {
                self.tail.extend_from_slice(rest);
            }
        }
        (entries, self.cursor.offset > before)
    }

    fn too_long(&mut self, skipped: &mut u64, told: &mut Vec<Told>) {
        self.tail = Vec::new();
        self.skipping = true;
        *skipped += 1;
        told.push(Told::LineTooLong);
    }

    fn line(&mut self, line: &[u8], skipped: &mut u64, entries: &mut Vec<Entry>) {
        let end = self.cursor.offset + line.len() as u64;
        match read_line(line, self.cursor.offset..end) {
            Line::Entry(entry) => entries.push(entry),
            Line::Nothing => {}
            Line::Unreadable => *skipped += 1,
        }
        self.cursor.offset = end;
    }

    /// The file has ended for good: what stands after its last line end may be a whole line.
    pub fn rest(&mut self, skipped: &mut u64) -> Option<Entry> {
        let rest = std::mem::take(&mut self.tail);
        let mut entries = Vec::new();
        if !rest.is_empty() {
            self.line(&rest, skipped, &mut entries);
        }
        entries.pop()
    }
}
