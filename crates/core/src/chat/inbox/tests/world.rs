//! A store, a chat service and agents, in virtual time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::super::*;
use crate::chat::outbox::Key;
use crate::chat::{Attachment, ChannelId, Click, CommitError, Draft, Incoming, MessageId, Ticket, UserId};
use crate::time::Now;

pub const S: Duration = Duration::from_secs(1);

pub fn channel(name: &str) -> ChannelId {
    ChannelId::parse(name).unwrap()
}

pub fn user(name: &str) -> UserId {
    UserId::parse(name).unwrap()
}

pub fn id(n: u64) -> MessageId {
    MessageId::parse(&format!("{n:06}")).unwrap()
}

/// Ann may speak in `c1` to an agent of this kind.
pub fn access(adapter: Adapter) -> Access {
    let binding = Binding { name: "agent".into(), adapter };
    let rule = Rule { mention: false, people: BTreeSet::new(), binding };
    Access { people: [user("ann")].into(), rules: [(channel("c1"), rule)].into(), direct: None }
}

pub fn message(n: u64, text: &str) -> Incoming {
    Incoming {
        id: id(n),
        channel: channel("c1"),
        parent: None,
        direct: false,
        author: user("ann"),
        author_name: "Ann".to_owned(),
        bot: false,
        text: text.to_owned(),
        mentions_us: false,
        attachments: Vec::new(),
        at: 1_700_000_000_000 + n,
        age: Duration::ZERO,
    }
}

pub fn with_file(n: u64, text: &str) -> Incoming {
    let file = Attachment { id: "1".to_owned(), name: "a;b].png".to_owned(), kind: "image/png".to_owned(), size: 9 };
    Incoming { attachments: vec![file], ..message(n, text) }
}

pub fn click(button: &str, by: &str) -> Click {
    Click {
        id: "click".to_owned(),
        message: id(1),
        channel: channel("c1"),
        parent: None,
        direct: false,
        user: user(by),
        name: by.to_owned(),
        button: button.to_owned(),
    }
}

#[derive(Debug)]
pub struct World {
    pub now: Now,
    pub rows: BTreeMap<u64, Message>,
    pub seen_ids: BTreeMap<ChannelId, MessageId>,
    pub generation: u64,
    pub inbox: Inbox,
    pub access: Access,
    /// What the service has of `c1`.
    pub posted: Vec<Incoming>,
    /// Deliveries under way.
    pub given: VecDeque<(Attempt, Message, Prepared)>,
    /// What is being taken back, and what comes of that; None: the test says it.
    pub taking: VecDeque<(Attempt, String, Adapter)>,
    pub back: Option<Back>,
    /// Everything that ever was given to the agent.
    pub all_given: Vec<String>,
    pub preparing: Vec<u64>,
    pub said: Vec<(Key, Draft)>,
    pub kept: Vec<MessageId>,
    /// Everything else.
    pub out: Vec<Output>,
    pub fetches: VecDeque<(ChannelId, MessageId)>,
    /// The service's.
    pub threads: Vec<Thread>,
    /// Whether threads are found by [`World::find`] only.
    pub slow_threads: bool,
    /// Of which channels threads are looked for.
    pub looking: VecDeque<Vec<ChannelId>>,
    /// Where the bot is alone with whom.
    pub private: BTreeMap<UserId, ChannelId>,
    /// Whoever was looked for.
    pub sought: Vec<UserId>,
    pub full: u32,
    /// Commits are made by [`World::write`] only.
    pub slow: bool,
    pub commits: VecDeque<(Ticket, Vec<Change>)>,
}

impl World {
    pub fn new(adapter: Adapter) -> World {
        let (now, access) = (Now::at(S * 1000), access(adapter));
        World {
            now,
            rows: BTreeMap::new(),
            seen_ids: BTreeMap::new(),
            generation: 1,
            inbox: Inbox::new(now, 1, access.clone(), Stored::default(), [7; 32]),
            access,
            posted: Vec::new(),
            given: VecDeque::new(),
            taking: VecDeque::new(),
            back: Some(Back::Safe),
            all_given: Vec::new(),
            preparing: Vec::new(),
            said: Vec::new(),
            kept: Vec::new(),
            out: Vec::new(),
            fetches: VecDeque::new(),
            threads: Vec::new(),
            slow_threads: false,
            looking: VecDeque::new(),
            private: BTreeMap::new(),
            sought: Vec::new(),
            full: 0,
            slow: false,
            commits: VecDeque::new(),
        }
    }

    /// The holder dies; the next one begins.
    pub fn die(&mut self) {
        self.generation += 1;
        self.given.clear();
        self.taking.clear();
        self.preparing.clear();
        self.fetches.clear();
        self.looking.clear();
        self.commits.clear();
        let not_done = |row: &&Message| row.standing != Standing::Done;
        let stored = Stored {
            messages: self.rows.values().filter(not_done).cloned().collect(),
            seen: self.seen_ids.clone().into_iter().collect(),
            seq: self.rows.keys().last().copied().unwrap_or_default(),
        };
        self.inbox = Inbox::new(self.now, self.generation, self.access.clone(), stored, [7; 32]);
        self.run();
    }

    pub fn give(&mut self, input: Input) {
        self.inbox.handle(self.now, input);
        self.run();
    }

    pub fn hear(&mut self, incoming: Incoming) {
        self.posted.push(incoming.clone());
        self.give(Input::Message(incoming));
    }

    /// The agent answers the oldest delivery.
    pub fn answer(&mut self, result: Result<(), String>) {
        let (attempt, ..) = self.given.pop_front().unwrap();
        self.give(Input::Delivered(attempt, result.map_err(Undelivered::Not)));
    }

    /// The agent has not the oldest delivery.
    pub fn fail(&mut self, why: Undelivered) {
        let (attempt, ..) = self.given.pop_front().unwrap();
        self.give(Input::Delivered(attempt, Err(why)));
    }

    /// Makes the commit that waits.
    pub fn write(&mut self) {
        let (ticket, changes) = self.commits.pop_front().unwrap();
        let known = self.commit(changes);
        self.give(Input::Committed(ticket, Ok(known)));
    }

    /// Commands that are to be carried out.
    pub fn commands(&self) -> Vec<(Command, u64)> {
        let command = |output: &Output| match output {
            Output::Command { command, message } => Some((*command, message.seq)),
            _ => None,
        };
        self.out.iter().filter_map(command).collect()
    }

    pub fn pass(&mut self, time: Duration) {
        let end = self.now.boot + time;
        while let Some(left) = self.inbox.poll_timeout(self.now).filter(|left| self.now.boot + *left <= end) {
            self.now = self.now.plus(left);
            self.inbox.handle_timeout(self.now);
            self.run();
        }
        self.now = self.now.plus(end - self.now.boot);
    }

    /// Answers the oldest request for missed messages.
    pub fn fetch(&mut self, most: usize) {
        let (channel, after) = self.fetches.pop_front().unwrap();
        let there = |m: &&Incoming| m.channel == channel && m.id > after;
        let missed: Vec<Incoming> = self.posted.iter().filter(there).cloned().collect();
        let more = missed.len() > most;
        let messages = missed.into_iter().take(most).collect();
        self.give(Input::Fetched(channel, Ok(Missed { messages, more })));
    }

    /// All of it.
    pub fn fetch_all(&mut self) {
        while !self.fetches.is_empty() {
            self.fetch(100);
        }
    }

    /// Answers the oldest question for threads.
    pub fn find(&mut self, found: Result<(), String>) {
        let of = self.looking.pop_front().unwrap();
        let threads = self.threads.iter().filter(|thread| of.contains(&thread.parent)).cloned().collect();
        self.give(Input::Threads(found.map(|()| threads)));
    }

    fn commit(&mut self, changes: Vec<Change>) -> Vec<u64> {
        let mut known = Vec::new();
        for change in changes {
            match change {
                Change::Take(message) => {
                    let name = |m: &Message| (m.incoming.channel.clone(), m.incoming.id.clone());
                    let same = self.rows.values().find(|row| name(row) == name(&message)).map(|row| row.seq);
                    match same {
                        Some(seq) if seq == message.seq => {}
                        Some(_) => known.push(message.seq),
                        None => _ = self.rows.insert(message.seq, *message),
                    }
                }
                Change::Stands(seq, standing) => self.rows.get_mut(&seq).unwrap().standing = standing,
                Change::Rebound(seq, binding) => self.rows.get_mut(&seq).unwrap().binding = binding,
                Change::Again { seq, next } => {
                    let row = self.rows.remove(&seq).unwrap();
                    assert_eq!(row.standing, Standing::Perhaps);
                    self.rows.insert(next, Message { seq: next, standing: Standing::Stored, ..row });
                }
                Change::Seen { channel, message } => _ = self.seen_ids.insert(channel, message),
                Change::Forget(channel) => _ = self.seen_ids.remove(&channel),
                Change::Prune => {}
            }
        }
        known
    }

    pub fn run(&mut self) {
        while let Some(output) = self.inbox.poll_output() {
            match output {
                Output::Commit { ticket, changes, generation } => {
                    assert_eq!(generation, self.generation);
                    if self.slow {
                        self.commits.push_back((ticket, changes));
                        continue;
                    }
                    let result = if self.full > 0 {
                        self.full -= 1;
                        Err(CommitError::Full)
                    } else {
                        Ok(self.commit(changes))
                    };
                    self.inbox.handle(self.now, Input::Committed(ticket, result));
                }
                Output::Deliver { attempt, message, prepared } => {
                    let row = &self.rows[&message.seq];
                    assert!(matches!(row.standing, Standing::Delivering(_)), "stored before it is given");
                    self.all_given.push(message.incoming.text.clone());
                    self.given.push_back((attempt, *message, prepared));
                }
                Output::TakeBack { attempt, message, by } => {
                    self.given.retain(|(given, ..)| *given != attempt);
                    self.taking.push_back((attempt, message.incoming.text.clone(), by));
                    if let Some(back) = self.back.clone() {
                        self.taking.pop_back();
                        self.inbox.handle(self.now, Input::TakenBack(attempt, back));
                    }
                }
                Output::FetchAfter(channel, after) => self.fetches.push_back((channel, after)),
                Output::FindThreads(of) => {
                    self.looking.push_back(of);
                    if !self.slow_threads {
                        self.find(Ok(()));
                    }
                }
                Output::FindDirect(people) => {
                    self.sought.extend(people.iter().cloned());
                    let found = people.into_iter().map(|person| (person.clone(), self.private.get(&person).cloned()));
                    self.inbox.handle(self.now, Input::Direct(found.collect()));
                }
                Output::Prepare(message) => self.preparing.push(message.seq),
                Output::Say(key, draft) => {
                    if self.said.iter().all(|(known, _)| *known != key) {
                        self.said.push((key, draft));
                    }
                }
                Output::Kept(_, id) => self.kept.push(id),
                Output::Changed => {}
                other => self.out.push(other),
            }
        }
    }

    /// What the agent is given at the moment.
    pub fn texts(&self) -> Vec<&str> {
        self.given.iter().map(|(_, message, _)| message.incoming.text.as_str()).collect()
    }

    pub fn sayings(&self) -> Vec<&str> {
        self.said.iter().map(|(_, draft)| draft.text.as_str()).collect()
    }
}
