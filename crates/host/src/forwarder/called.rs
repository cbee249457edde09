//! What channels and people are called, for people: the service is asked once for each channel that is bound.

use std::sync::Arc;

use holdfast_core::chat::{ChannelId, UserId};
use holdfast_core::limits;
use holdfast_core::line::one_line;

use super::run::{Event, Shell};

impl Shell {
    /// Asks for those that are not known. One after another: it is nothing that anybody waits for.
    pub(super) fn call_channels(&mut self) {
        let bound: Vec<ChannelId> = self.sources.values().filter_map(|source| source.channel.clone()).collect();
        self.called.retain(|channel, _| bound.contains(channel));
        let mut unknown = Vec::new();
        for channel in bound {
            self.called.entry(channel).or_insert_with_key(|channel| {
                unknown.push(channel.clone());
                None
            });
        }
        if unknown.is_empty() {
            return;
        }
        let (backend, events) = (Arc::clone(&self.post.backend), self.events.clone());
        self.doing.spawn(async move {
            for channel in unknown {
                let name = backend.name(&channel).await.ok();
                // Without the task there is nobody to tell.
                let _ = events.send(Event::Named(channel, name));
            }
            Event::Done
        });
    }

    pub(super) fn is_called(&mut self, channel: ChannelId, name: Option<String>) {
        let name = name.map(|name| one_line(&name, limits::CHANNEL_NAME_MAX)).filter(|name| !name.is_empty());
        if let Some(called) = self.called.get_mut(&channel) {
            *called = name;
            self.unpublished = true;
        }
    }

    /// What people call somebody who may speak.
    pub(super) fn knows(&mut self, person: &UserId, name: &str) {
        if self.config.people.iter().any(|known| known == person.as_str())
            && self.names.get(person).is_none_or(|n| n != name)
        {
            self.names.insert(person.clone(), one_line(name, limits::INBOX_NAME_MAX));
            self.unpublished = true;
        }
    }
}
