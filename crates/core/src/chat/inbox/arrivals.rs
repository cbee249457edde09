//! From the service into the store.

use std::collections::VecDeque;

use super::gate::{Adapter, Refusal};
use super::io::{Command, Missed, Output, Told};
use super::machine::{Inbox, Timer};
use super::record::{Change, Message, Standing};
use crate::chat::outbox::Key;
use crate::chat::{ChannelId, Click, Incoming, MessageId};
use crate::limits;
use crate::line::one_line;
use crate::time::{Due, Now};

/// Missed messages of a channel are fetched; what is written meanwhile waits, so that what was seen never has gaps.
#[derive(Debug)]
pub(super) struct Catching {
    /// Everything up to here was fetched, whatever became of it.
    after: MessageId,
    held: VecDeque<Incoming>,
    /// Too many came: they are fetched as well.
    more: bool,
    /// The connection went and came back: what came then may have a gap before it.
    again: bool,
}

impl Catching {
    pub(super) fn after(seen: MessageId) -> Catching {
        Catching { after: seen, held: VecDeque::new(), more: false, again: false }
    }
}

/// What whoever is not heard is told alone.
const NOT_HERE: &str = "You may not do this here.";

/// Buttons that send a message again.
const AGAIN: &str = "again:";

/// What such a button is called back with.
pub(super) fn again_button(seq: u64) -> String {
    format!("{AGAIN}{seq}")
}

impl Inbox {
    /// Channels of which nothing was seen yet begin with this moment: what is written from now on may be missed.
    pub(super) fn begins(&mut self, moment: &MessageId) {
        let new = |channel: &&ChannelId| !self.seen.contains_key(*channel);
        let new: Vec<ChannelId> = self.access.rules.keys().filter(new).cloned().collect();
        for channel in new {
            self.saw(&channel, moment);
        }
        self.begins_privately(moment);
    }

    /// Whatever was written since the last message that was seen is fetched.
    pub(super) fn connected(&mut self, now: Now) {
        for catching in self.catching.values_mut() {
            catching.held.clear();
            catching.again = true;
        }
        let new = |(channel, _): &(&ChannelId, &MessageId)| !self.catching.contains_key(*channel);
        let mut new: Vec<_> = self.seen.iter().filter(new).map(|(c, m)| (c.clone(), m.clone())).collect();
        new.sort_by_key(|(channel, _)| !self.access.rules.contains_key(channel));
        let waiting = new.iter().map(|(channel, _)| channel.clone()).collect();
        self.catching.extend(new.into_iter().map(|(channel, seen)| (channel, Catching::after(seen))));
        self.find_threads(now, waiting);
        self.look_for_people(true);
    }

    pub(super) fn fetch(&mut self, now: Now, channel: ChannelId) {
        if self.is_full() {
            return self.fetch_later(now, channel);
        }
        if let Some(catching) = self.catching.get(&channel) {
            self.out.push_back(Output::FetchAfter(channel, catching.after.clone()));
        }
    }

    fn fetch_later(&mut self, now: Now, channel: ChannelId) {
        self.timers.set(Timer::Fetch(channel), Due::boot(now, limits::INBOX_FETCH_RETRY));
    }

    pub(super) fn fetched(&mut self, now: Now, channel: ChannelId, result: Result<Missed, String>) {
        let Some(after) = self.catching.get(&channel).map(|catching| catching.after.clone()) else { return };
        let mut missed = match result {
            Ok(_) if self.is_full() => return self.fetch_later(now, channel),
            Ok(missed) => missed,
            Err(why) => {
                self.out.push_back(Output::Told(Told::NotFetched(channel.clone(), why)));
                return self.fetch_later(now, channel);
            }
        };
        let deaf = |m: &Incoming| self.access.rule(&m.channel, m.parent.as_ref(), m.direct).is_none();
        if missed.messages.first().is_some_and(deaf) {
            missed = Missed { messages: Vec::new(), more: false };
            self.forget(channel.clone());
        }
        // A page that brings nothing new would come again for ever.
        let last = missed.messages.last().map(|last| last.id.clone()).filter(|last| *last != after);
        let further = missed.more && last.is_some();
        for incoming in missed.messages {
            self.pass(now, incoming, true);
        }
        let Some(catching) = self.catching.get_mut(&channel) else { return };
        catching.after = last.unwrap_or(after);
        if further || std::mem::take(&mut catching.more) || std::mem::take(&mut catching.again) {
            return self.fetch(now, channel);
        }
        let held = self.catching.remove(&channel).map(|catching| catching.held);
        for incoming in held.into_iter().flatten() {
            self.pass(now, incoming, true);
        }
    }

    pub(super) fn arrived(&mut self, now: Now, incoming: Incoming) {
        let full = self.is_full();
        if command(&incoming.text).is_some() {
            // Some services bring it only now, and as something that is no message: it waits for none and does not count as
            // one that was seen.
            if !full {
                self.pass(now, incoming, false);
            }
            return;
        }
        self.may_be_new(now, &incoming);
        if let (true, Some(seen)) = (full, self.seen.get(&incoming.channel))
            && !self.catching.contains_key(&incoming.channel)
        {
            self.catching.insert(incoming.channel.clone(), Catching::after(seen.clone()));
            self.fetch_later(now, incoming.channel.clone());
        }
        match self.catching.get_mut(&incoming.channel) {
            Some(catching) if full || catching.more || catching.held.len() >= limits::INBOX_HELD => {
                catching.held.clear();
                catching.more = true;
            }
            Some(catching) => catching.held.push_back(incoming),
            None => self.pass(now, incoming, true),
        }
    }

    /// Whether what was taken waits for the store so much that nothing more is: it is fetched once that is over.
    fn is_full(&self) -> bool {
        self.passed.len() >= limits::INBOX_BACKLOG
    }

    /// Through the gate.
    fn pass(&mut self, now: Now, incoming: Incoming, counts: bool) {
        let verdict = self.access.message(&incoming).map(|rule| rule.binding.clone());
        let (channel, message) = (incoming.channel.clone(), incoming.id.clone());
        if !counts {
            let text = if verdict.is_ok() { format!("Heard: {}", incoming.text.trim()) } else { NOT_HERE.to_owned() };
            self.out.push_back(Output::Answer { click: message.to_string(), text });
        }
        if verdict == Err(Refusal::Channel) {
            if incoming.direct && !incoming.bot {
                self.meet(now, &incoming);
            }
            return self.out.push_back(Output::Kept(channel, message));
        }
        self.take_if(now, &incoming, verdict);
        let batch = if counts { self.saw(&channel, &message) } else { self.commits.last() };
        match self.commits.has(batch) {
            true => self.out.push_back(Output::Kept(channel, message)),
            false => self.passed.push_back((batch, channel, message)),
        }
    }

    /// Everything in this channel up to this message was seen; the batch that stores it.
    pub(super) fn saw(&mut self, channel: &ChannelId, message: &MessageId) -> u64 {
        if self.seen.len() >= limits::INBOX_CHANNELS && !self.seen.contains_key(channel) {
            let spare = |(channel, _): &(&ChannelId, &MessageId)| !self.access.rules.contains_key(*channel);
            // Services number their messages upwards: the smallest is the oldest.
            let oldest = self.seen.iter().filter(spare).min_by_key(|(_, m)| (m.as_str().len(), m.as_str()));
            if let Some(oldest) = oldest.map(|(channel, _)| channel.clone()) {
                self.forget(oldest);
            }
        }
        self.seen.insert(channel.clone(), message.clone());
        self.commits.add(Change::Seen { channel: channel.clone(), message: message.clone() })
    }

    pub(super) fn forget(&mut self, channel: ChannelId) {
        if self.seen.remove(&channel).is_some() {
            self.commits.add(Change::Forget(channel));
        }
    }

    fn take_if(&mut self, now: Now, incoming: &Incoming, verdict: Result<super::Binding, Refusal>) {
        let binding = match verdict {
            Ok(binding) => binding,
            Err(Refusal::Person) if incoming.direct || incoming.mentions_us => return self.meet(now, incoming),
            Err(_) => return,
        };
        let command = command(&incoming.text);
        if command.is_none() && binding.adapter == Adapter::Mirror {
            return self.answer(incoming, "This channel is read-only: messages here do not reach the agent.");
        }
        let waiting = match command {
            Some(_) => self.held.values().filter(|held| held.command.is_some()).count(),
            None => self.queues.get(&binding.name).map_or(0, |queue| queue.waiting.len()),
        };
        if waiting >= limits::INBOX_WAITING {
            return self.answer(incoming, "Too many messages are waiting already; this one was dropped.");
        }
        self.seq += 1;
        let incoming = clean(incoming);
        let message = Message { seq: self.seq, incoming, binding: binding.name, standing: Standing::Stored };
        let batch = self.commits.add(Change::Take(Box::new(message.clone())));
        match command {
            Some(command) => self.hold_command(message, command, batch),
            None => self.queue(now, message, batch),
        }
    }

    fn answer(&mut self, incoming: &Incoming, text: &str) {
        let key = Key::single(format!("answer:{}:{}", incoming.channel, incoming.id));
        self.say(key, &incoming.channel, Some(&incoming.id), text.to_owned(), Vec::new());
    }

    /// The same gate; then the inbox's own buttons.
    pub(super) fn clicked(&mut self, now: Now, click: Click) {
        if self.access.click(&click).is_err() {
            return self.out.push_back(Output::Answer { click: click.id, text: NOT_HERE.to_owned() });
        }
        let Some(seq) = click.button.strip_prefix(AGAIN) else {
            return self.out.push_back(Output::Clicked(click));
        };
        let found = seq.parse::<u64>().ok().and_then(|seq| self.perhaps.remove(&seq));
        let text = if found.is_some() { "It is sent again." } else { "This has expired." };
        self.out.push_back(Output::Answer { click: click.id, text: text.to_owned() });
        if let Some(mut message) = found {
            message.standing = Standing::Stored;
            self.seq += 1;
            let batch = self.commits.add(Change::Again { seq: message.seq, next: self.seq });
            message.seq = self.seq;
            self.queue(now, message, batch);
        }
    }
}

/// What a message asks of the bot itself. Some services write the bot's name behind it.
pub(super) fn command(text: &str) -> Option<Command> {
    let word = text
        .trim()
        .split_once('@')
        .map_or(text.trim(), |(word, name)| if name.contains(char::is_whitespace) { text.trim() } else { word });
    match word.to_ascii_lowercase().as_str() {
        "/stop" => Some(Command::Stop),
        "/status" => Some(Command::Status),
        "/seat" => Some(Command::Seat),
        _ => None,
    }
}

/// Without characters that steer a terminal, and within bounds.
fn clean(incoming: &Incoming) -> Incoming {
    let mut clean = incoming.clone();
    clean.text = incoming.text.replace("\r\n", "\n").replace('\r', "\n");
    clean.text.retain(|c| !c.is_control() || c == '\n' || c == '\t');
    let fits = |at: &usize| clean.text.is_char_boundary(*at);
    let end = (0..=limits::INBOX_TEXT_MAX.min(clean.text.len())).rev().find(fits).unwrap_or_default();
    clean.text.truncate(end);
    clean.author_name = one_line(&incoming.author_name, limits::INBOX_NAME_MAX);
    clean.attachments.truncate(limits::INBOX_ATTACHMENTS);
    for attachment in &mut clean.attachments {
        let name = attachment.name.replace(['[', ']', ';', '\r', '\n', '/', '\\'], "_");
        attachment.name = one_line(&name, limits::INBOX_NAME_MAX);
        attachment.kind = one_line(&attachment.kind, limits::INBOX_NAME_MAX);
    }
    clean
}
