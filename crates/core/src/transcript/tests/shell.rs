//! Files in memory, and a shell that does what the machine says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::limits;
use crate::time::Now;
use crate::transcript::{Binding, Cursor, Entry, FileId, Follow, Input, Look, Output, Part, Place, Start, Told};

pub const PATH: &str = "/t/a.jsonl";

/// A line of the generic format that says this, padded to at least `length` bytes.
pub fn line(said: &str, length: usize) -> Vec<u8> {
    let pad = " ".repeat(length);
    let mut line = format!(r#"{{"type":"assistant","message":{{"content":"{said}"}},"pad":"{pad}"}}"#).into_bytes();
    line.push(b'\n');
    line
}

#[derive(Debug, Default)]
pub struct Disk {
    pub files: BTreeMap<u64, Vec<u8>>,
    pub names: BTreeMap<String, u64>,
    /// When each was written last.
    pub written: BTreeMap<u64, u64>,
    clock: u64,
}

impl Disk {
    pub fn append(&mut self, path: &str, bytes: &[u8]) {
        let inode = self.inode(path);
        self.clock += 1;
        self.written.insert(inode, self.clock);
        self.files.entry(inode).or_default().extend_from_slice(bytes);
    }

    /// The file at a path, made if there is none.
    pub fn inode(&mut self, path: &str) -> u64 {
        let next = self.files.len() as u64 + 1;
        let inode = *self.names.entry(path.into()).or_insert(next);
        self.clock += 1;
        self.written.entry(inode).or_insert(self.clock);
        self.files.entry(inode).or_default();
        inode
    }

    pub fn rename(&mut self, from: &str, to: &str) {
        if let Some(inode) = self.names.remove(from) {
            self.names.insert(to.into(), inode);
        }
    }

    pub fn truncate(&mut self, path: &str, size: usize) {
        let inode = self.inode(path);
        self.files.get_mut(&inode).unwrap().truncate(size);
    }

    /// Numbered files beside one that were written after `left` and before `next`, oldest first.
    fn beside(&self, path: &str, left: u64, next: u64) -> Vec<u64> {
        let written = |inode: &u64| self.written.get(inode).copied().unwrap_or_default();
        let numbered = |name: &str| {
            let number = name.strip_prefix(path).and_then(|rest| rest.strip_prefix('.'));
            number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
        };
        if self.names.iter().any(|(name, inode)| *inode == left && !numbered(name)) {
            return Vec::new();
        }
        let found = self.names.iter().filter(|(name, _)| numbered(name)).map(|(_, inode)| *inode);
        let between = |inode: &u64| written(inode) > written(&left) && written(inode) <= written(&next);
        let mut found: Vec<u64> = found.filter(between).collect();
        found.sort_by_key(written);
        found
    }

    fn look(&self, inode: u64) -> Look {
        let file = &self.files[&inode];
        Look {
            place: Place { device: 1, inode },
            size: file.len() as u64,
            head: file[..file.len().min(limits::TRANSCRIPT_HEAD)].to_vec(),
        }
    }
}

#[derive(Debug)]
pub struct Shell {
    pub disk: Disk,
    pub follow: Follow,
    pub open: BTreeSet<u64>,
    /// What was kept, with the generation it belongs to.
    pub kept: Vec<(u64, Entry)>,
    pub cursor: Option<Cursor>,
    /// Where the binding begins while there is no cursor.
    start: Start,
    pub told: Vec<Told>,
    gaps: u64,
    pub finished: bool,
    /// A read gives at most so much.
    pub short: usize,
    /// How many bytes were read.
    pub read: usize,
    /// The process dies when it is given something.
    pub dies: bool,
    /// Reads fail.
    pub broken: bool,
    /// The agent writes so many more lines, one at each read.
    pub restless: u64,
    pub now: Now,
}

impl Shell {
    pub fn new() -> Shell {
        Shell {
            disk: Disk::default(),
            follow: Follow::new(),
            open: BTreeSet::new(),
            kept: Vec::new(),
            cursor: None,
            start: Start::End,
            told: Vec::new(),
            gaps: 0,
            finished: false,
            short: usize::MAX,
            read: 0,
            dies: false,
            broken: false,
            restless: 0,
            now: Now::default(),
        }
    }

    pub fn bound(start: Start, before: &[u8]) -> Shell {
        let mut shell = Shell::new();
        if !before.is_empty() {
            shell.disk.append(PATH, before);
        }
        shell.bind(PATH, start);
        shell
    }

    pub fn bind(&mut self, path: &str, start: Start) {
        self.start = start.clone();
        let generation = self.cursor.as_ref().map_or(1, |c| c.generation + 1);
        self.input(Input::Bind(Binding { transcript: path.into(), start, generation }));
    }

    pub fn append(&mut self, bytes: &[u8]) {
        self.disk.append(PATH, bytes);
        self.input(Input::Changed);
    }

    /// As the process would after it began anew.
    pub fn restart(&mut self) {
        self.down();
        let start = self.cursor.clone().map_or(self.start.clone(), Start::At);
        self.bind(PATH, start);
    }

    pub fn down(&mut self) {
        self.follow = Follow::new();
        self.open.clear();
        self.dies = false;
    }

    pub fn poll(&mut self) {
        self.now = self.now.plus(limits::TRANSCRIPT_POLL);
        self.follow.handle_timeout(self.now);
        self.drain();
    }

    pub fn input(&mut self, input: Input) {
        self.follow.handle(self.now, input);
        self.drain();
    }

    /// Everything that was said, in order.
    pub fn said(&self) -> Vec<String> {
        let said = |part: &Part| match part {
            Part::Said(text) => text.clone(),
            other => format!("{other:?}"),
        };
        self.kept.iter().flat_map(|(_, entry)| entry.parts.iter().map(said)).collect()
    }

    /// How often a part may be missing.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    fn answer(&mut self, input: Input) {
        self.follow.handle(self.now, input);
    }

    pub fn drain(&mut self) {
        while let Some(output) = self.follow.poll_output() {
            match output {
                Output::Look(path) => {
                    let look = self.disk.names.get(&*path).map(|inode| self.disk.look(*inode));
                    self.open(look.as_ref());
                    self.answer(Input::Looked(look));
                }
                Output::Find(path, file) => {
                    let look = self.find(path, &file);
                    self.open(look.as_ref());
                    self.answer(Input::Found(look));
                }
                Output::Read { .. } if self.broken => self.answer(Input::Failed("input/output error".into())),
                Output::Read { place, offset, max } => {
                    assert!(self.open.contains(&place.inode), "{} is not open", place.inode);
                    assert!(max <= limits::TRANSCRIPT_READ);
                    let file = &self.disk.files[&place.inode];
                    let rest = file.get(offset as usize..).unwrap_or_default();
                    let bytes = rest[..rest.len().min(max).min(self.short)].to_vec();
                    self.read += bytes.len();
                    if self.restless > 0 {
                        self.restless -= 1;
                        self.disk.append(PATH, &line("more", 0));
                        self.answer(Input::Changed);
                    }
                    self.answer(Input::Bytes { place, offset, bytes });
                }
                Output::Beside { path, left, next } => {
                    assert!(self.open.contains(&left.inode) && self.open.contains(&next.inode));
                    let mut found = self.disk.beside(&path, left.inode, next.inode);
                    found.retain(|inode| !self.open.contains(inode));
                    let more = found.len() > limits::TRANSCRIPT_FILES;
                    found.truncate(limits::TRANSCRIPT_FILES);
                    let between: Vec<Look> = found.into_iter().map(|inode| self.disk.look(inode)).collect();
                    between.iter().for_each(|look| self.open(Some(look)));
                    self.answer(Input::Beside { between, more });
                }
                Output::Close(place) => assert!(self.open.remove(&place.inode), "{} is not open", place.inode),
                Output::Entries { .. } if self.dies => return,
                Output::Entries { entries, cursor } => {
                    self.kept.extend(entries.into_iter().map(|entry| (cursor.generation, entry)));
                    self.cursor = Some(cursor);
                    self.answer(Input::Taken);
                }
                Output::Told(Told::Awaited) => self.start = Start::Beginning,
                Output::Told(Told::Gap) => self.gaps += 1,
                Output::Told(told) => self.told.push(told),
                Output::Finished => self.finished = true,
                Output::Changed => {}
            }
        }
        assert!(self.open.len() <= 1 + 2 * limits::TRANSCRIPT_FILES, "{:?} are open", self.open);
        assert!(self.follow.poll_timeout(self.now).is_none_or(|wait| wait <= Duration::from_secs(2)));
    }

    fn open(&mut self, look: Option<&Look>) {
        self.open.extend(look.map(|l| l.place.inode));
    }

    fn find(&self, path: Arc<str>, file: &FileId) -> Option<Look> {
        let beside = self.disk.names.iter().filter(|(name, _)| name.starts_with(&*path));
        beside.map(|(_, inode)| *inode).find(|inode| *inode == file.place.inode).map(|inode| self.disk.look(inode))
    }
}
