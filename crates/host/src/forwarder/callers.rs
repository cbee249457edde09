//! Whoever waits for an answer of this holder. With the holder they go, and are told so.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::chat::asks::End;
use holdfast_core::chat::outbox::{Change, Key};
use holdfast_core::chat::{ChannelId, MessageId, Ticket};
use holdfast_core::limits;
use tokio::sync::oneshot;

use super::desk::{CannotAsk, DeskError, Reply};

/// See the module. Each kind is bounded: more callers than that are turned away.
#[derive(Debug, Default)]
pub(super) struct Callers {
    says: BTreeMap<Arc<str>, Saying>,
    asks: BTreeMap<String, Vec<oneshot::Sender<Result<End, CannotAsk>>>>,
    tests: BTreeMap<Key, (ChannelId, Reply<MessageId>)>,
    /// Who brought a message and keeps it until it is stored.
    brought: BTreeMap<(ChannelId, MessageId), oneshot::Sender<()>>,
}

/// Words on their way into the store.
#[derive(Debug, Default)]
struct Saying {
    /// The commit that has them.
    under_way: Option<Ticket>,
    replies: Vec<Reply<()>>,
}

impl Callers {
    /// Somebody waits until this is in custody. Whether nobody did before, and there is room.
    pub(super) fn says(&mut self, source: Arc<str>, reply: Reply<()>) -> bool {
        let waiting: usize = self.says.values().map(|saying| saying.replies.len()).sum();
        if waiting >= limits::FORWARDER_SAYS {
            let _ = reply.send(Err(DeskError::Later("too many messages of agents wait to be stored".to_owned())));
            return false;
        }
        let saying = self.says.entry(source).or_default();
        saying.replies.push(reply);
        saying.replies.len() == 1
    }

    /// These changes go to the store.
    pub(super) fn committing(&mut self, ticket: Ticket, changes: &[Change]) {
        for change in changes {
            if let Change::Prepare(record) = change
                && let Some(saying) = self.says.get_mut(&record.key.source)
            {
                saying.under_way = Some(ticket);
            }
        }
    }

    /// The store knew this before, or it cannot be said.
    pub(super) fn said(&mut self, source: &str, result: Result<(), DeskError>) {
        for reply in self.says.remove(source).into_iter().flat_map(|saying| saying.replies) {
            // Whoever asked may have left, here and below.
            let _ = reply.send(result.clone());
        }
    }

    /// They are stored. A failed commit is made again under the same ticket.
    pub(super) fn committed(&mut self, ticket: Ticket) {
        self.says.retain(|_, saying| {
            let others = saying.under_way != Some(ticket);
            if !others {
                saying.replies.drain(..).for_each(|reply| drop(reply.send(Ok(()))));
            }
            others
        });
    }

    /// A hook waits for the end of this prompt. Whether there is room.
    pub(super) fn asks(&mut self, request: &str, reply: oneshot::Sender<Result<End, CannotAsk>>) -> bool {
        let waiting: usize = self.asks.values().map(Vec::len).sum();
        if waiting >= limits::ASKS {
            let _ = reply.send(Err(CannotAsk));
            return false;
        }
        self.asks.entry(request.to_owned()).or_default().push(reply);
        true
    }

    /// A prompt ended, or nobody can be asked.
    pub(super) fn asked(&mut self, request: &str, end: Result<End, CannotAsk>) {
        for reply in self.asks.remove(request).into_iter().flatten() {
            let _ = reply.send(end.clone());
        }
    }

    /// Somebody waits until this is posted.
    pub(super) fn tests(&mut self, key: Key, channel: ChannelId, reply: Reply<MessageId>) {
        self.tests.retain(|_, (_, reply)| !reply.is_closed());
        self.tests.insert(key, (channel, reply));
    }

    /// Whether somebody waits for this message to be posted.
    pub(super) fn is_test(&self, key: &Key) -> bool {
        self.tests.contains_key(key)
    }

    /// A message is posted.
    pub(super) fn posted(&mut self, key: &Key, message: &MessageId) {
        if let Some((_, reply)) = self.tests.remove(key) {
            let _ = reply.send(Ok(message.clone()));
        }
    }

    /// A message, or everything in its channel, is refused or unknown.
    pub(super) fn refused(&mut self, which: impl Fn(&Key, &ChannelId) -> bool, why: &DeskError) {
        let over: Vec<Key> =
            self.tests.iter().filter(|(key, (channel, _))| which(key, channel)).map(|(key, _)| key.clone()).collect();
        for (_, reply) in over.iter().filter_map(|key| self.tests.remove(key)) {
            let _ = reply.send(Err(why.clone()));
        }
    }

    /// Somebody keeps this message until it is stored.
    pub(super) fn brings(&mut self, channel: ChannelId, message: MessageId, kept: oneshot::Sender<()>) {
        self.brought.retain(|_, kept| !kept.is_closed());
        self.brought.insert((channel, message), kept);
    }

    /// It is stored, or not wanted.
    pub(super) fn kept(&mut self, channel: ChannelId, message: MessageId) {
        if let Some(kept) = self.brought.remove(&(channel, message)) {
            let _ = kept.send(());
        }
    }
}
