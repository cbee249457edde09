//! What keeps the bot from hearing or speaking, read from Discord without changing anything there.

use holdfast_core::chat::{ChannelId, SendError};
use holdfast_core::limits;
use holdfast_core::seat::Failed;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use super::Discord;
use super::actions::digits;
use super::outcome::{NO_CONTENT, Refused};
use super::rest::Call;
use super::words::User;
use crate::channel::Examined;

/// Flags of an application whose bot may read what is written: of a large one, and of one in fewer than 100 servers.
const CONTENT: u64 = 1 << 18 | 1 << 19;
const ADMINISTRATOR: u64 = 1 << 3;
const SEND: u64 = 1 << 11;
const SEND_IN_THREADS: u64 = 1 << 38;
/// What the bot does everywhere, as Discord's pages call it.
const NEEDED: [(u64, &str); 3] = [(1 << 10, "View Channel"), (1 << 16, HISTORY), (1 << 6, "Add Reactions")];
/// Without it a channel seems to be empty.
pub(super) const HISTORY: &str = "Read Message History";

/// Where a person invites a bot to a server of theirs, with what it needs there.
pub(in crate::channel) fn invite(bot: &str) -> String {
    let needed = NEEDED.iter().fold(SEND | SEND_IN_THREADS, |all, (bit, _)| all | bit);
    format!("https://discord.com/oauth2/authorize?client_id={bot}&scope=bot+applications.commands&permissions={needed}")
}

#[derive(Deserialize)]
struct Application {
    #[serde(default)]
    flags: u64,
}

#[derive(Deserialize)]
struct Channel {
    name: Option<String>,
    guild_id: Option<String>,
    parent_id: Option<ChannelId>,
    #[serde(default)]
    thread_metadata: Option<serde_json::Value>,
    #[serde(default)]
    permission_overwrites: Vec<Overwrite>,
    /// Of a private conversation.
    #[serde(default)]
    recipients: Vec<User>,
}

/// What holds for a role or a member in one channel.
#[derive(Deserialize)]
struct Overwrite {
    id: String,
    #[serde(deserialize_with = "bits")]
    allow: u64,
    #[serde(deserialize_with = "bits")]
    deny: u64,
}

#[derive(Deserialize)]
struct Guild {
    name: String,
    roles: Vec<Role>,
}

#[derive(Deserialize)]
struct Role {
    id: String,
    #[serde(deserialize_with = "bits")]
    permissions: u64,
}

#[derive(Deserialize)]
struct Member {
    roles: Vec<String>,
}

/// Discord writes permissions as decimal text.
fn bits<'de, D: Deserializer<'de>>(de: D) -> Result<u64, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(de)?;
    text.parse().map_err(serde::de::Error::custom)
}

impl Discord {
    /// Whether messages come with their text.
    pub(super) async fn hears_text(&self) -> Result<(), Failed> {
        let application: Application = self.look("applications/@me".into()).await.map_err(Refused::failed)?;
        if application.flags & CONTENT == 0 { Err(Failed::ForGood(NO_CONTENT.into())) } else { Ok(()) }
    }

    /// A channel's name, or whom the bot is alone with there.
    pub(super) async fn called(&self, id: &ChannelId) -> Result<String, SendError> {
        let path = format!("channels/{}", digits(id.as_str())?);
        let channel = self.look::<Channel>(path).await.map_err(Refused::not_sent)?;
        let with = channel.recipients.into_iter().next().map(|person| format!("@{}", person.username));
        Ok(channel.name.map(|name| format!("#{name}")).or(with).unwrap_or_else(|| id.to_string()))
    }

    /// A channel's name, and what the bot lacks there.
    pub(super) async fn examined(&self, id: &ChannelId) -> Result<Examined, SendError> {
        let read = async |path: String| self.look::<Channel>(path).await.map_err(Refused::not_sent);
        let channel = read(format!("channels/{}", digits(id.as_str())?)).await?;
        let name = channel.name.clone().unwrap_or_else(|| id.to_string());
        let Some(guild_id) = &channel.guild_id else { return Ok(Examined { name, lacks: Vec::new() }) };
        let guild: Guild = self.look(format!("guilds/{guild_id}")).await.map_err(Refused::not_sent)?;
        let me = format!("guilds/{guild_id}/members/{}", self.bot);
        let member: Member = self.look(me).await.map_err(Refused::not_sent)?;
        let thread = channel.thread_metadata.is_some();
        // A thread has the permissions of its channel.
        let overwrites = match channel.parent_id.filter(|_| thread) {
            Some(parent) => read(format!("channels/{parent}")).await?.permission_overwrites,
            None => channel.permission_overwrites,
        };
        let may = permissions(&guild.roles, &overwrites, guild_id, &member.roles, &self.bot);
        let writes = if thread { (SEND_IN_THREADS, "Send Messages in Threads") } else { (SEND, "Send Messages") };
        let lacks = NEEDED.into_iter().chain([writes]).filter(|(bit, _)| may & bit == 0).map(|(_, name)| name);
        Ok(Examined { name: format!("#{name} in {}", guild.name), lacks: lacks.collect() })
    }

    async fn look<T: DeserializeOwned>(&self, path: String) -> Result<T, Refused> {
        self.rest.read(Call::get(path.clone(), path), limits::CHANNEL_REQUEST).await
    }
}

/// As Discord computes them: everybody's role, one's own roles, and then what holds in the channel for everybody, for one's roles
/// and for oneself; each may take away and give.
fn permissions(roles: &[Role], overwrites: &[Overwrite], everybody: &str, own: &[String], me: &str) -> u64 {
    let mine = |id: &str| own.iter().any(|role| role == id);
    let base = roles.iter().filter(|role| role.id == everybody || mine(&role.id)).fold(0, |all, r| all | r.permissions);
    if base & ADMINISTRATOR != 0 {
        return u64::MAX;
    }
    let apply = |may: u64, counts: &dyn Fn(&str) -> bool| {
        let these = || overwrites.iter().filter(|overwrite| counts(&overwrite.id));
        let (deny, allow) = these().fold((0, 0), |(deny, allow), o| (deny | o.deny, allow | o.allow));
        may & !deny | allow
    };
    let may = apply(base, &|id| id == everybody);
    let may = apply(may, &mine);
    apply(may, &|id| id == me)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_invitation_asks_for_exactly_what_is_needed() {
        assert_eq!(
            invite("7"),
            "https://discord.com/oauth2/authorize?client_id=7&scope=bot+applications.commands&permissions=274877975616"
        );
    }

    #[test]
    fn a_channel_takes_away_and_gives_in_the_order_everybody_roles_oneself() {
        let role = |id: &str, permissions| Role { id: id.into(), permissions };
        let over = |id: &str, allow, deny| Overwrite { id: id.into(), allow, deny };
        let roles = [role("g", 0b0011), role("r", 0b0100), role("other", 0b1_0000_0000)];
        let own = ["r".to_owned()];
        let may = |overwrites: &[Overwrite]| permissions(&roles, overwrites, "g", &own, "me");
        assert_eq!(may(&[]), 0b0111);
        assert_eq!(may(&[over("g", 0, 0b0111)]), 0);
        assert_eq!(may(&[over("g", 0, 0b0111), over("r", 0b0001, 0)]), 0b0001);
        assert_eq!(may(&[over("r", 0b0001, 0), over("me", 0b10_0000, 0b0001)]), 0b10_0110);
        assert_eq!(may(&[over("other", 0, 0b0111)]), 0b0111);
        assert_eq!(permissions(&[role("g", ADMINISTRATOR)], &[over("g", 0, SEND)], "g", &[], "me"), u64::MAX);
    }
}
