//! From the store to the agent.

use std::collections::VecDeque;
use std::sync::Arc;

use super::arrivals::again_button;
use super::io::{Attempt, Command, Output, Prepared, Told};
use super::machine::{Inbox, Timer};
use super::record::{Change, Message, Standing};
use crate::chat::outbox::Key;
use crate::chat::{Button, Look};
use crate::limits;
use crate::line::one_line;
use crate::redact::redact;
use crate::time::{Due, Now};

/// A message that is not done.
#[derive(Debug)]
pub(super) struct Held {
    pub message: Message,
    /// The batch that stores how it stands.
    batch: u64,
    /// Whether the shell was told of it.
    told: bool,
    /// Its files, once nothing is waited for.
    prepared: Option<Prepared>,
    /// What it asks of the bot; such a message is in no queue.
    command: Option<Command>,
    /// The sender knows that it was not delivered yet.
    failed: bool,
}

/// Messages for one agent.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub waiting: VecDeque<u64>,
    /// On its way: first into the store, then to the agent, then its end into the store.
    busy: Option<Busy>,
    tries: u32,
    pub why: Option<String>,
}

impl Queue {
    pub fn is_idle(&self) -> bool {
        self.busy.is_none()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Busy {
    /// It is marked.
    Marking(u64),
    /// The agent has it soon.
    Giving(u64, Attempt),
    /// It is marked as done.
    Ending(u64),
}

impl Inbox {
    pub(super) fn queue(&mut self, now: Now, message: Message, batch: u64) {
        let seq = message.seq;
        let prepared = message.incoming.attachments.is_empty().then(Prepared::default);
        if prepared.is_none() {
            self.timers.set(Timer::Files(seq), Due::boot(now, limits::INBOX_ATTACHMENT_WAIT));
        }
        self.queues.entry(message.binding.clone()).or_default().waiting.push_back(seq);
        let held = Held { message, batch, told: false, prepared, command: None, failed: false };
        self.held.insert(seq, held);
        self.out.push_back(Output::Changed);
    }

    pub(super) fn hold_command(&mut self, message: Message, command: Command, batch: u64) {
        let prepared = Some(Prepared::default());
        let held = Held { message, batch, told: false, prepared, command: Some(command), failed: false };
        self.held.insert(held.message.seq, held);
    }

    /// A batch is stored; these numbers of it were known under others.
    pub(super) fn stored(&mut self, known: &[u64]) {
        for seq in known {
            if let Some(held) = self.held.remove(seq) {
                self.timers.stop(&Timer::Files(*seq));
                if let Some(queue) = self.queues.get_mut(&held.message.binding) {
                    queue.waiting.retain(|waiting| waiting != seq);
                }
            }
        }
        let names: Vec<Arc<str>> = self.queues.keys().cloned().collect();
        for name in names {
            self.marked(&name);
        }
    }

    /// How the queue's first message stands is stored.
    fn marked(&mut self, name: &Arc<str>) {
        let Some(queue) = self.queues.get_mut(name) else { return };
        let (Some(Busy::Marking(seq) | Busy::Ending(seq)), busy) = (queue.busy, queue.busy) else { return };
        if self.held.get(&seq).is_some_and(|held| !self.commits.has(held.batch)) {
            return;
        }
        queue.busy = None;
        if busy == Some(Busy::Ending(seq)) {
            queue.waiting.retain(|waiting| *waiting != seq);
            self.held.remove(&seq);
            return self.out.push_back(Output::Changed);
        }
        let attempt = self.attempt();
        let (Some(queue), Some(held)) = (self.queues.get_mut(name), self.held.get(&seq)) else { return };
        queue.busy = Some(Busy::Giving(seq, attempt));
        let prepared = held.prepared.clone().unwrap_or_default();
        self.out.push_back(Output::Deliver { attempt, message: Box::new(held.message.clone()), prepared });
    }

    pub(super) fn advance_all(&mut self, now: Now) {
        // What was stored just now is told of once.
        let new = |(seq, held): (&u64, &Held)| (!held.told && self.commits.has(held.batch)).then_some(*seq);
        let new: Vec<u64> = self.held.iter().filter_map(new).collect();
        for seq in new {
            let Some(held) = self.held.get_mut(&seq) else { continue };
            held.told = true;
            let message = Box::new(held.message.clone());
            if let Some(command) = held.command {
                self.held.remove(&seq);
                self.out.push_back(Output::Command { command, message });
                continue;
            }
            self.out.push_back(Output::Taken(message.incoming.channel.clone(), message.incoming.id.clone()));
            if held.prepared.is_none() {
                self.out.push_back(Output::Prepare(message));
            }
        }
        let names: Vec<Arc<str>> = self.queues.keys().cloned().collect();
        for name in names {
            self.advance(now, &name);
        }
    }

    /// Begins to deliver the first message of a queue that waits for nothing.
    pub(super) fn advance(&mut self, now: Now, name: &Arc<str>) {
        let Some(queue) = self.queues.get_mut(name) else { return };
        if queue.waiting.is_empty() && queue.busy.is_none() {
            self.queues.remove(name);
            return;
        }
        let waits = self.timers.get(&Timer::Queue(name.clone())).is_some_and(|due| !due.left(now).is_zero());
        if self.stopping || queue.busy.is_some() || waits || self.adapter(name).is_none() {
            return;
        }
        let ready =
            |seq: &&u64| self.held.get(seq).is_some_and(|held| held.prepared.is_some() && self.commits.has(held.batch));
        let Some(queue) = self.queues.get(name) else { return };
        let Some(seq) = queue.waiting.iter().find(ready).copied() else { return };
        let batch = self.commits.add(Change::Stands(seq, Standing::Delivering));
        if let (Some(queue), Some(held)) = (self.queues.get_mut(name), self.held.get_mut(&seq)) {
            (held.batch, held.message.standing) = (batch, Standing::Delivering);
            queue.busy = Some(Busy::Marking(seq));
        }
    }

    pub(super) fn prepared(&mut self, now: Now, seq: u64, result: Result<Prepared, String>) {
        let Some(held) = self.held.get_mut(&seq).filter(|held| held.prepared.is_none()) else { return };
        self.timers.stop(&Timer::Files(seq));
        let missing = |why: String| Prepared { files: Vec::new(), note: format!("[attachments are missing: {why}]") };
        held.prepared = Some(result.unwrap_or_else(missing));
        let name = held.message.binding.clone();
        self.advance(now, &name);
    }

    pub(super) fn delivered(&mut self, now: Now, attempt: Attempt, result: Result<(), String>) {
        let giving = |queue: &Queue| match queue.busy {
            Some(Busy::Giving(seq, a)) if a == attempt => Some(seq),
            _ => None,
        };
        let found = self.queues.iter().find_map(|(name, queue)| giving(queue).map(|seq| (name.clone(), seq)));
        let Some((name, seq)) = found else { return };
        let standing = if result.is_ok() { Standing::Done } else { Standing::Stored };
        let batch = self.commits.add(Change::Stands(seq, standing));
        let (Some(queue), Some(held)) = (self.queues.get_mut(&name), self.held.get_mut(&seq)) else { return };
        (held.batch, held.message.standing) = (batch, standing);
        let (channel, id) = (held.message.incoming.channel.clone(), held.message.incoming.id.clone());
        match result {
            Ok(()) => {
                (queue.busy, queue.tries, queue.why) = (Some(Busy::Ending(seq)), 0, None);
                if held.failed {
                    let key = Key::single(format!("delivered:{channel}:{id}"));
                    self.say(key, &channel, Some(&id), "Delivered now.".to_owned(), Vec::new());
                }
            }
            Err(why) => {
                let why = one_line(&redact(&why), limits::ASK_PREVIEW_MAX);
                let wait = limits::INBOX_RETRY_MIN.saturating_mul(1 << queue.tries.min(16));
                (queue.busy, queue.tries, queue.why) = (None, queue.tries + 1, Some(why.clone()));
                self.timers.set(Timer::Queue(name), Due::boot(now, wait.min(limits::INBOX_RETRY_MAX)));
                if !std::mem::replace(&mut held.failed, true) {
                    let key = Key::single(format!("undelivered:{channel}:{id}"));
                    let text = format!("Not delivered yet, tried again: {why}");
                    self.say(key, &channel, Some(&id), text, Vec::new());
                }
                self.out.push_back(Output::Told(Told::NotDelivered(seq, why)));
            }
        }
        self.out.push_back(Output::Changed);
    }

    /// A holder died while this was on its way: its sender decides.
    pub(super) fn perhaps(&mut self, message: Message) {
        let (channel, id) = (message.incoming.channel.clone(), message.incoming.id.clone());
        let button = Button { id: again_button(message.seq), label: "Send again".to_owned(), look: Look::Plain };
        let key = Key::single(format!("perhaps:{channel}:{id}:{}", message.seq));
        let text = "This was perhaps delivered: Holdfast stopped just then.".to_owned();
        self.say(key, &channel, Some(&id), text, vec![button]);
        self.perhaps.insert(message.seq, message);
        if self.perhaps.len() > limits::INBOX_PERHAPS
            && let Some((oldest, _)) = self.perhaps.pop_first()
        {
            self.commits.add(Change::Stands(oldest, Standing::Done));
        }
    }
}
