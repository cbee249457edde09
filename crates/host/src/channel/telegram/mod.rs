//! Telegram's Bot API by long polling. The address of every request holds the token, so no address ever leaves this file.
//!
//! Telegram offers an update until a poll asks for what comes after it. So nothing is missed, and the next poll asks for more
//! only when everything before was kept. It knows no nonces and shows a bot none of its own messages: what may have been sent
//! is never sent again.

mod outcome;
mod updates;

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::chat::inbox::Missed;
use holdfast_core::chat::outbox::Posted;
use holdfast_core::chat::{Attachment, ChannelId, Draft, Incoming, MessageId, Scope, SendError};
use holdfast_core::limits;
use holdfast_core::seat::Failed;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use url::Url;

use super::http::{Http, NotFetched};
use super::{BadChannel, Bot, ChannelBackend, Event, Examined};
use outcome::Refused;
use updates::{Conversation, Update};

const API: &str = "https://api.telegram.org";
/// Longest message, in UTF-16 units.
const CHUNK: usize = 4096;
/// Longest answer to a click, in characters.
const ANSWER: usize = 200;

/// A bot at Telegram.
pub struct Telegram {
    http: Http,
    base: String,
    token: SecretString,
    bot: String,
    /// By which people name it, without the `@`, once it is known.
    name: Mutex<Option<String>>,
    /// Nonces of the last messages of which nobody knows whether they were sent.
    doubted: Mutex<VecDeque<String>>,
}

impl fmt::Debug for Telegram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telegram").field("bot", &self.bot).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Answer<T> {
    ok: bool,
    result: Option<T>,
    error_code: Option<u16>,
    description: Option<String>,
    parameters: Option<Parameters>,
}

#[derive(Deserialize)]
struct Parameters {
    retry_after: Option<u64>,
}

#[derive(Deserialize)]
struct Me {
    id: u64,
    username: Option<String>,
}

#[derive(Deserialize)]
struct Sent {
    message_id: i64,
}

#[derive(Deserialize)]
struct Kept {
    file_path: Option<String>,
}

impl Telegram {
    /// A bot by its token; its id stands before the colon.
    pub fn new(token: SecretString, base_url: Option<&Url>) -> Result<Telegram, BadChannel> {
        let bot = bot_of(token.expose_secret()).ok_or(NO_TOKEN)?.to_owned();
        let base = super::address(base_url, API)?;
        let (name, doubted) = (Mutex::default(), Mutex::default());
        Ok(Telegram { http: Http::new("Telegram")?, base, token, bot, name, doubted })
    }

    /// The bot's id.
    pub fn bot(&self) -> &str {
        &self.bot
    }

    async fn call<T: DeserializeOwned>(&self, method: &str, body: Value, wait: Duration) -> Result<T, Refused> {
        let address = format!("{}/bot{}/{method}", self.base, self.token.expose_secret());
        let answer = self.http.ask(|client| client.post(address).json(&body), wait).await.map_err(Refused::Lost)?;
        let status = answer.status.as_u16();
        match serde_json::from_slice(&answer.body) {
            Ok(Answer { ok: true, result: Some(result), .. }) => Ok(result),
            Ok(Answer { error_code, description, parameters, .. }) => Err(Refused::Said {
                code: error_code.unwrap_or(status),
                said: description.unwrap_or_default().chars().filter(|c| !c.is_control()).take(200).collect(),
                after: parameters.and_then(|p| p.retry_after).map(Duration::from_secs),
            }),
            Err(_) => Err(Refused::Strange(status)),
        }
    }

    async fn me(&self) -> Result<Bot, Failed> {
        let me: Me = self.call("getMe", json!({}), limits::CHANNEL_REQUEST).await.map_err(Refused::failed)?;
        let id = me.id.to_string();
        if id != self.bot {
            return Err(Failed::ForGood(format!("the token belongs to bot {id}, not to bot {}", self.bot)));
        }
        self.name.lock().clone_from(&me.username);
        Ok(Bot { name: me.username.map_or_else(|| id.clone(), |name| format!("@{name}")), id })
    }

    /// What was not offered yet, from this update on.
    async fn poll(&self, offset: i64, wait: Duration) -> Result<Vec<Value>, Refused> {
        let body = json!({
            "offset": offset,
            "limit": limits::CHANNEL_UPDATES,
            "timeout": wait.as_secs(),
            "allowed_updates": ["message", "callback_query"],
        });
        self.call("getUpdates", body, wait + limits::CHANNEL_REQUEST).await
    }

    async fn hear(&self, events: &mpsc::Sender<Event>) -> Failed {
        let gone = || Failed::ForNow { reason: "nobody listens".into(), after: None };
        if events.send(Event::Ready).await.is_err() {
            return gone();
        }
        // Kept here only: what a listener before did not take to its end is offered to the next one again.
        let mut offset = 0;
        loop {
            let updates = match self.poll(offset, limits::CHANNEL_POLL).await {
                Ok(updates) => updates,
                Err(why) => return why.failed(),
            };
            let mut kept = Vec::new();
            for update in updates {
                let Some(id) = update["update_id"].as_i64() else { continue };
                offset = offset.max(id + 1);
                let heard = Update::read(update).and_then(|update| self.event(update));
                let Some((event, end)) = heard else { continue };
                kept.extend(end);
                if events.send(event).await.is_err() {
                    return gone();
                }
            }
            for end in kept {
                // Dropped without a word means that it is not wanted.
                let _ = end.await;
            }
        }
    }

    async fn post(&self, draft: &Draft) -> Result<MessageId, SendError> {
        let mut body = Conversation::read(&draft.channel)?.body();
        body["text"] = draft.text.as_str().into();
        if let Some(id) = draft.reply_to.as_ref().and_then(number) {
            body["reply_parameters"] = json!({"message_id": id, "allow_sending_without_reply": true});
        }
        if !draft.buttons.is_empty() {
            let row: Vec<_> = draft.buttons.iter().map(|b| json!({"text": b.label, "callback_data": b.id})).collect();
            body["reply_markup"] = json!({"inline_keyboard": [row]});
        }
        let sent: Sent = self.call("sendMessage", body, limits::CHANNEL_SEND).await.map_err(Refused::not_sent)?;
        message_id(sent.message_id).ok_or_else(|| SendError::Unknown("Telegram named no message".into()))
    }

    /// The second attempt at a message that may be there would post it twice.
    async fn post_once(&self, draft: &Draft) -> Result<MessageId, SendError> {
        if self.doubted.lock().contains(&draft.nonce) {
            return Err(SendError::Permanent {
                scope: Scope::Message,
                code: String::new(),
                text: "it may have been posted, and Telegram cannot be asked".into(),
            });
        }
        let result = self.post(draft).await;
        if let Err(SendError::Unknown(_)) = result {
            let mut doubted = self.doubted.lock();
            doubted.push_back(draft.nonce.clone());
            if doubted.len() > limits::OUTBOX_LANES {
                doubted.pop_front();
            }
        }
        result
    }

    async fn change(&self, channel: &ChannelId, message: &MessageId, text: &str) -> Result<(), SendError> {
        let mut body = addressed(channel, message)?;
        body["text"] = text.into();
        match self.call::<IgnoredAny>("editMessageText", body, limits::CHANNEL_SEND).await {
            Ok(_) => Ok(()),
            Err(Refused::Said { code: 400, said, .. }) if said.contains("message is not modified") => Ok(()),
            Err(why) => Err(why.not_sent()),
        }
    }

    /// Does something of which nobody needs to know whether it worked.
    async fn gesture(&self, method: &str, body: Result<Value, SendError>) {
        let Ok(body) = body else { return };
        if let Err(why) = self.call::<IgnoredAny>(method, body, limits::CHANNEL_REQUEST).await {
            tracing::debug!(method, ?why, "a gesture at Telegram did not work");
        }
    }

    async fn file(&self, id: &str, into: &mut tokio::fs::File) -> Result<u64, String> {
        let asked = self.call::<Kept>("getFile", json!({"file_id": id}), limits::CHANNEL_REQUEST).await;
        let path = asked.map_err(Refused::reason)?.file_path.ok_or("Telegram does not give this file")?;
        let address = format!("{}/file/bot{}/{path}", self.base, self.token.expose_secret());
        self.http.fetch(|client| client.get(address), into).await.map_err(|why| match why {
            NotFetched::Refused(status) => format!("Telegram does not give this file ({status})"),
            NotFetched::Because(reason) => reason,
        })
    }
}

impl ChannelBackend for Telegram {
    fn prove(&self) -> BoxFuture<'_, Result<Bot, Failed>> {
        self.me().boxed()
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), Failed>> {
        async {
            self.me().await?;
            // Nothing is taken by it: no later update is asked for.
            self.poll(0, Duration::ZERO).await.map_err(Refused::failed)?;
            Ok(())
        }
        .boxed()
    }

    fn listen(&self, events: mpsc::Sender<Event>) -> BoxFuture<'_, Failed> {
        async move { self.hear(&events).await }.boxed()
    }

    fn chunk(&self) -> usize {
        CHUNK
    }

    fn send<'a>(&'a self, draft: &'a Draft) -> BoxFuture<'a, Result<MessageId, SendError>> {
        self.post_once(draft).boxed()
    }

    fn edit<'a>(
        &'a self,
        channel: &'a ChannelId,
        message: &'a MessageId,
        text: &'a str,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.change(channel, message, text).boxed()
    }

    fn typing<'a>(&'a self, channel: &'a ChannelId) -> BoxFuture<'a, ()> {
        async move {
            let body = Conversation::read(channel).map(|conversation| {
                let mut body = conversation.body();
                body["action"] = "typing".into();
                body
            });
            self.gesture("sendChatAction", body).await;
        }
        .boxed()
    }

    fn react<'a>(
        &'a self,
        channel: &'a ChannelId,
        message: &'a MessageId,
        sign: &'a str,
        there: bool,
    ) -> BoxFuture<'a, ()> {
        async move {
            let body = addressed(channel, message).map(|mut body| {
                let reaction = json!({"type": "emoji", "emoji": updates::reaction(sign)});
                body["reaction"] = if there { json!([reaction]) } else { json!([]) };
                body
            });
            self.gesture("setMessageReaction", body).await;
        }
        .boxed()
    }

    fn answer<'a>(&'a self, click: &'a str, text: &'a str) -> BoxFuture<'a, ()> {
        async move {
            let text: String = text.chars().take(ANSWER).collect();
            self.gesture("answerCallbackQuery", Ok(json!({"callback_query_id": click, "text": text}))).await;
        }
        .boxed()
    }

    /// Nothing: what nobody kept is offered again by itself.
    fn fetch_after<'a>(&'a self, _: &'a ChannelId, _: &'a MessageId) -> BoxFuture<'a, Result<Missed, SendError>> {
        async { Ok(Missed { messages: Vec::new(), more: false }) }.boxed()
    }

    /// Telegram cannot be asked.
    fn posted<'a>(
        &'a self,
        _: &'a ChannelId,
        _: Option<&'a MessageId>,
        _: Duration,
    ) -> BoxFuture<'a, Result<Option<Vec<Posted>>, SendError>> {
        async { Ok(None) }.boxed()
    }

    fn download<'a>(
        &'a self,
        _: &'a Incoming,
        file: &'a Attachment,
        into: &'a mut tokio::fs::File,
    ) -> BoxFuture<'a, Result<u64, String>> {
        self.file(&file.id, into).boxed()
    }

    fn reset(&self) {
        self.http.reset();
    }

    fn hears(&self) -> BoxFuture<'_, Result<(), Failed>> {
        // What a group lets it hear, it is told nowhere.
        async { Ok(()) }.boxed()
    }

    fn examine<'a>(&'a self, channel: &'a ChannelId) -> BoxFuture<'a, Result<Examined, SendError>> {
        async move {
            let chat: Chat = self
                .call("getChat", json!({"chat_id": channel.as_str()}), limits::CHANNEL_REQUEST)
                .await
                .map_err(Refused::not_sent)?;
            let name = chat.title.or(chat.username).unwrap_or_else(|| channel.to_string());
            Ok(Examined { name, lacks: Vec::new() })
        }
        .boxed()
    }
}

#[derive(Deserialize)]
struct Chat {
    title: Option<String>,
    username: Option<String>,
}

const NO_TOKEN: BadChannel =
    BadChannel::Token("this is no token of a Telegram bot; @BotFather gives one such as 123456:ABC-DEF…");

/// The bot's id in a token such as `123456:ABC-DEF`.
fn bot_of(token: &str) -> Option<&str> {
    let (id, secret) = token.split_once(':')?;
    let good = (1..=20).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_digit())
        && (8..=256).contains(&secret.len())
        && secret.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    good.then_some(id)
}

fn number(message: &MessageId) -> Option<i64> {
    message.as_str().parse().ok()
}

fn message_id(id: i64) -> Option<MessageId> {
    MessageId::parse(&id.to_string()).ok()
}

/// The body of a request about a message.
fn addressed(channel: &ChannelId, message: &MessageId) -> Result<Value, SendError> {
    let id = number(message).ok_or_else(|| outcome::no_place("this is no message of Telegram's"))?;
    Ok(json!({"chat_id": Conversation::read(channel)?.chat, "message_id": id}))
}

#[cfg(test)]
mod tests;
