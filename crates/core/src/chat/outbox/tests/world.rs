//! A store, a chat service and one holder after the other, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use crate::chat::{ChannelId, CommitError, Draft, MessageId, SendError};
use crate::time::Now;

pub const S: Duration = Duration::from_secs(1);
pub const MIN: Duration = Duration::from_secs(60);

pub fn channel(name: &str) -> ChannelId {
    ChannelId::parse(name).unwrap()
}

pub fn source() -> Arc<str> {
    "transcript-1".into()
}

/// The seat's store: what a commit changed is there for the next holder.
#[derive(Debug, Default)]
pub struct Store {
    pub rows: BTreeMap<Key, (Record, Standing, Duration)>,
    pub lanes: Vec<LaneRow>,
    pub cursors: BTreeMap<Arc<str>, Arc<str>>,
    pub skipped: Vec<Key>,
    /// Messages that a holder began to send, by their nonces.
    pub sent: BTreeMap<String, String>,
    pub generation: u64,
    pub seq: u64,
    /// Channels of which the holder of a generation left nothing under way.
    pub settled: BTreeMap<ChannelId, u64>,
}

impl Store {
    pub fn commit(&mut self, at: Duration, generation: u64, changes: Vec<Change>) -> Result<Vec<Key>, CommitError> {
        if generation < self.generation {
            return Err(CommitError::Superseded(self.generation));
        }
        let mut known = Vec::new();
        for change in changes {
            match change {
                Change::Prepare(record) => match self.rows.get(&record.key) {
                    Some((old, ..)) if (old.generation, old.seq) == (record.generation, record.seq) => {}
                    Some(_) => known.push(record.key.clone()),
                    None if self.skipped.contains(&record.key) => known.push(record.key.clone()),
                    None if self.rows.keys().any(|key| key.covers(&record.key)) => known.push(record.key.clone()),
                    None => {
                        self.seq = self.seq.max(record.seq);
                        self.rows.insert(record.key.clone(), (*record, Standing::Prepared, at));
                    }
                },
                Change::Ended { key, standing, .. } => {
                    let row = self.rows.get_mut(&key).unwrap();
                    assert_eq!(row.1, Standing::Prepared, "{key} ended twice");
                    row.1 = standing;
                }
                Change::Skipped(key) => {
                    let (_, standing, _) = self.rows.remove(&key).unwrap();
                    assert_eq!(standing, Standing::Prepared, "{key} had ended");
                    self.skipped.push(key);
                }
                Change::Joined(key) => {
                    let (_, standing, _) = self.rows.remove(&key).unwrap();
                    assert_eq!(standing, Standing::Prepared, "{key} had ended");
                    assert!(!self.sent.contains_key(&key.nonce()), "{key} was sent before it was joined to another");
                }
                Change::Again { key, seq } => {
                    let row = self.rows.get_mut(&key).unwrap();
                    (row.0.seq, row.1) = (seq, Standing::Prepared);
                    self.seq = self.seq.max(seq);
                }
                Change::Lane(row) => {
                    self.lanes.retain(|lane| lane.channel != row.channel);
                    self.lanes.push(row);
                }
                Change::Settled(channel) => _ = self.settled.insert(channel, generation),
                Change::Forget(channel) => self.lanes.retain(|lane| lane.channel != channel),
                Change::Cursor { source, state } => {
                    self.cursors.insert(source, state);
                }
                Change::Prune => {}
            }
        }
        Ok(known)
    }

    pub fn stored(&self, now: Duration) -> Stored {
        let aged = |(record, standing, at): &(Record, Standing, Duration)| {
            let mut record = record.clone();
            record.age += now - *at;
            (record, standing.clone())
        };
        let mut prepared = Vec::new();
        let mut troubles = Vec::new();
        for (record, standing) in self.rows.values().map(aged) {
            match standing {
                Standing::Prepared => prepared.push(record),
                Standing::Sent(_) => {}
                other => troubles.push((record, other)),
            }
        }
        prepared.sort_by_key(|record| record.seq);
        let settled = self.settled.iter().filter(|(_, by)| **by + 1 == self.generation);
        let settled = settled.map(|(channel, _)| channel.clone()).collect();
        Stored { prepared, troubles, lanes: self.lanes.clone(), settled, seq: self.seq }
    }
}

/// A chat service that knows nonces for three minutes and takes five messages in five seconds per channel.
#[derive(Debug, Default)]
pub struct Service {
    pub posts: Vec<Post>,
    /// Requests that are on their way although nobody waits for them any more.
    pub late: Vec<(Duration, Draft)>,
}

#[derive(Debug, Clone)]
pub struct Post {
    pub id: MessageId,
    pub channel: ChannelId,
    pub text: String,
    nonce: String,
    at: Duration,
}

impl Service {
    pub fn post(&mut self, at: Duration, draft: &Draft) -> Result<MessageId, SendError> {
        let here = || self.posts.iter().filter(|post| post.channel == draft.channel);
        if let Some(post) = here().rev().find(|post| post.nonce == draft.nonce && at - post.at < S * 180) {
            return Ok(post.id.clone());
        }
        if let Some(fifth) = here().rev().nth(4).filter(|post| at - post.at < S * 5) {
            return Err(SendError::Limited { after: S * 5 - (at - fifth.at) });
        }
        let id = MessageId::parse(&format!("{:06}", self.posts.len() + 1)).unwrap();
        let (channel, nonce) = (draft.channel.clone(), draft.nonce.clone());
        self.posts.push(Post { id: id.clone(), channel, text: draft.text.trim().to_owned(), nonce, at });
        Ok(id)
    }

    pub fn arrive(&mut self, at: Duration) {
        while let Some(first) = self.late.iter().position(|(due, _)| *due <= at) {
            let (due, draft) = self.late.remove(first);
            let _ = self.post(due, &draft);
        }
    }

    pub fn since(&self, channel: &ChannelId, after: Option<&MessageId>, since: Duration) -> Vec<Posted> {
        let newer = |post: &&Post| match after {
            Some(after) => post.id > *after,
            None => post.at >= since,
        };
        let here = self.posts.iter().filter(|post| post.channel == *channel).filter(newer);
        here.map(|post| Posted { id: post.id.clone(), text: post.text.clone() }).collect()
    }

    pub fn texts(&self) -> Vec<&str> {
        self.posts.iter().map(|post| post.text.as_str()).collect()
    }
}

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Good,
    /// Done, and the answer is lost.
    AnswerLost,
    /// Not done, and nobody knows.
    RequestLost,
    /// Done so much later, and nobody waits that long.
    Late(Duration),
    /// Never answered; done at once or never.
    Hangs(bool),
    Refused(SendError),
    /// The store refuses the end of this send.
    DiskFull,
}

/// What becomes of a comparison.
pub type Look = Result<Option<Vec<Posted>>, SendError>;

/// All of it.
#[derive(Debug)]
pub struct World {
    pub now: Now,
    pub store: Store,
    pub service: Service,
    pub outbox: Outbox,
    /// What becomes of the next requests; good ones after that.
    pub fates: VecDeque<Fate>,
    pub told: Vec<Told>,
    /// Everything that is neither a request nor told.
    pub seen: Vec<Output>,
    /// Requests and commits made in the current life.
    pub sends: Vec<(Attempt, Draft)>,
    pub compares: usize,
    /// What becomes of the next comparisons; nothing: they hang.
    pub looks: VecDeque<Option<Look>>,
    /// Commits fail so often.
    pub full: u32,
    /// The holder dies when so many more outputs were carried out.
    pub dies_in: Option<usize>,
}

impl World {
    pub fn new() -> World {
        let now = Now::at(S * 1_000_000);
        World {
            now,
            store: Store { generation: 1, ..Store::default() },
            service: Service::default(),
            outbox: Outbox::new(now, 1, 2000, Stored::default(), 1),
            fates: VecDeque::new(),
            told: Vec::new(),
            seen: Vec::new(),
            sends: Vec::new(),
            compares: 0,
            looks: VecDeque::new(),
            full: 0,
            dies_in: None,
        }
    }

    /// The holder dies; the next one begins.
    pub fn die(&mut self) {
        self.store.generation += 1;
        self.sends.clear();
        self.dies_in = None;
        let stored = self.store.stored(self.now.boot);
        self.outbox = Outbox::new(self.now, self.store.generation, 2000, stored, self.store.generation);
        self.run();
    }

    pub fn give(&mut self, input: Input) {
        self.service.arrive(self.now.boot);
        self.outbox.handle(self.now, input);
        self.run();
    }

    /// Entries of a transcript, each one byte long, from this byte on.
    pub fn entries(&mut self, from: u64, age: Duration, texts: &[&str]) {
        self.entries_in("c1", from, age, texts);
    }

    pub fn entries_in(&mut self, name: &str, from: u64, age: Duration, texts: &[&str]) {
        self.aged(name, from, &texts.iter().map(|text| (age, *text)).collect::<Vec<_>>());
    }

    /// Entries of different ages, read at once.
    pub fn aged(&mut self, name: &str, from: u64, texts: &[(Duration, &str)]) {
        let entry = |(start, (age, text)): (u64, &(Duration, &str))| {
            let text = (*text).to_owned();
            Entry { start, end: start + 1, age: *age, text, count: 1 }
        };
        let entries: Vec<Entry> = (from..).zip(texts).map(entry).collect();
        let cursor = (from + texts.len() as u64).to_string().into();
        self.give(Input::Entries { source: source(), channel: channel(name), entries, cursor });
    }

    /// Lets time pass, with everything that becomes due in it.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now.boot + time;
        loop {
            let next = self.outbox.poll_timeout(self.now).map(|left| self.now.boot + left);
            let late = self.service.late.iter().map(|(due, _)| *due).min();
            let Some(next) = next.into_iter().chain(late).min().filter(|next| *next <= end) else { break };
            self.now = self.now.plus(next.saturating_sub(self.now.boot));
            self.service.arrive(self.now.boot);
            self.outbox.handle_timeout(self.now);
            self.run();
        }
        self.now = self.now.plus(end - self.now.boot);
    }

    /// Carries out what the holder wants until it waits.
    pub fn run(&mut self) {
        while let Some(output) = self.outbox.poll_output() {
            match self.dies_in {
                Some(0) => return self.die(),
                Some(left) => self.dies_in = Some(left - 1),
                None => {}
            }
            match output {
                Output::Commit { ticket, generation, changes } => {
                    let result = if self.full > 0 {
                        self.full -= 1;
                        Err(CommitError::Full)
                    } else {
                        self.store.commit(self.now.boot, generation, changes)
                    };
                    if self.dies_in == Some(0) {
                        return self.die();
                    }
                    self.outbox.handle(self.now, Input::Committed(ticket, result));
                }
                Output::Send { attempt, draft, .. } => self.send(attempt, draft),
                Output::Compare { attempt, channel, after, since } => {
                    self.compares += 1;
                    let posted = self.service.since(&channel, after.as_ref(), self.now.boot - since);
                    if let Some(look) = self.looks.pop_front().unwrap_or(Some(Ok(Some(posted)))) {
                        self.outbox.handle(self.now, Input::Compared(attempt, look));
                    }
                }
                Output::Told(told) => self.told.push(told),
                other => self.seen.push(other),
            }
        }
    }

    fn send(&mut self, attempt: Attempt, draft: Draft) {
        self.sends.push((attempt, draft.clone()));
        let before = self.store.sent.insert(draft.nonce.clone(), draft.text.clone());
        assert!(before.is_none_or(|before| before == draft.text), "a message that was sent was cut anew");
        let lost = || Err(SendError::Unknown("the connection was reset".to_owned()));
        let at = self.now.boot;
        let result = match self.fates.pop_front().unwrap_or(Fate::Good) {
            Fate::Good => self.service.post(at, &draft),
            Fate::AnswerLost => {
                let _ = self.service.post(at, &draft);
                lost()
            }
            Fate::RequestLost => lost(),
            Fate::Late(by) => {
                self.service.late.push((at + by, draft));
                lost()
            }
            Fate::Hangs(done) => {
                if done {
                    let _ = self.service.post(at, &draft);
                }
                return;
            }
            Fate::Refused(error) => Err(error),
            Fate::DiskFull => {
                self.full = 3;
                self.service.post(at, &draft)
            }
        };
        // Between the service's answer and the commit.
        if self.dies_in == Some(0) {
            return self.die();
        }
        self.outbox.handle(self.now, Input::Sent(attempt, result));
    }
}
