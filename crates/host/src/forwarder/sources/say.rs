//! What a transcript says, on its way to the outbox.

use std::sync::Arc;

use holdfast_core::chat::{ChannelId, outbox, signs};
use holdfast_core::time::Now;
use holdfast_core::transcript::{Bookmark, Turn};

use super::super::run::Shell;
use super::super::said;
use super::Source;

impl Shell {
    /// Says what was read, as far as the outbox takes it.
    pub(in super::super) fn say_on(&mut self, now: Now) {
        let outbox = &self.outbox;
        let ready = |source: &Source| {
            let held = source.following.as_ref().is_some_and(|following| following.held.is_some());
            held && source.channel.as_ref().is_some_and(|channel| outbox.takes(channel))
        };
        let ready: Vec<Arc<str>> =
            self.sources.iter().filter(|(_, source)| ready(source)).map(|(name, _)| Arc::clone(name)).collect();
        for name in ready {
            self.say_held(now, &name);
        }
    }

    fn say_held(&mut self, now: Now, name: &Arc<str>) {
        let unix = self.turns.unix_ms();
        let Some(source) = self.sources.get_mut(name) else { return };
        let (Some(channel), Some(following)) = (source.channel.clone(), &mut source.following) else { return };
        let Some((read, cursor)) = following.held.take() else { return };
        let session = read.iter().rev().filter(|entry| !entry.sidechain).find_map(|entry| entry.session.clone());
        if session.is_some() && *source.session.lock() != session {
            *source.session.lock() = session;
            self.unpublished = true;
        }
        following.extraction.at(unix);
        let pieces: Vec<_> = read.iter().map(|entry| following.extraction.take(entry)).collect();
        let mark =
            Bookmark { transcript: following.transcript.to_string(), cursor, extraction: following.extraction.clone() };
        let state = match mark.write() {
            Ok(state) => state,
            Err(e) => return tracing::error!("how far a transcript was read cannot be written: {e}"),
        };
        let turns: Vec<Turn> = said::turns(&pieces, unix).collect();
        let signs = match turns.last() {
            Some(Turn::Ended) => Some(signs::Input::Idle as fn(ChannelId) -> signs::Input),
            Some(_) if turns.contains(&Turn::Tools) => Some(signs::Input::Tool as fn(ChannelId) -> signs::Input),
            Some(_) => Some(signs::Input::Works as fn(ChannelId) -> signs::Input),
            None => None,
        };
        if let Some(sign) = signs {
            // It works where it was asked last, and when it is done it is so wherever it was asked.
            let earlier = source.asked_in.len().saturating_sub(1);
            let done = if turns.last() == Some(&Turn::Ended) { earlier } else { 0 };
            let last = source.asked_in.last().cloned();
            let asked: Vec<ChannelId> = source.asked_in.drain(..done).chain(last).collect();
            for thread in asked.into_iter().filter(|thread| *thread != channel) {
                self.signs.handle(now, sign(thread));
            }
            self.signs.handle(now, sign(channel.clone()));
        }
        let entries = said::entries(&pieces, self.post.backend.chunk(), unix);
        let source_name = mark.cursor.source(&mark.transcript);
        self.outbox.handle(now, outbox::Input::Entries { source: source_name, channel, entries, cursor: state });
        // Of this holder's life, and of the same order in the store.
        following.follower.taken();
        self.marks.insert(mark.transcript.clone(), mark);
        self.awaited(name, false);
    }
}
