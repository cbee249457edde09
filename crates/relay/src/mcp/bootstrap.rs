//! What the device itself tells a client that begins: its `session_bootstrap`.

use std::sync::Arc;

use holdfast_core::limits;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::call::{self, Asked};
use super::envelope::{Meta, Params};
use super::lasting::Patience;
use super::session::caller;
use super::tools::ToolSet;
use crate::{AppState, Principal};

/// The device's instructions, if it is connected, has any for this caller and answers in time.
pub(super) async fn instructions(state: &AppState, tools: &ToolSet, principal: &Arc<Principal>) -> Option<String> {
    #[derive(Deserialize)]
    struct Bootstrap {
        instructions: String,
    }
    let room = state.devices.known(&principal.device).filter(|room| room.is_ready())?;
    let name = to_raw_value("session_bootstrap").ok()?;
    let arguments = to_raw_value(&json!({"path": "."})).ok()?;
    let params = Params { name: Some(&name), arguments: Some(&arguments), ..Params::default() };
    let device = room.catalogue();
    let caller = || caller(principal);
    let asked = call::read(tools, principal, caller, &device, &params, &Meta::default(), Patience::Endless).ok()?;
    let Asked::Device(open, ..) = asked else { return None };
    let mut running = room.open(*open);
    // Beyond its time the handle is dropped, which cancels the call.
    let end = tokio::time::timeout(limits::BOOTSTRAP_TIMEOUT, running.end()).await.ok()?;
    end.commit.done();
    let told: Bootstrap = serde_json::from_str(end.outcome.ok()?.get()).ok()?;
    let fits = !told.instructions.is_empty() && told.instructions.len() <= limits::BOOTSTRAP_TEXT_MAX;
    fits.then_some(told.instructions)
}
