//! What the bot does: it posts, changes, shows signs, and fetches files.

use holdfast_core::chat::{ChannelId, Draft, MessageId, SendError};
use holdfast_core::limits;
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::outcome::{self, Refused};
use super::updates::Conversation;
use super::{Telegram, plain};
use crate::channel::http::NotFetched;
use crate::channel::{Examined, answered};

#[derive(Deserialize)]
struct Sent {
    message_id: i64,
}

#[derive(Deserialize)]
struct Kept {
    file_path: Option<String>,
}

#[derive(Deserialize)]
struct Chat {
    title: Option<String>,
    username: Option<String>,
}

/// Longest answer to a click, in characters.
const ANSWER: usize = 200;

impl Telegram {
    pub(super) async fn post(&self, draft: &Draft) -> Result<MessageId, SendError> {
        let mut body = Conversation::read(&draft.channel)?.body();
        says(&mut body, &draft.text);
        if let Some(id) = answered::<i64>(draft) {
            body["reply_parameters"] = json!({"message_id": id, "allow_sending_without_reply": true});
        }
        if !draft.buttons.is_empty() {
            let row: Vec<_> = draft.buttons.iter().map(|b| json!({"text": b.label, "callback_data": b.id})).collect();
            body["reply_markup"] = json!({"inline_keyboard": [row]});
        }
        let sent: Sent =
            self.call("sendMessage", body, limits::CHANNEL_SEND).await.map_err(|why| match why.not_sent() {
                // The second attempt at a message that may be there would post it twice.
                SendError::Unknown(why) => SendError::Lost(why),
                why => why,
            })?;
        message_id(sent.message_id).ok_or_else(|| SendError::Lost("Telegram named no message".into()))
    }

    pub(super) async fn change(&self, channel: &ChannelId, message: &MessageId, text: &str) -> Result<(), SendError> {
        let mut body = addressed(channel, message)?;
        says(&mut body, text);
        match self.call::<IgnoredAny>("editMessageText", body, limits::CHANNEL_SEND).await {
            Ok(_) => Ok(()),
            Err(Refused::Said { code: 400, said, .. }) if said.contains("message is not modified") => Ok(()),
            Err(why) => Err(why.not_sent()),
        }
    }

    pub(super) async fn show_typing(&self, channel: &ChannelId) {
        let body = Conversation::read(channel).map(|conversation| {
            let mut body = conversation.body();
            body["action"] = "typing".into();
            body
        });
        self.gesture("sendChatAction", body).await;
    }

    pub(super) async fn show_sign(&self, channel: &ChannelId, message: &MessageId, sign: &str, there: bool) {
        let body = addressed(channel, message).map(|mut body| {
            let reaction = json!({"type": "emoji", "emoji": reaction(sign)});
            body["reaction"] = if there { json!([reaction]) } else { json!([]) };
            body
        });
        self.gesture("setMessageReaction", body).await;
    }

    pub(super) async fn answer_click(&self, click: &str, text: &str) {
        if !self.clicks.lock().iter().any(|heard| heard == click) {
            return;
        }
        let text: String = text.chars().take(ANSWER).collect();
        self.gesture("answerCallbackQuery", Ok(json!({"callback_query_id": click, "text": text}))).await;
    }

    pub(super) async fn examined(&self, channel: &ChannelId) -> Result<Examined, SendError> {
        let conversation = Conversation::read(channel)?;
        let body = conversation.body();
        let chat: Chat = self.call("getChat", body, limits::CHANNEL_REQUEST).await.map_err(Refused::not_sent)?;
        let name = chat.title.or(chat.username).unwrap_or_else(|| conversation.chat.to_string());
        // What a topic is called, Telegram tells no bot.
        let topic = conversation.topic.map(|topic| format!(", topic {topic}")).unwrap_or_default();
        Ok(Examined { name: format!("{name}{topic}"), lacks: Vec::new() })
    }

    /// Does something of which nobody needs to know whether it worked.
    async fn gesture(&self, method: &str, body: Result<Value, SendError>) {
        let Ok(body) = body else { return };
        if let Err(why) = self.call::<IgnoredAny>(method, body, limits::CHANNEL_REQUEST).await {
            tracing::debug!(method, ?why, "a gesture at Telegram did not work");
        }
    }

    pub(super) async fn file(&self, id: &str, into: &mut tokio::fs::File) -> Result<u64, String> {
        let asked = self.call::<Kept>("getFile", json!({"file_id": id}), limits::CHANNEL_REQUEST).await;
        let path = asked.map_err(Refused::reason)?.file_path.ok_or("Telegram does not give this file")?;
        let address = format!("{}/file/bot{}/{path}", self.base, self.token.expose_secret());
        self.http.fetch(|client| client.get(address), into).await.map_err(|why| match why {
            NotFetched::Refused(status) => format!("Telegram does not give this file ({status})"),
            NotFetched::Because(reason) => reason,
        })
    }
}

pub(super) fn number(message: &MessageId) -> Option<i64> {
    message.as_str().parse().ok()
}

pub(super) fn message_id(id: i64) -> Option<MessageId> {
    MessageId::parse(&id.to_string()).ok()
}

/// Nobody is mentioned by it, and nothing in it is looked up.
fn says(body: &mut Value, text: &str) {
    body["text"] = text.into();
    body["entities"] = plain::entities(text).into();
    body["link_preview_options"] = json!({"is_disabled": true});
}

/// The body of a request about a message.
fn addressed(channel: &ChannelId, message: &MessageId) -> Result<Value, SendError> {
    let id = number(message).ok_or_else(|| outcome::no_place("this is no message of Telegram's"))?;
    Ok(json!({"chat_id": Conversation::read(channel)?.chat, "message_id": id}))
}

/// Telegram has only some emoji for reactions.
fn reaction(sign: &str) -> &str {
    if sign == holdfast_core::chat::signs::WORKS { "👨‍💻" } else { sign }
}
