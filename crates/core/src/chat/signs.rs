//! What people see of an agent that works: that the bot types, and a reaction on their message.
//!
//! One owner of both. Typing is shown while the agent works and nothing is about to be said: a service shows it for some
//! seconds more, so it must not be asked for just before the last words. What an agent does between its words is often
//! the next words: typing comes back a moment later, so that one who says much costs no request beside each message.
//! A message has 🤔 from when it was taken, 🛠️ once a
//! tool runs, and nothing when the agent is done.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::{ChannelId, MessageId};
use crate::limits;
use crate::time::{Due, Now, TimerTable};

/// On a message that was taken.
pub const THINKS: &str = "🤔";
/// On a message for which tools run.
pub const WORKS: &str = "🛠️";

/// Everything that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A message for the agent was stored.
    Taken(ChannelId, MessageId),
    /// The agent has something to do, or does it still.
    Works(ChannelId),
    /// It runs a tool.
    Tool(ChannelId),
    /// Something is about to be sent there.
    Says(ChannelId),
    /// It is done, was stopped, or went.
    Idle(ChannelId),
    /// The bot cannot speak any more.
    Stop,
}

/// What the shell does; whether it worked matters to nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Show that the bot types.
    Typing(ChannelId),
    /// Put a reaction on a message.
    React(ChannelId, MessageId, &'static str),
    /// Take ours away.
    Unreact(ChannelId, MessageId, &'static str),
}

/// See the module. `handle`, drain `poll_output`, wait for `poll_timeout`.
#[derive(Debug, Default)]
pub struct Signs {
    /// The message in each channel that has a reaction of ours.
    marked: BTreeMap<ChannelId, (MessageId, &'static str)>,
    /// Where typing is shown, and when again.
    typing: TimerTable<ChannelId>,
    /// Where the agent works.
    works: BTreeMap<ChannelId, Work>,
    out: VecDeque<Output>,
}

#[derive(Debug)]
struct Work {
    /// Boot time of the last sign of it.
    at: Duration,
    /// Nothing was shown since the last words.
    said: bool,
}

impl Signs {
    /// Something happened.
    pub fn handle(&mut self, now: Now, input: Input) {
        match input {
            Input::Taken(channel, message) => {
                self.unmark(&channel);
                if self.marked.len() < limits::SIGNS_CHANNELS {
                    self.mark(channel, message, THINKS);
                }
            }
            Input::Works(channel) => self.works(now, channel),
            Input::Tool(channel) => {
                if let Some((message, THINKS)) = self.marked.get(&channel).cloned() {
                    self.unmark(&channel);
                    self.mark(channel.clone(), message, WORKS);
                }
                self.works(now, channel);
            }
            // It comes back when the agent goes on.
            Input::Says(channel) => {
                self.typing.stop(&channel);
                if let Some(work) = self.works.get_mut(&channel) {
                    work.said = true;
                }
            }
            Input::Idle(channel) => {
                self.typing.stop(&channel);
                self.works.remove(&channel);
                self.unmark(&channel);
            }
            Input::Stop => {
                self.typing = TimerTable::default();
                self.works.clear();
                let channels: Vec<ChannelId> = self.marked.keys().cloned().collect();
                channels.iter().for_each(|channel| self.unmark(channel));
            }
        }
    }

    /// Time passed.
    pub fn handle_timeout(&mut self, now: Now) {
        while let Some(channel) = self.typing.expired(now) {
            match self.works.get_mut(&channel) {
                Some(work) if now.boot.saturating_sub(work.at) < limits::TYPING_FOR => {
                    work.said = false;
                    self.types(now, channel);
                }
                _ => drop(self.works.remove(&channel)),
            }
        }
    }

    /// What to do next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Time until [`Signs::handle_timeout`] has something to do.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.typing.earliest(now)
    }

    fn works(&mut self, now: Now, channel: ChannelId) {
        if self.works.len() >= limits::SIGNS_CHANNELS && !self.works.contains_key(&channel) {
            return;
        }
        let work = self.works.entry(channel.clone()).or_insert(Work { at: now.boot, said: false });
        work.at = now.boot;
        if self.typing.get(&channel).is_some_and(|due| !due.left(now).is_zero()) {
            return;
        }
        if work.said {
            self.typing.set(channel, Due::boot(now, limits::TYPING_AFTER_WORDS));
        } else {
            self.types(now, channel);
        }
    }

    fn types(&mut self, now: Now, channel: ChannelId) {
        self.typing.set(channel.clone(), Due::boot(now, limits::TYPING_AGAIN));
        self.out.push_back(Output::Typing(channel));
    }

    fn mark(&mut self, channel: ChannelId, message: MessageId, sign: &'static str) {
        self.out.push_back(Output::React(channel.clone(), message.clone(), sign));
        self.marked.insert(channel, (message, sign));
    }

    fn unmark(&mut self, channel: &ChannelId) {
        if let Some((message, sign)) = self.marked.remove(channel) {
            self.out.push_back(Output::Unreact(channel.clone(), message, sign));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn at() -> ChannelId {
        ChannelId::parse("c1").unwrap()
    }

    fn id(text: &str) -> MessageId {
        MessageId::parse(text).unwrap()
    }

    /// What comes out until this time.
    fn until(signs: &mut Signs, now: &mut Now, time: Duration) -> Vec<Output> {
        let end = now.boot + time;
        while let Some(left) = signs.poll_timeout(*now).filter(|left| now.boot + *left <= end) {
            *now = now.plus(left);
            signs.handle_timeout(*now);
        }
        *now = now.plus(end - now.boot);
        std::iter::from_fn(|| signs.poll_output()).collect()
    }

    #[test]
    fn a_message_has_a_thought_then_a_tool_then_nothing() {
        let (mut signs, mut now) = (Signs::default(), Now::default());
        signs.handle(now, Input::Taken(at(), id("1")));
        assert_eq!(until(&mut signs, &mut now, S), [Output::React(at(), id("1"), THINKS)]);
        signs.handle(now, Input::Tool(at()));
        signs.handle(now, Input::Tool(at()));
        let out = until(&mut signs, &mut now, S);
        let expected =
            [Output::Unreact(at(), id("1"), THINKS), Output::React(at(), id("1"), WORKS), Output::Typing(at())];
        assert_eq!(out, expected);
        signs.handle(now, Input::Idle(at()));
        assert_eq!(until(&mut signs, &mut now, S * 60), [Output::Unreact(at(), id("1"), WORKS)]);
    }

    #[test]
    fn the_mark_goes_from_the_last_message_to_the_next() {
        let (mut signs, mut now) = (Signs::default(), Now::default());
        signs.handle(now, Input::Taken(at(), id("1")));
        signs.handle(now, Input::Taken(at(), id("2")));
        let expected = [
            Output::React(at(), id("1"), THINKS),
            Output::Unreact(at(), id("1"), THINKS),
            Output::React(at(), id("2"), THINKS),
        ];
        assert_eq!(until(&mut signs, &mut now, S), expected);
        signs.handle(now, Input::Stop);
        assert_eq!(until(&mut signs, &mut now, S), [Output::Unreact(at(), id("2"), THINKS)]);
    }

    #[test]
    fn typing_is_shown_while_the_agent_works_and_not_when_something_is_about_to_be_said() {
        let (mut signs, mut now) = (Signs::default(), Now::default());
        signs.handle(now, Input::Works(at()));
        assert_eq!(until(&mut signs, &mut now, S * 17), vec![Output::Typing(at()); 3]);
        signs.handle(now, Input::Works(at()));
        signs.handle(now, Input::Says(at()));
        assert_eq!(until(&mut signs, &mut now, S * 60), []);
        signs.handle(now, Input::Works(at()));
        assert_eq!(until(&mut signs, &mut now, S * 9), vec![Output::Typing(at()); 2]);
        signs.handle(now, Input::Idle(at()));
        assert_eq!(until(&mut signs, &mut now, S * 60), []);
        signs.handle(now, Input::Works(at()));
        assert_eq!(until(&mut signs, &mut now, Duration::ZERO), [Output::Typing(at())]);
    }

    #[test]
    fn an_agent_that_says_one_thing_after_another_types_before_the_first_and_after_the_last() {
        let (mut signs, mut now) = (Signs::default(), Now::default());
        let mut out = Vec::new();
        for _ in 0..1000 {
            signs.handle(now, Input::Works(at()));
            out.extend(until(&mut signs, &mut now, S / 100));
            signs.handle(now, Input::Says(at()));
            out.extend(until(&mut signs, &mut now, S / 50));
        }
        assert_eq!(out, [Output::Typing(at())]);
        signs.handle(now, Input::Tool(at()));
        assert_eq!(until(&mut signs, &mut now, limits::TYPING_AFTER_WORDS - S / 100), []);
        assert_eq!(until(&mut signs, &mut now, S / 50), [Output::Typing(at())]);
    }

    #[test]
    fn an_agent_that_gives_no_sign_of_work_does_not_type_for_ever() {
        let (mut signs, mut now) = (Signs::default(), Now::default());
        signs.handle(now, Input::Works(at()));
        let out = until(&mut signs, &mut now, limits::TYPING_FOR * 10);
        assert_eq!(out.len(), 75);
        assert_eq!(signs.poll_timeout(now), None);
    }
}
