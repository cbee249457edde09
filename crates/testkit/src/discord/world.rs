//! What the service knows: bots, people, channels, messages, sessions; and what tests may see of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Value, json};

use super::gateway::Session;
use super::http::Request;
use super::{ALL_INTENTS, Fault, MESSAGE_CONTENT};

/// Discord's calendar begins with 2015.
const EPOCH: u64 = 1_420_070_400_000;
/// The server in which every channel is.
pub(super) const GUILD: u64 = 100_000_000_000_000_001;

const SEND: u64 = 1 << 11;
const SEND_IN_THREADS: u64 = 1 << 38;
const HISTORY: u64 = 1 << 16;
/// What everybody may do in that server: see, write, read back, react.
const EVERYBODY: u64 = 1 << 10 | SEND | HISTORY | 1 << 6 | SEND_IN_THREADS;

/// A message that a bot asked for, in the order of the requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// Who asked.
    pub caller: String,
    /// As which bot.
    pub bot: u64,
    /// Where.
    pub channel: u64,
    /// Which message it is.
    pub message: u64,
    /// As it stands there.
    pub content: String,
    /// As it came.
    pub nonce: Option<String>,
    /// It was there already, by its nonce.
    pub repeated: bool,
    /// The message it answers.
    pub reply_to: Option<u64>,
    /// Who hears of it.
    pub mentions: Vec<u64>,
    /// Ids of its buttons.
    pub buttons: Vec<String>,
    /// Whether Discord looks up what its addresses lead to, and shows that.
    pub previews: bool,
}

/// What became of an interaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Acknowledged {
    /// Type of the first answer.
    pub kind: u64,
    /// What was answered, and whether only that person sees it.
    pub texts: Vec<(String, bool)>,
}

/// What the service has seen.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Who asked for what: (caller, route), as [`super::FakeDiscord::fault`] takes it.
    pub requests: Vec<(String, String)>,
    /// What was posted.
    pub posts: Vec<Post>,
    /// Callers in the order in which they identified.
    pub identified: Vec<String>,
    /// Callers in the order in which they resumed.
    pub resumed: Vec<String>,
    /// Gateway connections of each caller.
    pub connected: BTreeMap<String, usize>,
    /// Answered heartbeats.
    pub heartbeats: usize,
    /// Where typing was shown: (caller, channel).
    pub typing: Vec<(String, u64)>,
    /// Reactions that stand below messages.
    pub reactions: BTreeMap<u64, Vec<String>>,
    /// What messages of bots were changed to, and how many buttons they have then.
    pub edits: Vec<(u64, String, usize)>,
    /// Interactions that were answered.
    pub acknowledged: BTreeMap<u64, Acknowledged>,
    /// How often a bot's command was registered.
    pub registered: usize,
    /// Requests for files with a token.
    pub leaked: usize,
}

impl Seen {
    /// How often a caller asked for a route.
    pub fn count(&self, caller: &str, route: &str) -> usize {
        self.requests.iter().filter(|(c, r)| c == caller && r == route).count()
    }

    /// What stands in a channel of all bots, in order.
    pub fn texts(&self, channel: u64) -> Vec<&str> {
        self.posts.iter().filter(|p| p.channel == channel && !p.repeated).map(|p| p.content.as_str()).collect()
    }

    /// Nonces that stand there as several messages. Nothing may be.
    pub fn twice(&self) -> Vec<&str> {
        let mut nonces: Vec<_> = self.posts.iter().filter(|p| !p.repeated).filter_map(|p| p.nonce.as_deref()).collect();
        nonces.sort_unstable();
        nonces.chunk_by(|a, b| a == b).filter(|same| same.len() > 1).map(|same| same[0]).collect()
    }
}

#[derive(Debug, Clone)]
pub(super) struct Channel {
    pub kind: u8,
    pub parent: Option<u64>,
    /// Of a private one: the bot and the person who are alone there.
    pub between: Option<(u64, u64)>,
    pub archived: bool,
    pub forbidden: bool,
    /// Oldest first.
    pub messages: Vec<Message>,
}

impl Channel {
    pub fn new(kind: u8, parent: Option<u64>) -> Channel {
        Channel { kind, parent, between: None, archived: false, forbidden: false, messages: Vec::new() }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Message {
    pub id: u64,
    /// As Discord numbers them: 0 is what somebody wrote; an answer is 19 by what it answers.
    pub kind: u64,
    pub flags: u64,
    pub author: u64,
    pub content: String,
    pub reply_to: Option<u64>,
    pub mentions: Vec<u64>,
    pub files: Vec<File>,
    pub components: Value,
    /// Fields that only some messages have.
    pub more: Value,
}

/// The flag of a message that one person sees only.
pub(super) const EPHEMERAL: u64 = 1 << 6;
/// The flag of a message whose addresses are not looked up.
pub(super) const NO_PREVIEWS: u64 = 1 << 2;

impl Message {
    /// Plain words.
    pub fn new(id: u64, author: u64, content: String) -> Message {
        let (mentions, files) = (Vec::new(), Vec::new());
        let (components, more) = (json!([]), Value::Null);
        Message { id, kind: 0, flags: 0, author, content, reply_to: None, mentions, files, components, more }
    }
}

#[derive(Debug, Clone)]
pub(super) struct File {
    pub id: u64,
    pub name: String,
    pub kind: String,
    pub bytes: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Interaction {
    pub token: String,
    pub channel: u64,
    pub made: Instant,
    pub done: bool,
    /// The answer is what is made of a message that only says that it is waited for.
    pub promised: bool,
}

#[derive(Debug)]
pub(super) struct Nonce {
    pub of: (u64, u64, String),
    pub message: u64,
    pub made: Instant,
}

#[derive(Debug)]
pub(super) struct World {
    pub http: SocketAddr,
    pub gateway: SocketAddr,
    pub seen: Seen,
    pub tokens: BTreeMap<String, u64>,
    /// Names of bots and people.
    pub names: BTreeMap<u64, String>,
    pub channels: BTreeMap<u64, Channel>,
    pub sessions: BTreeMap<String, Session>,
    pub interactions: BTreeMap<u64, Interaction>,
    pub commands: BTreeMap<u64, Vec<Value>>,
    pub nonces: Vec<Nonce>,
    /// Of each bot in each channel: messages, and until when they count.
    pub buckets: BTreeMap<(u64, u64), (u32, Instant)>,
    pub intents: u64,
    /// Channels in which bots may not write.
    pub silent: BTreeSet<u64>,
    /// Channels of which bots see only what is written while they listen.
    pub forgetful: BTreeSet<u64>,
    pub limit: Option<(u32, Duration)>,
    pub heartbeat: Duration,
    pub identifies_left: u32,
    pub signature: u64,
    pub mute: bool,
    pub closed: bool,
    pub hanging: bool,
    pub faults: Vec<(String, Fault)>,
    /// How much its clock is ahead of this machine's, in milliseconds.
    pub ahead: i64,
    last: u64,
}

impl World {
    pub fn new(http: SocketAddr, gateway: SocketAddr) -> World {
        World {
            http,
            gateway,
            seen: Seen::default(),
            tokens: BTreeMap::new(),
            names: BTreeMap::new(),
            channels: BTreeMap::new(),
            sessions: BTreeMap::new(),
            interactions: BTreeMap::new(),
            commands: BTreeMap::new(),
            nonces: Vec::new(),
            buckets: BTreeMap::new(),
            intents: ALL_INTENTS,
            silent: BTreeSet::new(),
            forgetful: BTreeSet::new(),
            limit: Some((5, Duration::from_secs(5))),
            heartbeat: Duration::from_millis(41_250),
            identifies_left: 1000,
            signature: 1,
            mute: false,
            closed: false,
            hanging: false,
            faults: Vec::new(),
            ahead: 0,
            last: 0,
        }
    }

    /// An id that is larger than every one before, with the time in it.
    pub fn mint(&mut self) -> u64 {
        let now = crate::calendar::unix_ms(self.ahead).saturating_sub(EPOCH) << 22;
        // With another clock they begin anew; otherwise ids only grow.
        self.last = if self.ahead == 0 { now.max(self.last + 1) } else { now | (self.last + 1) & 0xfff };
        self.last
    }

    pub fn make_bot(&mut self, id: u64) -> String {
        let token = format!("{}.Gfake0.fake_TOKEN-{id:022}", STANDARD_NO_PAD.encode(id.to_string()));
        self.tokens.insert(token.clone(), id);
        self.names.insert(id, format!("bot_{id}"));
        token
    }

    pub fn is_bot(&self, id: u64) -> bool {
        self.names.get(&id).is_some_and(|name| name.starts_with("bot_"))
    }

    pub fn saw(&mut self, request: &Request) {
        self.seen.requests.push((request.caller.clone(), request.route()));
    }

    /// What is to go wrong with a request.
    pub fn fault(&mut self, request: &Request) -> Option<Fault> {
        let route = request.route();
        let at = self.faults.iter().position(|(of, _)| *of == route)?;
        Some(self.faults.remove(at).1)
    }

    pub fn forget_nonces(&mut self) {
        self.nonces.clear();
    }

    pub fn forbid(&mut self, channel: u64, forbidden: bool) {
        if let Some(channel) = self.channels.get_mut(&channel) {
            channel.forbidden = forbidden;
        }
    }

    /// Bots may not write in a channel any more, or may again.
    pub fn silence(&mut self, channel: u64, silent: bool) {
        if silent {
            self.silent.insert(channel);
        } else {
            self.silent.remove(&channel);
        }
    }

    pub fn delete(&mut self, channel: u64) {
        self.channels.remove(&channel);
    }

    pub fn guild(&self) -> Value {
        let role = json!({"id": GUILD.to_string(), "name": "@everyone", "permissions": EVERYBODY.to_string()});
        json!({"id": GUILD.to_string(), "name": "Workshop", "roles": [role]})
    }

    pub fn user(&self, id: u64) -> Value {
        let name = self.names.get(&id).cloned().unwrap_or_default();
        json!({
            "id": id.to_string(), "username": name, "global_name": null, "discriminator": "0", "avatar": null,
            "bot": self.is_bot(id),
        })
    }

    /// A channel as REST and the gateway show it. A private one has fewer fields in events.
    pub fn channel(&self, id: u64) -> Value {
        let Some(channel) = self.channels.get(&id) else { return Value::Null };
        let mut shown = json!({"id": id.to_string(), "type": channel.kind});
        if channel.kind != 1 {
            shown["guild_id"] = GUILD.to_string().into();
            shown["name"] = format!("channel-{id}").into();
        }
        let silent = if self.silent.contains(&id) { SEND | SEND_IN_THREADS } else { 0 };
        let forgetful = if self.forgetful.contains(&id) { HISTORY } else { 0 };
        if silent | forgetful != 0 {
            let deny = (silent | forgetful).to_string();
            shown["permission_overwrites"] = json!([{"id": GUILD.to_string(), "type": 0, "allow": "0", "deny": deny}]);
        }
        if let Some(parent) = channel.parent {
            shown["parent_id"] = parent.to_string().into();
            shown["thread_metadata"] = json!({"archived": channel.archived, "locked": false});
        }
        if let Some((_, person)) = channel.between {
            shown["recipients"] = json!([self.user(person)]);
        }
        shown["last_message_id"] = channel.messages.last().map(|last| last.id.to_string()).into();
        shown
    }

    /// Whether a bot may look into a channel: of a thread, into the one it belongs to.
    pub fn sees(&self, bot: u64, id: u64) -> bool {
        let Some(channel) = self.channels.get(&id) else { return false };
        let theirs = channel.between.is_some_and(|(other, _)| other != bot);
        !channel.forbidden && !theirs && channel.parent.is_none_or(|parent| self.sees(bot, parent))
    }

    /// Threads that are not archived, as Discord lists them.
    pub fn active_threads(&self, bot: u64) -> Value {
        let threads = self.channels.iter().rev();
        let threads = threads.filter(|(id, c)| c.parent.is_some() && !c.archived && self.sees(bot, **id));
        let threads: Vec<_> = threads.map(|(id, _)| self.channel(*id)).collect();
        json!({"threads": threads, "members": []})
    }

    /// Where a bot is alone with a person; made, if it is not there yet.
    pub fn direct(&mut self, bot: u64, person: u64) -> u64 {
        let there = self.channels.iter().find(|(_, channel)| channel.between == Some((bot, person)));
        if let Some((id, _)) = there {
            return *id;
        }
        let id = self.mint();
        self.channels.insert(id, Channel { between: Some((bot, person)), ..Channel::new(1, None) });
        id
    }

    /// A message as REST shows it: without its nonce.
    pub fn message(&self, channel: u64, message: &Message) -> Value {
        let mut shown = json!({
            "id": message.id.to_string(),
            "channel_id": channel.to_string(),
            "type": if message.reply_to.is_some() { 19 } else { message.kind },
            "flags": message.flags,
            "author": self.user(message.author),
            "content": message.content,
            "tts": false,
            "pinned": false,
            "mention_everyone": false,
            "mention_roles": [],
            "mentions": message.mentions.iter().map(|id| self.user(*id)).collect::<Vec<_>>(),
            "attachments": message.files.iter().map(|file| self.file(channel, file)).collect::<Vec<_>>(),
            "components": message.components,
            "embeds": [],
        });
        if let Some(to) = message.reply_to {
            shown["message_reference"] =
                json!({"type": 0, "channel_id": channel.to_string(), "message_id": to.to_string()});
            let messages = self.channels.get(&channel).map_or(&[][..], |c| &c.messages[..]);
            let original = messages.iter().find(|m| m.id == to).cloned();
            let original = original.map(|m| self.message(channel, &Message { reply_to: None, ..m }));
            shown["referenced_message"] = original.unwrap_or_default();
        }
        for (field, value) in message.more.as_object().into_iter().flatten() {
            shown[field] = value.clone();
        }
        shown
    }

    fn file(&self, channel: u64, file: &File) -> Value {
        let File { id, name, kind, bytes } = file;
        json!({
            "id": id.to_string(), "filename": name, "content_type": kind, "size": bytes.len(),
            "url": format!("http://{}/cdn/attachments/{channel}/{id}/{name}?ex={}", self.http, self.signature),
        })
    }

    /// Tells every session that may hear of it that there is a message.
    pub fn tell_message(&mut self, channel: u64, message: &Message, nonce: Option<&str>) {
        let mut shown = self.message(channel, message);
        let direct = self.channels.get(&channel).is_some_and(|c| c.kind == 1);
        if !direct {
            shown["guild_id"] = GUILD.to_string().into();
            shown["member"] = json!({"roles": [], "deaf": false, "mute": false});
        }
        if let Some(nonce) = nonce {
            shown["nonce"] = nonce.into();
        }
        let needed = if direct { 1 << 12 } else { 1 << 9 };
        let only = self.channels.get(&channel).and_then(|c| c.between).map(|(bot, _)| bot);
        let hears = |s: &&mut Session| s.intents & needed != 0 && only.is_none_or(|bot| s.bot == bot);
        for session in self.sessions.values_mut().filter(hears) {
            let (bot, mut mine) = (session.bot, shown.clone());
            let readable = direct || message.author == bot || message.mentions.contains(&bot);
            if !readable && session.intents & MESSAGE_CONTENT == 0 {
                mine["content"] = "".into();
                mine["attachments"] = json!([]);
                mine["components"] = json!([]);
            }
            session.dispatch("MESSAGE_CREATE", mine, self.mute);
        }
    }

    /// What is said to one person only stands in no channel, but the bot is told of it, as if it were private.
    pub fn tell_ephemeral(&mut self, interaction: u64, bot: u64, text: &str) {
        let Some(channel) = self.interactions.get(&interaction).map(|i| i.channel) else { return };
        let id = self.mint();
        let by = json!({"id": interaction.to_string(), "type": 2});
        let more = json!({"interaction_metadata": by, "webhook_id": bot.to_string()});
        let message = Message { kind: 20, flags: EPHEMERAL, more, ..Message::new(id, bot, text.to_owned()) };
        let shown = self.message(channel, &message);
        for session in self.sessions.values_mut().filter(|s| s.bot == bot && s.intents & 1 << 12 != 0) {
            session.dispatch("MESSAGE_CREATE", shown.clone(), self.mute);
        }
    }

    /// Tells the sessions with these intents (any of them; 0: all).
    pub fn tell(&mut self, intents: u64, event: &str, data: &Value) {
        for session in self.sessions.values_mut().filter(|s| intents == 0 || s.intents & intents != 0) {
            session.dispatch(event, data.clone(), self.mute);
        }
    }
}
