//! Results on their way: kept from the end of a call until the relay has committed them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::Compat;
use super::calls::Label;
use crate::code::{Code, ToolError};
use crate::id::CallId;
use crate::limits;
use crate::time::{Due, Now, TimerTable};
use crate::wire::{DaemonFrame, ToolResult, ToolResultChunk};

/// What the shell has to do with the outbox folder.
pub(super) enum Disk {
    Store(CallId, Arc<str>),
    Load(CallId),
    Remove(CallId),
}

/// Where the text of a result is.
enum Body {
    Memory(Arc<str>),
    /// In memory and, once `Stored` says so, on disk.
    Storing(Arc<str>),
    /// In memory for the time of its transfer, and on disk.
    Both(Arc<str>),
    Disk,
    Loading,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// To be sent on the next proven connection, or on this one.
    No,
    /// All of it was given to the current connection, when this heartbeat was the last one.
    AfterBeat(u64),
}

struct Entry {
    label: Label,
    body: Body,
    bytes: usize,
    sent: Sent,
    /// A later word of the relay proved that it read this, or nothing but a new list of calls could tell.
    read: bool,
    resend_after: Duration,
}

/// A big result in the middle of its transfer.
struct Transfer {
    id: CallId,
    text: Arc<str>,
    sha256: String,
    offset: usize,
}

/// How results travel on the current connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carriage {
    /// Big results go in chunks.
    pub chunk: bool,
    /// Results are acknowledged; otherwise they are kept until a pong.
    pub ack: bool,
    /// Number of the last heartbeat.
    pub beat: u64,
}

/// One piece of a result to write.
pub(super) enum Piece {
    /// The whole `tool_result` frame.
    Whole(Arc<str>),
    /// A chunk of it.
    Chunk(DaemonFrame),
}

/// Results that wait.
pub(super) struct Outbox {
    compat: Compat,
    /// In the order the calls ended.
    entries: BTreeMap<u64, (CallId, Entry)>,
    index: BTreeMap<CallId, u64>,
    next: u64,
    transfer: Option<Transfer>,
    memory: usize,
    disk: usize,
    /// Lengths of texts that are settled but still being written: they count until the disk let go of them.
    leaving: BTreeMap<CallId, usize>,
    timers: TimerTable<CallId>,
    todo: VecDeque<Disk>,
}

impl Outbox {
    pub fn new(compat: Compat) -> Self {
        Outbox {
            compat,
            entries: BTreeMap::new(),
            index: BTreeMap::new(),
            next: 0,
            transfer: None,
            memory: 0,
            disk: 0,
            leaving: BTreeMap::new(),
            timers: TimerTable::default(),
            todo: VecDeque::new(),
        }
    }

    /// Keeps the end of a call. A result beyond the link's bound is replaced by `result_too_large`.
    pub fn put(&mut self, id: &CallId, label: Label, outcome: Result<Box<RawValue>, ToolError>) {
        let mut text = self.encode(id, outcome);
        if text.len() > limits::FRAME_MAX - limits::CHUNK_FRAME_MAX / 2 {
            text = self.encode(id, Err(too_large(text.len())));
        }
        let bytes = text.len();
        let text: Arc<str> = text.into();
        self.memory += bytes;
        let spill = bytes > limits::OUTBOX_SPILL_ABOVE || self.memory > limits::OUTBOX_MEMORY;
        let body = if spill { self.store(id, text) } else { Body::Memory(text) };
        let entry = Entry { label, body, bytes, sent: Sent::No, read: false, resend_after: limits::RESEND_FIRST };
        self.entries.insert(self.next, (id.clone(), entry));
        self.index.insert(id.clone(), self.next);
        self.next += 1;
    }

    /// The shell wrote a result to disk, or could not.
    pub fn stored(&mut self, id: &CallId, ok: bool) {
        if let Some(bytes) = self.leaving.remove(id) {
            self.memory -= bytes;
            self.disk -= bytes;
            return self.todo.push_back(Disk::Remove(id.clone()));
        }
        let moving = self.transfer.as_ref().is_some_and(|t| t.id == *id);
        let (memory, compat) = (self.memory, self.compat);
        let Some(entry) = self.entry(id) else { return };
        let Body::Storing(text) = &entry.body else { return };
        let text = text.clone();
        let bytes = text.len();
        if ok {
            entry.body = if moving { Body::Both(text) } else { Body::Disk };
            if !moving {
                self.memory -= bytes;
            }
        } else if memory <= limits::OUTBOX_MEMORY {
            entry.body = Body::Memory(text);
            self.disk -= bytes;
        } else {
            let short: Arc<str> = encode(compat, id, Err(too_large(bytes))).into();
            (entry.bytes, entry.body) = (short.len(), Body::Memory(short.clone()));
            self.memory = memory - bytes + short.len();
            self.disk -= bytes;
            if moving {
                self.transfer = None;
            }
        }
    }

    /// The shell read a result, or could not: then its outcome cannot be told any more. Returns whether it is still there.
    pub fn loaded(&mut self, id: &CallId, text: Option<Arc<str>>) -> bool {
        let Some(entry) = self.entry(id) else { return true };
        if !matches!(entry.body, Body::Loading) {
            return true;
        }
        match text.filter(|text| text.len() == entry.bytes) {
            Some(text) => {
                entry.body = Body::Both(text.clone());
                self.memory += text.len();
                true
            }
            None => {
                self.remove(id);
                false
            }
        }
    }

    /// Forgets a result: acknowledged, or no longer wanted.
    pub fn remove(&mut self, id: &CallId) -> Option<Label> {
        let at = self.index.remove(id)?;
        let (_, entry) = self.entries.remove(&at)?;
        self.timers.stop(id);
        if self.transfer.as_ref().is_some_and(|t| t.id == *id) {
            self.transfer = None;
        }
        if matches!(entry.body, Body::Memory(_) | Body::Both(_)) {
            self.memory -= entry.bytes;
        }
        match entry.body {
            Body::Memory(_) => {}
            // A file being written is removed when it is there.
            Body::Storing(_) => *self.leaving.entry(id.clone()).or_default() += entry.bytes,
            Body::Both(_) | Body::Disk | Body::Loading => {
                self.disk -= entry.bytes;
                self.todo.push_back(Disk::Remove(id.clone()));
            }
        }
        Some(entry.label)
    }

    /// Everything is to be sent again, in order: a connection was proven.
    pub fn replay(&mut self) {
        self.transfer = None;
        self.timers = TimerTable::default();
        let mut freed = 0;
        for (_, entry) in self.entries.values_mut() {
            (entry.sent, entry.read) = (Sent::No, false);
            entry.resend_after = limits::RESEND_FIRST;
            freed += entry.release();
        }
        self.memory -= freed;
    }

    /// One result is to be sent again now, if it is not under way.
    pub fn resend(&mut self, id: &CallId) {
        if let Some(entry) = self.entry(id) {
            entry.sent = Sent::No;
        }
        self.timers.stop(id);
    }

    /// Without acks: everything written before that heartbeat was read. Returns what is settled by it.
    pub fn read_until(&mut self, beat: u64) -> Vec<(CallId, Label)> {
        let read = |(id, entry): &(CallId, Entry)| match entry.sent {
            Sent::AfterBeat(last) => (last < beat).then(|| id.clone()),
            Sent::No => None,
        };
        let ids: Vec<CallId> = self.entries.values().filter_map(read).collect();
        ids.into_iter().filter_map(|id| self.remove(&id).map(|label| (id, label))).collect()
    }

    /// With acks: everything written before that heartbeat was read, and waits for its acknowledgement.
    pub fn mark_read(&mut self, beat: u64) {
        for (_, entry) in self.entries.values_mut() {
            entry.read |= matches!(entry.sent, Sent::AfterBeat(last) if last < beat);
        }
    }

    /// Whether a result that the relay no longer names arrived: it was read, or sent on a connection that is still open, so
    /// that its acknowledgement may be on its way.
    pub fn has_arrived(&self, id: &CallId, open: bool) -> bool {
        let entry = self.index.get(id).and_then(|at| self.entries.get(at));
        entry.is_some_and(|(_, entry)| entry.read || open && entry.sent != Sent::No)
    }

    /// The next piece to write: whole results in order, then the chunks of a big one. The label is given with a result's
    /// last piece.
    pub fn next_piece(&mut self, now: Now, carriage: Carriage) -> Option<(Piece, Option<(CallId, Label)>)> {
        let mut load = None;
        let whole = self.entries.iter().find_map(|(at, (id, entry))| {
            if entry.sent != Sent::No || (carriage.chunk && entry.bytes > limits::CHUNK_THRESHOLD) {
                return None;
            }
            match &entry.body {
                Body::Memory(text) | Body::Storing(text) | Body::Both(text) => Some((*at, id.clone(), text.clone())),
                Body::Disk => {
                    load.get_or_insert(*at);
                    None
                }
                Body::Loading => None,
            }
        });
        if let Some((at, id, text)) = whole {
            let label = self.mark_sent(now, at, carriage);
            return Some((Piece::Whole(text), label.map(|label| (id, label))));
        }
        if let Some(at) = load {
            self.load(at);
        }
        if !carriage.chunk {
            return None;
        }
        if self.transfer.is_none() {
            self.begin_transfer();
        }
        let transfer = self.transfer.as_mut()?;
        let end = (transfer.offset + limits::CHUNK_PIECE).min(transfer.text.len());
        let chunk = DaemonFrame::ToolResultChunk(ToolResultChunk {
            id: transfer.id.clone(),
            offset: transfer.offset as u64,
            total: transfer.text.len() as u64,
            sha256: transfer.sha256.clone(),
            data: STANDARD.encode(&transfer.text.as_bytes()[transfer.offset..end]),
        });
        transfer.offset = end;
        if end < transfer.text.len() {
            return Some((Piece::Chunk(chunk), None));
        }
        let id = transfer.id.clone();
        self.transfer = None;
        let label = self.index.get(&id).copied().and_then(|at| self.mark_sent(now, at, carriage));
        Some((Piece::Chunk(chunk), label.map(|label| (id, label))))
    }

    /// Something for the disk.
    pub fn poll_disk(&mut self) -> Option<Disk> {
        self.todo.pop_front()
    }

    /// Results that wait.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no result waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Ids of the results that wait, in order.
    pub fn ids(&self) -> impl Iterator<Item = &CallId> {
        self.entries.values().map(|(id, _)| id)
    }

    /// Results whose acknowledgement is overdue are to be sent again. Returns whether any is.
    pub fn handle_timeout(&mut self, now: Now) -> bool {
        let mut any = false;
        while let Some(id) = self.timers.expired(now) {
            if let Some(entry) = self.entry(&id) {
                entry.sent = Sent::No;
                any = true;
            }
        }
        any
    }

    /// Time until something is due.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.timers.earliest(now)
    }

    fn encode(&self, id: &CallId, outcome: Result<Box<RawValue>, ToolError>) -> String {
        encode(self.compat, id, outcome)
    }

    fn entry(&mut self, id: &CallId) -> Option<&mut Entry> {
        self.entries.get_mut(self.index.get(id)?).map(|(_, entry)| entry)
    }

    fn store(&mut self, id: &CallId, text: Arc<str>) -> Body {
        if self.disk + text.len() > limits::OUTBOX_DISK {
            if self.memory <= limits::OUTBOX_MEMORY {
                return Body::Memory(text);
            }
            self.memory -= text.len();
            let short: Arc<str> = self.encode(id, Err(too_large(text.len()))).into();
            self.memory += short.len();
            return Body::Memory(short);
        }
        self.disk += text.len();
        self.todo.push_back(Disk::Store(id.clone(), text.clone()));
        Body::Storing(text)
    }

    fn load(&mut self, at: u64) {
        if let Some((id, entry)) = self.entries.get_mut(&at) {
            entry.body = Body::Loading;
            self.todo.push_back(Disk::Load(id.clone()));
        }
    }

    fn begin_transfer(&mut self) {
        let big = self.entries.iter().find(|(_, (_, entry))| entry.sent == Sent::No);
        let Some((at, (id, entry))) = big else { return };
        match &entry.body {
            Body::Memory(text) | Body::Storing(text) | Body::Both(text) => {
                let sha256 = data_encoding::HEXLOWER.encode(&Sha256::digest(text.as_bytes()));
                self.transfer = Some(Transfer { id: id.clone(), text: text.clone(), sha256, offset: 0 });
            }
            Body::Disk => {
                let at = *at;
                self.load(at);
            }
            Body::Loading => {}
        }
    }

    fn mark_sent(&mut self, now: Now, at: u64, carriage: Carriage) -> Option<Label> {
        let (id, entry) = self.entries.get_mut(&at)?;
        entry.sent = Sent::AfterBeat(carriage.beat);
        if carriage.ack {
            self.timers.set(id.clone(), Due::boot(now, entry.resend_after));
            entry.resend_after = (entry.resend_after * 2).min(limits::RESEND_MAX);
        } else {
            entry.read = true;
        }
        let label = entry.label.clone();
        self.memory -= entry.release();
        Some(label)
    }
}

impl Entry {
    /// Gives the memory of a text back that is on disk too; returns how much.
    fn release(&mut self) -> usize {
        if !matches!(self.body, Body::Both(_)) {
            return 0;
        }
        self.body = Body::Disk;
        self.bytes
    }
}

fn encode(compat: Compat, id: &CallId, mut outcome: Result<Box<RawValue>, ToolError>) -> String {
    if let (Compat::Base, Err(error)) = (compat, &mut outcome) {
        error.code = error.code.on_base_wire();
    }
    DaemonFrame::ToolResult(ToolResult { id: id.clone(), outcome }).encode(None)
}

/// The answer in place of a result that cannot be carried.
fn too_large(bytes: usize) -> ToolError {
    ToolError::new(Code::ResultTooLarge, format!("the tool ran; its result of {bytes} bytes does not fit the link"))
}
