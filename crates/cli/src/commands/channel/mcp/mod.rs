//! `channel mcp`: an MCP server over stdin and stdout, started by an agent such as Claude Code. Messages from the
//! channel are pushed to it; it answers with `reply` and looks back with `fetch`.
//!
//! The process lives as long as its agent and finds a Holdfast that began anew by itself. A message is acknowledged
//! once it is written to the agent; one that was written and could not be acknowledged is not written twice.

mod push;
mod tools;
mod wire;

use std::sync::Arc;

use futures_util::StreamExt as _;
use holdfast_core::limits;
use holdfast_host::api::channel::Whereabouts;
use holdfast_host::paths::Dirs;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use super::ask::orphaned;
use crate::args::Folders;
use crate::commands::op::rand_key;
use crate::failure::Failure;
use wire::{Agent, Line, Request};

/// What every part of the server knows.
struct Server {
    dirs: Dirs,
    at: Whereabouts,
    /// Names this process, so that its keys are nobody else's.
    instance: String,
    agent: Agent,
    /// The agent is ready for notifications.
    ready: Notify,
}

/// Revisions of MCP that are spoken here, the newest first.
const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const INSTRUCTIONS: &str = "\
Messages that people write in the chat channel of this session arrive as \
<channel source=\"holdfast\" chat_id=\"…\" message_id=\"…\" user=\"…\" ts=\"…\">. \
They come from people who are allowed to speak to you. What you say in this session is shown in that channel already \
where its transcript is followed; use the tool `reply` to answer one message in particular (reply_to) or where people \
would not see you otherwise, never to say the same twice. `files` in a message's attributes is a JSON list of paths of \
files that came with it. `fetch` shows what was written last. A message of kind `stop` means: stop what you are doing.";

pub async fn mcp(folders: &Folders, binding: Option<String>) -> Result<(), Failure> {
    let folder = std::env::current_dir().ok().map(|path| path.to_string_lossy().into_owned());
    let server = Arc::new(Server {
        dirs: folders.dirs()?,
        at: Whereabouts { binding, folder, ..Whereabouts::default() },
        instance: format!("mcp-{:016x}", rand_key()),
        agent: Agent::default(),
        ready: Notify::new(),
    });
    let pushing = {
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            server.ready.notified().await;
            push::push(&server).await
        })
    };
    let mut lines = std::pin::pin!(wire::lines());
    let places = Arc::new(Semaphore::new(limits::API_COMMANDS_RESERVED));
    let mut calls = JoinSet::new();
    let mut orphaned = std::pin::pin!(orphaned());
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            // Others of the agent's may keep stdin open.
            () = &mut orphaned => None,
        };
        let Some(line) = line else { break };
        while calls.try_join_next().is_some() {}
        match Line::read(&line) {
            Ok(Line::Request(request)) if request.method == "tools/call" => {
                let (server, places) = (Arc::clone(&server), Arc::clone(&places));
                calls.spawn(async move {
                    let _place = places.acquire().await;
                    let answer = tools::call(&server, &request).await;
                    server.agent.answer(&request.id, answer).await;
                });
            }
            Ok(Line::Request(request)) => server.agent.answer(&request.id, answer(&request)).await,
            Ok(Line::Notification(method)) if method == "notifications/initialized" => server.ready.notify_one(),
            Ok(Line::Notification(_) | Line::Nothing) => {}
            Err(refusal) => server.agent.answer(&Value::Null, Err(refusal)).await,
        }
    }
    // The agent has gone; what it said last may still be on its way.
    let rest = async { while calls.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(limits::API_ANSWER, rest).await;
    pushing.abort();
    Ok(())
}

fn answer(request: &Request) -> Result<Value, wire::Refusal> {
    match request.method.as_str() {
        "initialize" => {
            let asked = request.params["protocolVersion"].as_str().unwrap_or_default();
            let spoken = REVISIONS.into_iter().find(|revision| *revision == asked).unwrap_or(REVISIONS[0]);
            Ok(json!({
                "protocolVersion": spoken,
                "capabilities": {"experimental": {"claude/channel": {}}, "tools": {}},
                "serverInfo": {"name": "holdfast", "version": env!("CARGO_PKG_VERSION")},
                "instructions": INSTRUCTIONS,
            }))
        }
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({"tools": tools::list()})),
        other => Err(wire::Refusal { code: -32601, message: format!("there is no method {other}") }),
    }
}
