//! Where something may stand that nobody was told of: threads, and conversations with one person alone.

use std::collections::BTreeSet;

use holdfast_core::chat::inbox::Thread;
use holdfast_core::chat::{ChannelId, MessageId, SendError, UserId};
use holdfast_core::limits;
use serde::Deserialize;
use serde_json::json;
use twilight_http_ratelimiting::Method;

use super::Discord;
use super::actions::digits;
use super::outcome::Refused;
use super::rest::Call;
use super::words::Channel;

#[derive(Deserialize)]
struct Threads {
    #[serde(default)]
    threads: Vec<Active>,
}

#[derive(Deserialize)]
struct Active {
    #[serde(flatten)]
    channel: Channel,
    last_message_id: Option<MessageId>,
}

#[derive(Deserialize)]
struct In {
    guild_id: Option<String>,
}

/// Whether Discord will not say, however often it is asked.
fn is_closed(why: &Refused) -> bool {
    matches!(why, Refused::Said { status: 400 | 403 | 404, .. })
}

fn newest(thread: &Thread) -> Option<u64> {
    thread.last.as_ref()?.as_str().parse().ok()
}

impl Discord {
    /// Threads of these channels that are not archived.
    pub(super) async fn open_threads(&self, of: &[ChannelId]) -> Result<Vec<Thread>, SendError> {
        self.servers.lock().retain(|channel, _| of.contains(channel));
        let mut servers = BTreeSet::new();
        for channel in of {
            servers.extend(self.server_of(channel).await.map_err(Refused::not_sent)?);
        }
        let mut found = Vec::new();
        for server in servers {
            let path = format!("guilds/{server}/threads/active");
            let read = self.rest.read::<Threads>(Call::get(path.clone(), path), limits::CHANNEL_REQUEST).await;
            let threads = match read {
                Ok(Threads { threads }) => threads,
                Err(why) if is_closed(&why) => continue,
                Err(why) => return Err(why.not_sent()),
            };
            for Active { channel, last_message_id: last } in threads {
                let id = channel.id.clone();
                let place = channel.place();
                let Some(parent) = place.parent.clone().filter(|parent| of.contains(parent)) else { continue };
                self.places.set(id.clone(), place);
                found.push(Thread { channel: id, parent, last });
            }
        }
        // Of one whose newest message is not named, nobody knows that nothing stands there.
        found.sort_by_key(|thread| std::cmp::Reverse(newest(thread).unwrap_or(u64::MAX)));
        found.truncate(limits::INBOX_THREADS);
        Ok(found)
    }

    async fn server_of(&self, channel: &ChannelId) -> Result<Option<String>, Refused> {
        let (Ok(id), known) = (digits(channel.as_str()), self.servers.lock().get(channel).cloned()) else {
            return Ok(None);
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let path = format!("channels/{id}");
        match self.rest.read::<In>(Call::get(path.clone(), path), limits::CHANNEL_REQUEST).await {
            Ok(In { guild_id }) => {
                let server = guild_id.filter(|server| digits(server).is_ok());
                self.servers.lock().insert(channel.clone(), server.clone());
                Ok(server)
            }
            // The bot may be let in there later.
            Err(why) if is_closed(&why) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Where the bot is alone with a person. Discord makes such a place without telling the person.
    pub(super) async fn alone_with(&self, person: &UserId) -> Result<Option<ChannelId>, SendError> {
        let path = "users/@me/channels";
        let call = Call::with(Method::Post, path, path, json!({"recipient_id": digits(person.as_str())?}));
        let channel = match self.rest.read::<Channel>(call, limits::CHANNEL_REQUEST).await {
            Ok(channel) => channel,
            Err(why) if is_closed(&why) => return Ok(None),
            Err(why) => return Err(why.not_sent()),
        };
        let id = channel.id.clone();
        self.places.set(id.clone(), channel.place());
        Ok(Some(id))
    }
}
