//! Against a service that behaves as Discord does.

mod connection;
mod examined;
mod hearing;
mod history;
mod interactions;
mod limits;
mod posts;
mod threads;

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::chat::{ChannelId, Draft, Incoming, MessageId};
use holdfast_core::seat::Failed;
use holdfast_testkit::discord::FakeDiscord;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Discord;
use crate::channel::{ChannelBackend as _, Event};

const BOT: u64 = 4_200_000_000_042;
/// How long something that should happen soon may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A service and a bot there.
struct Stand {
    service: FakeDiscord,
    token: String,
    bot: Arc<Discord>,
}

/// Somebody who listens to the bot.
struct Ears {
    events: mpsc::Receiver<Event>,
    listening: JoinHandle<Failed>,
}

impl Drop for Ears {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn stand() -> Stand {
    let service = FakeDiscord::start().await;
    let token = service.bot(BOT);
    let bot = Arc::new(bot(&service, "a", &token));
    Stand { service, token, bot }
}

fn bot(service: &FakeDiscord, caller: &str, token: &str) -> Discord {
    // The second caller of a process finds the first one's provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Discord::new(token.into(), Some(&service.url(caller).parse().unwrap()), None).unwrap()
}

impl Stand {
    /// Connects and listens; the first event, that it is ready, is taken.
    async fn listen(&self) -> Ears {
        self.bot.connect().await.unwrap();
        let mut ears = self.hear(64);
        assert!(matches!(ears.next().await, Event::Ready));
        ears
    }

    fn hear(&self, room: usize) -> Ears {
        let (sender, events) = mpsc::channel(room);
        let bot = Arc::clone(&self.bot);
        Ears { events, listening: tokio::spawn(async move { bot.listen(sender).await }) }
    }
}

impl Ears {
    async fn next(&mut self) -> Event {
        timeout(PATIENCE, self.events.recv()).await.expect("an event").expect("it listens")
    }

    async fn message(&mut self) -> Incoming {
        match self.next().await {
            Event::Message(incoming, None) => *incoming,
            other => panic!("{other:?}"),
        }
    }

    /// Why it does not listen any more.
    async fn end(&mut self) -> Failed {
        timeout(PATIENCE, &mut self.listening).await.expect("an end").unwrap()
    }
}

fn channel(id: u64) -> ChannelId {
    ChannelId::parse(&id.to_string()).unwrap()
}

fn message(id: u64) -> MessageId {
    MessageId::parse(&id.to_string()).unwrap()
}

fn draft(to: u64, text: &str) -> Draft {
    let nonce = format!("nonce-{text:.10}");
    Draft { channel: channel(to), text: text.into(), nonce, reply_to: None, buttons: Vec::new() }
}
