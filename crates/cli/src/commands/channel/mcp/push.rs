//! Messages from the channel to the agent.

use std::collections::VecDeque;

use futures_util::StreamExt as _;
use holdfast_core::limits;
use holdfast_host::api::channel::Acknowledge;
use holdfast_host::api::client::{Holder, holder};
use holdfast_host::deliver::Offer;
use serde_json::json;

use super::Server;

/// The notification that an agent takes for a message.
const CHANNEL: &str = "notifications/claude/channel";

/// Pushes what is offered, until the agent has gone. Restarts of Holdfast are waited through.
pub async fn push(server: &Server) {
    let mut written = VecDeque::new();
    loop {
        if let Ok(Some(holder)) = holder(&server.dirs).await
            && listen(server, &holder, &mut written).await.is_err()
        {
            return;
        }
        tokio::time::sleep(limits::AGENT_AGAIN).await;
    }
}

/// While one connection lasts.
///
/// # Errors
/// The agent does not read any more.
async fn listen(server: &Server, holder: &Holder, written: &mut VecDeque<String>) -> std::io::Result<()> {
    let Ok(offers) = holder.listen(&server.at).await else { return Ok(()) };
    let mut offers = std::pin::pin!(offers);
    while let Some(offer) = offers.next().await {
        let letter = match offer {
            Offer::Message(letter) => letter,
            Offer::Stop => {
                let content = "Stop what you are doing: somebody in the channel asks for it.";
                server.agent.notify(CHANNEL, json!({"content": content, "meta": {"kind": "stop"}})).await?;
                continue;
            }
        };
        if !written.contains(&letter.id) {
            server.agent.notify(CHANNEL, json!({"content": letter.content, "meta": letter.meta})).await?;
            if written.len() >= limits::AGENT_WRITTEN {
                written.pop_front();
            }
            written.push_back(letter.id.clone());
        }
        // If that fails, it is offered again over the next connection.
        let order = Acknowledge { at: server.at.clone(), id: letter.id };
        if holder.acknowledge(&order).await.is_err() {
            break;
        }
    }
    Ok(())
}
