//! From the gateway's events to what the seat hears.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use holdfast_core::chat::ChannelId;
use holdfast_core::limits;
use holdfast_core::seat::Failed;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::actions::Pressed;
use super::gateway::{Dispatch, Gateway};
use super::outcome::Refused;
use super::places::{Place, Unplaced};
use super::rest::Call;
use super::words::{Acted, Channel, Interaction, Message};
use super::{Discord, actions};
use crate::channel::Event;

/// Nobody listens.
struct Deaf;

/// What was read from the gateway.
enum Heard {
    Event(Event),
    /// It is an event once it is known where it belongs.
    Message(Box<Message>),
}

#[derive(Deserialize)]
struct Ready {
    application: Application,
}

#[derive(Deserialize)]
struct Application {
    id: String,
}

/// A server, or the threads somebody is let into.
#[derive(Deserialize)]
struct Server {
    #[serde(default)]
    channels: Vec<Channel>,
    #[serde(default)]
    threads: Vec<Channel>,
}

impl Discord {
    pub(super) async fn hear(&self, events: &mpsc::Sender<Event>) -> Failed {
        let Some(gateway) = self.open.lock().take() else {
            return Failed::ForNow { reason: "the bot is not connected".into(), after: None };
        };
        let (sender, waiting) = mpsc::channel(limits::DISCORD_EVENTS);
        // Apart from each other: whoever takes the events must not keep the gateway from being answered.
        tokio::select! {
            why = self.read(gateway, sender) => why,
            Deaf = self.tell(waiting, events) => Failed::ForNow { reason: "nobody listens".into(), after: None },
        }
    }

    async fn read(&self, mut gateway: Gateway, heard: mpsc::Sender<Heard>) -> Failed {
        let mut under_way = JoinSet::new();
        loop {
            let dispatch = match gateway.next().await {
                Ok(dispatch) => dispatch,
                Err(why) => return why,
            };
            while under_way.try_join_next().is_some() {}
            if let Some(read) = self.understand(&dispatch, &mut under_way) {
                // The other half ends with this one.
                let _ = heard.send(read).await;
            }
        }
    }

    fn understand(&self, dispatch: &Dispatch, under_way: &mut JoinSet<()>) -> Option<Heard> {
        match dispatch.name.as_str() {
            "READY" => {
                if let Some(ready) = dispatch.read::<Ready>()
                    && !self.registered.load(Relaxed)
                {
                    let (rest, registered) = (Arc::clone(&self.rest), Arc::clone(&self.registered));
                    under_way.spawn(actions::register(rest, ready.application.id, registered));
                }
                Some(Heard::Event(Event::Ready))
            }
            "RESUMED" => Some(Heard::Event(Event::Ready)),
            "MESSAGE_CREATE" => self.message(dispatch.read::<Message>()?.heard(dispatch.live)),
            "INTERACTION_CREATE" => {
                let interaction = dispatch.read::<Interaction>()?.heard(dispatch.live);
                self.interaction(interaction, under_way).map(Heard::Event)
            }
            "GUILD_CREATE" | "THREAD_LIST_SYNC" => {
                let server = dispatch.read::<Server>();
                let channels = server.into_iter().flat_map(|s| s.channels.into_iter().chain(s.threads));
                channels.for_each(|channel| self.places.set(channel.id.clone(), channel.place()));
                None
            }
            "CHANNEL_CREATE" | "THREAD_CREATE" => {
                let channel: Channel = dispatch.read()?;
                self.places.set(channel.id.clone(), channel.place());
                None
            }
            _ => None,
        }
    }

    fn message(&self, message: Message) -> Option<Heard> {
        if message.author.id.as_str() == self.bot {
            let posted = message.is_post();
            return posted.then(|| Heard::Event(Event::Ours(message.channel_id, message.id)));
        }
        if message.guild_id.is_none() {
            // Only what is said in private has no server.
            self.places.set(message.channel_id.clone(), Place { parent: None, direct: true });
        }
        Some(Heard::Message(Box::new(message)))
    }

    /// Discord is told at once that it was heard: it waits 3 s for that.
    fn interaction(&self, interaction: Interaction, under_way: &mut JoinSet<()>) -> Option<Event> {
        let pressed = Pressed::of(&interaction);
        let acted = interaction.acted(self.rest.unix_ms())?;
        let room = limits::DISCORD_UNDER_WAY.saturating_sub(under_way.len());
        self.keep(pressed.clone());
        match acted {
            Acted::Click(click) => {
                if room > 0 {
                    under_way.spawn(actions::acknowledge(Arc::clone(&self.rest), pressed));
                }
                Some(Event::Click(click))
            }
            Acted::Command(command) => {
                // These stay for some seconds, and a click must find room beside them.
                if room > limits::DISCORD_UNDER_WAY / 2 {
                    under_way.spawn(actions::promise(Arc::clone(&self.rest), pressed));
                }
                Some(Event::Message(command, None))
            }
        }
    }

    /// Passes on what was read, in order; only messages of a channel that is not known yet wait for that.
    async fn tell(&self, mut waiting: mpsc::Receiver<Heard>, events: &mpsc::Sender<Event>) -> Deaf {
        let (mut unplaced, mut sought) = (Unplaced::default(), FuturesUnordered::new());
        loop {
            let heard = tokio::select! {
                Some((channel, place)) = sought.next() => {
                    let now = self.rest.unix_ms();
                    for message in unplaced.take(&channel) {
                        let event = Event::Message(Box::new(message.incoming(Place::clone(&place), &self.bot, now)), None);
                        if events.send(event).await.is_err() {
                            return Deaf;
                        }
                    }
                    continue;
                }
                heard = waiting.recv(), if !unplaced.is_full() => heard,
            };
            let event = match heard {
                None => return Deaf,
                Some(Heard::Event(event)) => event,
                Some(Heard::Message(message)) => {
                    let known = self.places.get(&message.channel_id).filter(|_| !unplaced.waits(&message.channel_id));
                    let Some(place) = known else {
                        let channel = message.channel_id.clone();
                        if unplaced.put(*message) {
                            sought.push(self.seek(channel));
                        }
                        continue;
                    };
                    Event::Message(Box::new(message.incoming(place, &self.bot, self.rest.unix_ms())), None)
                }
            };
            if events.send(event).await.is_err() {
                return Deaf;
            }
        }
    }

    /// Where a channel belongs, however long it takes to be told.
    async fn seek(&self, channel: ChannelId) -> (ChannelId, Place) {
        let mut pause = limits::DISCORD_PLACE_RETRY;
        loop {
            let why = match self.place(&channel).await {
                Ok(place) => return (channel, place),
                Err(why) => why,
            };
            tracing::warn!(%channel, why = why.reason(), "where messages belong cannot be found out");
            let after = match why {
                // Discord will not say more. It is a channel of a server, and all that is known of it is its id.
                Refused::Said { status: 400 | 403 | 404, .. } => {
                    return (channel, Place { parent: None, direct: false });
                }
                Refused::Limited(after) => after.max(pause),
                _ => pause,
            };
            tokio::time::sleep(after.min(limits::DISCORD_PLACE_RETRY_MAX)).await;
            pause = pause.saturating_mul(2);
        }
    }

    /// Where a channel belongs.
    pub(super) async fn place(&self, channel: &ChannelId) -> Result<Place, Refused> {
        if let Some(place) = self.places.get(channel) {
            return Ok(place);
        }
        let path = format!("channels/{channel}");
        let read: Channel = self.rest.read(Call::get(path.clone(), path), limits::CHANNEL_REQUEST).await?;
        let place = read.place();
        self.places.set(channel.clone(), place.clone());
        Ok(place)
    }
}
