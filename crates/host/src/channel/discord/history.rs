//! What stands in a channel already.

use std::time::Duration;

use holdfast_core::chat::inbox::Missed;
use holdfast_core::chat::outbox::Posted;
use holdfast_core::chat::{Attachment, ChannelId, Incoming, MessageId, SendError};
use holdfast_core::limits;
use serde_json::Value;

use super::Discord;
use super::actions::{at, digits, no_channel};
use super::examine::HISTORY;
use super::outcome::Refused;
use super::rest::Call;
use super::words::{self, Message};

/// Most messages of one answer.
const PAGE: usize = 100;

fn number(id: &MessageId) -> Result<u64, SendError> {
    id.as_str().parse().map_err(|_| no_channel())
}

/// A page of a channel.
struct Page {
    /// Oldest first.
    messages: Vec<Message>,
    /// The newest, whether or not it can be read.
    last: u64,
    /// Nothing was there, readable or not.
    empty: bool,
    /// There may be more.
    full: bool,
}

impl Discord {
    async fn page(&self, channel: &str, after: u64) -> Result<Page, SendError> {
        let route = format!("channels/{channel}/messages");
        let path = format!("{route}?after={after}&limit={PAGE}");
        let read: Vec<Value> =
            self.rest.read(Call::get(route, path), limits::CHANNEL_REQUEST).await.map_err(Refused::not_sent)?;
        let (empty, full) = (read.is_empty(), read.len() >= PAGE);
        let id = |message: &Value| message["id"].as_str().and_then(|id| id.parse::<u64>().ok());
        let last = read.iter().filter_map(id).max().unwrap_or(after);
        let readable = |message| {
            let read = serde_json::from_value(message);
            read.inspect_err(|_| tracing::warn!("a message of Discord's cannot be read")).ok()
        };
        let mut messages: Vec<Message> = read.into_iter().filter_map(readable).collect();
        messages.sort_by_key(|message| message.id.as_str().parse::<u64>().unwrap_or_default());
        Ok(Page { messages, last, empty, full })
    }

    pub(super) async fn missed(&self, channel: &ChannelId, after: &MessageId) -> Result<Missed, SendError> {
        let page = self.page(digits(channel.as_str())?, number(after)?).await?;
        let place = match page.messages.is_empty() {
            true => {
                return Ok(Missed { messages: Vec::new(), more: false });
            }
            false => self.place(channel).await.map_err(Refused::not_sent)?,
        };
        let now = self.rest.unix_ms();
        let messages =
            page.messages.into_iter().map(|message| message.incoming(place.clone(), &self.bot, now)).collect();
        Ok(Missed { messages, more: page.full })
    }

    pub(super) async fn own(
        &self,
        channel: &ChannelId,
        after: Option<&MessageId>,
        since: Duration,
    ) -> Result<Option<Vec<Posted>>, SendError> {
        let (there, channel) = (channel, digits(channel.as_str())?);
        let since = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let known = after.map(number).transpose()?;
        // With the message that is known: where even that is not shown, nothing would be.
        let before = |id: u64| id.saturating_sub(1);
        let mut after = known.map_or_else(|| words::id_at(self.rest.unix_ms().saturating_sub(since)), before);
        let mut posted = Vec::new();
        for nth in 0..=limits::OUTBOX_COMPARED / PAGE {
            let Page { messages, last, empty, full } = self.page(channel, after).await?;
            if empty && nth == 0 && !self.shows_history(there).await? {
                return Ok(None);
            }
            let ours = messages.into_iter().filter(|message| {
                let id = message.id.as_str();
                known.is_none_or(|known| id.parse() != Ok(known))
                    && message.author.id.as_str() == self.bot
                    && message.is_post()
            });
            posted.extend(ours.map(|message| Posted { id: message.id, text: message.content }));
            if !full {
                return Ok(Some(posted));
            }
            after = last;
        }
        Ok(None)
    }

    /// Whether a channel that seems to be empty is: without that permission Discord shows nothing, and does not say so.
    async fn shows_history(&self, channel: &ChannelId) -> Result<bool, SendError> {
        Ok(!self.examined(channel).await?.lacks.contains(&HISTORY))
    }

    /// The message is asked for again: the addresses of its files hold for a day only.
    pub(super) async fn file(
        &self,
        message: &Incoming,
        file: &Attachment,
        into: &mut tokio::fs::File,
    ) -> Result<u64, String> {
        let (route, path) = at(&message.channel, &message.id).map_err(|_| "this is no message of Discord's")?;
        let read = self.rest.read::<Message>(Call::get(route, path), limits::CHANNEL_REQUEST).await;
        let files = read.map_err(|why| why.reason())?.files();
        let there = files.into_iter().find(|there| there.id == file.id).ok_or("the file is gone from its message")?;
        self.rest.fetch(&there.url, into).await
    }
}
