//! What the agent may call.

use holdfast_core::chat::MessageId;
use holdfast_core::limits;
use holdfast_host::api::channel::{Fetch, Say};
use holdfast_host::api::client::{Holder, holder};
use holdfast_host::deliver::Letter;
use holdfast_host::engines::CommandError;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Server;
use super::wire::{Refusal, Request};

pub fn list() -> Value {
    json!([
        {
            "name": "reply",
            "description": "Says something in the chat channel of this session.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "message": {"type": "string", "description": "What to say; Markdown, of any length."},
                    "reply_to": {"type": "string", "description": "message_id of the message it answers."}
                },
                "required": ["message"],
                "additionalProperties": false
            }
        },
        {
            "name": "fetch",
            "description": "Shows what people wrote last in the chat channel of this session, oldest first.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "limit": {"type": "integer", "minimum": 1, "maximum": limits::FORWARDER_FETCHED, "default": 20}
                },
                "additionalProperties": false
            }
        }
    ])
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    message: String,
    #[serde(default)]
    reply_to: Option<MessageId>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    #[serde(default = "twenty")]
    limit: usize,
}

fn twenty() -> usize {
    20
}

/// Does what the agent calls. What fails is a result the agent reads, never an error of the protocol.
pub async fn call(server: &Server, request: &Request) -> Result<Value, Refusal> {
    let arguments = request.params.get("arguments").cloned().unwrap_or_else(|| json!({}));
    let done = match request.params["name"].as_str() {
        Some("reply") => reply(server, &request.id, arguments).await,
        Some("fetch") => fetch(server, arguments).await,
        _ => return Err(Refusal { code: -32602, message: "there is no such tool".to_owned() }),
    };
    let (text, failed) = match done {
        Ok(text) => (text, false),
        Err(why) => (why, true),
    };
    Ok(json!({"content": [{"type": "text", "text": text}], "isError": failed}))
}

async fn reply(server: &Server, id: &Value, arguments: Value) -> Result<String, String> {
    let Reply { message, reply_to } = read(arguments)?;
    if message.trim().is_empty() {
        return Err("message is empty".to_owned());
    }
    if message.len() > limits::API_BODY_MAX / 2 {
        return Err(format!("message is longer than {} bytes", limits::API_BODY_MAX / 2));
    }
    // The same for each try at this request: an answer that was lost must not make two messages.
    let key = format!("{}-{:016x}", server.instance, hash(id));
    let order = Say { at: server.at.clone(), text: message, reply_to, key };
    through(server, |holder| say(holder, &order)).await?;
    Ok("sent".to_owned())
}

/// An id of any length, as a part of a key.
fn hash(id: &Value) -> u64 {
    use std::hash::{Hash as _, Hasher as _};
    let mut hasher = std::hash::DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

async fn fetch(server: &Server, arguments: Value) -> Result<String, String> {
    let Look { limit } = read(arguments)?;
    let order = Fetch { at: server.at.clone(), limit: limit.clamp(1, limits::FORWARDER_FETCHED) };
    let letters = through(server, |holder| look(holder, &order)).await?;
    serde_json::to_string_pretty(&letters).map_err(|e| e.to_string())
}

fn read<T: for<'de> Deserialize<'de>>(arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments).map_err(|e| format!("the arguments are not what this tool takes: {e}"))
}

async fn say(holder: Holder, order: &Say) -> Result<(), CommandError> {
    holder.say(order).await
}

async fn look(holder: Holder, order: &Fetch) -> Result<Vec<Letter>, CommandError> {
    holder.fetch(order).await
}

/// Asks whoever runs; one that begins anew is waited for.
async fn through<T, F>(server: &Server, act: impl Fn(Holder) -> F) -> Result<T, String>
where
    F: Future<Output = Result<T, CommandError>>,
{
    let give_up = Instant::now() + limits::AGENT_WAITS;
    loop {
        let why = match holder(&server.dirs).await {
            Ok(Some(holder)) => match act(holder).await {
                Ok(done) => return Ok(done),
                // Nothing answers there, or it has no seat at this moment: both may come back.
                Err(error) if matches!(error.code.as_str(), "unavailable" | "no_seat" | "busy") => error.message,
                Err(error) => return Err(error.message),
            },
            Ok(None) => "no Holdfast runs on this machine".to_owned(),
            Err(error) => error.to_string(),
        };
        if Instant::now() >= give_up {
            return Err(why);
        }
        tokio::time::sleep(limits::AGENT_AGAIN).await;
    }
}
