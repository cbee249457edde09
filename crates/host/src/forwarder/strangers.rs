//! Messages of our bot that this seat did not send: somebody else uses it.

use std::collections::VecDeque;
use std::time::Duration;

use holdfast_core::chat::{ChannelId, MessageId};
use holdfast_core::limits;
use holdfast_core::time::Now;

/// What was sent, and what was heard of and is not explained yet.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    /// The last messages that this holder sent.
    sent: VecDeque<(ChannelId, MessageId)>,
    /// With the boot time when they were heard of.
    heard: VecDeque<(Duration, ChannelId, MessageId)>,
}

impl Strangers {
    /// The service has this message of ours.
    pub(super) fn sent(&mut self, channel: ChannelId, message: MessageId) {
        self.heard.retain(|(_, c, m)| (c, m) != (&channel, &message));
        if self.sent.len() >= limits::FORWARDER_SENT {
            self.sent.pop_front();
        }
        self.sent.push_back((channel, message));
    }

    /// A message of our bot appeared.
    pub(super) fn heard(&mut self, now: Now, channel: ChannelId, message: MessageId) {
        let ours = self.sent.iter().any(|(c, m)| (c, m) == (&channel, &message));
        if !ours && self.heard.len() < limits::FORWARDER_SENT {
            self.heard.push_back((now.boot, channel, message));
        }
    }

    /// Messages that nobody here sent since they were heard of. Where something is under way, as `busy` says, it may be that.
    pub(super) fn found(&mut self, now: Now, busy: impl Fn(&ChannelId) -> bool) -> Vec<(ChannelId, MessageId)> {
        let mut found = Vec::new();
        self.heard.retain(|(at, channel, message)| {
            let late = now.boot >= *at + limits::FORWARDER_STRANGER && !busy(channel);
            if late {
                found.push((channel.clone(), message.clone()));
            }
            !late
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_strangers_if_nobody_here_sent_it_in_time() {
        let (mut strangers, start) = (Strangers::default(), Now::at(Duration::from_secs(100)));
        let at = ChannelId::parse("c1").unwrap();
        let id = |name: &str| MessageId::parse(name).unwrap();
        strangers.sent(at.clone(), id("1"));
        for name in ["1", "2", "3"] {
            strangers.heard(start, at.clone(), id(name));
        }
        // Its event was faster than its answer.
        strangers.sent(at.clone(), id("2"));
        assert_eq!(strangers.found(start, |_| false), []);
        let later = start.plus(limits::FORWARDER_STRANGER);
        assert_eq!(strangers.found(later, |_| true), []);
        assert_eq!(strangers.found(later, |_| false), [(at, id("3"))]);
        assert_eq!(strangers.found(later, |_| false), []);
    }
}
