//! What Discord sends, as far as it is needed. Read leniently: a field that Discord adds or changes must not lose a message.

use std::time::{Duration, Instant};

use holdfast_core::chat::{Attachment, ChannelId, Click, Incoming, MessageId, UserId};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use twilight_model::channel::message::MessageFlags;

use super::places::Place;

/// Discord's calendar begins with 2015.
const EPOCH: u64 = 1_420_070_400_000;
const PLAIN: u64 = 0;
const REPLY: u64 = 19;
/// Kinds of messages that somebody wrote: plain, answers, and two kinds of commands.
const WRITTEN: [u64; 4] = [PLAIN, REPLY, 20, 23];
/// Kinds of channels that belong to another one.
const THREADS: [u64; 3] = [10, 11, 12];
/// Kinds of channels without a server.
const DIRECT: u64 = 1;

#[derive(Debug, Deserialize)]
pub(super) struct User {
    pub id: UserId,
    #[serde(default)]
    pub username: String,
    pub global_name: Option<String>,
    #[serde(default)]
    pub bot: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Channel {
    pub id: ChannelId,
    #[serde(rename = "type", default)]
    kind: u64,
    parent_id: Option<ChannelId>,
}

impl Channel {
    pub(super) fn place(self) -> Place {
        // Other channels have a parent as well: the heading above them.
        let parent = self.parent_id.filter(|_| THREADS.contains(&self.kind));
        Place { parent, direct: self.kind == DIRECT }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub id: MessageId,
    pub channel_id: ChannelId,
    /// Only in events, and of a server only.
    pub guild_id: Option<String>,
    #[serde(rename = "type", default)]
    kind: u64,
    pub author: User,
    webhook_id: Option<String>,
    #[serde(default)]
    pub content: String,
    #[serde(default)]
    mentions: Vec<User>,
    referenced_message: Option<Box<Message>>,
    #[serde(default)]
    attachments: Vec<File>,
    #[serde(default)]
    flags: Value,
    interaction_metadata: Option<IgnoredAny>,
    /// What was forwarded.
    #[serde(default, deserialize_with = "lenient")]
    message_snapshots: Vec<Snapshot>,
    #[serde(default, deserialize_with = "lenient")]
    poll: Option<Poll>,
    #[serde(default, deserialize_with = "lenient")]
    sticker_items: Vec<Sticker>,
    /// When it was heard, if that was as it was said.
    #[serde(skip)]
    live: Option<Instant>,
}

#[derive(Debug, Deserialize)]
struct Snapshot {
    message: Forwarded,
}

#[derive(Debug, Deserialize)]
struct Forwarded {
    #[serde(default)]
    content: String,
    #[serde(default)]
    attachments: Vec<File>,
}

#[derive(Debug, Deserialize)]
struct Poll {
    question: Line,
    #[serde(default)]
    answers: Vec<Answer>,
}

#[derive(Debug, Deserialize)]
struct Answer {
    poll_media: Line,
}

#[derive(Debug, Deserialize)]
struct Line {
    text: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Sticker {
    name: String,
}

/// Nothing, if it is not what it was.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(de: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(de)?).unwrap_or_default())
}

#[derive(Debug, Deserialize)]
pub(super) struct File {
    pub id: String,
    #[serde(default)]
    filename: String,
    content_type: Option<String>,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    pub url: String,
}

impl Message {
    /// Whether it was posted in its channel for everybody: neither an answer to one person alone, of which the bot is told as
    /// well, nor a line of Discord's about its author.
    pub(super) fn is_post(&self) -> bool {
        let hidden = self.flags.as_u64().unwrap_or_default() & MessageFlags::EPHEMERAL.bits() != 0;
        matches!(self.kind, PLAIN | REPLY) && !hidden && self.interaction_metadata.is_none()
    }

    pub(super) fn heard(self, live: Option<Instant>) -> Message {
        Message { live, ..self }
    }

    /// Its files, and those of what it forwards.
    pub(super) fn files(&mut self) -> Vec<File> {
        let forwarded = self.message_snapshots.iter_mut().flat_map(|snapshot| snapshot.message.attachments.drain(..));
        self.attachments.drain(..).chain(forwarded).collect()
    }

    /// What it says, and in brackets what it has beside its text. What is forwarded is somebody else's: it is no command.
    fn text(&self, bot: &str) -> String {
        let mut parts = vec![without_name(&self.content, bot).to_owned()];
        parts.extend(self.message_snapshots.iter().map(|s| format!("[forwarded]\n{}", s.message.content)));
        if let Some(Poll { question, answers }) = &self.poll {
            let answers = answers.iter().filter_map(|answer| answer.poll_media.text.as_deref());
            let answers = answers.collect::<Vec<_>>().join(" / ");
            parts.push(format!("[poll: {}: {answers}]", question.text.as_deref().unwrap_or_default()));
        }
        parts.extend(self.sticker_items.iter().map(|sticker| format!("[sticker: {}]", sticker.name)));
        parts.retain(|part| !part.is_empty());
        parts.join("\n\n").trim_end().to_owned()
    }

    /// As one that came in, at this time by Discord's calendar; what is not written by anybody counts as a program's.
    pub(super) fn incoming(mut self, place: Place, bot: &str, now: u64) -> Incoming {
        let (text, files) = (self.text(bot), self.files());
        let us = |user: &User| user.id.as_str() == bot;
        let answered = self.referenced_message.as_ref().is_some_and(|to| us(&to.author));
        let at = time_of(self.id.as_str());
        Incoming {
            mentions_us: answered || self.mentions.iter().any(us),
            bot: self.author.bot || self.webhook_id.is_some() || !WRITTEN.contains(&self.kind),
            text: if text.is_empty() && files.is_empty() { "[a message without text]".to_owned() } else { text },
            attachments: files.into_iter().map(File::attachment).collect(),
            at,
            age: age(at, self.live, now),
            ..written(self.id, self.channel_id, place, self.author)
        }
    }
}

impl File {
    fn attachment(self) -> Attachment {
        let kind = self.content_type.unwrap_or_default();
        Attachment { id: self.id, name: self.filename, kind, size: self.size }
    }
}

fn written(id: MessageId, channel: ChannelId, Place { parent, direct }: Place, author: User) -> Incoming {
    Incoming {
        id,
        channel,
        parent,
        direct,
        author_name: author.global_name.unwrap_or(author.username),
        author: author.id,
        bot: false,
        text: String::new(),
        mentions_us: true,
        attachments: Vec::new(),
        at: 0,
        age: Duration::ZERO,
    }
}

/// Its token answers it, so it is not shown.
#[derive(Deserialize)]
pub(super) struct Interaction {
    pub id: MessageId,
    pub token: String,
    pub application_id: String,
    #[serde(rename = "type")]
    kind: u64,
    channel: Option<Channel>,
    member: Option<Member>,
    user: Option<User>,
    message: Option<Message>,
    #[serde(default)]
    data: Data,
    /// When it was heard, if that was as it was done.
    #[serde(skip)]
    live: Option<Instant>,
}

#[derive(Debug, Deserialize)]
struct Member {
    user: User,
}

#[derive(Debug, Default, Deserialize)]
struct Data {
    custom_id: Option<String>,
    name: Option<String>,
}

/// What an interaction says.
#[derive(Debug)]
pub(super) enum Acted {
    Click(Click),
    /// A slash command is what it would be if it were typed.
    Command(Box<Incoming>),
}

const COMMAND: u64 = 2;
const COMPONENT: u64 = 3;

impl Interaction {
    pub(super) fn heard(self, live: Option<Instant>) -> Interaction {
        Interaction { live, ..self }
    }

    pub(super) fn is_command(&self) -> bool {
        self.kind == COMMAND
    }

    /// Nothing, if it is none of ours.
    pub(super) fn acted(self, now: u64) -> Option<Acted> {
        let user = self.member.map(|member| member.user).or(self.user)?;
        let channel = self.channel?;
        let id = channel.id.clone();
        let place = channel.place();
        match (self.kind, self.data) {
            (COMMAND, Data { name: Some(name), .. }) => {
                let at = time_of(self.id.as_str());
                let age = age(at, self.live, now);
                let command = Incoming { text: format!("/{name}"), at, age, ..written(self.id, id, place, user) };
                Some(Acted::Command(Box::new(command)))
            }
            (COMPONENT, Data { custom_id: Some(button), .. }) => Some(Acted::Click(Click {
                id: self.id.as_str().to_owned(),
                message: self.message?.id,
                channel: id,
                parent: place.parent,
                direct: place.direct,
                name: user.global_name.unwrap_or(user.username),
                user: user.id,
                button,
            })),
            _ => None,
        }
    }
}

/// How late it is heard what was said at a moment: calendars differ, so they count only for what was not heard at once.
fn age(at: u64, live: Option<Instant>, now: u64) -> Duration {
    live.map_or_else(|| Duration::from_millis(now.saturating_sub(at)), |heard| heard.elapsed())
}

/// When an id was made, in milliseconds since 1970.
pub(super) fn time_of(id: &str) -> u64 {
    id.parse::<u64>().map_or(0, |id| (id >> 22) + EPOCH)
}

/// The smallest id that is made at a moment.
pub(super) fn id_at(unix_ms: u64) -> u64 {
    unix_ms.saturating_sub(EPOCH) << 22
}

/// A text without the bot's name before it.
fn without_name<'a>(text: &'a str, bot: &str) -> &'a str {
    let named = text.strip_prefix("<@").map(|rest| rest.strip_prefix('!').unwrap_or(rest));
    let rest = named.and_then(|rest| rest.strip_prefix(bot)).and_then(|rest| rest.strip_prefix('>'));
    rest.map_or(text, str::trim_start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_its_time_and_a_time_its_first_id() {
        // The example of Discord's documentation.
        assert_eq!(time_of("175928847299117063"), 1_462_015_105_796);
        assert_eq!(id_at(1_462_015_105_796), 175_928_847_299_117_063 >> 22 << 22);
    }

    #[test]
    fn the_bots_name_before_a_text_goes_and_any_other_stays() {
        for (text, rest) in
            [("<@12> /status", "/status"), ("<@!12>hey", "hey"), ("<@123> x", "<@123> x"), ("a <@12>", "a <@12>")]
        {
            assert_eq!(without_name(text, "12"), rest);
        }
    }

    #[test]
    fn a_message_is_read_whatever_else_stands_in_it() {
        let odd = r#"{"id":"9","channel_id":"8","author":{"id":"7"},"flags":"new","poll":{"x":[1]},"type":6,"components":[{"type":99}]}"#;
        let message: Message = serde_json::from_str(odd).unwrap();
        let incoming = message.incoming(Place { parent: None, direct: false }, "1", 0);
        assert_eq!(
            (incoming.id.as_str(), incoming.bot, incoming.text.as_str()),
            ("9", true, "[a message without text]")
        );
    }
}
