//! Who may speak to an agent. The same gate for messages and for clicks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::chat::{ChannelId, Click, Incoming, UserId};

/// How messages reach an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adapter {
    /// A program per message.
    Command,
    /// Typed into a pane.
    Tmux,
    /// Offered over MCP and acknowledged by id.
    Mcp,
    /// Files, acknowledged by id.
    Inbox,
    /// They do not: its channel only shows what it says, and answers what is asked of the bot itself.
    Mirror,
}

impl Adapter {
    /// Whether messages reach the agent at all.
    pub fn delivers(self) -> bool {
        self != Adapter::Mirror
    }

    /// Whether the agent's side tells twice offered messages apart.
    pub fn acknowledges(self) -> bool {
        matches!(self, Adapter::Mcp | Adapter::Inbox)
    }
}

/// An agent to which messages go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// How they get there.
    pub adapter: Adapter,
}

/// What holds in a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Only messages that name the bot count.
    pub mention: bool,
    /// If not empty: only these of the people who may at all.
    pub people: BTreeSet<UserId>,
    /// The agent there.
    pub binding: Binding,
}

/// Who may speak, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// Everybody who may. Empty: nobody.
    pub people: BTreeSet<UserId>,
    /// Channels that are listened to, with their threads.
    pub rules: BTreeMap<ChannelId, Rule>,
    /// What holds where the bot is alone with a person. None: it does not listen there.
    pub direct: Option<Rule>,
}

/// Why somebody is not heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody is heard there.
    Channel,
    /// It is a program.
    Bot,
    /// This person is not.
    Person,
    /// It was not said to the bot.
    Mention,
}

impl Access {
    /// Whether a message counts, and what holds for it.
    pub fn message(&self, message: &Incoming) -> Result<&Rule, Refusal> {
        let rule = self.rule(&message.channel, message.parent.as_ref(), message.direct).ok_or(Refusal::Channel)?;
        if message.bot {
            return Err(Refusal::Bot);
        }
        self.may(rule, &message.author)?;
        if rule.mention && !message.mentions_us && !message.direct { Err(Refusal::Mention) } else { Ok(rule) }
    }

    /// Whether a click counts. What is pressed is always ours, so it needs no mention.
    pub fn click(&self, click: &Click) -> Result<&Rule, Refusal> {
        let rule = self.rule(&click.channel, click.parent.as_ref(), click.direct).ok_or(Refusal::Channel)?;
        self.may(rule, &click.user)?;
        Ok(rule)
    }

    /// What holds in a channel, whoever speaks.
    pub fn rule(&self, at: &ChannelId, parent: Option<&ChannelId>, direct: bool) -> Option<&Rule> {
        let rule = self.rules.get(at).or_else(|| parent.and_then(|parent| self.rules.get(parent)));
        rule.or(self.direct.as_ref().filter(|_| direct))
    }

    /// Whoever is heard where the bot is alone with them.
    pub fn privately(&self) -> impl Iterator<Item = &UserId> {
        let rule = self.direct.as_ref();
        self.people.iter().filter(move |person| rule.is_some_and(|rule| self.may(rule, person).is_ok()))
    }

    /// How messages reach the agent of that name. None: there is no such binding.
    pub fn adapter(&self, name: &str) -> Option<Adapter> {
        let rules = self.rules.values().chain(self.direct.as_ref());
        let named = |binding: &&Binding| *binding.name == *name;
        rules.map(|rule| &rule.binding).find(named).map(|binding| binding.adapter)
    }

    fn may(&self, rule: &Rule, user: &UserId) -> Result<(), Refusal> {
        let may = self.people.contains(user) && (rule.people.is_empty() || rule.people.contains(user));
        if may { Ok(()) } else { Err(Refusal::Person) }
    }
}
