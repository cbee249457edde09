//! What was written in a gap where nobody wrote before, at a service that behaves as Discord does.

use holdfast_testkit::discord::{FakeDiscord, Seen};
use tokio::task::JoinHandle;

use super::*;
use crate::channel::Discord;

const BOT: u64 = 4_200_000_000_042;

/// A seat that serves one channel of Discord's, in which Ann may speak, as she may alone with the bot.
struct Stand {
    discord: FakeDiscord,
    seat: Seat,
    place: u64,
    ann: u64,
    hears: Option<JoinHandle<()>>,
}

impl Stand {
    async fn new() -> Stand {
        // The second caller of a process finds the first one's provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let discord = FakeDiscord::start().await;
        let token = discord.bot(BOT);
        let (place, ann) = (discord.channel(), discord.person("ann"));
        let mut seat = Seat::new();
        seat.edit(|config| {
            config.people = vec![ann.to_string()];
            config.bindings[0].channel = place.to_string();
            config.direct = Some("agent".into());
        });
        let bot = Discord::new(token.into(), Some(&discord.url("a").parse().unwrap()), None).unwrap();
        seat.backend = Some(Arc::new(bot));
        let mut stand = Stand { discord, seat, place, ann, hears: None };
        // What it finds at first is behind it before anything is missed.
        stand.serves(1).await;
        stand
    }

    /// A holder connects and has looked for what was missed so often in all.
    async fn serves(&mut self, times: usize) {
        self.seat.serve();
        let bot = self.seat.backend.clone().unwrap();
        bot.connect().await.unwrap();
        let events = self.seat.holder.as_ref().unwrap().events.clone();
        self.hears = Some(tokio::spawn(async move { drop(bot.listen(events).await) }));
        let done = |seen: &Seen| {
            let found = seen.count("a", "GET guilds/*/threads/active") >= times;
            found && seen.count("a", "GET channels/*/messages") >= times
        };
        self.discord.until("a look for what was missed", done).await;
    }

    async fn leaves(&mut self) {
        self.hears.take().unwrap().abort();
        self.seat.leave().await;
    }

    /// The texts of the letters to the agent, once the last of them is there; each letter is taken.
    async fn letters(&self, last: &str) -> Vec<String> {
        let mut letters = Vec::new();
        while letters.last().is_none_or(|letter| letter != last) {
            letters.push(super::inbound::take(&self.seat).await);
        }
        letters
    }
}

#[tokio::test]
async fn what_is_written_in_a_gap_in_a_new_thread_or_alone_with_the_bot_arrives_once_and_nobody_elses() {
    let mut stand = Stand::new().await;
    stand.leaves().await;
    let Stand { discord, place, ann, .. } = &stand;
    let (bob, elsewhere) = (discord.person("bob"), discord.channel());
    discord.write(discord.thread(*place), *ann, "in a new thread");
    discord.write(discord.thread(elsewhere), *ann, "in another channel's thread");
    discord.write(discord.direct_of(BOT, *ann), *ann, "in private");
    let bobs = discord.direct_of(BOT, bob);
    discord.write(bobs, bob, "bob in private");
    stand.serves(2).await;
    let mut letters = stand.letters("in private").await;
    if letters.len() == 1 {
        letters.extend(stand.letters("in a new thread").await);
    }
    letters.sort();
    assert_eq!(letters, ["in a new thread", "in private"]);
    // Neither comes again, nor does what was not asked for.
    stand.leaves().await;
    stand.serves(3).await;
    stand.discord.write(stand.place, stand.ann, "the last");
    assert_eq!(stand.letters("the last").await, ["the last"]);
    let opened = |seen: &Seen| seen.count("a", "POST users/@me/channels");
    let seen = stand.discord.until("a look for ann by each holder", |seen| opened(seen) >= 3).await;
    assert_eq!(opened(&seen), 3, "and for nobody else");
}
