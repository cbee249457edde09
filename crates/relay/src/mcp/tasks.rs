//! Tasks (`io.modelcontextprotocol/tasks`): the handle of a call that goes on, as 2026-07-28 clients know it.
//!
//! Answered here and not by rmcp, so that a result passes untouched. The prefix of a task's id says where its state lives
//! ([`find`]).

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::id::{KeptId, OperationId};
use holdfast_core::limits;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::envelope::{Meta, Params, RpcId, text};
use super::outcome::{self, Outcome};
use super::reply::RpcError;
use super::{Era, Mcp, lasting, operations, revision, session};
use crate::devices::KeptCall;
use crate::store::StoreError;
use crate::{ApiError, Principal};

/// A `tasks/…` request that may be answered.
#[derive(Debug)]
pub(super) struct Ask {
    pub id: RpcId,
    what: What,
    task: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Get,
    Update,
    Cancel,
}

/// Reads a self-contained request of one of the extension's methods. `None`: it is of none.
pub(super) fn read(
    headers: &HeaderMap,
    id: &RpcId,
    method: &str,
    params: &Params<'_>,
    meta: &Meta<'_>,
) -> Result<Option<Ask>, RpcError> {
    let what = match method {
        "tasks/get" => What::Get,
        "tasks/update" => What::Update,
        "tasks/cancel" => What::Cancel,
        _ => return Ok(None),
    };
    let task = params.task_id.and_then(text);
    revision::check(headers, meta, method, task.as_deref())?;
    if !lasting::declares_tasks(meta) {
        return Err(RpcError::missing_capability("the request does not declare the extension for tasks")
            .with("requiredCapabilities", json!({"extensions": {lasting::TASKS: {}}})));
    }
    let task = task.ok_or_else(|| RpcError::invalid_params("params.taskId must be a text"))?.into_owned();
    Ok(Some(Ask { id: id.clone(), what, task }))
}

/// The whole JSON-RPC answer.
pub(super) async fn answer(mcp: &Mcp, principal: &Arc<Principal>, ask: Ask) -> Result<Vec<u8>, RpcError> {
    let Ask { id, what, task } = ask;
    if what == What::Cancel {
        cancel(mcp, principal, &task).await?;
    } else {
        let task = find(mcp, principal, &task).await?;
        if what == What::Get {
            return Ok(outcome::message(&id, &task.shown(mcp, "complete")));
        }
        // No task of ours asks its client anything, so there is nothing that an update could answer.
    }
    Ok(outcome::message(&id, &json!({"resultType": "complete"})))
}

/// The answer to a call that became a task.
pub(super) async fn created(mcp: &Mcp, principal: &Arc<Principal>, id: &RpcId, task: &str) -> Vec<u8> {
    match find(mcp, principal, task).await {
        Ok(task) => outcome::message(id, &task.shown_as_created(mcp)),
        Err(error) => error.to_body(Some(id)),
    }
}

/// The answer to an operation that began as a task. It stands in the store, and nobody may take the answer for "nothing was
/// done": what cannot be looked up now is told as it began.
pub(super) async fn began(mcp: &Mcp, principal: &Arc<Principal>, id: &RpcId, begun: operations::Begun) -> Vec<u8> {
    let task = match of_operation(mcp, principal, &begun.operation_id).await {
        Ok(task) => task,
        Err(error) => {
            tracing::warn!(%error, "an operation that began as a task could not be looked up");
            let status = Some(begun.state.as_str().into());
            Task { id: begun.operation_id.to_string(), created: seconds(begun.created), status, end: None }
        }
    };
    outcome::message(id, &task.shown_as_created(mcp))
}

/// A task and its state, wherever that lives.
struct Task {
    id: String,
    /// In seconds since 1970.
    created: i64,
    /// What can be said of it while it goes on.
    status: Option<String>,
    end: Option<End>,
}

struct End {
    /// In seconds since 1970.
    at: i64,
    outcome: Outcome,
}

/// Finds a task of this caller. An id of somebody else's, or of nobody's, is unknown.
async fn find(mcp: &Mcp, principal: &Arc<Principal>, id: &str) -> Result<Task, RpcError> {
    if let Ok(operation) = OperationId::parse(id) {
        return of_operation(mcp, principal, &operation).await.map_err(refused);
    }
    let handle = KeptId::parse(id).map_err(|_| unknown())?;
    let room = mcp.state.devices.room(&principal.device);
    let caller = session::caller(principal);
    let kept = room.kept(&caller, &handle, Duration::ZERO).await.map_err(unreadable)?;
    let KeptCall { opened, end, .. } = kept.ok_or_else(unknown)?;
    Ok(Task { id: id.into(), created: opened, status: None, end: end.map(|(at, outcome)| End { at, outcome }) })
}

fn seconds(ms: u64) -> i64 {
    i64::try_from(ms / 1000).unwrap_or(i64::MAX)
}

/// A durable operation as a task.
async fn of_operation(mcp: &Mcp, principal: &Arc<Principal>, id: &OperationId) -> Result<Task, ApiError> {
    let (party, operation) = operations::find(mcp, principal, id).await?;
    let end = match operation.ended {
        Some(at) => Some(End { at: seconds(at), outcome: operations::result(mcp, &party, &operation).await? }),
        None => None,
    };
    let status = Some(operations::status(&operation));
    Ok(Task { id: id.to_string(), created: seconds(operation.created), status, end })
}

/// Asks for a task to be stopped. One that has ended stays as it is.
async fn cancel(mcp: &Mcp, principal: &Arc<Principal>, id: &str) -> Result<(), RpcError> {
    if let Ok(operation) = OperationId::parse(id) {
        let (party, _) = operations::find(mcp, principal, &operation).await.map_err(refused)?;
        return mcp.state.operations.cancel(&party, &operation).await.map(drop).map_err(refused);
    }
    let handle = KeptId::parse(id).map_err(|_| unknown())?;
    let room = mcp.state.devices.room(&principal.device);
    let known = room.cancel_kept(&session::caller(principal), &handle).await.map_err(unreadable)?;
    known.map(|_| ()).ok_or_else(unknown)
}

fn unknown() -> RpcError {
    RpcError::invalid_params("no such task, or it is no longer kept")
}

/// An operation that is not this caller's is as unknown as one that is not. Everything else says nothing of whether there is
/// one: the same may be asked again.
fn refused(error: ApiError) -> RpcError {
    match error.status {
        StatusCode::NOT_FOUND | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST => unknown(),
        StatusCode::TOO_MANY_REQUESTS => RpcError { status: StatusCode::OK, ..RpcError::busy(error.message) },
        _ => RpcError::internal("the relay cannot read its operations"),
    }
}

fn unreadable(error: StoreError) -> RpcError {
    tracing::warn!(%error, "a task could not be read");
    RpcError::internal("the relay cannot read its tasks")
}

/// A task on the wire: `CreateTaskResult` and `GetTaskResult`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    result_type: &'static str,
    task_id: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<String>,
    created_at: String,
    last_updated_at: String,
    ttl_ms: u64,
    poll_interval_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

impl Task {
    /// A result that is here already belongs to tasks/get.
    fn shown_as_created(self, mcp: &Mcp) -> Shown {
        Shown { result: None, error: None, ..self.shown(mcp, "task") }
    }

    fn shown(self, mcp: &Mcp, result_type: &'static str) -> Shown {
        let updated = self.end.as_ref().map_or(self.created, |end| end.at);
        // While it runs the end of its life moves on.
        let lived = self.end.as_ref().map_or_else(|| mcp.state.clock.unix(), |end| end.at).abs_diff(self.created);
        let ttl = Duration::from_secs(lived) + limits::RECORD_KEPT;
        let (status, status_message, result, error) = match self.end.map(|end| end.outcome) {
            None => ("working", self.status, None, None),
            Some(Err(error)) if error.code == Code::Cancelled => ("cancelled", Some(error.message), None, None),
            Some(Err(error)) if says_nothing_of_the_tool(error.code) => {
                ("failed", Some(error.message.clone()), None, Some(failure(&error)))
            }
            Some(outcome) => ("completed", None, outcome::result(&outcome, Era::Stateless), None),
        };
        Shown {
            result_type,
            task_id: self.id,
            status,
            status_message,
            created_at: time(self.created),
            last_updated_at: time(updated),
            ttl_ms: millis(ttl),
            poll_interval_ms: millis(limits::TASK_POLL),
            result,
            error,
        }
    }
}

/// The ends that are no word of the tool: it did not run, or nobody knows how it went.
fn says_nothing_of_the_tool(code: Code) -> bool {
    matches!(code, Code::OutcomeUnknown | Code::Unavailable | Code::Busy | Code::StorageFull)
}

/// JSON-RPC's number for an error that only `data.code` tells apart.
const SERVER_ERROR: i32 = -32_000;

fn failure(error: &ToolError) -> Value {
    json!({"code": SERVER_ERROR, "message": error.message, "data": to_raw_value(error).ok()})
}

fn time(unix: i64) -> String {
    jiff::Timestamp::from_second(unix).unwrap_or_default().to_string()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
