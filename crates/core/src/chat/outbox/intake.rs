//! How entries become messages, and which are too old or too many for that.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::io::{Entry, Output, Told};
use super::lane::{Doubt, Flow, Held, Lane};
use super::machine::Outbox;
use super::record::{Change, Key, Record};
use crate::chat::{ChannelId, Draft, chunks, fences};
use crate::limits;
use crate::time::Now;
use crate::transcript::join;

impl Outbox {
    pub(super) fn entries(
        &mut self,
        now: Now,
        source: Arc<str>,
        channel: ChannelId,
        mut entries: Vec<Entry>,
        cursor: Arc<str>,
    ) {
        let Some(lane) = self.lane(&channel) else { return self.tell(Told::NoLane(channel)) };
        // Where a transcript begins must be known to the next holder, or it would begin elsewhere.
        let begins = lane.source.as_ref() != Some(&source);
        lane.source = Some(source.clone());
        self.hurries |= begins;
        // What nobody will see is counted, not cut into messages.
        entries.retain(|entry| !entry.text.trim().is_empty());
        let is_old = |entry: &Entry| entry.age > limits::OUTBOX_AGE;
        let young = entries.iter().filter(|entry| !is_old(entry)).count();
        let mut surplus = young.saturating_sub(limits::OUTBOX_ENTRIES);
        let left_out = |entry: Entry| {
            let old = is_old(&entry);
            let out = old || surplus > 0;
            surplus -= usize::from(out && !old);
            (out, entry)
        };
        let entries: Vec<(bool, Entry)> = entries.into_iter().map(left_out).collect();
        // Ages need not fall from one entry to the next: a line stands for those that follow each other, and for no other.
        for run in entries.chunk_by(|(one, _), (next, _)| one == next) {
            match run {
                [(true, first), ..] => {
                    let end = run.last().map_or(first.end, |(_, last)| last.end);
                    let key = Key { source: source.clone(), start: first.start, end, chunk: 0 };
                    self.count(now, &channel, key, run.iter().map(|(_, entry)| entry.count).sum());
                }
                _ => self.wait(now, &source, &channel, run.iter().map(|(_, entry)| entry)),
            }
        }
        self.shorten(now, &channel);
        self.commits.add(Change::Cursor { source, state: cursor });
        self.out.push_back(Output::Changed);
    }

    /// Puts entries at the end of the queue; only the first may find room in a message that waits, as what is read at once is
    /// joined already.
    fn wait<'a>(&mut self, now: Now, source: &Arc<str>, channel: &ChannelId, entries: impl Iterator<Item = &'a Entry>) {
        for (nth, entry) in entries.enumerate() {
            let key = Key { source: source.clone(), start: entry.start, end: entry.end, chunk: 0 };
            let texts = messages(&entry.text, self.chunk);
            if let [text] = &texts[..]
                && nth == 0
                && self.join(now, channel, &key, entry, text)
            {
                continue;
            }
            for (chunk, text) in (0..).zip(texts) {
                let record = self.record(Key { chunk, ..key.clone() }, channel, text, entry.age);
                self.prepare(now, Record { entries: entry.count, ..record }, true);
            }
        }
    }

    pub(super) fn say(&mut self, now: Now, key: Key, draft: Draft) {
        if self.lane(&draft.channel).is_none() {
            return self.tell(Told::NoLane(draft.channel));
        }
        let mut texts = messages(&draft.text, self.chunk).into_iter().peekable();
        let mut chunk = key.chunk;
        while let Some(text) = texts.next() {
            let mut record = self.record(Key { chunk, ..key.clone() }, &draft.channel, text, Duration::ZERO);
            record.reply_to = draft.reply_to.clone().filter(|_| chunk == key.chunk);
            // People find what to press under the end.
            record.buttons = if texts.peek().is_none() { draft.buttons.clone() } else { Vec::new() };
            self.prepare(now, record, false);
            chunk += 1;
        }
        self.shorten(now, &draft.channel);
        if !draft.buttons.is_empty()
            && let Some(lane) = self.lanes.get_mut(&draft.channel)
        {
            lane.hurry(&key);
        }
        self.out.push_back(Output::Changed);
    }

    /// Nobody wants to read this any more. What was begun, or may have been by an earlier holder, stays.
    pub(super) fn take_back(&mut self, key: &Key) {
        for lane in self.lanes.values_mut() {
            let rest = lane.queue.iter().skip(lane.begun());
            let gone: Vec<Key> =
                rest.map(|held| &held.record.key).filter(|other| other.same_entry(key)).cloned().collect();
            // If a part of it was said, the rest belongs to that.
            if gone.first() != Some(key) {
                continue;
            }
            if lane.queue.front().is_some_and(|front| front.record.key == *key) {
                (lane.tries, lane.why) = (0, None);
            }
            lane.queue.retain(|held| !held.record.key.same_entry(key));
            for key in gone {
                self.commits.add(Change::Skipped(key));
            }
            self.out.push_back(Output::Changed);
        }
    }

    fn record(&mut self, key: Key, channel: &ChannelId, text: String, age: Duration) -> Record {
        self.seq += 1;
        let (seq, generation) = (self.seq, self.generation);
        Record {
            key,
            channel: channel.clone(),
            seq,
            text,
            reply_to: None,
            buttons: Vec::new(),
            age,
            skips: 0,
            entries: 1,
            generation,
        }
    }

    fn prepare(&mut self, now: Now, record: Record, open: bool) {
        if self.lanes.get(&record.channel).is_some_and(|lane| lane.holds(&record.key)) {
            return;
        }
        let batch = self.commits.add(Change::Prepare(Box::new(record.clone())));
        if let Some(lane) = self.lanes.get_mut(&record.channel) {
            lane.queue.push_back(Held { record, as_of: now.boot, batch, let_go: None, open });
        }
    }

    /// An entry becomes a part of the last message that waits, if that has room: otherwise an agent that writes more often
    /// than a service takes messages would be ever later. The first of the queue may be sent at any moment and is left as it
    /// is.
    fn join(&mut self, now: Now, channel: &ChannelId, key: &Key, entry: &Entry, text: &str) -> bool {
        let Some(lane) = self.lanes.get_mut(channel) else { return false };
        let behind = lane.queue.len() > lane.begun().max(1);
        let Some(last) = lane.queue.back().filter(|last| behind && last.open) else { return false };
        let (age, before) = (last.age(now.boot), &last.record);
        let follows = before.key.chunk == 0 && before.key.source == key.source && before.key.end <= key.start;
        if !follows || lane.holds(key) || age.saturating_sub(entry.age) > limits::OUTBOX_JOINED {
            return false;
        }
        let text = join([before.text.as_str(), text]);
        if text.encode_utf16().count() > self.chunk {
            return false;
        }
        let Some(last) = lane.queue.pop_back() else { return false };
        let joined = Key { end: key.end, ..last.record.key.clone() };
        let entries = last.record.entries + entry.count;
        self.commits.add(Change::Joined(last.record.key.clone()));
        let record = Record { key: joined, text, age, entries, ..last.record };
        let batch = self.commits.add(Change::Prepare(Box::new(record.clone())));
        lane.queue.push_back(Held { record, as_of: now.boot, batch, ..last });
        true
    }

    /// One line at the end of the queue for entries that never were messages; an earlier such line there grows.
    fn count(&mut self, now: Now, channel: &ChannelId, key: Key, entries: u64) {
        let record = self.record(key, channel, skipped(entries), Duration::ZERO);
        self.prepare(now, Record { skips: entries, ..record }, false);
        self.tell(Told::Skipped(channel.clone(), entries));
        let Some(lane) = self.lanes.get(channel) else { return };
        let at = lane.queue.len().saturating_sub(1);
        if at > lane.begun() && lane.queue[at - 1].record.skips > 0 {
            self.skip(now, channel, at - 1, at + 1);
        }
    }

    /// Too much waits: the oldest that has not begun is left out, unless somebody is asked something.
    fn shorten(&mut self, now: Now, channel: &ChannelId) {
        let Some(lane) = self.lanes.get(channel) else { return };
        let (begun, len) = (lane.begun() + lane.hurried(), lane.queue.len());
        let (mut keep, mut messages) = (len, 0);
        for at in (begun..len).rev().filter(|at| !is_same(lane, *at)) {
            messages += 1;
            if messages > limits::OUTBOX_ENTRIES || len - at > limits::OUTBOX_RECORDS {
                break;
            }
            keep = at;
        }
        // A line alone is as short as it gets.
        if keep > begun + 1 || (keep == begun + 1 && lane.queue[begun].record.skips == 0) {
            self.skip(now, channel, begun, keep);
        }
    }

    /// The first message is not sent any more if it is too old, nor are those after it that are. One that may yet arrive is
    /// not counted as left out.
    pub(super) fn expire(&mut self, now: Now, channel: &ChannelId) {
        let Some(lane) = self.lanes.get(channel) else { return };
        let old = lane.old(now.boot);
        if old > 0 && lane.doubt == Doubt::None && lane.flow == Flow::Idle {
            self.skip(now, channel, 0, old);
        }
    }

    /// Puts one line in place of these messages of a queue.
    fn skip(&mut self, now: Now, channel: &ChannelId, from: usize, to: usize) {
        let Some(lane) = self.lanes.get_mut(channel) else { return };
        let gone: Vec<Record> = lane.queue.drain(from..to).map(|held| held.record).collect();
        let (Some(first), Some(last)) = (gone.first(), gone.last()) else { return };
        let key = Key { source: Self::skipped_source(), start: first.seq, end: last.seq, chunk: 0 };
        let earlier: u64 = gone.iter().map(|record| record.skips).sum();
        let mut fresh = 0;
        for (at, record) in gone.iter().enumerate() {
            let same = at > 0 && gone[at - 1].key.same_entry(&record.key);
            fresh += if record.skips == 0 && !same { record.entries } else { 0 };
        }
        let skips = earlier + fresh;
        let mut line = self.record(key, channel, skipped(skips), Duration::ZERO);
        (line.seq, line.skips) = (first.seq, skips);
        for record in &gone {
            self.commits.add(Change::Skipped(record.key.clone()));
        }
        let batch = self.commits.add(Change::Prepare(Box::new(line.clone())));
        if let Some(lane) = self.lanes.get_mut(channel) {
            if from == 0 {
                (lane.doubt, lane.tries, lane.why) = (Doubt::None, 0, None);
            }
            lane.queue.insert(from, Held { record: line, as_of: now.boot, batch, let_go: None, open: false });
        }
        if fresh > 0 {
            self.tell(Told::Skipped(channel.clone(), fresh));
        }
        self.out.push_back(Output::Changed);
    }
}

/// Whether the message at this place belongs to the entry of the one before it.
fn is_same(lane: &Lane, at: usize) -> bool {
    let queue: &VecDeque<Held> = &lane.queue;
    at > 0 && queue.get(at).is_some_and(|held| held.record.key.same_entry(&queue[at - 1].record.key))
}

/// What stands for so many entries.
fn skipped(entries: u64) -> String {
    format!("_(skipped {entries} {})_", if entries == 1 { "entry" } else { "entries" })
}

/// The messages of one text.
fn messages(text: &str, limit: usize) -> Vec<String> {
    let framed = fences(text);
    let mut all = chunks(&framed, limit);
    let more = all.len().saturating_sub(limits::OUTBOX_CHUNKS);
    if more == 0 {
        return all.into_iter().map(|chunk| chunk.text).collect();
    }
    all.truncate(limits::OUTBOX_CHUNKS - 1);
    let rest = format!("_(skipped {} more messages of this entry)_", more + 1);
    all.into_iter().map(|chunk| chunk.text).chain([rest]).collect()
}
