//! Discord: its gateway for what is heard, its REST API for what is said. The API is asked through the proxy of the
//! environment, if there is one; the gateway is dialled directly.

mod actions;
mod connection;
mod events;
mod examine;
mod gateway;
mod history;
mod outcome;
mod places;
mod rest;
#[cfg(test)]
mod tests;
mod threads;
mod token;
mod words;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::chat::inbox::{Missed, Thread};
use holdfast_core::chat::outbox::Posted;
use holdfast_core::chat::{Attachment, ChannelId, Draft, Incoming, MessageId, SendError, UserId};
use holdfast_core::limits;
use holdfast_core::seat::Failed;
use parking_lot::Mutex;
use secrecy::SecretString;
use tokio::sync::mpsc;
use twilight_gateway::queue::InMemoryQueue;
use url::Url;

use super::{BadChannel, Bot, ChannelBackend, Event, Examined};
use actions::Pressed;
pub(super) use examine::invite;
use gateway::Gateway;
use places::Places;
use rest::Rest;

const API: &str = "https://discord.com/api/v10";

/// A bot at Discord.
pub struct Discord {
    rest: Arc<Rest>,
    token: SecretString,
    bot: String,
    /// As configured.
    gateway_url: Option<String>,
    /// Of a connection that is ready and that nobody listens to yet.
    open: Mutex<Option<Gateway>>,
    /// Spaces logins, whichever connection they are for.
    logins: OnceLock<InMemoryQueue>,
    /// Connections in a row that did not come about.
    failures: AtomicU32,
    places: Places,
    /// In which server each channel is whose threads were asked for last. None: in none that has any.
    servers: Mutex<BTreeMap<ChannelId, Option<String>>>,
    /// Clicks that can be answered, oldest first.
    clicks: Mutex<VecDeque<Pressed>>,
    /// Whether Discord knows our commands.
    registered: Arc<AtomicBool>,
}

impl fmt::Debug for Discord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discord").field("bot", &self.bot).finish_non_exhaustive()
    }
}

impl Discord {
    /// A bot by its token, in which its id stands.
    pub fn new(token: SecretString, base_url: Option<&Url>, gateway_url: Option<&Url>) -> Result<Discord, BadChannel> {
        let (token, bot) = token::read(&token)?;
        let base = super::address(base_url, API)?;
        let gateway_url = gateway_url.map(|url| super::address(Some(url), "")).transpose()?;
        Ok(Discord {
            rest: Arc::new(Rest::new(base, &token)?),
            token,
            bot,
            gateway_url,
            open: Mutex::default(),
            logins: OnceLock::new(),
            failures: AtomicU32::new(0),
            places: Places::default(),
            servers: Mutex::default(),
            clicks: Mutex::default(),
            registered: Arc::default(),
        })
    }

    /// The bot's id.
    pub fn bot(&self) -> &str {
        &self.bot
    }
}

impl ChannelBackend for Discord {
    fn prove(&self) -> BoxFuture<'_, Result<Bot, Failed>> {
        self.me().boxed()
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), Failed>> {
        self.open().boxed()
    }

    fn listen(&self, events: mpsc::Sender<Event>) -> BoxFuture<'_, Failed> {
        async move { self.hear(&events).await }.boxed()
    }

    fn chunk(&self) -> usize {
        limits::CHUNK_DISCORD
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

    fn fetch_after<'a>(
        &'a self,
        channel: &'a ChannelId,
        after: &'a MessageId,
    ) -> BoxFuture<'a, Result<Missed, SendError>> {
        self.missed(channel, after).boxed()
    }

    fn threads<'a>(&'a self, of: &'a [ChannelId]) -> BoxFuture<'a, Result<Vec<Thread>, SendError>> {
        self.open_threads(of).boxed()
    }

    fn direct<'a>(&'a self, person: &'a UserId) -> BoxFuture<'a, Result<Option<ChannelId>, SendError>> {
        self.alone_with(person).boxed()
    }

    fn moment(&self) -> Option<MessageId> {
        let skew = u64::try_from(limits::OUTBOX_SKEW.as_millis()).unwrap_or(u64::MAX);
        MessageId::parse(&words::id_at(self.rest.unix_ms().saturating_sub(skew)).to_string()).ok()
    }

    fn unix_ms(&self) -> u64 {
        self.rest.unix_ms()
    }

    fn posted<'a>(
        &'a self,
        channel: &'a ChannelId,
        after: Option<&'a MessageId>,
        since: Duration,
    ) -> BoxFuture<'a, Result<Option<Vec<Posted>>, SendError>> {
        self.own(channel, after, since).boxed()
    }

    fn download<'a>(
        &'a self,
        message: &'a Incoming,
        file: &'a Attachment,
        into: &'a mut tokio::fs::File,
    ) -> BoxFuture<'a, Result<u64, String>> {
        self.file(message, file, into).boxed()
    }

    fn reset(&self) {
        self.rest.reset();
    }

    fn hears(&self) -> BoxFuture<'_, Result<(), Failed>> {
        self.hears_text().boxed()
    }

    fn name<'a>(&'a self, channel: &'a ChannelId) -> BoxFuture<'a, Result<String, SendError>> {
        self.called(channel).boxed()
    }

    fn examine<'a>(&'a self, channel: &'a ChannelId) -> BoxFuture<'a, Result<Examined, SendError>> {
        self.examined(channel).boxed()
    }
}
