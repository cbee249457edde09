//! From the gateway's events to what the seat hears.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use holdfast_core::chat::ChannelId;
use holdfast_core::limits;
use holdfast_core::seat::Failed;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::gateway::Dispatch;
use super::outcome::Refused;
use super::places::Place;
use super::rest::Call;
use super::words::{Acted, Channel, Interaction, Message};
use super::{Discord, actions};
use crate::channel::Event;

/// Nobody listens.
struct Deaf;

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
        let Some(mut gateway) = self.open.lock().take() else {
            return Failed::ForNow { reason: "the bot is not connected".into(), after: None };
        };
        let (sender, mut waiting) = mpsc::channel(limits::DISCORD_EVENTS);
        // Apart from each other: a question to the API must not keep the gateway from being answered.
        let pump = async {
            loop {
                match gateway.next().await {
                    // The other half ends with this one.
                    Ok(dispatch) => _ = sender.send(dispatch).await,
                    Err(why) => return why,
                }
            }
        };
        let understand = async {
            let mut under_way = JoinSet::new();
            while let Some(dispatch) = waiting.recv().await {
                if let Err(Deaf) = self.heard(&dispatch, events, &mut under_way).await {
                    break;
                }
            }
            Failed::ForNow { reason: "nobody listens".into(), after: None }
        };
        tokio::select! {
            why = pump => why,
            why = understand => why,
        }
    }

    async fn heard(
        &self,
        dispatch: &Dispatch,
        events: &mpsc::Sender<Event>,
        under_way: &mut JoinSet<()>,
    ) -> Result<(), Deaf> {
        while under_way.try_join_next().is_some() {}
        let event = match dispatch.name.as_str() {
            "READY" => {
                if let Some(ready) = dispatch.read::<Ready>()
                    && !self.registered.load(Relaxed)
                {
                    let (rest, registered) = (Arc::clone(&self.rest), Arc::clone(&self.registered));
                    under_way.spawn(actions::register(rest, ready.application.id, registered));
                }
                Some(Event::Ready)
            }
            "RESUMED" => Some(Event::Ready),
            "MESSAGE_CREATE" => self.message(dispatch).await,
            "INTERACTION_CREATE" => self.interaction(dispatch, under_way),
            "GUILD_CREATE" | "THREAD_LIST_SYNC" => {
                let server = dispatch.read::<Server>();
                let channels = server.into_iter().flat_map(|s| s.channels.into_iter().chain(s.threads));
                channels.for_each(|channel| self.places.set(channel.id.clone(), channel.place()));
                None
            }
            "CHANNEL_CREATE" | "THREAD_CREATE" => {
                if let Some(channel) = dispatch.read::<Channel>() {
                    self.places.set(channel.id.clone(), channel.place());
                }
                None
            }
            _ => None,
        };
        match event {
            Some(event) => events.send(event).await.map_err(|_| Deaf),
            None => Ok(()),
        }
    }

    async fn message(&self, dispatch: &Dispatch) -> Option<Event> {
        let message: Message = dispatch.read()?;
        if message.author.id.as_str() == self.bot {
            return Some(Event::Ours(message.channel_id, message.id));
        }
        let place = match self.place(&message.channel_id).await {
            Ok(place) => place,
            Err(why) => {
                tracing::warn!(channel = %message.channel_id, why = why.reason(), "where a message belongs cannot be found out");
                Place { parent: None, direct: false }
            }
        };
        Some(Event::Message(Box::new(message.incoming(place, &self.bot)), None))
    }

    /// Discord is told at once that it was heard: it waits 3 s for that.
    fn interaction(&self, dispatch: &Dispatch, under_way: &mut JoinSet<()>) -> Option<Event> {
        let interaction: Interaction = dispatch.read()?;
        let (id, token) = (interaction.id.as_str().to_owned(), interaction.token.clone());
        let application = interaction.application_id.clone();
        let acted = interaction.acted()?;
        let room = under_way.len() < limits::DISCORD_UNDER_WAY;
        let heard = match &acted {
            Acted::Click(_) => self.press(&id, &token, application),
            Acted::Command(_) => actions::Heard::default(),
        };
        if room {
            under_way.spawn(actions::acknowledge(Arc::clone(&self.rest), id, token, acted.text(), heard));
        }
        Some(match acted {
            Acted::Click(click) => Event::Click(click),
            Acted::Command(command) => Event::Message(command, None),
        })
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
