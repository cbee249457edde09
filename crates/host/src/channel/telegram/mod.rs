//! Telegram's Bot API by long polling. The address of every request holds the token, so no address ever leaves this folder.
//!
//! Telegram offers an update until a poll asks for what comes after it. So nothing is missed, and the next poll asks for more
//! only when everything before was kept. It knows no nonces and shows a bot none of its own messages: what may have been sent
//! is never sent again.

mod actions;
mod outcome;
mod plain;
mod updates;

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::chat::inbox::Missed;
use holdfast_core::chat::outbox::Posted;
use holdfast_core::chat::{Attachment, ChannelId, Draft, Incoming, MessageId, SendError};
use holdfast_core::limits;
use holdfast_core::seat::Failed;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use url::Url;

use super::http::Http;
use super::{BadChannel, Bot, ChannelBackend, Event, Examined};
use crate::status_hub::unix_ms;
use outcome::Refused;
use updates::Update;

const API: &str = "https://api.telegram.org";
/// Longest message, in UTF-16 units.
const CHUNK: usize = 4096;

/// A bot at Telegram.
pub struct Telegram {
    http: Http,
    base: String,
    token: SecretString,
    bot: String,
    /// By which people name it, without the `@`, once it is known.
    name: Mutex<Option<String>>,
    /// The last clicks.
    clicks: Mutex<VecDeque<String>>,
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

impl Telegram {
    /// A bot by its token; its id stands before the colon.
    pub fn new(token: SecretString, base_url: Option<&Url>) -> Result<Telegram, BadChannel> {
        let bot = bot_of(token.expose_secret()).ok_or(NO_TOKEN)?.to_owned();
        let base = super::address(base_url, API)?;
        let (name, clicks) = (Mutex::default(), Mutex::default());
        Ok(Telegram { http: Http::new("Telegram", &base)?, base, token, bot, name, clicks })
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

    /// How late updates are heard. What came while a poll waited, or soon after one that left nothing behind, came as it was
    /// said. Otherwise calendars count: Telegram's, or how far the updates themselves have come, never this machine's.
    fn calendar(&self, drained: Option<Duration>, updates: &[Value]) -> Option<u64> {
        let since = drained.map(|at| self.http.calendar().boot().saturating_sub(at));
        if since.is_some_and(|since| since <= limits::TELEGRAM_LIVE) {
            return None;
        }
        let newest = updates.iter().filter_map(updates::date).max();
        self.http.calendar().now().max(newest).or(Some(0))
    }

    async fn hear(&self, events: &mpsc::Sender<Event>) -> Failed {
        let gone = || Failed::ForNow { reason: "nobody listens".into(), after: None };
        if events.send(Event::Ready).await.is_err() {
            return gone();
        }
        // Kept here only: what a listener before did not take to its end is offered to the next one again.
        let mut offset = 0;
        // Since when nothing is offered that was not taken, by the time since the machine began.
        let mut drained = None;
        loop {
            let wait = if drained.is_some() { limits::CHANNEL_POLL } else { Duration::ZERO };
            let updates = match self.poll(offset, wait).await {
                Ok(updates) => updates,
                Err(why) => return why.failed(),
            };
            let now = self.calendar(drained, &updates);
            drained = (updates.len() < limits::CHANNEL_UPDATES).then(|| self.http.calendar().boot());
            let mut kept = Vec::new();
            for update in updates {
                let Some(id) = update["update_id"].as_i64() else { continue };
                offset = offset.max(id + 1);
                let heard = Update::read(update).and_then(|update| self.event(update, now));
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
        self.post(draft).boxed()
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
        self.show_typing(channel).boxed()
    }

    fn react<'a>(
        &'a self,
        channel: &'a ChannelId,
        message: &'a MessageId,
        sign: &'a str,
        there: bool,
    ) -> BoxFuture<'a, ()> {
        self.show_sign(channel, message, sign, there).boxed()
    }

    fn answer<'a>(&'a self, click: &'a str, text: &'a str) -> BoxFuture<'a, ()> {
        self.answer_click(click, text).boxed()
    }

    /// Nothing: what nobody kept is offered again by itself.
    fn fetch_after<'a>(&'a self, _: &'a ChannelId, _: &'a MessageId) -> BoxFuture<'a, Result<Missed, SendError>> {
        async { Ok(Missed { messages: Vec::new(), more: false }) }.boxed()
    }

    fn moment(&self) -> Option<MessageId> {
        None
    }

    fn unix_ms(&self) -> u64 {
        self.http.calendar().now().unwrap_or_else(unix_ms)
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
        self.examined(channel).boxed()
    }
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

#[cfg(test)]
mod tests;
