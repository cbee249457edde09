//! From the store to the agent.

use std::collections::VecDeque;
use std::sync::Arc;

use super::arrivals::again_button;
use super::gate::{Access, Adapter};
use super::io::{Attempt, Back, Command, Output, Prepared, Told, Undelivered};
use super::machine::{Inbox, Timer};
use super::record::{Change, Message, Standing};
use crate::chat::outbox::Key;
use crate::chat::{Button, Look};
use crate::limits;
use crate::line::one_line;
use crate::redact::redact;
use crate::time::{Due, Now};

/// Why a message is perhaps delivered that the last holder was giving.
pub(super) const HOLDER_STOPPED: &str = "Holdfast stopped just then.";

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
    pub command: Option<Command>,
    /// The adapter by which an agent could still take it.
    offered: Option<Adapter>,
    /// The sender knows that it was not delivered yet.
    failed: bool,
    /// How often the agent began with it and failed.
    failures: u32,
}

impl Held {
    fn new(message: Message, batch: u64, prepared: Option<Prepared>, command: Option<Command>) -> Held {
        let offered = match message.standing {
            Standing::Delivering(by) if by.acknowledges() => Some(by),
            _ => None,
        };
        Held { message, batch, told: false, prepared, command, offered, failed: false, failures: 0 }
    }
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Busy {
    /// It is marked.
    Marking(u64),
    /// The agent has it soon.
    Giving(u64, Attempt),
    /// An agent that could still take it loses it.
    Back(u64, Attempt),
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
        self.held.insert(seq, Held::new(message, batch, prepared, None));
        self.out.push_back(Output::Changed);
    }

    pub(super) fn hold_command(&mut self, message: Message, command: Command, batch: u64) {
        let prepared = Some(Prepared::default());
        self.held.insert(message.seq, Held::new(message, batch, prepared, Some(command)));
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
        let Some(by) = self.access.adapter(name).filter(|by| by.delivers() && !self.stopping) else {
            return self.unbegun(seq);
        };
        if self.held.get(&seq).is_none_or(|held| held.message.standing != Standing::Delivering(by)) {
            return self.unbegun(seq);
        }
        let attempt = self.attempt();
        if let Some(held) = self.held.get_mut(&seq).filter(|_| by.acknowledges()) {
            held.offered = Some(by);
        }
        let (Some(queue), Some(held)) = (self.queues.get_mut(name), self.held.get(&seq)) else { return };
        queue.busy = Some(Busy::Giving(seq, attempt));
        let prepared = held.prepared.clone().unwrap_or_default();
        self.out.push_back(Output::Deliver { attempt, message: Box::new(held.message.clone()), prepared });
    }

    /// It was marked for a delivery that does not begin. Whoever takes it on is told so, unless an agent was offered it before.
    fn unbegun(&mut self, seq: u64) {
        match self.held.get(&seq).and_then(|held| held.offered) {
            Some(by) => self.stands(seq, Standing::Delivering(by)),
            None => self.stands(seq, Standing::Stored),
        }
    }

    pub(super) fn advance_all(&mut self, now: Now) {
        // What was stored just now is told of once.
        let new = |(seq, held): (&u64, &Held)| (!held.told && self.commits.has(held.batch)).then_some(*seq);
        let new: Vec<u64> = self.held.iter().filter_map(new).collect();
        for seq in new {
            self.tell(seq);
        }
        let names: Vec<Arc<str>> = self.queues.keys().cloned().collect();
        for name in names {
            self.advance(now, &name);
        }
    }

    fn tell(&mut self, seq: u64) {
        let Some(held) = self.held.get_mut(&seq) else { return };
        let message = Box::new(held.message.clone());
        match held.command {
            // The next holder's.
            Some(_) if self.stopping => {}
            Some(_) if message.incoming.age > limits::INBOX_COMMAND_AGE => {
                self.carried(seq, "Too late: this command was ignored.".to_owned());
            }
            Some(command) => {
                held.told = true;
                self.out.push_back(Output::Command { command, message });
            }
            None => {
                held.told = true;
                self.out.push_back(Output::Taken(message.incoming.channel.clone(), message.incoming.id.clone()));
                if held.prepared.is_none() {
                    self.out.push_back(Output::Prepare(message));
                }
            }
        }
    }

    /// What a command came to. While the seat is let go nothing is said any more: the next holder carries it out and says.
    pub(super) fn carried(&mut self, seq: u64, text: String) {
        if self.stopping || self.held.get(&seq).is_none_or(|held| held.command.is_none()) {
            return;
        }
        let Some(Held { message, .. }) = self.held.remove(&seq) else { return };
        let (channel, id) = (message.incoming.channel, message.incoming.id);
        let key = Key::single(format!("command:{channel}:{id}"));
        self.say(key, &channel, Some(&id), text, Vec::new());
        self.commits.add(Change::Stands(seq, Standing::Done));
    }

    /// Begins to deliver the first message of a queue that waits for nothing.
    pub(super) fn advance(&mut self, now: Now, name: &Arc<str>) {
        let Some(queue) = self.queues.get_mut(name) else { return };
        if queue.waiting.is_empty() && queue.busy.is_none() {
            self.queues.remove(name);
            return;
        }
        if self.stopping || self.takes_back(name) {
            return;
        }
        let Some(by) = self.access.adapter(name).filter(|by| by.delivers()) else { return self.reroute(name) };
        let Some(queue) = self.queues.get(name).filter(|queue| queue.busy.is_none()) else { return };
        if self.timers.get(&Timer::Queue(name.clone())).is_some_and(|due| !due.left(now).is_zero()) {
            return;
        }
        let ready =
            |seq: &&u64| self.held.get(seq).is_some_and(|held| held.prepared.is_some() && self.commits.has(held.batch));
        let Some(seq) = queue.waiting.iter().find(ready).copied() else { return };
        self.stands(seq, Standing::Delivering(by));
        if let Some(queue) = self.queues.get_mut(name) {
            queue.busy = Some(Busy::Marking(seq));
        }
    }

    fn stands(&mut self, seq: u64, standing: Standing) {
        let batch = self.commits.add(Change::Stands(seq, standing));
        if let Some(held) = self.held.get_mut(&seq) {
            (held.batch, held.message.standing) = (batch, standing);
        }
    }

    /// What an agent was offered stays first: it may have a part of it.
    pub(super) fn offered(&mut self, name: &Arc<str>, seq: u64) {
        if let Some(queue) = self.queues.get_mut(name) {
            queue.waiting.retain(|waiting| *waiting != seq);
            queue.waiting.push_front(seq);
        }
    }

    /// Others may speak to other agents from now on.
    pub(super) fn admit(&mut self, now: Now, access: Access) {
        let before = std::mem::replace(&mut self.access, access);
        self.others_privately(&before.privately().cloned().collect::<Vec<_>>());
        for (name, queue) in &mut self.queues {
            if before.adapter(name) != self.access.adapter(name) {
                // Another agent is not waited for because this one could not take it.
                (queue.tries, queue.why) = (0, None);
                self.timers.stop(&Timer::Queue(name.clone()));
            }
        }
        for channel in before.rules.into_keys() {
            if !self.access.rules.contains_key(&channel) {
                self.forget(channel);
            }
        }
        self.advance_all(now);
    }

    /// Takes back what an agent was offered in another way than its messages go now. Whether the queue waits for that.
    fn takes_back(&mut self, name: &Arc<str>) -> bool {
        let (now, Some(queue)) = (self.access.adapter(name), self.queues.get(name)) else { return false };
        let otherwise = |seq: u64| self.held.get(&seq).and_then(|held| held.offered).filter(|by| Some(*by) != now);
        let found = match queue.busy {
            Some(Busy::Back(..)) => return true,
            Some(Busy::Giving(seq, attempt)) => otherwise(seq).map(|by| (seq, by, Some(attempt))),
            None => queue.waiting.iter().find_map(|seq| Some((*seq, otherwise(*seq)?, None))),
            // How it stands is stored first.
            Some(Busy::Marking(_) | Busy::Ending(_)) => None,
        };
        let Some((seq, by, attempt)) = found else { return false };
        let attempt = attempt.unwrap_or_else(|| self.attempt());
        let (Some(queue), Some(held)) = (self.queues.get_mut(name), self.held.get(&seq)) else { return false };
        queue.busy = Some(Busy::Back(seq, attempt));
        self.out.push_back(Output::TakeBack { attempt, message: Box::new(held.message.clone()), by });
        true
    }

    /// What was offered is taken back, or was taken before.
    pub(super) fn taken_back(&mut self, now: Now, attempt: Attempt, back: Back) {
        let Some((name, seq)) = self.under_way(attempt) else { return };
        match back {
            Back::Taken => self.has(&name, seq),
            Back::Perhaps(why) => self.has_not(now, name, seq, &Undelivered::Perhaps(why)),
            Back::Safe => {
                if let Some(held) = self.held.get_mut(&seq) {
                    held.offered = None;
                }
                if let Some(queue) = self.queues.get_mut(&name) {
                    queue.busy = None;
                }
                self.stands(seq, Standing::Stored);
            }
        }
        self.out.push_back(Output::Changed);
    }

    /// Which message an attempt is about.
    fn under_way(&self, attempt: Attempt) -> Option<(Arc<str>, u64)> {
        self.queues.iter().find_map(|(name, queue)| match queue.busy {
            Some(Busy::Giving(seq, a) | Busy::Back(seq, a)) if a == attempt => Some((name.clone(), seq)),
            _ => None,
        })
    }

    /// No agent has that name any more: its messages go to the one that is bound where they were written.
    fn reroute(&mut self, name: &Arc<str>) {
        let Some(queue) = self.queues.get(name) else { return };
        let busy =
            queue.busy.map(|(Busy::Marking(seq) | Busy::Giving(seq, _) | Busy::Back(seq, _) | Busy::Ending(seq))| seq);
        let moving: Vec<u64> = queue.waiting.iter().copied().filter(|seq| Some(*seq) != busy).collect();
        let stored = |seq: &u64| self.held.get(seq).is_some_and(|held| self.commits.has(held.batch));
        if !moving.iter().all(stored) {
            // Together, so that they stay in order.
            return;
        }
        for seq in moving {
            let Some(held) = self.held.get_mut(&seq) else { continue };
            let at = &held.message.incoming;
            let rule = self.access.rule(&at.channel, at.parent.as_ref(), at.direct);
            let to = rule.map(|rule| &rule.binding).filter(|to| to.adapter.delivers() && to.name != *name);
            let to = to.map(|to| to.name.clone());
            if let Some(queue) = self.queues.get_mut(name) {
                queue.waiting.retain(|waiting| *waiting != seq);
            }
            let Some(to) = to else {
                self.give_up(seq);
                continue;
            };
            held.message.binding = to.clone();
            held.batch = self.commits.add(Change::Rebound(seq, to.clone()));
            // It waits there for this to be stored, as a new one does.
            self.queues.entry(to).or_default().waiting.push_back(seq);
            self.out.push_back(Output::Changed);
        }
        self.queues.retain(|_, queue| !queue.waiting.is_empty() || queue.busy.is_some());
    }

    fn give_up(&mut self, seq: u64) {
        self.timers.stop(&Timer::Files(seq));
        let Some(Held { message, .. }) = self.held.remove(&seq) else { return };
        let (channel, id) = (message.incoming.channel, message.incoming.id);
        let key = Key::single(format!("unbound:{channel}:{id}"));
        let text = "No agent is bound here any more; this was not delivered.".to_owned();
        self.say(key, &channel, Some(&id), text, Vec::new());
        self.commits.add(Change::Stands(seq, Standing::Done));
        self.out.push_back(Output::Changed);
    }

    pub(super) fn prepared(&mut self, now: Now, seq: u64, result: Result<Prepared, String>) {
        let Some(held) = self.held.get_mut(&seq).filter(|held| held.prepared.is_none()) else { return };
        self.timers.stop(&Timer::Files(seq));
        let missing = |why: String| Prepared { files: Vec::new(), note: format!("[attachments are missing: {why}]") };
        held.prepared = Some(result.unwrap_or_else(missing));
        let name = held.message.binding.clone();
        self.advance(now, &name);
    }

    pub(super) fn delivered(&mut self, now: Now, attempt: Attempt, result: Result<(), Undelivered>) {
        let Some((name, seq)) = self.under_way(attempt) else { return };
        let back = self.queues.get(&name).is_some_and(|queue| matches!(queue.busy, Some(Busy::Back(..))));
        if back && result.is_err() {
            // What comes of taking it back tells more.
            return;
        }
        match result {
            Ok(()) => self.has(&name, seq),
            Err(why) => self.has_not(now, name, seq, &why),
        }
        self.out.push_back(Output::Changed);
    }

    fn has(&mut self, name: &Arc<str>, seq: u64) {
        self.stands(seq, Standing::Done);
        let (Some(queue), Some(held)) = (self.queues.get_mut(name), self.held.get(&seq)) else { return };
        (queue.busy, queue.tries, queue.why) = (Some(Busy::Ending(seq)), 0, None);
        if held.failed {
            let (channel, id) = (held.message.incoming.channel.clone(), held.message.incoming.id.clone());
            let key = Key::single(format!("delivered:{channel}:{id}"));
            self.say(key, &channel, Some(&id), "Delivered now.".to_owned(), Vec::new());
        }
    }

    fn has_not(&mut self, now: Now, name: Arc<str>, seq: u64, undelivered: &Undelivered) {
        let why = one_line(&redact(undelivered.why()), limits::ASK_PREVIEW_MAX);
        self.out.push_back(Output::Told(Told::NotDelivered(seq, why.clone())));
        let (Some(queue), Some(held)) = (self.queues.get_mut(&name), self.held.get_mut(&seq)) else { return };
        queue.busy = None;
        held.failures += u32::from(matches!(undelivered, Undelivered::Failed(_)));
        if matches!(undelivered, Undelivered::Perhaps(_)) || held.failures >= limits::INBOX_TRIES {
            (queue.tries, queue.why) = (0, None);
            queue.waiting.retain(|waiting| *waiting != seq);
            self.commits.add(Change::Stands(seq, Standing::Perhaps));
            if let Some(Held { message, .. }) = self.held.remove(&seq) {
                self.perhaps(Message { standing: Standing::Perhaps, ..message }, &why);
            }
            return self.advance(now, &name);
        }
        let wait = limits::INBOX_RETRY_MIN.saturating_mul(1 << queue.tries.min(16));
        (queue.tries, queue.why) = (queue.tries + 1, Some(why.clone()));
        self.timers.set(Timer::Queue(name.clone()), Due::boot(now, wait.min(limits::INBOX_RETRY_MAX)));
        if !std::mem::replace(&mut held.failed, true) {
            let (channel, id) = (held.message.incoming.channel.clone(), held.message.incoming.id.clone());
            let key = Key::single(format!("undelivered:{channel}:{id}"));
            let text = format!("Not delivered yet, tried again: {why}");
            self.say(key, &channel, Some(&id), text, Vec::new());
        }
        self.unbegun(seq);
        self.offered(&name, seq);
    }

    /// The agent may have it, and cannot tell it from another: its sender decides.
    pub(super) fn perhaps(&mut self, message: Message, why: &str) {
        let (channel, id) = (message.incoming.channel.clone(), message.incoming.id.clone());
        let button = Button { id: again_button(message.seq), label: "Send again".to_owned(), look: Look::Plain };
        let key = Key::single(format!("perhaps:{channel}:{id}:{}", message.seq));
        self.say(key, &channel, Some(&id), format!("This may have been delivered: {why}"), vec![button]);
        self.perhaps.insert(message.seq, message);
        if self.perhaps.len() > limits::INBOX_PERHAPS
            && let Some((oldest, _)) = self.perhaps.pop_first()
        {
            self.commits.add(Change::Stands(oldest, Standing::Done));
        }
    }
}
