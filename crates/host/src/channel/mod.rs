//! Chat services: what the seat needs of one, and the ones there are.

mod discord;
mod http;
mod telegram;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::chat::inbox::{Missed, Thread};
use holdfast_core::chat::outbox::Posted;
use holdfast_core::chat::{Attachment, ChannelId, Click, Draft, Incoming, MessageId, SendError, UserId};
#[cfg(doc)]
use holdfast_core::limits;
use holdfast_core::seat::Failed;
use holdfast_core::status::UnixMs;
use secrecy::SecretString;
use tokio::sync::{mpsc, oneshot};
use url::Url;

use crate::config::ChannelService;
use crate::http_client;
use crate::status_hub::unix_ms;
pub use discord::Discord;
pub use telegram::Telegram;

/// A bot at a chat service. What fails never names the token, nor an address that holds it.
pub trait ChannelBackend: fmt::Debug + Send + Sync {
    /// Asks the service whose token it is. Changes nothing there.
    fn prove(&self) -> BoxFuture<'_, Result<Bot, Failed>>;

    /// Connects: when it returns, the bot can speak and hear.
    fn connect(&self) -> BoxFuture<'_, Result<(), Failed>>;

    /// Stays connected until that ends by itself, and tells what is heard. Dropping it disconnects.
    fn listen(&self, events: mpsc::Sender<Event>) -> BoxFuture<'_, Failed>;

    /// The longest message, in UTF-16 units.
    fn chunk(&self) -> usize;

    /// Posts a message; the same nonce within the service's window posts it once.
    fn send<'a>(&'a self, draft: &'a Draft) -> BoxFuture<'a, Result<MessageId, SendError>>;

    /// Makes the text of one of our messages this, and takes its buttons away.
    fn edit<'a>(
        &'a self,
        channel: &'a ChannelId,
        message: &'a MessageId,
        text: &'a str,
    ) -> BoxFuture<'a, Result<(), SendError>>;

    /// Shows for some seconds that the bot types. Whether it worked matters to nobody.
    fn typing<'a>(&'a self, channel: &'a ChannelId) -> BoxFuture<'a, ()>;

    /// Puts our reaction on a message, or takes it away. Whether it worked matters to nobody.
    fn react<'a>(
        &'a self,
        channel: &'a ChannelId,
        message: &'a MessageId,
        sign: &'a str,
        there: bool,
    ) -> BoxFuture<'a, ()>;

    /// Answers a click, or a command that came as something else than a message, so that only that person sees it. Whatever
    /// else is named is not answered.
    fn answer<'a>(&'a self, click: &'a str, text: &'a str) -> BoxFuture<'a, ()>;

    /// What was written in a channel after a message, oldest first.
    fn fetch_after<'a>(
        &'a self,
        channel: &'a ChannelId,
        after: &'a MessageId,
    ) -> BoxFuture<'a, Result<Missed, SendError>>;

    /// Threads of these channels in which people can write, those with the newest messages first; at most
    /// [`limits::INBOX_THREADS`]. None of services that bring what was missed by themselves.
    fn threads<'a>(&'a self, of: &'a [ChannelId]) -> BoxFuture<'a, Result<Vec<Thread>, SendError>> {
        let _ = of;
        async { Ok(Vec::new()) }.boxed()
    }

    /// Where the bot is alone with a person; made, if it is not there yet. Nothing, of services that bring what was missed by
    /// themselves.
    fn direct<'a>(&'a self, person: &'a UserId) -> BoxFuture<'a, Result<Option<ChannelId>, SendError>> {
        let _ = person;
        async { Ok(None) }.boxed()
    }

    /// An id before those of everything that is written from now on; of a little earlier, because clocks differ. None: the
    /// service brings what was missed by itself.
    fn moment(&self) -> Option<MessageId>;

    /// What the service's calendar shows, in milliseconds since 1970; this machine's, where the service did not tell it.
    fn unix_ms(&self) -> UnixMs {
        unix_ms()
    }

    /// What our bot posted in a channel after a message, or without one since that long ago; oldest first. Nothing, if there
    /// is more than [`limits::OUTBOX_COMPARED`] to look through, or the service cannot be asked.
    fn posted<'a>(
        &'a self,
        channel: &'a ChannelId,
        after: Option<&'a MessageId>,
        since: Duration,
    ) -> BoxFuture<'a, Result<Option<Vec<Posted>>, SendError>>;

    /// Streams a file of a message into `into`; at most [`limits::ATTACHMENT_MAX`] bytes.
    ///
    /// # Errors
    /// In plain words: it is larger, empty, or cannot be fetched.
    fn download<'a>(
        &'a self,
        message: &'a Incoming,
        file: &'a Attachment,
        into: &'a mut tokio::fs::File,
    ) -> BoxFuture<'a, Result<u64, String>>;

    /// Makes the client anew: requests that hang end soon.
    fn reset(&self);

    /// Whether the service gives the bot the text of what people write; for good: it does not, and what a person does about it.
    /// Changes nothing there.
    fn hears(&self) -> BoxFuture<'_, Result<(), Failed>>;

    /// What people call a channel, such as `#agent-log`.
    fn name<'a>(&'a self, channel: &'a ChannelId) -> BoxFuture<'a, Result<String, SendError>> {
        async { Ok(self.examine(channel).await?.name) }.boxed()
    }

    /// What the bot finds where a channel should be. Changes nothing there.
    fn examine<'a>(&'a self, channel: &'a ChannelId) -> BoxFuture<'a, Result<Examined, SendError>>;
}

/// A channel, as the bot finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// As people call it, such as `#agent-log in Workshop`.
    pub name: String,
    /// Permissions that the bot needs there and does not have, as the service names them.
    pub lacks: Vec<&'static str>,
}

/// What is heard from a chat service.
#[derive(Debug)]
pub enum Event {
    /// The connection is there, or there again: messages may have been missed.
    Ready,
    /// Somebody wrote. The sender is told once the message is stored or not wanted: a service that forgets what was fetched
    /// must not be told before.
    Message(Box<Incoming>, Option<oneshot::Sender<()>>),
    /// Somebody pressed a button.
    Click(Click),
    /// Our bot posted this, somewhere; by whichever process.
    Ours(ChannelId, MessageId),
}

/// A bot, as its service names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bot {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub name: String,
}

/// A token or an address that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadChannel {
    /// The token has not the shape of one; in plain words, without it.
    #[error("{0}")]
    Token(&'static str),
    /// An address.
    #[error("base_url and gateway_url must be https://host[:port], or http:// to this machine")]
    Address,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls,
}

/// The bot of a token at a service. Speaks to nobody yet. Only Discord has a gateway beside its API.
pub fn backend(
    service: ChannelService,
    token: SecretString,
    base_url: Option<&Url>,
    gateway_url: Option<&Url>,
) -> Result<(String, Arc<dyn ChannelBackend>), BadChannel> {
    match service {
        ChannelService::Discord => {
            let discord = Discord::new(token, base_url, gateway_url)?;
            Ok((discord.bot().to_owned(), Arc::new(discord)))
        }
        ChannelService::Telegram => {
            let telegram = Telegram::new(token, base_url)?;
            Ok((telegram.bot().to_owned(), Arc::new(telegram)))
        }
    }
}

/// An address of a service's API, without the slash at its end, if a token may go there.
fn address(url: Option<&Url>, else_this: &str) -> Result<String, BadChannel> {
    let Some(url) = url else { return Ok(else_this.to_owned()) };
    let bare = (url.username(), url.password(), url.query(), url.fragment()) == ("", None, None, None);
    let good = bare && http_client::may_carry_secrets(url);
    good.then(|| url.as_str().trim_end_matches('/').to_owned()).ok_or(BadChannel::Address)
}

/// The message that a draft answers, if it can be one of that channel: agents know messages as `<channel>/<message>`, too.
fn answered<N: FromStr>(draft: &Draft) -> Option<N> {
    let id = draft.reply_to.as_ref()?.as_str();
    let here = id.rsplit_once('/').filter(|(channel, _)| *channel == draft.channel.as_str());
    here.map_or(id, |(_, message)| message).parse().ok()
}

/// Where a person invites a bot to a place of theirs, at a service that has such an address.
pub fn invite(service: ChannelService, bot: &str) -> Option<String> {
    match service {
        ChannelService::Discord => Some(discord::invite(bot)),
        ChannelService::Telegram => None,
    }
}

/// Under which name a bot's token is kept among the secrets.
pub fn secret_name(service: ChannelService, bot: &str) -> String {
    format!("channel@{}:{bot}", service.as_str())
}
