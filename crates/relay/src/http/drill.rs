//! `POST /api/drill`: a device opens a call to itself, to see it survive a cut.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use holdfast_core::limits;
use holdfast_core::policy::Role;
use holdfast_core::wire::{Authorization, TOKEN_HEADER};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::error::ApiError;
use super::json::Body;
use crate::devices::OpenCall;
use crate::people::accounts;
use crate::state::AppState;

/// The internal tool that waits. Never listed, and clients cannot call it.
const TOOL: &str = "drill_wait";

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    /// Milliseconds, at most [`limits::DRILL_WAIT_MAX`].
    wait_ms: u64,
    /// Comes back in the result, so that the drill knows it for its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    echo: Option<String>,
}

/// How the call ended, with the tool's own words.
#[derive(Serialize)]
pub(super) struct Outcome {
    call: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<holdfast_core::code::ToolError>,
}

/// Opens the call through the same switchboard as every other, and answers when it ended.
pub(super) async fn drill(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    Body(order): Body<Order>,
) -> Result<Json<Outcome>, ApiError> {
    let wait = Duration::from_millis(order.wait_ms);
    if wait > limits::DRILL_WAIT_MAX || order.echo.as_ref().is_some_and(|echo| echo.len() > limits::DRILL_ECHO_MAX) {
        return Err(ApiError::invalid("a drill waits at most 60 seconds and echoes at most 256 bytes"));
    }
    let credential = headers.get(TOKEN_HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let device = state.auth.device(credential).map_err(|failure| {
        ApiError::new(StatusCode::UNAUTHORIZED, failure.code(), "the device's credential is not accepted")
    })?;
    let of = device.account.clone();
    let account = state.store.read(move |db| accounts::by_id(db, &of)).await?.ok_or_else(ApiError::not_found)?;
    let arguments = to_raw_value(&order).map_err(|_| ApiError::invalid("the order cannot be passed on"))?;
    let mut call = state.devices.room(&device.id).open(OpenCall {
        tool: TOOL.into(),
        arguments,
        budget: wait + limits::SETTLEMENT,
        authorization: Authorization {
            account_id: account.id,
            account_version: account.version,
            // Waiting needs no rights.
            role: Role::Reviewer,
            client: Some("drill".into()),
            client_name: None,
        },
        principal: "drill".into(),
        key: None,
        wants_progress: false,
        control: false,
        outlives: None,
    });
    let id = call.id().to_string();
    let end = call.end().await;
    end.commit.done();
    let (result, error) = match end.outcome {
        Ok(result) => (Some(result), None),
        Err(error) => (None, Some(error)),
    };
    Ok(Json(Outcome { call: id, result, error }))
}
