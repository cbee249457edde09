//! A place in an open file, and the lines that are found there.

use std::collections::VecDeque;

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
    /// What stood at the path since, the last of them now.
    pub next: VecDeque<Look>,
    /// How many of the next files are known to follow each other, with none between.
    pub complete: usize,
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
            cursor: Cursor { generation, file: FileId::of(look.place, &look.head, offset), offset },
            until: Until::Size(look.size),
            next: VecDeque::new(),
            complete: 0,
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

    /// Other files come after this one, so many of them known to follow each other.
    pub fn before(self, next: VecDeque<Look>, complete: usize) -> Position {
        let until = if next.is_empty() { self.until } else { Until::Empty };
        Position { until, next, complete, ..self }
    }

    /// This file stands at the path now. Which one is not needed any more, because more of them came than are kept.
    pub fn follow_by(&mut self, look: Look) -> Option<Place> {
        if self.next.back().is_some_and(|last| last.place == look.place) {
            self.next.pop_back();
        }
        let dropped = (self.next.len() >= limits::TRANSCRIPT_FILES).then(|| self.next.pop_back()).flatten();
        self.next.push_back(look);
        dropped.map(|look| look.place)
    }

    pub fn place(&self) -> Place {
        self.cursor.file.place
    }

    pub fn read_to(&self) -> u64 {
        self.read_to
    }

    /// A new look at the same place.
    pub fn look(&mut self, look: &Look) -> Seen {
        let same = self.head.iter().zip(&look.head).take_while(|(a, b)| a == b).count();
        let known = self.head.len().min(look.head.len());
        let delivered = usize::try_from(self.cursor.offset).unwrap_or(usize::MAX);
        if same < known.min(delivered) {
            self.begin(look, 0);
            return Seen::Replaced;
        }
        if look.size < self.cursor.offset {
            self.begin(look, look.size);
            return Seen::Truncated;
        }
        if look.size < self.read_to || same < known {
            // Only of a line that was not whole.
            self.tail.clear();
            self.skipping = false;
            self.read_to = self.cursor.offset;
        }
        self.head.clone_from(&look.head);
        self.until = Until::Size(look.size);
        self.identify();
        Seen::Same
    }

    /// More of the head is delivered, perhaps.
    fn identify(&mut self) {
        if self.cursor.file.head < limits::TRANSCRIPT_HEAD as u64 {
            self.cursor.file = FileId::of(self.place(), &self.head, self.cursor.offset);
        }
    }

    fn begin(&mut self, look: &Look, offset: u64) {
        *self = Position::new(look, self.cursor.generation + 1, offset);
    }

    /// More of the file, from [`Position::read_to`] on. The entries of all lines that are whole now; whether the cursor moved.
    pub fn read(&mut self, bytes: &[u8], told: &mut Vec<Told>) -> (Vec<Entry>, bool) {
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
                self.too_long(told);
                self.skipping = false;
                self.cursor.offset = self.read_to - rest.len() as u64;
            } else if self.tail.is_empty() {
                self.line(line, told, &mut entries);
            } else {
                let mut whole = std::mem::take(&mut self.tail);
                whole.extend_from_slice(line);
                self.line(&whole, told, &mut entries);
            }
        }
        if !self.skipping {
            if self.tail.len() + rest.len() > limits::TRANSCRIPT_LINE_MAX {
                self.too_long(told);
            } else {
                self.tail.extend_from_slice(rest);
            }
        }
        self.identify();
        (entries, self.cursor.offset > before)
    }

    fn too_long(&mut self, told: &mut Vec<Told>) {
        self.tail = Vec::new();
        self.skipping = true;
        told.push(Told::LineTooLong);
    }

    fn line(&mut self, line: &[u8], told: &mut Vec<Told>, entries: &mut Vec<Entry>) {
        let end = self.cursor.offset + line.len() as u64;
        match read_line(line, self.cursor.offset..end) {
            Line::Entry(entry) => entries.push(entry),
            Line::Nothing => {}
            Line::Unreadable => match told.last_mut() {
                Some(Told::Unreadable(lines)) => *lines += 1,
                _ => told.push(Told::Unreadable(1)),
            },
        }
        self.cursor.offset = end;
    }

    /// The file has ended for good: what stands after its last line end may be a whole line.
    pub fn rest(&mut self, told: &mut Vec<Told>) -> Option<Entry> {
        let rest = std::mem::take(&mut self.tail);
        let mut entries = Vec::new();
        if !rest.is_empty() {
            self.line(&rest, told, &mut entries);
        }
        entries.pop()
    }
}
