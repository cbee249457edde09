//! `mcp`: a process of the agent, `holdfast channel mcp`, takes what is offered.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::chat::inbox::{Message, Prepared, Undelivered};
use holdfast_core::limits;

use super::{Agent, Letter, Offers, Patience};

/// An agent that listens.
#[derive(Debug)]
pub(super) struct McpAgent {
    offers: Offers,
    binding: Arc<str>,
    patience: Patience,
}

/// What the sender reads while nobody listens.
const NOBODY: &str = "the agent is not connected; it starts `holdfast channel mcp`";

impl McpAgent {
    pub(super) fn new(offers: Offers, binding: Arc<str>) -> McpAgent {
        McpAgent { offers, binding, patience: Patience::default() }
    }
}

impl Agent for McpAgent {
    fn deliver<'a>(&'a self, message: &'a Message, prepared: &'a Prepared) -> BoxFuture<'a, Result<(), Undelivered>> {
        async move {
            let given = self.offers.give(&self.binding, Letter::of(&message.incoming, prepared));
            // One that listens is given its own time.
            let first = if self.offers.is_heard(&self.binding) { 2 * limits::AGENT_TAKES } else { limits::AGENT_COMES };
            let given = self.patience.wait(message.seq, first, given).await;
            given.unwrap_or_else(|| Err(NOBODY.to_owned())).map_err(Undelivered::Not)
        }
        .boxed()
    }

    fn stop(&self) -> BoxFuture<'_, Result<String, String>> {
        let told = match self.offers.stop(&self.binding) {
            true => Ok("The agent was told to stop.".to_owned()),
            false => Err(NOBODY.to_owned()),
        };
        std::future::ready(told).boxed()
    }
}
