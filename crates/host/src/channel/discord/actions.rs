//! What the bot does: it posts, changes, shows signs, and answers clicks and commands.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use holdfast_core::chat::{Button, ChannelId, Draft, Look, MessageId, Scope, SendError};
use holdfast_core::limits;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use twilight_http_ratelimiting::Method;
use twilight_model::channel::message::component::{ActionRow, ButtonStyle};
use twilight_model::channel::message::{AllowedMentions, Component, MessageFlags, component};
use twilight_model::http::interaction::{InteractionResponse, InteractionResponseData, InteractionResponseType};

use super::Discord;
use super::outcome::Refused;
use super::rest::{Call, Rest};
use super::words::Interaction;
use crate::channel::answered;

/// What people can ask of the bot itself.
const COMMANDS: [(&str, &str); 3] =
    [("stop", "Stop the agent"), ("status", "Show the status"), ("seat", "Show which computer runs the bot")];

/// A click or a command that can be answered.
#[derive(Clone)]
pub(super) struct Pressed {
    id: String,
    /// Whoever has it may answer.
    token: String,
    application: String,
    command: bool,
    /// Cancelled once Discord knows that it was heard, or cannot be told.
    heard: CancellationToken,
    /// Cancelled once there is an answer.
    answered: CancellationToken,
}

impl Pressed {
    pub(super) fn of(interaction: &Interaction) -> Pressed {
        Pressed {
            id: interaction.id.as_str().to_owned(),
            token: interaction.token.clone(),
            application: interaction.application_id.clone(),
            command: interaction.is_command(),
            heard: CancellationToken::new(),
            answered: CancellationToken::new(),
        }
    }
}

impl fmt::Debug for Pressed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pressed").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What is said of a command that nobody answered: what it came to is said where everybody reads it.
const ELSEWHERE: &str = "The answer is in the channel, if you may talk to the agent.";

#[derive(Deserialize)]
struct Sent {
    id: MessageId,
}

#[derive(Deserialize, PartialEq)]
struct Command {
    name: String,
    #[serde(default)]
    description: String,
}

/// An id of Discord's, which stands in paths.
pub(super) fn digits(id: &str) -> Result<&str, SendError> {
    let good = !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
    good.then_some(id).ok_or_else(no_channel)
}

pub(super) fn no_channel() -> SendError {
    let text = "this is no channel of Discord's".into();
    SendError::Permanent { scope: Scope::Channel, code: String::new(), text }
}

/// The path to one message, and as limits see it.
pub(super) fn at(channel: &ChannelId, message: &MessageId) -> Result<(String, String), SendError> {
    let channel = digits(channel.as_str())?;
    Ok((
        format!("channels/{channel}/messages/:id"),
        format!("channels/{channel}/messages/{}", digits(message.as_str())?),
    ))
}

fn row(buttons: &[Button]) -> Component {
    let button = |button: &Button| {
        Component::Button(component::Button {
            custom_id: Some(button.id.clone()),
            disabled: false,
            emoji: None,
            id: None,
            label: Some(button.label.clone()),
            sku_id: None,
            style: match button.look {
                Look::Good => ButtonStyle::Success,
                Look::Plain => ButtonStyle::Primary,
                Look::Bad => ButtonStyle::Danger,
            },
            url: None,
        })
    };
    Component::ActionRow(ActionRow { components: buttons.iter().map(button).collect(), id: None })
}

impl Discord {
    pub(super) async fn post(&self, draft: &Draft) -> Result<MessageId, SendError> {
        let path = format!("channels/{}/messages", digits(draft.channel.as_str())?);
        let mut body = json!({
            "content": draft.text,
            "nonce": draft.nonce,
            "enforce_nonce": true,
            "allowed_mentions": AllowedMentions::default(),
            "flags": MessageFlags::SUPPRESS_EMBEDS,
        });
        let to = answered::<u64>(draft).map(|to| to.to_string());
        if let Some(to) = &to {
            body["message_reference"] = json!({"message_id": to, "fail_if_not_exists": false});
        }
        if !draft.buttons.is_empty() {
            body["components"] = json!([row(&draft.buttons)]);
        }
        let create = |body: Value| {
            let call = Call::with(Method::Post, path.clone(), path.clone(), body);
            self.rest.read::<Sent>(call, limits::CHANNEL_SEND)
        };
        let sent = match create(body.clone()).await {
            // It may write here and not read what was written before.
            Err(Refused::Said { code: 160_002, .. }) if to.is_some() => {
                body["message_reference"].take();
                create(body).await
            }
            sent => sent,
        };
        Ok(sent.map_err(Refused::not_sent)?.id)
    }

    pub(super) async fn change(&self, channel: &ChannelId, message: &MessageId, text: &str) -> Result<(), SendError> {
        let (route, path) = at(channel, message)?;
        let body = json!({
            "content": text,
            "components": [],
            "allowed_mentions": AllowedMentions::default(),
            "flags": MessageFlags::SUPPRESS_EMBEDS,
        });
        let call = Call::with(Method::Patch, route, path, body);
        self.rest.ask(call, limits::CHANNEL_SEND).await.map(drop).map_err(Refused::not_sent)
    }

    pub(super) async fn show_typing(&self, channel: &ChannelId) {
        let Ok(channel) = digits(channel.as_str()) else {
            return;
        };
        let path = format!("channels/{channel}/typing");
        gesture(&self.rest, Call { method: Method::Post, ..Call::get(path.clone(), path) }).await;
    }

    pub(super) async fn show_sign(&self, channel: &ChannelId, message: &MessageId, sign: &str, there: bool) {
        let Ok((route, path)) = at(channel, message) else {
            return;
        };
        let sign: String = url::form_urlencoded::byte_serialize(sign.as_bytes()).collect();
        let call = Call::get(format!("{route}/reactions/:id/@me"), format!("{path}/reactions/{sign}/@me"));
        gesture(&self.rest, Call { method: if there { Method::Put } else { Method::Delete }, ..call }).await;
    }

    /// Keeps what it takes to answer.
    pub(super) fn keep(&self, pressed: Pressed) {
        let mut clicks = self.clicks.lock();
        clicks.push_back(pressed);
        if clicks.len() > limits::CHANNEL_CLICKS {
            clicks.pop_front();
        }
    }

    pub(super) async fn answer_click(&self, click: &str, text: &str) {
        let found = {
            let mut clicks = self.clicks.lock();
            let at = clicks.iter().position(|pressed| pressed.id == click);
            at.and_then(|at| if clicks[at].command { clicks.remove(at) } else { clicks.get(at).cloned() })
        };
        let Some(pressed) = found else { return };
        pressed.answered.cancel();
        pressed.heard.cancelled().await;
        say(&self.rest, &pressed, text).await;
    }
}

/// To that person alone: below what was clicked, or where the answer to a command was promised.
async fn say(rest: &Rest, Pressed { application, token, command, .. }: &Pressed, text: &str) {
    let (method, at) = if *command { (Method::Patch, "/messages/@original") } else { (Method::Post, "") };
    let path = format!("webhooks/{application}/{token}{at}");
    gesture(rest, Call { bare: true, ..Call::with(method, "webhooks/:id", path, json!(said(text))) }).await;
}

/// Words that only one person sees.
fn said(text: &str) -> InteractionResponseData {
    InteractionResponseData {
        allowed_mentions: Some(AllowedMentions::default()),
        content: Some(text.chars().take(limits::CHUNK_DISCORD).collect()),
        flags: Some(MessageFlags::EPHEMERAL | MessageFlags::SUPPRESS_EMBEDS),
        ..InteractionResponseData::default()
    }
}

/// Tells Discord that it was heard. Nothing is said: who may speak here is found out elsewhere.
pub(super) async fn acknowledge(rest: Arc<Rest>, Pressed { id, token, command, heard, .. }: Pressed) {
    // Whatever becomes of it.
    let _heard = heard.drop_guard();
    let hidden = InteractionResponseData { flags: Some(MessageFlags::EPHEMERAL), ..InteractionResponseData::default() };
    let (kind, data) = match command {
        true => (InteractionResponseType::DeferredChannelMessageWithSource, Some(hidden)),
        false => (InteractionResponseType::DeferredUpdateMessage, None),
    };
    let path = format!("interactions/{id}/{token}/callback");
    let call = Call::with(Method::Post, "interactions/:id", path, json!(InteractionResponse { kind, data }));
    gesture(&rest, Call { bare: true, ..call }).await;
}

/// The same for a command, whose answer is waited for. If there is none, it says so.
pub(super) async fn promise(rest: Arc<Rest>, pressed: Pressed) {
    acknowledge(Arc::clone(&rest), pressed.clone()).await;
    if tokio::time::timeout(limits::DISCORD_ANSWER, pressed.answered.cancelled()).await.is_err() {
        say(&rest, &pressed, ELSEWHERE).await;
    }
}

/// Has Discord offer our commands, if it does not. Those of other programs that use the bot stay.
pub(super) async fn register(rest: Arc<Rest>, application: String, registered: Arc<AtomicBool>) {
    if digits(&application).is_err() {
        return;
    }
    let path = format!("applications/{application}/commands");
    let there: Vec<Command> = match rest.read(Call::get(path.clone(), path.clone()), limits::CHANNEL_REQUEST).await {
        Ok(there) => there,
        Err(why) => {
            return tracing::info!(why = why.reason(), "Discord's list of the bot's commands cannot be read");
        }
    };
    for (name, description) in COMMANDS {
        if there.contains(&Command { name: name.into(), description: description.into() }) {
            continue;
        }
        // In servers and in private.
        let body = json!({"name": name, "description": description, "type": 1, "contexts": [0, 1]});
        let call = Call::with(Method::Post, path.clone(), path.clone(), body);
        if let Err(why) = rest.ask(call, limits::CHANNEL_REQUEST).await {
            return tracing::info!(why = why.reason(), "a command of the bot's cannot be registered");
        }
    }
    registered.store(true, Relaxed);
}

/// Does something of which nobody needs to know whether it worked.
async fn gesture(rest: &Rest, call: Call) {
    let route = call.route.clone();
    if let Err(why) = rest.ask(call, limits::CHANNEL_REQUEST).await {
        tracing::debug!(route, why = why.reason(), "a gesture at Discord did not work");
    }
}
