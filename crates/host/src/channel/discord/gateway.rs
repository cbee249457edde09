//! The connection on which Discord tells what happens. The library keeps it, and resumes it where it was when it ends; what it
//! cannot mend within a while ends here, and the seat begins anew after a pause.
//!
//! It is dialled directly: the library knows no proxy, unlike the requests of the API.

use std::fmt;

use futures_util::StreamExt as _;
use holdfast_core::limits;
use holdfast_core::seat::Failed;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};
use twilight_gateway::error::ReceiveMessageErrorType;
use twilight_gateway::queue::InMemoryQueue;
use twilight_gateway::{ConfigBuilder, Intents, Message, Shard, ShardId, ShardState};
use twilight_model::gateway::event::GatewayEventDeserializer;
use url::Url;

use super::outcome;
use crate::http_client;

/// What the bot asks to hear. The last one must be switched on by a person.
const INTENTS: Intents =
    Intents::GUILDS.union(Intents::GUILD_MESSAGES).union(Intents::DIRECT_MESSAGES).union(Intents::MESSAGE_CONTENT);

/// A connection, or the search for one.
#[derive(Debug)]
pub(super) struct Gateway {
    shard: Shard,
    /// Since when there is none, and how many ended meanwhile.
    lost: Option<(Instant, u32)>,
    /// An event that was taken from it already.
    kept: Option<Dispatch>,
    /// How the last one ended.
    closed: Option<(u16, String)>,
}

/// An event.
pub(super) struct Dispatch {
    pub name: String,
    /// When it came, if it came as it happened: what a connection missed comes later.
    pub live: Option<std::time::Instant>,
    /// The whole of it.
    text: String,
}

impl fmt::Debug for Dispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatch").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Whole<T> {
    d: T,
}

impl Dispatch {
    /// What it tells; nothing, with a line in the log, if that cannot be read.
    pub(super) fn read<T: for<'a> Deserialize<'a>>(&self) -> Option<T> {
        let read = serde_json::from_str::<Whole<T>>(&self.text);
        read.inspect_err(|why| {
            tracing::warn!(event = self.name, at = why.column(), "an event of Discord's cannot be read")
        })
        .ok()
        .map(|e| e.d)
    }
}

#[derive(Deserialize)]
struct Ready {
    resume_gateway_url: String,
}

/// A gateway's address as it is dialled, if a token may go there.
pub(super) fn dialled(address: &str) -> Result<String, Failed> {
    let url = match address.split_once("://") {
        Some(("wss", rest)) => format!("https://{rest}"),
        Some(("ws", rest)) => format!("http://{rest}"),
        _ => address.to_owned(),
    };
    let url = url.parse::<Url>().ok().filter(http_client::may_carry_secrets);
    let url = url.ok_or_else(|| for_now("the address of Discord's gateway cannot be used"))?;
    Ok(url.as_str().trim_end_matches('/').replacen("http", "ws", 1))
}

fn for_now(reason: &str) -> Failed {
    Failed::ForNow { reason: reason.to_owned(), after: None }
}

impl Gateway {
    /// Not connected yet. `address` as [`dialled`] makes it; `queue` spaces the logins of this bot.
    pub(super) fn new(token: &SecretString, address: String, queue: InMemoryQueue) -> Gateway {
        let config =
            ConfigBuilder::new(token.expose_secret().to_owned(), INTENTS).proxy_url(address).queue(queue).build();
        Gateway {
            shard: Shard::with_config(ShardId::ONE, config),
            lost: Some((Instant::now(), 0)),
            kept: None,
            closed: None,
        }
    }

    /// The next event, through as many connections as it takes. May be dropped at any point.
    pub(super) async fn next(&mut self) -> Result<Dispatch, Failed> {
        if let Some(kept) = self.kept.take() {
            return Ok(kept);
        }
        loop {
            let next = match self.lost {
                None => self.shard.next().await,
                Some((since, _)) => timeout_at(since + limits::DISCORD_LOST, self.shard.next())
                    .await
                    .map_err(|_| self.gave_up("Discord's gateway cannot be reached"))?,
            };
            match next {
                Some(Ok(Message::Text(text))) => {
                    let Some(read) = GatewayEventDeserializer::from_json(&text) else { continue };
                    let Some(name) = read.event_type().map(str::to_owned) else { continue };
                    let live = (self.shard.state() == ShardState::Active).then(std::time::Instant::now);
                    let dispatch = Dispatch { name, live, text };
                    match dispatch.name.as_str() {
                        "READY" => {
                            // The library goes on there.
                            let address = dispatch.read::<Ready>().map(|ready| ready.resume_gateway_url);
                            dialled(&address.unwrap_or_default())?;
                            self.lost = None;
                        }
                        "RESUMED" => self.lost = None,
                        _ => {}
                    }
                    return Ok(dispatch);
                }
                Some(Ok(Message::Close(frame))) => {
                    self.closed = frame.map(|frame| (frame.code, frame.reason.into_owned()));
                    tracing::info!(
                        code = self.closed.as_ref().map(|c| c.0),
                        "the connection to Discord's gateway ended"
                    );
                    self.fell("Discord's gateway closes every connection")?;
                }
                Some(Err(why)) if matches!(why.kind(), ReceiveMessageErrorType::Reconnect) => {
                    self.fell("Discord's gateway cannot be reached")?;
                }
                // The error holds all of it, with what people wrote.
                Some(Err(_)) => tracing::warn!("Discord's gateway sent what cannot be read"),
                // The library gives up at codes that are for good.
                None => {
                    let (code, reason) = self.closed.take().unwrap_or_default();
                    return Err(outcome::closed(code, &reason));
                }
            }
        }
    }

    /// Has this event come next.
    pub(super) fn keep(&mut self, dispatch: Dispatch) {
        self.kept = Some(dispatch);
    }

    fn fell(&mut self, why: &str) -> Result<(), Failed> {
        let (_, falls) = self.lost.get_or_insert((Instant::now(), 0));
        *falls += 1;
        if *falls > limits::DISCORD_FALLS { Err(self.gave_up(why)) } else { Ok(()) }
    }

    fn gave_up(&self, why: &str) -> Failed {
        let proxied = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
            .into_iter()
            .any(|name| std::env::var_os(name).is_some());
        match (&self.closed, proxied) {
            (Some((code, reason)), _) if *code != 1006 => outcome::closed(*code, reason),
            (_, true) => for_now(&format!("{why}; it is dialled directly, not through the proxy of the environment")),
            (_, false) => for_now(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_to_a_gateway_in_the_clear_only_on_this_machine() {
        for (address, goes) in [
            ("wss://gateway.discord.gg", "wss://gateway.discord.gg"),
            ("wss://gateway-us-east1-b.discord.gg/", "wss://gateway-us-east1-b.discord.gg"),
            ("ws://127.0.0.1:9/a", "ws://127.0.0.1:9/a"),
            ("http://localhost:9", "ws://localhost:9"),
            ("https://gateway.example", "wss://gateway.example"),
        ] {
            assert_eq!(dialled(address).unwrap(), goes);
        }
        for bad in ["ws://gateway.discord.gg", "http://gateway.example", "", "gateway", "wss://"] {
            assert!(dialled(bad).is_err(), "{bad}");
        }
    }
}
