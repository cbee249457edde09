//! What people write and press at Telegram.

use std::time::Duration;

use holdfast_core::chat::{Attachment, ChannelId, Click, Incoming, SendError, UserId};
use holdfast_core::limits;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::actions::message_id;
use super::{Telegram, outcome};
use crate::channel::Event;

/// A chat, or a topic in one. As a [`ChannelId`] it is `<chat>` or `<chat>/<topic>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Conversation {
    pub chat: i64,
    pub topic: Option<i64>,
}

impl Conversation {
    pub(super) fn read(id: &ChannelId) -> Result<Conversation, SendError> {
        let (chat, topic) = match id.as_str().split_once('/') {
            Some((chat, topic)) => (chat, Some(topic)),
            None => (id.as_str(), None),
        };
        let read = || Some(Conversation { chat: chat.parse().ok()?, topic: topic.map(str::parse).transpose().ok()? });
        read().ok_or_else(|| outcome::no_place("this is no chat of Telegram's"))
    }

    /// The body of a request that says something there.
    pub(super) fn body(self) -> Value {
        match self.topic {
            Some(topic) => json!({"chat_id": self.chat, "message_thread_id": topic}),
            None => json!({"chat_id": self.chat}),
        }
    }

    /// As a channel, and the one it belongs to.
    fn names(self) -> Option<(ChannelId, Option<ChannelId>)> {
        let chat = ChannelId::parse(&self.chat.to_string()).ok()?;
        match self.topic {
            Some(topic) => Some((ChannelId::parse(&format!("{chat}/{topic}")).ok()?, Some(chat))),
            None => Some((chat, None)),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Update {
    message: Option<Message>,
    callback_query: Option<Pressed>,
}

#[derive(Debug, Deserialize)]
struct Pressed {
    id: String,
    from: User,
    message: Option<Message>,
    data: Option<String>,
}

#[derive(Debug, Deserialize)]
struct User {
    id: i64,
    #[serde(default)]
    is_bot: bool,
    first_name: Option<String>,
    last_name: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Chat {
    id: i64,
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Debug, Deserialize)]
struct Message {
    message_id: i64,
    message_thread_id: Option<i64>,
    #[serde(default)]
    is_topic_message: bool,
    from: Option<User>,
    chat: Chat,
    #[serde(default)]
    date: u64,
    text: Option<String>,
    caption: Option<String>,
    #[serde(default)]
    entities: Vec<Entity>,
    #[serde(default)]
    caption_entities: Vec<Entity>,
    reply_to_message: Option<Box<Message>>,
    #[serde(default)]
    photo: Vec<File>,
    document: Option<File>,
    audio: Option<File>,
    voice: Option<File>,
    video: Option<File>,
    video_note: Option<File>,
}

#[derive(Debug, Deserialize)]
struct Entity {
    user: Option<User>,
}

#[derive(Debug, Deserialize)]
struct File {
    file_id: String,
    file_name: Option<String>,
    mime_type: Option<String>,
    #[serde(default)]
    file_size: u64,
}

/// When an update's message was written, in milliseconds since 1970.
pub(super) fn date(update: &Value) -> Option<u64> {
    Some(update["message"]["date"].as_u64()?.saturating_mul(1000))
}

impl Update {
    /// Nothing, if it is of a kind nobody asked for.
    pub(super) fn read(update: Value) -> Option<Update> {
        let read = serde_json::from_value(update);
        read.inspect_err(|_| tracing::warn!("an update of Telegram's cannot be read")).ok()
    }
}

impl Message {
    fn conversation(&self) -> Conversation {
        Conversation { chat: self.chat.id, topic: self.message_thread_id.filter(|_| self.is_topic_message) }
    }

    fn files(&mut self) -> Vec<Attachment> {
        let photo = self.photo.drain(..).max_by_key(|size| size.file_size);
        let files = [
            (self.document.take(), "file", ""),
            (photo, "photo.jpg", "image/jpeg"),
            (self.voice.take(), "voice.ogg", "audio/ogg"),
            (self.audio.take(), "audio", "audio/mpeg"),
            (self.video.take(), "video.mp4", "video/mp4"),
            (self.video_note.take(), "video.mp4", "video/mp4"),
        ];
        let attachment = |(file, name, kind): (Option<File>, &str, &str)| {
            let file = file?;
            Some(Attachment {
                id: file.file_id,
                name: file.file_name.unwrap_or_else(|| name.to_owned()),
                kind: file.mime_type.unwrap_or_else(|| kind.to_owned()),
                size: file.file_size,
            })
        };
        files.into_iter().filter_map(attachment).collect()
    }
}

impl User {
    fn names(&self) -> Option<(UserId, String)> {
        let name = [self.first_name.as_deref(), self.last_name.as_deref()];
        Some((UserId::parse(&self.id.to_string()).ok()?, name.into_iter().flatten().collect::<Vec<_>>().join(" ")))
    }
}

impl Telegram {
    /// What an update means, and what fires when it is kept; heard at this time, if not as it was said.
    pub(super) fn event(&self, update: Update, now: Option<u64>) -> Option<(Event, Option<oneshot::Receiver<()>>)> {
        if let Some(pressed) = update.callback_query {
            return Some((Event::Click(self.click(pressed)?), None));
        }
        let (kept, end) = oneshot::channel();
        Some((Event::Message(Box::new(self.incoming(update.message?, now)?), Some(kept)), Some(end)))
    }

    fn click(&self, pressed: Pressed) -> Option<Click> {
        let message = pressed.message?;
        let (channel, parent) = message.conversation().names()?;
        let (user, name) = pressed.from.names()?;
        let (id, button) = (pressed.id, pressed.data?);
        let mut clicks = self.clicks.lock();
        clicks.push_back(id.clone());
        if clicks.len() > limits::CHANNEL_CLICKS {
            clicks.pop_front();
        }
        let (direct, message) = (message.chat.kind == "private", message_id(message.message_id)?);
        Some(Click { id, message, channel, parent, direct, user, name, button })
    }

    fn incoming(&self, mut message: Message, now: Option<u64>) -> Option<Incoming> {
        let (channel, parent) = message.conversation().names()?;
        let from = message.from.take()?;
        let (author, author_name) = from.names()?;
        let attachments = message.files();
        let text = message.text.take().or(message.caption.take()).unwrap_or_default();
        let at = message.date.saturating_mul(1000);
        let us = |user: Option<&User>| user.is_some_and(|user| user.id.to_string() == self.bot());
        let mut entities = message.entities.iter().chain(&message.caption_entities);
        let mentions_us = us(message.reply_to_message.as_ref().and_then(|to| to.from.as_ref()))
            || entities.any(|entity| us(entity.user.as_ref()))
            || self.name.lock().as_deref().is_some_and(|name| names(&text, name));
        Some(Incoming {
            id: message_id(message.message_id)?,
            channel,
            parent,
            direct: message.chat.kind == "private",
            author,
            author_name,
            bot: from.is_bot,
            text,
            mentions_us,
            attachments,
            at,
            age: Duration::from_millis(now.map_or(0, |now| now.saturating_sub(at))),
        })
    }
}

/// Whether a text has `@name` in it, in any case, as a word of its own.
fn names(text: &str, name: &str) -> bool {
    text.split('@').skip(1).any(|rest| {
        let word = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        word.eq_ignore_ascii_case(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_only_as_a_word_of_its_own() {
        for there in ["@helper_bot", "hey @Helper_Bot!", "/stop@helper_bot"] {
            assert!(names(there, "helper_bot"), "{there}");
        }
        for not in ["helper_bot", "@helper_bot2", "@helper", ""] {
            assert!(!names(not, "helper_bot"), "{not}");
        }
    }
}
