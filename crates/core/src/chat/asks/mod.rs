//! Permission prompts: an agent's hook asks, somebody in the channel answers.
//!
//! A prompt is stored before it is shown, waits for at most [`limits::ASK_LIFE`], and survives hand-over: the next holder
//! has it from the store, and the hook registers again under its request id. It ends once, by whatever comes first: a click,
//! its time, its message not being there within [`limits::ASK_PLACE`], or its hook going for good. What is shown is all that
//! is asked, or says how much of it is not shown; its message keeps it. Who may click is the inbox's gate; what comes here passed it.

mod machine;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::commits::Step;
use super::outbox::Key;
use super::{Button, ChannelId, Click, CommitError, Draft, Look, MessageId, Ticket};
use crate::limits;
use crate::line::{lines, one_line};
use crate::redact::redact;

pub use machine::Asks;

/// The name of a tool as it is shown and by which it is allowed: a long one is cut, and ends with what tells it from others
/// that begin alike.
pub fn tool(name: &str) -> String {
    if name.chars().count() <= limits::INBOX_NAME_MAX {
        return name.to_owned();
    }
    let digest: String = Sha256::digest(name).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let beginning: String = name.chars().take(limits::INBOX_NAME_MAX - digest.len() - 1).collect();
    format!("{beginning}…{digest}")
}

/// What a prompt asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// Names it; minted by the hook, at most 48 characters so that it fits a button.
    pub request: String,
    /// Where: the channel to which the agent that asks is bound.
    pub channel: ChannelId,
    /// The tool that wants to run, by a name as [`tool`] gives it.
    pub tool: String,
    /// What it is for.
    pub description: String,
    /// What it will do; its beginning and its end are shown.
    pub preview: String,
    /// So many characters were left out in the middle of that.
    #[serde(default)]
    pub left_out: usize,
}

/// What was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may.
    Allow,
    /// It may, and so may the same tool for as long as the session lives.
    Session,
    /// It may not.
    Deny,
}

/// How a prompt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Somebody clicked; their name.
    Answered(Verdict, String),
    /// Nobody did in time.
    Expired,
    /// Its hook went: it was decided in the terminal, or the agent was stopped.
    Withdrawn,
    /// Its message could not be posted in time, so it was decided at the terminal.
    Unseen,
    /// Its hook did not come back after a hand-over or a crash.
    Gone,
}

/// What the store keeps of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What it asks.
    pub ask: Ask,
    /// How old it was when this value was made. The store keeps the date.
    pub age: Duration,
    /// Its message, once the service has it.
    pub message: Option<MessageId>,
    /// How it ended.
    pub end: Option<End>,
    /// Its message says how it ended.
    pub shown: bool,
}

/// One step of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Inserts or replaces the row of a request.
    Put(Box<Row>),
    /// Removes it.
    Remove(String),
}

impl Step for Change {
    fn waits(&self) -> Option<&str> {
        None
    }
}

/// Everything that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A hook asks, or asks again after a hand-over. None: the agent is bound to no channel.
    Ask {
        /// Its prompt's name.
        request: String,
        /// The rest.
        ask: Option<Ask>,
    },
    /// A hook went for good.
    Withdraw(String),
    /// Whether this process holds the seat and the bot can speak.
    Serving(bool),
    /// The outbox's message of this key is there.
    Posted(Key, MessageId),
    /// The outbox's message of this key is not posted, or nobody knows.
    Refused(Key),
    /// Nothing is posted in this channel.
    Parked(ChannelId),
    /// Somebody who may pressed a button of a prompt.
    Click(Click),
    /// Answers [`Output::Commit`].
    Committed(Ticket, Result<(), CommitError>),
}

/// What the shell does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Make these changes, all or none.
    Commit(Ticket, Vec<Change>),
    /// Have the outbox say this.
    Say(Key, Draft),
    /// Make the text of a message this, without its buttons.
    Edit(ChannelId, MessageId, String),
    /// Answer a click so that only that person sees it.
    Answer {
        /// [`Click::id`].
        click: String,
        /// In plain words.
        text: String,
    },
    /// Tell the hook how it ended. It may not be there, or know it already.
    Ended(String, End),
    /// Tell the hook that nobody can be asked, so that the terminal decides.
    CannotAsk(String),
}

/// Buttons of prompts begin so.
const PREFIX: &str = "ask:";

/// Whether a click is for a prompt.
pub fn is_ask(click: &Click) -> bool {
    click.button.starts_with(PREFIX)
}

/// What its message is known by in the outbox.
pub fn key(request: &str) -> Key {
    Key::single(format!("{PREFIX}{request}"))
}

/// `text` as far as a person has to see it: its beginning and its end, and how many characters are left out between them.
/// Enough for [`Ask::preview`], and never more than 8 times [`limits::ASK_PREVIEW_MAX`] characters.
pub fn preview(text: &str) -> (String, usize) {
    let (head, tail, left_out) = ends(text, 8 * limits::ASK_PREVIEW_MAX);
    (format!("{head}{tail}"), left_out)
}

/// The beginning and the end of a text, together at most `max` characters, and how many lie between them. The beginning
/// has three quarters.
fn ends(text: &str, max: usize) -> (&str, &str, usize) {
    let byte = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at);
    let count = text.chars().count();
    let (head, left_out) = (max - max / 4, count.saturating_sub(max));
    (&text[..byte(head)], &text[byte(head + left_out)..], left_out)
}

/// What is asked, so that nothing in it is taken for ours, hides a part of it, or reads as something else.
fn shown(ask: &Ask) -> String {
    let code = |text: &str, max| one_line(text, max).replace('`', "'");
    let mut text = format!("🔐 `{}` needs permission", code(&ask.tool, limits::INBOX_NAME_MAX));
    let description = code(redact(&ask.description).trim(), limits::ASK_DESCRIPTION_MAX);
    if !description.is_empty() {
        text.push_str(&format!("\n`{description}`"));
    }
    let whole = redact(&lines(&ask.preview));
    let (head, tail, between) = ends(&whole, limits::ASK_PREVIEW_MAX);
    let block = |part: &str| match part.trim_end() {
        "" => String::new(),
        part => format!("\n```\n{}\n```", part.replace("``", "`\u{200b}`")),
    };
    match between + ask.left_out {
        0 => text.push_str(&block(&whole)),
        hidden => text.push_str(&format!("{}\n**{hidden} characters are not shown**{}", block(head), block(tail))),
    }
    text
}

fn draft(ask: &Ask) -> Draft {
    let button = |what: &str, label: &str, look| Button {
        id: format!("{PREFIX}{}:{what}", ask.request),
        label: label.to_owned(),
        look,
    };
    let buttons = vec![
        button("allow", "Allow", Look::Good),
        button("session", "Session", Look::Plain),
        button("deny", "Deny", Look::Bad),
    ];
    Draft { channel: ask.channel.clone(), text: shown(ask), nonce: key(&ask.request).nonce(), reply_to: None, buttons }
}

/// How it ended, in the middle of a sentence.
fn said(end: &End) -> String {
    match end {
        End::Answered(Verdict::Allow, name) => format!("allowed by {name}"),
        End::Answered(Verdict::Session, name) => format!("allowed for this session by {name}"),
        End::Answered(Verdict::Deny, name) => format!("denied by {name}"),
        End::Expired => "nobody answered in time".to_owned(),
        End::Withdrawn => "decided at the terminal".to_owned(),
        End::Unseen => "decided at the terminal; this message came too late".to_owned(),
        End::Gone => "the agent is no longer waiting".to_owned(),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
