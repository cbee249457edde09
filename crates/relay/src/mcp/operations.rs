//! Tools of durable operations, and operations as tasks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use holdfast_core::code::{Code, ToolError};
use holdfast_core::id::OperationId;
use holdfast_core::limits;
use holdfast_core::operation::{self, Command, Kind, OnFull, OnLeaseExpiry, Request, State, Stream, Streams};
use holdfast_core::tools::operations as names;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::Mcp;
use super::outcome::Outcome;
use super::reply::RpcError;
use crate::operations::{OperationView, Order, Page, Party, Piece, Reading};
use crate::{ApiError, Principal};

/// Size of a terminal nobody gave a size.
const TERMINAL: (u16, u16) = (80, 24);

/// What is asked of the operations.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Asked {
    Start(Box<Request>, Option<String>, Option<String>),
    Read { id: OperationId, from: [u64; 2], max: usize, wait: Duration },
    Write { id: OperationId, given: Given, key: Option<String> },
    Cancel(OperationId),
    List { living: bool, before: Option<OperationId>, limit: usize },
}

/// What is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Given {
    Data { data: Bytes, close: bool },
    Size { cols: u16, rows: u16 },
}

#[derive(Deserialize)]
struct Start {
    argv: Option<Vec<String>>,
    command: Option<String>,
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    stdin: bool,
    #[serde(default)]
    terminal: bool,
    timeout_seconds: Option<u64>,
    #[serde(default)]
    on_lease_expiry: OnLeaseExpiry,
    #[serde(default)]
    on_full: OnFull,
    session: Option<String>,
    key: Option<String>,
    request: Option<Value>,
}

/// Reads arguments that fit their schema. `None`: not a tool of this module.
pub(super) fn asked(tool: &str, arguments: &Value) -> Option<Result<Asked, RpcError>> {
    let read = match tool {
        names::START => start(arguments),
        names::READ => id(arguments).map(|id| Asked::Read {
            id,
            from: ["stdout_offset", "stderr_offset"].map(|name| arguments[name].as_u64().unwrap_or(0)),
            max: number(arguments, "max_bytes").unwrap_or(limits::PROC_READ_DEFAULT),
            wait: Duration::from_millis(arguments["wait_ms"].as_u64().unwrap_or(0)),
        }),
        names::WRITE => id(arguments).and_then(|id| write(id, arguments)),
        names::CANCEL => id(arguments).map(Asked::Cancel),
        names::LIST => before(arguments).map(|before| Asked::List {
            living: arguments["living"].as_bool().unwrap_or(false),
            before,
            limit: number(arguments, "limit").unwrap_or(20),
        }),
        _ => return None,
    };
    Some(read)
}

fn number(arguments: &Value, name: &str) -> Option<usize> {
    arguments[name].as_u64().and_then(|n| usize::try_from(n).ok())
}

fn text(arguments: &Value, name: &str) -> Option<String> {
    arguments[name].as_str().map(str::to_owned)
}

fn id(arguments: &Value) -> Result<OperationId, RpcError> {
    let id = arguments["operation_id"].as_str().unwrap_or_default();
    OperationId::parse(id).map_err(|_| RpcError::invalid_params("operation_id is no id of an operation"))
}

fn before(arguments: &Value) -> Result<Option<OperationId>, RpcError> {
    let parsed = arguments["before"].as_str().map(OperationId::parse).transpose();
    parsed.map_err(|_| RpcError::invalid_params("before is no id of an operation"))
}

fn start(arguments: &Value) -> Result<Asked, RpcError> {
    let invalid = |why: &str| RpcError::invalid_params(why.to_owned());
    let start: Start = serde_json::from_value(arguments.clone()).map_err(|_| invalid("the arguments do not fit"))?;
    let Start { argv, command, cwd, env, stdin, terminal, timeout_seconds, on_lease_expiry, on_full, .. } = start;
    let program = match (argv, command, &start.request) {
        (Some(argv), None, None) => Some(Command::Argv(argv)),
        (None, Some(line), None) => Some(Command::Shell(line)),
        (None, None, None) if terminal => None,
        (None, None, Some(_)) => None,
        _ => return Err(invalid("give one of argv, command and request; none only for a terminal")),
    };
    let request = match start.request {
        Some(request) => {
            let request = serde_json::from_value::<Request>(request);
            request.map_err(|_| invalid("request is no operation: see its kinds in the description"))?
        }
        None if terminal => {
            let (cols, rows) = TERMINAL;
            Request::PtyOpen { command: program, cwd, env, cols, rows }
        }
        None => {
            let command = program.ok_or_else(|| invalid("argv or command is missing"))?;
            let timeout_ms = timeout_seconds.map(|seconds| seconds.saturating_mul(1000));
            Request::Exec { command, cwd, env, stdin, timeout_ms, on_lease_expiry, on_full }
        }
    };
    request.check().map_err(|error| invalid(&error.to_string()))?;
    Ok(Asked::Start(Box::new(request), start.session, start.key))
}

fn write(id: OperationId, arguments: &Value) -> Result<Asked, RpcError> {
    let side = |name: &str| arguments[name].as_u64().and_then(|n| u16::try_from(n).ok());
    let data = match (text(arguments, "data"), text(arguments, "data_base64")) {
        (Some(_), Some(_)) => return Err(RpcError::invalid_params("give data or data_base64, not both")),
        (data, None) => data.map(Bytes::from),
        (None, Some(encoded)) => {
            let decoded = STANDARD.decode(encoded);
            Some(decoded.map_err(|_| RpcError::invalid_params("data_base64 is no base64"))?.into())
        }
    };
    let given = match (side("cols"), side("rows"), data) {
        (Some(cols), Some(rows), None) => Given::Size { cols, rows },
        (None, None, data) => {
            Given::Data { data: data.unwrap_or_default(), close: arguments["close"].as_bool().unwrap_or(false) }
        }
        _ => return Err(RpcError::invalid_params("give data, or cols and rows")),
    };
    Ok(Asked::Write { id, given, key: text(arguments, "key") })
}

/// What an answer of [`names::START`] says of its operation.
#[derive(Deserialize)]
pub(super) struct Begun {
    pub operation_id: OperationId,
    pub state: State,
    /// In milliseconds since 1970.
    pub created: u64,
}

/// The operation that an answer of [`names::START`] is about.
pub(super) fn started(answer: &RawValue) -> Option<Begun> {
    serde_json::from_str(answer.get()).ok()
}

/// Does it, and answers in the words of tools.
pub(super) async fn answer(mcp: &Mcp, principal: &Principal, asked: Asked) -> Outcome {
    let operations = &mcp.state.operations;
    let party = Party::of(principal).map_err(refusal)?;
    // A body may come slowly: a grant that was revoked meanwhile starts nothing.
    if !mcp.state.auth.is_live(&principal.grant) {
        return Err(ToolError::new(Code::AuthenticationFailed, "the grant was revoked"));
    }
    let told = match asked {
        Asked::Start(request, session, key) => {
            let order = Order { request: *request, session, key, ttl: None };
            view(&operations.start(&party, order).await.map_err(refusal)?)
        }
        Asked::Read { id, from, max, wait } => {
            let found = operations.get(&party, &id).await.map_err(refusal)?;
            let from: Streams = found.streams().iter().copied().zip(from).collect();
            reading(operations.read(&party, &id, &from, max, wait).await.map_err(refusal)?, &from)
        }
        Asked::Write { id, given, key } => {
            let terminal = operations.get(&party, &id).await.map_err(refusal)?.kind == Kind::PtyOpen;
            let request = match given {
                Given::Size { cols, rows } => Request::PtyResize { cols, rows },
                Given::Data { data, close: false } if terminal => Request::PtyInput { data },
                Given::Data { data, close: true } if terminal && data.is_empty() => Request::PtyClose {},
                Given::Data { .. } if terminal => {
                    return Err(ToolError::new(Code::InvalidRequest, "a terminal is hung up by close without data"));
                }
                Given::Data { data, close } => Request::ExecStdin { data, close },
            };
            let input = operations.input(&party, &id, request, key).await.map_err(refusal)?;
            json!({"operation_id": id, "input": input.id, "state": input.state})
        }
        Asked::Cancel(id) => view(&operations.cancel(&party, &id).await.map_err(refusal)?),
        Asked::List { living, before, limit } => {
            let page = Page { living, before, limit: Some(limit) };
            let listed = operations.list(&party, page).await.map_err(refusal)?;
            json!({"operations": listed.iter().map(view).collect::<Vec<_>>()})
        }
    };
    to_raw_value(&told).map_err(|_| ToolError::new(Code::InternalError, "the answer could not be written"))
}

/// An operation in the words of tools.
fn view(operation: &OperationView) -> Value {
    let mut told = json!({
        "operation_id": operation.id,
        "kind": operation.kind,
        "summary": operation.summary,
        "state": operation.state,
        "done": operation.state.is_final(),
        "created": operation.created,
        "worker_live": operation.worker_live,
        "received_bytes": operation.received,
        "written_bytes": operation.written,
    });
    if let Some(outcome) = &operation.outcome {
        told["exit_code"] = json!(outcome.exit().and_then(|exit| exit.code));
        told["outcome"] = json!(outcome);
    }
    if operation.cancelled {
        told["cancelled"] = json!(true);
    }
    if let Some(since) = operation.output_stalled {
        told["output_stalled_since"] = json!(since);
    }
    told
}

fn reading(Reading { operation, pieces }: Reading, from: &Streams) -> Value {
    let mut told = view(&operation);
    let mut done = operation.state.is_final();
    for (stream, piece) in pieces {
        let name = spoken(stream);
        match piece {
            Piece::Gone { first_available } => {
                done = false;
                told[format!("{name}_next_offset")] = json!(first_available);
                told[format!("{name}_missing_bytes")] =
                    json!(first_available - from.get(&stream).copied().unwrap_or(0));
                told[name] = json!("");
            }
            Piece::Bytes { bytes, next, end } => {
                done &= end;
                let (bytes, next) = whole_characters(bytes, next, end);
                told[format!("{name}_next_offset")] = json!(next);
                match std::str::from_utf8(&bytes) {
                    Ok(text) => told[name] = json!(text),
                    Err(_) => told[format!("{name}_base64")] = json!(STANDARD.encode(&bytes)),
                }
            }
        }
    }
    told["done"] = json!(done);
    told
}

/// Of a terminal too there is one output.
const fn spoken(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout | Stream::Pty => "stdout",
        Stream::Stderr => "stderr",
    }
}

/// A character whose rest has not come yet is left for the next page.
fn whole_characters(bytes: Bytes, next: u64, end: bool) -> (Bytes, u64) {
    match std::str::from_utf8(&bytes) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 && !end => {
            let whole = error.valid_up_to();
            let left = (bytes.len() - whole) as u64;
            (bytes.slice(..whole), next - left)
        }
        _ => (bytes, next),
    }
}

/// An operation as the outcome of the call that started it: what came of it, both ends of its output, and where the rest is.
pub(super) async fn result(mcp: &Mcp, party: &Party, operation: &OperationView) -> Result<Outcome, ApiError> {
    let failed = |code, message: &str| Err(ToolError::new(code, message).with_details(&view(operation)));
    let told = match &operation.outcome {
        Some(operation::Outcome::Failed { error, .. }) => return Ok(failed(error.code, &error.message)),
        Some(operation::Outcome::Cancelled { .. }) => {
            return Ok(failed(Code::Cancelled, "the operation was cancelled"));
        }
        Some(operation::Outcome::Expired {}) => {
            return Ok(failed(Code::Unavailable, "the machine did not come for it in time; nothing was done"));
        }
        Some(operation::Outcome::Unknown { reason, .. }) => return Ok(failed(Code::OutcomeUnknown, reason)),
        Some(operation::Outcome::Completed { .. }) | None => view(operation),
    };
    let mut told = match told {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    for stream in operation.streams() {
        let all = operation.received.get(stream).copied().unwrap_or(0);
        let edge = limits::CONTROL_RESULT_EDGE as u64;
        let head = edge_of(mcp, party, operation, *stream, 0).await?;
        told.insert(format!("{}_head", spoken(*stream)), json!(String::from_utf8_lossy(&head)));
        let tail_at = all.saturating_sub(edge).max(head.len() as u64);
        if tail_at < all {
            let tail = edge_of(mcp, party, operation, *stream, tail_at).await?;
            told.insert(format!("{}_tail", spoken(*stream)), json!(String::from_utf8_lossy(&tail)));
            told.insert(format!("{}_tail_offset", spoken(*stream)), json!(tail_at));
        }
    }
    told.insert("read_with".into(), json!(names::READ));
    Ok(to_raw_value(&told).map_err(|_| ToolError::new(Code::InternalError, "the result could not be written")))
}

async fn edge_of(
    mcp: &Mcp,
    party: &Party,
    operation: &OperationView,
    stream: Stream,
    offset: u64,
) -> Result<Bytes, ApiError> {
    let from = Streams::from([(stream, offset)]);
    let operations = &mcp.state.operations;
    let read = operations.read(party, &operation.id, &from, limits::CONTROL_RESULT_EDGE, Duration::ZERO).await?;
    Ok(match read.pieces.get(&stream) {
        Some(Piece::Bytes { bytes, .. }) => bytes.clone(),
        _ => Bytes::new(),
    })
}

/// The operation of a task's id, if it is one of this caller's.
pub(super) async fn find(
    mcp: &Mcp,
    principal: &Arc<Principal>,
    id: &OperationId,
) -> Result<(Party, OperationView), ApiError> {
    let party = Party::of(principal)?;
    let operation = mcp.state.operations.get(&party, id).await?;
    Ok((party, operation))
}

/// Why it was not done, as a tool says it.
pub(super) fn refusal(error: ApiError) -> ToolError {
    let code = Code::parse(error.code);
    match code {
        Code::Busy | Code::Unavailable | Code::StorageFull | Code::LimitExceeded => {
            ToolError::nothing_done(code, error.message)
        }
        code => ToolError::new(code, error.message),
    }
}

/// What a task says of an operation that has not ended.
pub(super) fn status(operation: &OperationView) -> String {
    match operation.state {
        State::Queued if !operation.worker_live => "waits for its machine".into(),
        state => state.as_str().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_has_half_come_is_left_for_the_next_page() {
        let split = Bytes::from_static("a≤".as_bytes()).slice(..3);
        assert_eq!(whole_characters(split.clone(), 13, false), (Bytes::from_static(b"a"), 11));
        assert_eq!(whole_characters(split.clone(), 13, true), (split, 13), "what never comes whole is not held back");
        let binary = Bytes::from_static(b"\xff\xfe");
        assert_eq!(whole_characters(binary.clone(), 2, false), (binary, 2));
    }

    #[test]
    fn one_kind_of_work_is_given_and_only_a_terminal_needs_none() {
        let start = |arguments: Value| match asked(names::START, &arguments).unwrap() {
            Ok(Asked::Start(request, ..)) => request.kind().as_str(),
            Ok(_) => "another",
            Err(_) => "refused",
        };
        assert_eq!(start(json!({"argv": ["true"]})), "exec");
        assert_eq!(start(json!({"command": "true"})), "exec");
        assert_eq!(start(json!({"terminal": true})), "pty_open");
        assert_eq!(start(json!({"request": {"type": "port_forward_connect", "port": 80}})), "port_forward_connect");
        for bad in [
            json!({}),
            json!({"argv": ["true"], "command": "true"}),
            json!({"argv": ["a\u{0}"]}),
            json!({"request": {"type": "format_disk"}}),
        ] {
            assert_eq!(start(bad.clone()), "refused", "{bad}");
        }
    }

    #[test]
    fn what_is_written_is_data_or_a_size() {
        let id = OperationId::mint([1; 16]);
        let write = |mut arguments: Value| {
            arguments["operation_id"] = json!(id);
            asked(names::WRITE, &arguments).unwrap().ok()
        };
        let given = Given::Data { data: "x\n".into(), close: false };
        assert_eq!(write(json!({"data": "x\n"})), Some(Asked::Write { id: id.clone(), given, key: None }));
        let given = Given::Data { data: Bytes::from_static(b"\xff\x00"), close: false };
        let bytes = json!({"data_base64": "/wA="});
        assert_eq!(write(bytes), Some(Asked::Write { id: id.clone(), given, key: None }));
        assert_eq!(write(json!({"data_base64": "no base64!"})), None);
        assert_eq!(write(json!({"data_base64": "/wA=", "data": "x"})), None);
        let given = Given::Size { cols: 100, rows: 30 };
        assert_eq!(write(json!({"cols": 100, "rows": 30})), Some(Asked::Write { id: id.clone(), given, key: None }));
        assert_eq!(write(json!({"cols": 100})), None);
        assert_eq!(write(json!({"cols": 100, "rows": 30, "data": ""})), None);
    }
}
