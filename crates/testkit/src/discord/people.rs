//! What people do: they make channels and threads, write, and press buttons.

use std::time::Instant;

use serde_json::{Value, json};

use super::FakeDiscord;
use super::world::{Channel, File, GUILD, Interaction, Message, NO_PREVIEWS, World};

/// How tokens of interactions begin.
pub(super) const TOKEN: &str = "interaction-token-";

/// A message that a person writes.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// What. `<@id>` mentions somebody.
    pub text: String,
    /// The message it answers.
    pub reply_to: Option<u64>,
    /// Files: name, kind, bytes.
    pub files: Vec<(String, String, Vec<u8>)>,
    /// Fields that only some messages have, such as `poll`, as Discord shows them.
    pub more: Value,
}

impl From<&str> for Written {
    fn from(text: &str) -> Written {
        Written { text: text.to_owned(), ..Written::default() }
    }
}

impl FakeDiscord {
    /// Somebody with a name; returns their id.
    pub fn person(&self, name: &str) -> u64 {
        self.shared.change(|world| {
            let id = world.mint();
            world.names.insert(id, name.to_owned());
            id
        })
    }

    /// A channel of the server.
    pub fn channel(&self) -> u64 {
        self.make(0, None)
    }

    /// A conversation with the bot alone.
    pub fn direct(&self) -> u64 {
        self.make(1, None)
    }

    /// The conversation of this bot with this person alone.
    pub fn direct_of(&self, bot: u64, person: u64) -> u64 {
        self.shared.change(|world| world.direct(bot, person))
    }

    /// A thread of a channel. The gateway tells of it.
    pub fn thread(&self, parent: u64) -> u64 {
        let id = self.make(11, Some(parent));
        self.shared.change(|world| {
            let shown = world.channel(id);
            world.tell(1, "THREAD_CREATE", &shown);
        });
        id
    }

    /// A thread of which the gateway tells nothing, such as one that was archived.
    pub fn hidden_thread(&self, parent: u64) -> u64 {
        let id = self.make(12, Some(parent));
        self.archive(id);
        id
    }

    /// Nobody wrote in a thread for long: it is not listed any more.
    pub fn archive(&self, thread: u64) {
        self.shared.change(|world| world.channels.get_mut(&thread).expect("a thread of the test").archived = true);
    }

    fn make(&self, kind: u8, parent: Option<u64>) -> u64 {
        self.shared.change(|world| {
            let id = world.mint();
            world.channels.insert(id, Channel::new(kind, parent));
            id
        })
    }

    /// Somebody writes; returns the message.
    pub fn write(&self, channel: u64, author: u64, what: impl Into<Written>) -> u64 {
        let Written { text, reply_to, files, more } = what.into();
        self.shared.change(|world| {
            let mut file = |(name, kind, bytes)| File { id: world.mint(), name, kind, bytes };
            let files = files.into_iter().map(&mut file).collect();
            let (id, mentions) = (world.mint(), mentioned(&text));
            let content = text.trim().to_owned();
            let message = Message { reply_to, mentions, files, more, ..Message::new(id, author, content) };
            world.put(channel, message);
            id
        })
    }

    /// Discord itself says something of somebody, such as that they came (7) or pinned a message (6); returns the message.
    pub fn happens(&self, channel: u64, of: u64, kind: u64) -> u64 {
        self.shared.change(|world| {
            let id = world.mint();
            world.put(channel, Message { kind, ..Message::new(id, of, String::new()) });
            id
        })
    }

    /// What a message's text is now; none, if it is gone.
    pub fn text(&self, channel: u64, message: u64) -> Option<String> {
        let world = self.shared.world();
        Some(world.channels.get(&channel)?.messages.iter().find(|m| m.id == message)?.content.clone())
    }

    /// Whether what a message's addresses lead to is shown below it.
    pub fn previews(&self, channel: u64, message: u64) -> bool {
        let world = self.shared.world();
        let messages = world.channels.get(&channel).map_or(&[][..], |channel| &channel.messages[..]);
        messages.iter().any(|m| m.id == message && m.flags & NO_PREVIEWS == 0)
    }

    /// From now on the service's clock is that many seconds ahead of this machine's.
    pub fn clock(&self, ahead: i64) {
        self.shared.change(|world| world.ahead = ahead * 1000);
    }

    /// Removes a message.
    pub fn unwrite(&self, channel: u64, message: u64) {
        self.shared.change(|world| {
            if let Some(channel) = world.channels.get_mut(&channel) {
                channel.messages.retain(|m| m.id != message);
            }
        });
    }

    /// Somebody presses a button; returns the interaction.
    pub fn click(&self, channel: u64, message: u64, user: u64, button: &str) -> u64 {
        self.shared.change(|world| {
            let shown = world.channels.get(&channel).and_then(|c| c.messages.iter().find(|m| m.id == message).cloned());
            let shown = shown.map(|m| world.message(channel, &m)).expect("a message of the test");
            let data = json!({"custom_id": button, "component_type": 2});
            interact(world, 3, channel, user, data, Some(shown))
        })
    }

    /// Somebody uses a slash command; returns the interaction.
    pub fn slash(&self, channel: u64, user: u64, name: &str) -> u64 {
        self.shared.change(|world| {
            let id = world.mint();
            let data = json!({"id": id.to_string(), "name": name, "type": 1});
            interact(world, 2, channel, user, data, None)
        })
    }
}

impl World {
    fn put(&mut self, channel: u64, message: Message) {
        let there = self.channels.get_mut(&channel).expect("a channel of the test");
        there.messages.push(message.clone());
        // Whoever writes in a thread opens it again.
        there.archived = false;
        self.tell_message(channel, &message, None);
    }
}

fn interact(world: &mut World, kind: u8, channel: u64, user: u64, data: Value, message: Option<Value>) -> u64 {
    let id = world.mint();
    let token = format!("{TOKEN}{id}");
    let app = world.tokens.values().next().copied().unwrap_or_default();
    let mut shown = json!({
        "id": id.to_string(), "application_id": app.to_string(), "type": kind, "data": data, "token": token, "version": 1,
        "channel_id": channel.to_string(), "channel": world.channel(channel), "locale": "en-US",
    });
    match world.channels.get(&channel).is_some_and(|c| c.kind == 1) {
        true => shown["user"] = world.user(user),
        false => {
            shown["guild_id"] = GUILD.to_string().into();
            shown["member"] = json!({"user": world.user(user), "roles": [], "deaf": false, "mute": false});
        }
    }
    if let Some(message) = message {
        shown["message"] = message;
    }
    world.interactions.insert(id, Interaction { token, channel, made: Instant::now(), done: false, promised: false });
    world.tell(0, "INTERACTION_CREATE", &shown);
    id
}

/// Who is named in a text.
pub(super) fn mentioned(text: &str) -> Vec<u64> {
    let names = text.split("<@").skip(1).filter_map(|rest| rest.split_once('>'));
    names.filter_map(|(id, _)| id.trim_start_matches('!').parse().ok()).collect()
}
