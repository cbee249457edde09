//! One holder's inbox.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::arrivals::{Catching, command};
use super::deliveries::{HOLDER_STOPPED, Held, Queue};
use super::gate::Access;
use super::io::{Attempt, InboxView, Input, Output, QueueView, Told};
use super::pairing::Pairing;
use super::places::{Finding, Privately};
use super::record::{Change, Message, Standing, Stored};
use crate::chat::commits::Commits;
use crate::chat::outbox::Key;
use crate::chat::{Button, ChannelId, CommitError, Draft, MessageId, Ticket};
use crate::limits;
use crate::time::{Due, Now, TimerTable};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Make a commit.
    Commit,
    /// Ask for missed messages again.
    Fetch(ChannelId),
    /// Look for threads again.
    Threads,
    /// A message does not wait for its files any longer.
    Files(u64),
    /// Deliver the first of a queue again.
    Queue(Arc<str>),
    /// Remove what had its time.
    Prune,
}

/// See the module. `handle`, drain `poll_output`, wait for `poll_timeout`.
#[derive(Debug)]
pub struct Inbox {
    generation: u64,
    /// The seat is let go: what is on its way may end, nothing else begins.
    pub(super) stopping: bool,
    over: bool,
    pub(super) access: Access,
    pub(super) queues: BTreeMap<Arc<str>, Queue>,
    pub(super) held: BTreeMap<u64, Held>,
    pub(super) perhaps: BTreeMap<u64, Message>,
    pub(super) catching: BTreeMap<ChannelId, Catching>,
    pub(super) seen: BTreeMap<ChannelId, MessageId>,
    pub(super) finding: Option<Finding>,
    pub(super) privately: Privately,
    pub(super) commits: Commits<Change>,
    pub(super) timers: TimerTable<Timer>,
    pub(super) out: VecDeque<Output>,
    pub(super) seq: u64,
    /// Messages that passed the gate's door, with the batch that stores what became of them.
    pub(super) passed: VecDeque<(u64, ChannelId, MessageId)>,
    pairing: Pairing,
    stuck: Option<CommitError>,
    attempts: u64,
}

impl Inbox {
    /// The inbox of a holder that begins to serve. The seed is for codes: from the system's own source.
    pub fn new(now: Now, generation: u64, access: Access, stored: Stored, seed: [u8; 32]) -> Inbox {
        let mut inbox = Inbox {
            generation,
            stopping: false,
            over: false,
            access,
            queues: BTreeMap::new(),
            held: BTreeMap::new(),
            perhaps: BTreeMap::new(),
            catching: BTreeMap::new(),
            seen: stored.seen.into_iter().collect(),
            finding: None,
            privately: Privately::default(),
            commits: Commits::default(),
            timers: TimerTable::default(),
            out: VecDeque::new(),
            seq: stored.seq,
            passed: VecDeque::new(),
            pairing: Pairing::new(seed),
            stuck: None,
            attempts: 0,
        };
        for message in stored.messages {
            inbox.found(now, message);
        }
        inbox.timers.set(Timer::Prune, Due::boot(now, limits::OUTBOX_PRUNE));
        inbox.advance_all(now);
        inbox.settle(now);
        inbox
    }

    /// Something happened.
    pub fn handle(&mut self, now: Now, input: Input) {
        if self.over {
            return;
        }
        let begins = matches!(
            input,
            Input::Message(_)
                | Input::Click(_)
                | Input::Moment(_)
                | Input::Connected
                | Input::Fetched(..)
                | Input::Threads(_)
                | Input::Direct(_)
                | Input::PairTyped(_)
        );
        if self.stopping && begins {
            return;
        }
        match input {
            Input::Message(incoming) => self.arrived(now, incoming),
            Input::Click(click) => self.clicked(now, click),
            Input::Moment(moment) => self.begins(&moment),
            Input::Connected => self.connected(now),
            Input::Fetched(channel, result) => self.fetched(now, channel, result),
            Input::Threads(found) => self.threads(now, found),
            Input::Direct(found) => self.found_privately(now, found),
            Input::Prepared(seq, result) => self.prepared(now, seq, result),
            Input::Delivered(attempt, result) => self.delivered(now, attempt, result),
            Input::TakenBack(attempt, back) => self.taken_back(now, attempt, back),
            Input::Carried(seq, text) => self.carried(seq, text),
            Input::Committed(ticket, result) => self.committed(now, ticket, result),
            Input::Access(access) => self.admit(now, access),
            Input::PairOpen => self.pairing.open(now),
            Input::PairTyped(code) => match self.pairing.typed(now, &code) {
                Some((user, name)) => {
                    self.access.people.insert(user.clone());
                    self.out.push_back(Output::Admit(user, name));
                }
                None => self.out.push_back(Output::Told(Told::WrongCode)),
            },
            Input::Generation(generation) => self.superseded(generation),
            Input::Stop => self.stopping = true,
        }
        self.settle(now);
    }

    /// Time passed.
    pub fn handle_timeout(&mut self, now: Now) {
        while let Some(timer) = self.timers.expired(now) {
            match timer {
                Timer::Commit => self.commit(),
                Timer::Fetch(channel) => self.fetch(now, channel),
                Timer::Threads => self.look_for_threads(),
                Timer::Files(seq) => self.prepared(now, seq, Err("it took too long".to_owned())),
                Timer::Queue(name) => self.advance(now, &name),
                Timer::Prune => {
                    self.commits.add(Change::Prune);
                    self.timers.set(Timer::Prune, Due::boot(now, limits::OUTBOX_PRUNE));
                }
            }
        }
        self.settle(now);
    }

    /// What to do next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Time until [`Inbox::handle_timeout`] has something to do.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.timers.earliest(now)
    }

    /// Whether the store has everything; agents may still be given what it has as such.
    pub fn is_stored(&self) -> bool {
        self.commits.is_idle()
    }

    /// Everything about it.
    pub fn snapshot(&self, now: Now) -> InboxView {
        let view = |(name, queue): (&Arc<str>, &Queue)| QueueView {
            binding: name.clone(),
            waiting: queue.waiting.len(),
            why: queue.why.clone(),
        };
        InboxView {
            queues: self.queues.iter().filter(|(_, queue)| !queue.waiting.is_empty()).map(view).collect(),
            perhaps: self.perhaps.len(),
            stuck: self.stuck,
            pairing: self.pairing.until(now),
        }
    }

    pub(super) fn meet(&mut self, now: Now, message: &crate::chat::Incoming) {
        let Some(code) = self.pairing.meet(now, &message.author, &message.author_name) else { return };
        let text = format!("Type this code at the machine where Holdfast runs: **{code}**");
        let key = Key::single(format!("pair:{}:{}", message.channel, message.id));
        self.say(key, &message.channel, Some(&message.id), text, Vec::new());
    }

    pub(super) fn say(
        &mut self,
        key: Key,
        channel: &ChannelId,
        reply_to: Option<&MessageId>,
        text: String,
        buttons: Vec<Button>,
    ) {
        let nonce = key.nonce();
        let draft = Draft { channel: channel.clone(), text, nonce, reply_to: reply_to.cloned(), buttons };
        self.out.push_back(Output::Say(key, draft));
    }

    pub(super) fn attempt(&mut self) -> Attempt {
        self.attempts += 1;
        Attempt(self.attempts)
    }

    fn settle(&mut self, now: Now) {
        if self.over {
            return;
        }
        if self.stopping || !self.commits.can_wait() {
            if !self.commits.failed() {
                self.commit();
            }
        } else if !self.commits.is_idle() && self.timers.get(&Timer::Commit).is_none() {
            self.timers.set(Timer::Commit, Due::boot(now, limits::OUTBOX_CURSOR_LAG));
        }
    }

    fn commit(&mut self) {
        if let Some((ticket, changes)) = self.commits.issue() {
            self.timers.stop(&Timer::Commit);
            self.out.push_back(Output::Commit { ticket, generation: self.generation, changes });
        }
    }

    fn committed(&mut self, now: Now, ticket: Ticket, result: Result<Vec<u64>, CommitError>) {
        if let Err(CommitError::Superseded(generation)) = result {
            return self.superseded(generation);
        }
        if !self.commits.ended(ticket, result.is_ok()) {
            return;
        }
        let stuck = result.as_ref().err().copied();
        if self.stuck != stuck {
            self.stuck = stuck;
            self.out.push_back(Output::Changed);
        }
        match result {
            Ok(known) => {
                let kept = self.passed.iter().take_while(|(batch, ..)| self.commits.has(*batch)).count();
                self.out.extend(self.passed.drain(..kept).map(|(_, channel, id)| Output::Kept(channel, id)));
                self.stored(&known);
                self.advance_all(now);
            }
            Err(_) => self.timers.set(Timer::Commit, Due::boot(now, limits::OUTBOX_COMMIT_RETRY)),
        }
    }

    /// A message that the last holder left.
    fn found(&mut self, now: Now, mut message: Message) {
        match (message.standing, command(&message.incoming.text)) {
            (Standing::Delivering(by), _) if !by.acknowledges() => {
                message.standing = Standing::Perhaps;
                self.commits.add(Change::Stands(message.seq, Standing::Perhaps));
                self.perhaps(message, HOLDER_STOPPED);
            }
            // The last holder may not have come to say so.
            (Standing::Perhaps, _) => self.perhaps(message, HOLDER_STOPPED),
            (_, Some(command)) => self.hold_command(message, command, 0),
            (Standing::Delivering(_), None) => {
                let (seq, name) = (message.seq, message.binding.clone());
                self.queue(now, message, 0);
                self.offered(&name, seq);
            }
            (_, None) => self.queue(now, message, 0),
        }
    }

    fn superseded(&mut self, generation: u64) {
        if generation > self.generation {
            self.over = true;
            self.timers = TimerTable::default();
            self.out.clear();
            self.out.push_back(Output::Superseded(generation));
        }
    }
}
