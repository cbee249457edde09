//! Where a channel belongs. The gateway tells it of what it lists; the rest is asked for.

use std::collections::{HashMap, VecDeque};

use holdfast_core::chat::ChannelId;
use holdfast_core::limits;
use parking_lot::Mutex;

use super::words::Message;

/// Where a channel belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The channel whose thread it is.
    pub parent: Option<ChannelId>,
    /// Whether the bot is alone there with a person.
    pub direct: bool,
}

/// The last [`limits::DISCORD_PLACES`] that were told.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    places: HashMap<ChannelId, Place>,
    order: VecDeque<ChannelId>,
}

impl Places {
    pub(super) fn get(&self, channel: &ChannelId) -> Option<Place> {
        self.0.lock().places.get(channel).cloned()
    }

    pub(super) fn set(&self, channel: ChannelId, place: Place) {
        let mut known = self.0.lock();
        if known.places.insert(channel.clone(), place).is_some() {
            return;
        }
        known.order.push_back(channel);
        if known.order.len() > limits::DISCORD_PLACES
            && let Some(oldest) = known.order.pop_front()
        {
            known.places.remove(&oldest);
        }
    }
}

/// Messages of channels that are being looked up, at most [`limits::DISCORD_UNPLACED`].
#[derive(Default)]
pub(super) struct Unplaced {
    channels: HashMap<ChannelId, Vec<Message>>,
    count: usize,
}

impl Unplaced {
    pub(super) fn is_full(&self) -> bool {
        self.count >= limits::DISCORD_UNPLACED
    }

    /// Whether something of this channel waits.
    pub(super) fn waits(&self, channel: &ChannelId) -> bool {
        self.channels.contains_key(channel)
    }

    /// Returns whether it is the first of its channel.
    pub(super) fn put(&mut self, message: Message) -> bool {
        self.count += 1;
        let of_channel = self.channels.entry(message.channel_id.clone()).or_default();
        of_channel.push(message);
        of_channel.len() == 1
    }

    /// In the order in which they came.
    pub(super) fn take(&mut self, channel: &ChannelId) -> Vec<Message> {
        let messages = self.channels.remove(channel).unwrap_or_default();
        self.count -= messages.len();
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_first_is_forgotten_first() {
        let (places, place) = (Places::default(), Place { parent: None, direct: true });
        let id = |n: usize| ChannelId::parse(&n.to_string()).unwrap();
        for n in 0..=limits::DISCORD_PLACES {
            places.set(id(n), place.clone());
        }
        assert_eq!((places.get(&id(0)), places.get(&id(1))), (None, Some(place)));
    }
}
