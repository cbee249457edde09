//! From the service into the store.

use std::collections::VecDeque;

use super::gate::{Adapter, Refusal};
use super::io::{Command, Missed, Output, Told};
use super::machine::{Inbox, Timer};
use super::record::{Change, Message, Standing};
use crate::chat::outbox::Key;
use crate::chat::{ChannelId, Click, Incoming};
use crate::limits;
use crate::line::one_line;
use crate::time::{Due, Now};

/// Missed messages of a channel are fetched; what is written meanwhile waits, so that what was seen never has gaps.
#[derive(Debug, Default)]
pub(super) struct Catching {
    held: VecDeque<Incoming>,
    /// Too many came: they are fetched as well.
    more: bool,
    /// The connection went and came back: what came then may have a gap before it.
    again: bool,
}

/// Buttons that send a message again.
const AGAIN: &str = "again:";

/// What such a button is called back with.
pub(super) fn again_button(seq: u64) -> String {
    format!("{AGAIN}{seq}")
}

impl Inbox {
    /// Whatever was written since the last message that was seen is fetched.
    pub(super) fn connected(&mut self) {
        let channels: Vec<ChannelId> = self.seen.keys().cloned().collect();
        for channel in channels {
            if let Some(catching) = self.catching.get_mut(&channel) {
                catching.held.clear();
                catching.again = true;
            } else {
                self.catching.insert(channel.clone(), Catching::default());
                self.fetch(channel);
            }
        }
    }

    pub(super) fn fetch(&mut self, channel: ChannelId) {
        if let (true, Some(seen)) = (self.catching.contains_key(&channel), self.seen.get(&channel)) {
            self.out.push_back(Output::FetchAfter(channel, seen.clone()));
        }
    }

    pub(super) fn fetched(&mut self, now: Now, channel: ChannelId, result: Result<Missed, String>) {
        if !self.catching.contains_key(&channel) {
            return;
        }
        let missed = match result {
            Ok(missed) => missed,
            Err(why) => {
                self.timers.set(Timer::Fetch(channel.clone()), Due::boot(now, limits::INBOX_FETCH_RETRY));
                return self.out.push_back(Output::Told(Told::NotFetched(channel, why)));
            }
        };
        let got = !missed.messages.is_empty();
        for incoming in missed.messages {
            self.pass(now, incoming);
        }
        let Some(catching) = self.catching.get_mut(&channel) else { return };
        if (missed.more && got) || std::mem::take(&mut catching.more) || std::mem::take(&mut catching.again) {
            return self.fetch(channel);
        }
        let held = self.catching.remove(&channel).map(|catching| catching.held);
        for incoming in held.into_iter().flatten() {
            self.pass(now, incoming);
        }
    }

    pub(super) fn arrived(&mut self, now: Now, incoming: Incoming) {
        match self.catching.get_mut(&incoming.channel) {
            Some(catching) if catching.more || catching.held.len() >= limits::INBOX_HELD => {
                catching.held.clear();
                catching.more = true;
            }
            Some(catching) => catching.held.push_back(incoming),
            None => self.pass(now, incoming),
        }
    }

    /// Through the gate.
    fn pass(&mut self, now: Now, incoming: Incoming) {
        let verdict = self.access.message(&incoming).map(|rule| rule.binding.clone());
        if verdict != Err(Refusal::Channel) {
            let (channel, message) = (incoming.channel.clone(), incoming.id.clone());
            if self.seen.len() >= limits::INBOX_CHANNELS && !self.seen.contains_key(&channel) {
                // Services number their threads upwards.
                let oldest = self.seen.pop_first().map(|(oldest, _)| Change::Forget(oldest));
                oldest.into_iter().for_each(|forget| _ = self.commits.add(forget));
            }
            self.seen.insert(channel.clone(), message.clone());
            self.take_if(now, &incoming, verdict);
            let batch = self.commits.add(Change::Seen { channel: channel.clone(), message: message.clone() });
            self.passed.push_back((batch, channel, message));
        } else {
            if incoming.direct && !incoming.bot {
                self.meet(now, &incoming);
            }
            self.out.push_back(Output::Kept(incoming.channel, incoming.id));
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
            return self.answer(incoming, "This channel only shows what its agent says; nobody reads this.");
        }
        let waiting = self.queues.get(&binding.name).map_or(0, |queue| queue.waiting.len());
        if command.is_none() && waiting >= limits::INBOX_WAITING {
            return self.answer(incoming, "Too many messages wait already; this one was not taken.");
        }
        if command.is_some() && incoming.age > limits::INBOX_COMMAND_AGE {
            return self.answer(incoming, "This came too late and was not carried out.");
        }
        self.seq += 1;
        let standing = if command.is_some() { Standing::Done } else { Standing::Stored };
        let message = Message { seq: self.seq, incoming: clean(incoming), binding: binding.name, standing };
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
            let text = "You may not do this here.".to_owned();
            return self.out.push_back(Output::Answer { click: click.id, text });
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
fn command(text: &str) -> Option<Command> {
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
