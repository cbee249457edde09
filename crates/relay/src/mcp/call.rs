//! From the parameters of `tools/call` to a call of the device.

use std::sync::Arc;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::limits;
use holdfast_core::wire::Authorization;
use serde_json::Value;
use serde_json::value::RawValue;

use super::arguments;
use super::envelope::{Meta, Params, is_object, text};
use super::lasting::{Form, Patience};
use super::reply::RpcError;
use super::tools::{Found, ToolSet};
use super::{operations, results};
use crate::Principal;
use crate::devices::{Catalogue, IdempotencyKey, OpenCall};

/// What a `tools/call` comes to.
pub(super) enum Asked {
    /// The device is to run it. The arguments, read, and the form of a handle.
    Device(Box<OpenCall>, Value, Form),
    /// The relay is to look at, or stop, a call that it keeps.
    Kept(results::Asked),
    /// The relay is to do something with durable operations. Whether the client takes a task for one that it starts.
    Operation(operations::Asked, bool),
    /// The relay answers by itself: `server_info`.
    ServerInfo,
    /// Known at once: a tool error.
    Refused(ToolError),
}

/// The name a call names.
pub(super) fn name<'a>(params: &Params<'a>) -> Result<std::borrow::Cow<'a, str>, RpcError> {
    let name = params.name.and_then(text).filter(|name| !name.trim().is_empty() && name.len() <= limits::TOOL_NAME_MAX);
    name.ok_or_else(|| RpcError::invalid_params("params.name must be the name of a tool"))
}

/// Checks a call: its tool, its rights, its arguments, its key.
pub(super) fn read(
    tools: &ToolSet,
    principal: &Principal,
    caller: impl FnOnce() -> Arc<str>,
    device: &Catalogue,
    params: &Params<'_>,
    meta: &Meta<'_>,
    patience: Patience,
) -> Result<Asked, RpcError> {
    let name = name(params)?;
    let arguments = match params.arguments {
        None => RawValue::from_string("{}".into()).map_err(|_| RpcError::internal("an empty object is no JSON"))?,
        Some(raw) if is_object(raw) => raw.to_owned(),
        Some(_) => return Err(RpcError::invalid_params("params.arguments must be an object")),
    };
    let tool = match tools.find(&name, principal.role, device)? {
        Found::Device(tool) => tool,
        Found::Relay(tool) if &*tool.name == "server_info" => return Ok(Asked::ServerInfo),
        Found::Relay(tool) => {
            let arguments = tool.check(&arguments)?;
            if let Some(asked) = operations::asked(&tool.name, &arguments) {
                return Ok(Asked::Operation(asked?, patience == Patience::Tasks));
            }
            let asked = results::asked(&tool.name, &arguments);
            let unknown = || ToolError::new(Code::NotFound, "no such result, or it is no longer kept");
            return Ok(asked.map_or_else(|| Asked::Refused(unknown()), Asked::Kept));
        }
        Found::Refused(error) => return Ok(Asked::Refused(error)),
    };
    let tree = tool.check(&arguments)?;
    if let Some(asked) = results::asked(&tool.name, &tree) {
        return Ok(Asked::Kept(asked));
    }
    let (outlives, form) = patience.plan(tool, principal);
    let key = meta.idempotency_key.map(|raw| key(raw, &tree)).transpose()?;
    let open = OpenCall {
        tool: Arc::clone(&tool.name),
        budget: tool.budget(&arguments),
        arguments,
        authorization: Authorization {
            account_id: principal.account.clone(),
            account_version: principal.account_version,
            role: principal.role,
            client: Some(principal.client.to_string()),
            client_name: Some(principal.client_name.to_string()),
        },
        principal: caller(),
        key,
        wants_progress: meta.progress_token.is_some(),
        control: tool.control,
        outlives,
    };
    Ok(Asked::Device(Box::new(open), tree, form))
}

fn key(raw: &RawValue, arguments: &Value) -> Result<IdempotencyKey, RpcError> {
    let key = text(raw).filter(|key| !key.is_empty() && key.chars().count() <= limits::IDEMPOTENCY_KEY_MAX);
    let key =
        key.ok_or_else(|| RpcError::invalid_params("holdfast/idempotency-key must be a text of 1 to 128 characters"))?;
    Ok(IdempotencyKey { key: key.into_owned(), digest: arguments::digest(arguments) })
}

/// Where progress of a call goes: the client's token, which must be a text or an integer.
pub(super) fn progress_token(meta: &Meta<'_>) -> Result<Option<Box<RawValue>>, RpcError> {
    let Some(raw) = meta.progress_token else { return Ok(None) };
    if text(raw).is_none_or(|token| token.len() > limits::RPC_ID_MAX) && serde_json::from_str::<i64>(raw.get()).is_err()
    {
        return Err(RpcError::invalid_params("progressToken must be a text or an integer"));
    }
    Ok(Some(raw.to_owned()))
}
