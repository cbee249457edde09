//! What the machines have done.

use std::sync::Arc;

use holdfast_core::chat::inbox::{Adapter, Message, Undelivered};
use holdfast_core::chat::{ChannelId, Draft, MessageId, SendError, asks, inbox, outbox, signs};
use holdfast_core::limits;
use holdfast_core::status::ChannelNotice;
use holdfast_core::time::Now;
use tokio::sync::oneshot;

use super::answers::no_room;
use super::desk::{CannotAsk, DeskError};
use super::run::{Event, Phase, Shell, guarded};
use super::{News, Post};
use crate::config::Delivery;

impl Shell {
    /// Until no machine has anything more to do.
    pub(super) fn carry_out(&mut self, now: Now) {
        loop {
            if let Some(output) = self.outbox.poll_output() {
                self.outbox_output(now, output);
            } else if let Some(output) = self.inbox.poll_output() {
                self.inbox_output(now, output);
            } else if let Some(output) = self.asks.poll_output() {
                self.asks_output(now, output);
            } else if let Some(output) = self.signs.poll_output() {
                self.sign(output);
            } else {
                return;
            }
        }
    }

    fn outbox_output(&mut self, now: Now, output: outbox::Output) {
        use outbox::Output;
        match output {
            Output::Commit { ticket, generation: _, changes } => {
                self.callers.committing(ticket, &changes);
                let events = self.events.clone();
                // Without the task there is nobody to tell, here and below.
                self.store.outbox(changes, move |made| _ = events.send(Event::OutboxCommitted(ticket, made)));
            }
            Output::Send { attempt, generation: _, draft } => self.send(now, attempt, draft),
            Output::Compare { attempt, channel, after, since } => {
                let backend = Arc::clone(&self.post.backend);
                self.doing.spawn(async move {
                    let posted = backend.posted(&channel, after.as_ref(), since).await;
                    Event::Compared(attempt, posted)
                });
            }
            Output::Reset => {
                tracing::warn!("a message hangs on its way to the chat service; the connection is made anew");
                self.post.backend.reset();
            }
            Output::Posted { key, message } => {
                if self.callers.is_test(&key) {
                    self.show_now(now);
                }
                self.callers.posted(&key, &message);
                self.asks.handle(now, asks::Input::Posted(key, message));
            }
            Output::Told(told) => self.outbox_told(now, told),
            Output::Drained { left } => {
                tracing::info!(left, "everything was sent that could be");
                if let Phase::Finishing(since) | Phase::Draining(since) = self.phase {
                    self.phase = Phase::Drained(since);
                }
            }
            Output::Failed(why) => self.over = Some(News::Failed(why)),
            Output::Superseded(generation) => self.over = Some(News::Superseded(generation)),
            Output::Changed => self.unpublished = true,
        }
    }

    /// The only way by which anything is posted.
    fn send(&mut self, now: Now, attempt: outbox::Attempt, draft: Draft) {
        self.signs.handle(now, signs::Input::Says(draft.channel.clone()));
        self.sending += 1;
        let Post { backend, holds, told, .. } = &self.post;
        let (backend, holds, told) = (Arc::clone(backend), Arc::clone(holds), Arc::clone(told));
        self.doing.spawn(async move {
            // The folder may be on a disk that does not answer.
            let sent = if tokio::task::spawn_blocking(move || holds()).await.unwrap_or(false) {
                backend.send(&draft).await
            } else {
                told(News::Doubt);
                Err(SendError::Later("it is not certain that the seat is still this process's".to_owned()))
            };
            Event::Sent(attempt, draft.channel, sent)
        });
    }

    fn outbox_told(&mut self, now: Now, told: outbox::Told) {
        use outbox::Told;
        match told {
            Told::ChannelParked(channel, why) => {
                tracing::warn!(%channel, "nothing is posted in this channel until a person lets it: {why}");
                self.notice(ChannelNotice::Parked, format!("nothing is posted in channel {channel}: {why}"));
                self.callers.refused(|_, c| *c == channel, &DeskError::Parked(why));
                self.asks.handle(now, asks::Input::Parked(channel));
            }
            Told::Parked(key, why) => {
                tracing::warn!(%key, "a message is refused: {why}");
                self.notice(ChannelNotice::Refused, format!("a message is refused: {why}"));
                self.callers.refused(|k, _| *k == key, &DeskError::Parked(why));
                self.asks.handle(now, asks::Input::Refused(key));
            }
            Told::Unknown(key, why) => {
                tracing::warn!(%key, "whether a message was posted is unknown: {why}");
                self.notice(ChannelNotice::Unknown, format!("whether a message was posted is unknown: {why}"));
                self.callers.refused(|k, _| *k == key, &DeskError::Parked(why));
                self.asks.handle(now, asks::Input::Refused(key));
            }
            Told::Skipped(channel, entries) => {
                tracing::warn!(%channel, entries, "entries are not posted: they are too old or too many");
                let (what, are) = if entries == 1 { ("entry", "is") } else { ("entries", "are") };
                let text =
                    format!("{entries} {what} {are} not posted in channel {channel}: too old, or too many waited");
                self.notice(ChannelNotice::Skipped, text);
                *self.skipped.entry(channel).or_default() += entries;
            }
            Told::NoLane(channel) => {
                tracing::warn!(%channel, "too many channels are at work; nothing is posted there");
                self.callers.refused(|_, c| *c == channel, &no_room());
                self.asks.handle(now, asks::Input::Parked(channel));
            }
        }
    }

    fn notice(&self, notice: ChannelNotice, text: String) {
        (self.post.told)(News::Noticed(notice, text));
    }

    pub(super) fn inbox_output(&mut self, now: Now, output: inbox::Output) {
        use inbox::Output;
        match output {
            Output::Commit { ticket, generation: _, changes } => {
                if changes.contains(&inbox::Change::Prune) {
                    // Files of messages have their time as the messages do.
                    self.courier.sweep();
                }
                let events = self.events.clone();
                self.store.inbox(changes, move |made| _ = events.send(Event::InboxCommitted(ticket, made)));
            }
            Output::FetchAfter(channel, after) => {
                let backend = Arc::clone(&self.post.backend);
                self.doing.spawn(async move {
                    let missed = backend.fetch_after(&channel, &after).await;
                    Event::Fetched(channel, missed)
                });
            }
            Output::FindThreads(of) => {
                let backend = Arc::clone(&self.post.backend);
                self.doing.spawn(async move { Event::Threads(backend.threads(&of).await) });
            }
            Output::FindDirect(people) => {
                let backend = Arc::clone(&self.post.backend);
                self.doing.spawn(async move {
                    let mut found = Vec::new();
                    for person in people {
                        let direct = backend.direct(&person).await;
                        found.push((person, direct.unwrap_or_default()));
                    }
                    Event::Direct(found)
                });
            }
            Output::Prepare(message) => {
                let (backend, courier) = (Arc::clone(&self.post.backend), self.courier.clone());
                let voice = self.config.voice.clone();
                self.doing.spawn(async move {
                    let prepared = guarded(async { Ok(courier.prepare(&*backend, &voice, &message).await) }).await;
                    let missing =
                        |why: String| inbox::Prepared { files: Vec::new(), note: format!("[no attachments: {why}]") };
                    Event::Prepared(message.seq, prepared.unwrap_or_else(missing))
                });
            }
            Output::Deliver { attempt, message, prepared } => self.deliver(attempt, *message, prepared),
            Output::TakeBack { attempt, message, by } => self.take_back(attempt, message, by),
            Output::Command { command, message } => self.command(now, command, message),
            Output::Say(key, draft) => self.outbox.handle(now, outbox::Input::Say { key, draft }),
            Output::Answer { click, text } => self.answer_click(click, text),
            Output::Clicked(click) if asks::is_ask(&click) => self.asks.handle(now, asks::Input::Click(click)),
            Output::Clicked(click) => self.answer_click(click.id, "This has expired.".to_owned()),
            Output::Kept(channel, message) => self.callers.kept(channel, message),
            Output::Taken(channel, message) => {
                self.signs.handle(now, signs::Input::Taken(channel.clone(), message));
                self.signs.handle(now, signs::Input::Works(channel));
            }
            Output::Admit(person, name) => _ = self.names.insert(person, name),
            Output::Told(told) => self.inbox_told(told),
            Output::Superseded(generation) => self.over = Some(News::Superseded(generation)),
            Output::Changed => self.unpublished = true,
        }
    }

    fn deliver(&mut self, attempt: inbox::Attempt, message: inbox::Message, prepared: inbox::Prepared) {
        let source = self.sources.get_mut(&message.binding);
        let waits = source
            .as_ref()
            .is_some_and(|source| matches!(source.config.deliver, Some(Delivery::Command | Delivery::Tmux)));
        let agent = match source {
            Some(source) => {
                let asked = &message.incoming.channel;
                source.asked_in.retain(|channel| channel != asked);
                source.asked_in.push(asked.clone());
                if source.asked_in.len() > limits::SIGNS_CHANNELS {
                    source.asked_in.remove(0);
                }
                source.agent.clone()
            }
            None => Ok(None),
        };
        self.giving += usize::from(waits);
        let (gives, gone) = oneshot::channel();
        let giving = self.doing.spawn(async move {
            let _gives: oneshot::Sender<()> = gives;
            let delivered = match agent {
                Ok(Some(agent)) => guarded(agent.deliver(&message, &prepared)).await,
                Ok(None) => Err(Undelivered::Not("no agent is bound there any more".to_owned())),
                Err(why) => Err(Undelivered::Not(why)),
            };
            Event::Delivered { attempt, waits, result: delivered }
        });
        self.given.insert(attempt, (giving, gone));
    }

    /// Only when nothing offers it any more is it looked at what became of it.
    fn take_back(&mut self, attempt: inbox::Attempt, message: Box<Message>, by: Adapter) {
        let given = self.given.remove(&attempt);
        let courier = self.courier.clone();
        self.doing.spawn(async move {
            if let Some((giving, gone)) = given {
                giving.abort();
                // Nothing is ever sent there.
                let _ = gone.await;
            }
            Event::TakenBack(attempt, courier.take_back(by, &message).await)
        });
    }

    fn inbox_told(&self, told: inbox::Told) {
        use inbox::Told;
        match told {
            // Whoever typed it is told.
            Told::WrongCode => {}
            Told::NotDelivered(seq, why) => {
                tracing::warn!(seq, "a message was not delivered: {why}")
            }
            Told::NotFetched(channel, why) => {
                tracing::warn!(%channel, "missed messages could not be fetched; it is tried again: {why}");
            }
            Told::NotFound(why) => tracing::warn!("threads could not be looked for; it is tried again: {why}"),
        }
    }

    fn asks_output(&mut self, now: Now, output: asks::Output) {
        use asks::Output;
        match output {
            Output::Commit(ticket, changes) => {
                let events = self.events.clone();
                self.store.asks(changes, move |made| _ = events.send(Event::AsksCommitted(ticket, made)));
            }
            Output::Say(key, draft) => self.outbox.handle(now, outbox::Input::Say { key, draft }),
            Output::Edit(channel, message, text) => self.edit(channel, message, text),
            Output::Answer { click, text } => self.answer_click(click, text),
            Output::Ended(request, end) => {
                self.outbox.handle(now, outbox::Input::TakeBack(asks::key(&request)));
                self.callers.asked(&request, Ok(end));
            }
            Output::CannotAsk(request) => self.callers.asked(&request, Err(CannotAsk)),
        }
    }

    /// A prompt whose message still has its buttons is told from others by a click, so a few tries are enough.
    fn edit(&mut self, channel: ChannelId, message: MessageId, text: String) {
        let backend = Arc::clone(&self.post.backend);
        self.doing.spawn(async move {
            for _ in 0..limits::FORWARDER_EDITS {
                let wait = match backend.edit(&channel, &message, &text).await {
                    Ok(()) | Err(SendError::Permanent { .. }) => break,
                    Err(SendError::Limited { after }) => after.min(limits::OUTBOX_RETRY_MAX),
                    Err(SendError::Unknown(_) | SendError::Lost(_) | SendError::Later(_)) => limits::OUTBOX_RETRY_MIN,
                };
                tokio::time::sleep(wait).await;
            }
            Event::Done
        });
    }

    /// Anybody can click, as often as they like.
    fn answer_click(&mut self, click: String, text: String) {
        let backend = Arc::clone(&self.post.backend);
        let Ok(turn) = Arc::clone(&self.answering).try_acquire_owned() else { return };
        self.doing.spawn(async move {
            backend.answer(&click, &text).await;
            drop(turn);
            Event::Done
        });
    }

    /// One sign after another, so that a reaction that is taken away was put there before.
    fn sign(&mut self, sign: signs::Output) {
        use signs::Output;
        let waiting = self.signing.len();
        match &sign {
            Output::Typing(_) if waiting >= limits::SIGNS_CHANNELS => return,
            Output::React(..) if waiting >= limits::SIGNS_WAITING => return,
            Output::Unreact(channel, message, sign) => {
                let put = Output::React(channel.clone(), message.clone(), sign);
                // What was not put there yet need not be taken away.
                if let Some(at) = self.signing.iter().skip(1).position(|waits| *waits == put) {
                    self.signing.remove(at + 1);
                    return;
                }
            }
            Output::Typing(_) | Output::React(..) => {}
        }
        self.signing.push_back(sign);
        if self.signing.len() == 1 {
            self.give_sign();
        }
    }

    /// The first sign was given.
    pub(super) fn sign_on(&mut self) {
        self.signing.pop_front();
        self.give_sign();
    }

    fn give_sign(&mut self) {
        let Some(sign) = self.signing.front().cloned() else { return };
        let Post { backend, .. } = &self.post;
        let backend = Arc::clone(backend);
        self.doing.spawn(async move {
            match sign {
                signs::Output::Typing(channel) => backend.typing(&channel).await,
                signs::Output::React(channel, message, sign) => backend.react(&channel, &message, sign, true).await,
                signs::Output::Unreact(channel, message, sign) => backend.react(&channel, &message, sign, false).await,
            }
            Event::Signed
        });
    }
}
