//! Discord: its gateway for what is heard, its REST API for what is said.

mod token;

use std::fmt;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::chat::inbox::Missed;
use holdfast_core::chat::outbox::Posted;
use holdfast_core::chat::{Attachment, ChannelId, Draft, Incoming, MessageId, SendError};
use holdfast_core::limits;
use holdfast_core::seat::Failed;
use secrecy::SecretString;
use tokio::sync::mpsc;
use url::Url;

use super::http::Http;
use super::{BadChannel, Bot, ChannelBackend, Event};

const API: &str = "https://discord.com/api/v10";

/// A bot at Discord.
pub struct Discord {
    http: Http,
    bot: String,
}

impl fmt::Debug for Discord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discord").field("bot", &self.bot).finish_non_exhaustive()
    }
}

impl Discord {
    /// A bot by its token, in which its id stands.
    pub fn new(token: SecretString, base_url: Option<&Url>, gateway_url: Option<&Url>) -> Result<Discord, BadChannel> {
        let (_, bot) = token::read(&token)?;
        super::address(base_url, API)?;
        super::address(gateway_url, "")?;
        Ok(Discord { http: Http::new("Discord")?, bot })
    }

    /// The bot's id.
    pub fn bot(&self) -> &str {
        &self.bot
    }
}

fn not_yet() -> Failed {
    Failed::ForGood("Discord is not built in yet".into())
}

fn later() -> SendError {
    SendError::Later("Discord is not built in yet".into())
}

impl ChannelBackend for Discord {
    fn prove(&self) -> BoxFuture<'_, Result<Bot, Failed>> {
        async { Err(not_yet()) }.boxed()
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), Failed>> {
        async { Err(not_yet()) }.boxed()
    }

    fn listen(&self, _: mpsc::Sender<Event>) -> BoxFuture<'_, Failed> {
        async { not_yet() }.boxed()
    }

    fn chunk(&self) -> usize {
        limits::CHUNK_DISCORD
    }

    fn send<'a>(&'a self, _: &'a Draft) -> BoxFuture<'a, Result<MessageId, SendError>> {
        async { Err(later()) }.boxed()
    }

    fn edit<'a>(&'a self, _: &'a ChannelId, _: &'a MessageId, _: &'a str) -> BoxFuture<'a, Result<(), SendError>> {
        async { Err(later()) }.boxed()
    }

    fn typing<'a>(&'a self, _: &'a ChannelId) -> BoxFuture<'a, ()> {
        async {}.boxed()
    }

    fn react<'a>(&'a self, _: &'a ChannelId, _: &'a MessageId, _: &'a str, _: bool) -> BoxFuture<'a, ()> {
        async {}.boxed()
    }

    fn answer<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, ()> {
        async {}.boxed()
    }

    fn fetch_after<'a>(&'a self, _: &'a ChannelId, _: &'a MessageId) -> BoxFuture<'a, Result<Missed, SendError>> {
        async { Err(later()) }.boxed()
    }

    fn posted<'a>(
        &'a self,
        _: &'a ChannelId,
        _: Option<&'a MessageId>,
        _: Duration,
    ) -> BoxFuture<'a, Result<Option<Vec<Posted>>, SendError>> {
        async { Err(later()) }.boxed()
    }

    fn download<'a>(
        &'a self,
        _: &'a Incoming,
        _: &'a Attachment,
        _: &'a mut tokio::fs::File,
    ) -> BoxFuture<'a, Result<u64, String>> {
        async { Err("Discord is not built in yet".into()) }.boxed()
    }

    fn reset(&self) {
        self.http.reset();
    }
}
