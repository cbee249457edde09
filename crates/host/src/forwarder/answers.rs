//! What is answered to API and commands, and to people who ask the bot itself.

use std::sync::Arc;

use holdfast_core::chat::asks::{self, Ask};
use holdfast_core::chat::inbox::{self, Command, Message};
use holdfast_core::chat::outbox::{self, Key};
use holdfast_core::chat::{ChannelId, Draft, Incoming, MessageId, SendError, chunks, fences, signs};
use holdfast_core::limits;
use holdfast_core::redact::redact;
use holdfast_core::time::Now;

use super::access::access;
use super::desk::{CannotAsk, DeskError, Question, Reply, Request};
use super::run::{Event, Say, Shell, guarded};
use crate::channel::Examined;
use crate::engines::machine_name;

impl Shell {
    pub(super) fn asked(&mut self, request: Request) {
        let now = self.turns.now();
        // Whoever asked may have left, in every case.
        match request {
            Request::Say { binding, text, reply_to, key, reply } => match self.bound_to(&binding) {
                Ok(channel) => self.take_say(&binding, Say { channel, text, reply_to }, &key, reply),
                Err(error) => _ = reply.send(Err(error)),
            },
            Request::Fetch { binding, limit, reply } => self.fetch(&binding, limit, reply),
            Request::Ask(question, reply) => {
                if self.callers.asks(&question.request, reply) {
                    self.ask(now, question);
                }
            }
            Request::Withdraw(request) => self.asks.handle(now, asks::Input::Withdraw(request)),
            Request::PairOpen(reply) => {
                self.inbox.handle(now, inbox::Input::PairOpen);
                self.unpublished = true;
                let _ = reply.send(Ok(limits::PAIR_LIFE));
            }
            Request::PairTyped(code, reply) => self.pair(now, code, reply),
            Request::Retry { channel, unknown, reply } => {
                self.outbox.handle(now, outbox::Input::Retry { channel, unknown });
                let _ = reply.send(Ok(()));
            }
            Request::Bind { binding, transcript, reply } => self.name(&binding, &transcript, Some(reply)),
            Request::Test { binding, reply } => match self.channel_of(&binding) {
                Ok(channel) => self.test(now, &binding, channel, reply),
                Err(error) => _ = reply.send(Err(error)),
            },
            Request::Examine { channel, reply } => self.examine(channel, reply),
        }
    }

    /// Where a binding's agent is heard, if anything is posted there.
    fn channel_of(&self, binding: &str) -> Result<ChannelId, DeskError> {
        let channel = self.bound_to(binding)?;
        self.may_speak(&channel).map(|()| channel)
    }

    fn bound_to(&self, binding: &str) -> Result<ChannelId, DeskError> {
        let source = self.sources.get(binding).ok_or_else(|| no_binding(binding))?;
        source.channel.clone().ok_or_else(|| DeskError::Invalid("its channel is no id".to_owned()))
    }

    /// Whether something that is said in a channel now would be taken.
    fn may_speak(&self, channel: &ChannelId) -> Result<(), DeskError> {
        match self.outbox.parked(channel) {
            Some(why) => Err(DeskError::Parked(why.to_owned())),
            None if self.outbox.takes(channel) => Ok(()),
            None => Err(no_room()),
        }
    }

    fn take_say(&mut self, binding: &str, say: Say, key: &str, reply: Reply<()>) {
        let say = Say { text: redact(&say.text), ..say };
        let empty = chunks(&fences(&say.text), self.post.backend.chunk()).is_empty();
        if empty
            || key.is_empty()
            || key.len() > limits::FORWARDER_KEY_MAX
            || say.text.len() > limits::TRANSCRIPT_TEXT_MAX
        {
            let why = "the text is empty or too long, or its key is".to_owned();
            return drop(reply.send(Err(DeskError::Invalid(why))));
        }
        let source: Arc<str> = format!("say:{binding}:{key}").into();
        if self.callers.says(Arc::clone(&source), reply) {
            let (store, binding) = (self.store.clone(), Arc::<str>::from(binding));
            self.doing.spawn(async move {
                // If the store cannot be read, it tells when the message is prepared.
                let known = store.knows(Arc::clone(&source)).await.unwrap_or_default();
                let answered = match &say.reply_to {
                    Some(to) => store.taken(Arc::clone(&binding), to.clone()).await.unwrap_or_default(),
                    None => None,
                };
                Event::Known(source, binding, Box::new(say), known, answered.map(Box::new))
            });
        }
    }

    /// Words of an agent that are new, unless the store knows where they were said. They go to where what they answer was
    /// written, as long as its agent is heard there.
    pub(super) fn say(
        &mut self,
        now: Now,
        source: Arc<str>,
        binding: &str,
        say: Say,
        known: Option<ChannelId>,
        answered: Option<Incoming>,
    ) {
        let access = access(&self.config);
        let there = answered.filter(|to| {
            let rule = access.rule(&to.channel, to.parent.as_ref(), to.direct);
            rule.is_some_and(|rule| *rule.binding.name == *binding)
        });
        let Say { channel, text, reply_to } = say;
        let channel = there.map_or(channel, |to| to.channel);
        if let Some(known) = known {
            let elsewhere = || DeskError::Invalid(format!("what has this name was said in channel {known} before"));
            return self.callers.said(&source, if known == channel { Ok(()) } else { Err(elsewhere()) });
        }
        if let Err(error) = self.may_speak(&channel) {
            return self.callers.said(&source, Err(error));
        }
        let key = Key::single(source);
        let draft = Draft { channel, text, nonce: key.nonce(), reply_to, buttons: Vec::new() };
        self.outbox.handle(now, outbox::Input::Say { key, draft });
    }

    fn fetch(&mut self, binding: &str, limit: usize, reply: Reply<Vec<Incoming>>) {
        if !self.sources.contains_key(binding) {
            return drop(reply.send(Err(no_binding(binding))));
        }
        let (store, binding) = (self.store.clone(), Arc::from(binding));
        self.doing.spawn(async move {
            let last = store.last(binding, limit).await.map_err(|e| DeskError::Later(e.to_string()));
            let _ = reply.send(last);
            Event::Done
        });
    }

    fn ask(&mut self, now: Now, question: Question) {
        let Question { request, binding, tool, description, preview, left_out } = question;
        let fits = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
        let Ok(channel) = self.channel_of(&binding) else {
            return self.callers.asked(&request, Err(CannotAsk));
        };
        if request.is_empty() || !request.bytes().all(fits) {
            return self.callers.asked(&request, Err(CannotAsk));
        }
        let ask = Ask { request: request.clone(), channel, tool, description, preview, left_out };
        self.asks.handle(now, asks::Input::Ask { request, ask: Some(ask) });
    }

    /// Whoever asked keeps in the configuration who was admitted.
    fn pair(&mut self, now: Now, code: String, reply: Reply<(String, String)>) {
        self.inbox.handle(now, inbox::Input::PairTyped(code));
        let mut outputs = Vec::new();
        let mut answer = Err(DeskError::WrongCode);
        while let Some(output) = self.inbox.poll_output() {
            match output {
                inbox::Output::Admit(person, name) => {
                    answer = Ok((person.to_string(), name.clone()));
                    self.names.insert(person, name);
                }
                other => outputs.push(other),
            }
        }
        for output in outputs {
            self.inbox_output(now, output);
        }
        self.unpublished = true;
        let _ = reply.send(answer);
    }

    /// What the service says of a channel, whether or not it is bound.
    fn examine(&mut self, channel: ChannelId, reply: Reply<Examined>) {
        let backend = Arc::clone(&self.post.backend);
        self.doing.spawn(async move {
            let examined = backend.examine(&channel).await.map_err(|why| match why {
                SendError::Permanent { code, text, .. } => match code.as_str() {
                    "" => DeskError::Invalid(text),
                    // Of Discord's its own name for it; Telegram says no more than that the request is bad.
                    "10003" | "404" | "400" => DeskError::NotFound(format!("{text} ({code})")),
                    _ => DeskError::Parked(format!("{text} ({code})")),
                },
                SendError::Limited { .. } => DeskError::Later("the service asks for a pause".to_owned()),
                SendError::Unknown(why) | SendError::Lost(why) | SendError::Later(why) => DeskError::Later(why),
            });
            let _ = reply.send(examined);
            Event::Done
        });
    }

    fn test(&mut self, now: Now, binding: &str, channel: ChannelId, reply: Reply<MessageId>) {
        let key = Key::single(format!("test:{:016x}", rand::random::<u64>()));
        self.callers.tests(key.clone(), channel.clone(), reply);
        let text = format!("Holdfast test message for **{binding}**.");
        let draft = Draft { channel, text, nonce: key.nonce(), reply_to: None, buttons: Vec::new() };
        self.outbox.handle(now, outbox::Input::Say { key, draft });
    }

    /// What a person asks of the bot itself.
    pub(super) fn command(&mut self, now: Now, command: Command, message: Box<Message>) {
        let text = match command {
            Command::Status => self.status_text(now, &message.binding),
            Command::Seat => {
                let (host, pid) = (machine_name(), std::process::id());
                format!("This bot runs on {host} (process {pid}, generation {}).", self.post.generation)
            }
            Command::Stop => {
                let agent = self.sources.get(&message.binding).map_or(Ok(None), |source| source.agent.clone());
                let courier = self.courier.clone();
                self.doing.spawn(async move {
                    let stopped = match agent {
                        Ok(agent) => guarded(courier.stop(&message.binding, agent)).await,
                        Err(why) => Err(why),
                    };
                    Event::Stopped(message, stopped)
                });
                return;
            }
        };
        self.inbox.handle(now, inbox::Input::Carried(message.seq, text));
    }

    pub(super) fn stopped(&mut self, now: Now, message: &Message, result: Result<String, String>) {
        let text = result.unwrap_or_else(|why| format!("It could not be stopped: {why}"));
        self.inbox.handle(now, inbox::Input::Carried(message.seq, text));
        let channel = message.incoming.channel.clone();
        self.signs.handle(now, signs::Input::Idle(channel));
    }

    fn status_text(&self, now: Now, binding: &str) -> String {
        let status = self.status(now);
        let Some(shown) = status.bindings.iter().find(|shown| shown.name == binding) else {
            return "This binding is not there any more.".to_owned();
        };
        let mut lines = vec![format!("**{}** on {}", shown.name, machine_name())];
        lines.push(match &shown.transcript {
            Some(transcript) => format!("Transcript: `{transcript}`"),
            None => "No transcript is followed.".to_owned(),
        });
        lines.push(format!("Waiting: {} to the channel, {} to the agent", shown.waiting_out, shown.waiting_in));
        lines.extend(shown.parked.iter().map(|why| format!("Nothing is posted: {why}")));
        lines.extend(shown.why.iter().map(|why| format!("Not yet: {why}")));
        if !status.troubles.is_empty() {
            lines.push(format!("Refused or unknown messages: {}", status.troubles.len()));
        }
        lines.join("\n")
    }
}

/// There is no place for more: other channels, or a store that takes nothing, have to get on first.
pub(super) fn no_room() -> DeskError {
    DeskError::Later("too much waits to be posted; nothing more is taken now".to_owned())
}

fn no_binding(binding: &str) -> DeskError {
    DeskError::NotFound(format!("there is no binding {binding}"))
}
