//! One request from its head to its answer.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use holdfast_core::limits;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError};
use serde_json::value::RawValue;

use super::admit::admit;
use super::call::{self, Asked};
use super::envelope::{self, Message, Meta, Params, RpcId};
use super::lasting::{Form, Patience};
use super::reply::{self, RpcError};
use super::session::{self, Session, Started};
use super::session_call::Running;
use super::stateless::Waiting;
use super::stream::Request as Wanted;
use super::{Era, Mcp, arguments, lasting, listen, operations, outcome, results, revision, server_info, tasks};
use crate::devices::{DeviceRoom, OpenCall};
use crate::{ApiError, Principal};

const SESSION_ID: &str = "mcp-session-id";

/// What a message comes to, with nothing of the body left but what is needed.
enum Todo {
    /// Known at once.
    Reply(Response),
    /// rmcp answers: a session's request, or a self-contained one.
    Rest(RpcId, Option<Arc<Session>>),
    /// rmcp answers, and a session begins.
    Initialize(RpcId),
    /// A call of the device.
    Call(Ask),
    /// The relay answers a call about a call that it keeps.
    Kept(RpcId, results::Asked, Era),
    /// The relay answers a call about durable operations; `true`: with a task if one starts.
    Operation(RpcId, operations::Asked, Era, bool),
    /// The relay answers a request about a task.
    Task(tasks::Ask),
}

/// A call that may be opened.
struct Ask {
    id: RpcId,
    /// Of a 2025-11-25 client, with what tells its requests apart.
    session: Option<(Arc<Session>, Wanted)>,
    room: Arc<DeviceRoom>,
    open: Box<OpenCall>,
    progress: Option<Box<RawValue>>,
    form: Form,
}

/// An error, and the request it answers if that much was understood.
struct Refused(Option<RpcId>, Box<RpcError>);

impl Refused {
    fn to(id: &RpcId, error: RpcError) -> Self {
        Refused(Some(id.clone()), Box::new(error))
    }
}

impl From<RpcError> for Refused {
    fn from(error: RpcError) -> Self {
        Refused(None, Box::new(error))
    }
}

/// `POST`: one message.
pub(super) async fn post(State(mcp): State<Arc<Mcp>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let principal = match admit(&mcp, &parts) {
        Ok(principal) => principal,
        Err(response) => return *response,
    };
    match answer(&mcp, &principal, parts, body).await {
        Ok(response) => response,
        Err(Refused(id, error)) => error.respond(id.as_ref()),
    }
}

async fn answer(mcp: &Arc<Mcp>, principal: &Arc<Principal>, parts: Parts, body: Body) -> Result<Response, Refused> {
    if !is_json(&parts.headers) {
        let mut error = RpcError::invalid_request("Content-Type must be application/json");
        error.status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(error.into());
    }
    let body = read_body(body).await?;
    match decide(mcp, principal, &parts.headers, &body)? {
        Todo::Reply(response) => Ok(response),
        Todo::Rest(id, session) => {
            Ok(mcp.rest.answer(principal, &id, session.map(|session| session.revision), parts, body).await)
        }
        Todo::Initialize(id) => initialize(mcp, principal, id, parts, body).await,
        Todo::Call(ask) => {
            drop(body);
            call(mcp, principal, ask, &parts.headers).await
        }
        Todo::Kept(id, asked, era) => {
            let outcome = results::answer(mcp, principal, asked).await;
            Ok(reply::json(StatusCode::OK, outcome::answer(&id, &outcome, era).into()))
        }
        Todo::Operation(id, asked, era, task) => {
            let answer = operation(mcp, principal, &id, asked, era, task).await;
            Ok(reply::json(StatusCode::OK, answer.into()))
        }
        Todo::Task(ask) => {
            let id = ask.id.clone();
            let answer = tasks::answer(mcp, principal, ask).await.map_err(|error| Refused::to(&id, error))?;
            Ok(reply::json(StatusCode::OK, answer.into()))
        }
    }
}

/// The whole JSON-RPC answer of a call about durable operations.
async fn operation(
    mcp: &Mcp,
    principal: &Arc<Principal>,
    id: &RpcId,
    asked: operations::Asked,
    era: Era,
    task: bool,
) -> Vec<u8> {
    let starts = matches!(asked, operations::Asked::Start(..));
    match operations::answer(mcp, principal, asked).await {
        Ok(started) if starts && task => match operations::started(&started) {
            Some(begun) => tasks::began(mcp, principal, id, begun).await,
            None => outcome::answer(id, &Ok(started), era),
        },
        outcome => outcome::answer(id, &outcome, era),
    }
}

async fn call(mcp: &Arc<Mcp>, principal: &Arc<Principal>, ask: Ask, headers: &HeaderMap) -> Result<Response, Refused> {
    let Ask { id, session, room, open, progress, form } = ask;
    let Some((session, wanted)) = session else {
        let revoked = mcp.rest.revoked(principal);
        let (call, mcp) = (room.open(*open), Arc::clone(mcp));
        let waiting = Waiting { mcp, id, call, progress_token: progress, form, revoked };
        return Ok(waiting.respond(reads_streams(headers)).await);
    };
    // Older sessions do not know an event without data.
    let primed = session.revision == revision::WITH_SESSIONS[0];
    let stream = match session.start(&id, wanted).map_err(|error| Refused::to(&id, error))? {
        Started::Joined(stream) => stream,
        Started::New(stream) => {
            let call = room.open(*open);
            let running =
                Running { mcp: Arc::clone(mcp), session, stream: Arc::clone(&stream), id, call, progress, form };
            running.driven().hold().await;
            stream
        }
    };
    Ok(reply::event_stream(stream.body(None, primed)))
}

/// Reads the message and does everything that needs no waiting.
fn decide(mcp: &Mcp, principal: &Arc<Principal>, headers: &HeaderMap, body: &[u8]) -> Result<Todo, Refused> {
    match envelope::read(body)? {
        Message::Response => Ok(Todo::Reply(reply::accepted())),
        Message::Notification { method, params } => {
            Ok(Todo::Reply(notified(mcp, principal, headers, body, &method, params)?))
        }
        Message::Request { id, method, params } => {
            let decided = request(mcp, principal, headers, body, &id, &method, params);
            decided.map_err(|error| Refused::to(&id, error))
        }
    }
}

fn notified(
    mcp: &Mcp,
    principal: &Arc<Principal>,
    headers: &HeaderMap,
    body: &[u8],
    method: &str,
    params: Option<&RawValue>,
) -> Result<Response, RpcError> {
    small(body)?;
    let (params, meta) = envelope::params(params)?;
    // A self-contained request is cancelled by closing its response; its notifications say nothing we act on.
    if revision::era(headers, &meta)? == Era::Sessions {
        let session = session_of(mcp, principal, headers)?;
        if method == "notifications/cancelled" {
            let id =
                params.request_id.ok_or_else(|| RpcError::invalid_params("params.requestId is missing").malformed())?;
            session.cancel(&envelope::rpc_id(id)?);
        }
    }
    Ok(reply::accepted())
}

fn request(
    mcp: &Mcp,
    principal: &Arc<Principal>,
    headers: &HeaderMap,
    body: &[u8],
    id: &RpcId,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Todo, RpcError> {
    if method != "tools/call" {
        small(body)?;
    }
    if method == "initialize" {
        return Ok(Todo::Initialize(id.clone()));
    }
    let (params, meta) = envelope::params(params)?;
    let session = match revision::era(headers, &meta)? {
        Era::Sessions => Some(session_of(mcp, principal, headers)?),
        Era::Stateless => None,
    };
    if method != "tools/call" {
        let task = if session.is_none() { tasks::read(headers, id, method, &params, &meta)? } else { None };
        return Ok(task.map_or_else(|| Todo::Rest(id.clone(), session), Todo::Task));
    }
    if session.is_none() {
        let name = call::name(&params);
        revision::check(headers, &meta, method, name.as_deref().ok())?;
    }
    tool_call(mcp, principal, id, session, &params, &meta)
}

fn tool_call(
    mcp: &Mcp,
    principal: &Arc<Principal>,
    id: &RpcId,
    session: Option<Arc<Session>>,
    params: &Params<'_>,
    meta: &Meta<'_>,
) -> Result<Todo, RpcError> {
    let era = if session.is_some() { Era::Sessions } else { Era::Stateless };
    let caller = || session.as_ref().map_or_else(|| session::caller(principal), |session| Arc::clone(&session.caller));
    let room = mcp.state.devices.room(&principal.device);
    let progress = call::progress_token(meta)?;
    let patience = match &session {
        Some(session) => session.patience,
        None => Patience::of_request(meta, mcp.state.patience),
    };
    let outcome = match call::read(&mcp.tools, principal, caller, &room.catalogue(), params, meta, patience)? {
        Asked::Kept(asked) => return Ok(Todo::Kept(id.clone(), asked, era)),
        Asked::Operation(asked, task) => return Ok(Todo::Operation(id.clone(), asked, era, task)),
        Asked::Device(open, arguments, form) => {
            let session = session.map(|session| {
                let digest = arguments::digest(&arguments);
                (session, Wanted { tool: Arc::clone(&open.tool), digest })
            });
            return Ok(Todo::Call(Ask { id: id.clone(), session, room, open, progress, form }));
        }
        Asked::ServerInfo => Ok(server_info::answer(mcp, principal)?),
        Asked::Refused(error) => Err(error),
    };
    Ok(Todo::Reply(reply::json(StatusCode::OK, outcome::answer(id, &outcome, era).into())))
}

async fn initialize(
    mcp: &Arc<Mcp>,
    principal: &Arc<Principal>,
    id: RpcId,
    parts: Parts,
    body: Bytes,
) -> Result<Response, Refused> {
    let patience = Patience::of(client_name(&body).as_deref(), mcp.state.patience);
    let (mut response, revision) = mcp.rest.initialize(principal, &id, parts, body).await;
    if let Some(revision) = revision {
        let session =
            mcp.sessions.open(principal, revision, patience, mcp.now()).map_err(|error| Refused::to(&id, error))?;
        if let Ok(value) = HeaderValue::from_str(&session.id) {
            response.headers_mut().insert(SESSION_ID, value);
        }
    }
    Ok(response)
}

/// What the client of an `initialize` calls itself.
fn client_name(body: &[u8]) -> Option<String> {
    let Ok(Message::Request { params, .. }) = envelope::read(body) else { return None };
    let (params, _) = envelope::params(params).ok()?;
    lasting::name(params.client_info?)
}

/// `GET`: the standalone stream of a session, or the rest of an answer whose connection was lost.
pub(super) async fn get(State(mcp): State<Arc<Mcp>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let principal = match admit(&mcp, &parts) {
        Ok(principal) => principal,
        Err(response) => return *response,
    };
    let opened = || {
        if revision::header(&parts.headers)? == Some(revision::STATELESS) {
            return Ok(method_not_allowed("POST"));
        }
        let session = session_of(&mcp, &principal, &parts.headers)?;
        match revision::single(&parts.headers, "last-event-id")? {
            Some(id) if !listen::is_listener(id) => {
                let (stream, seen) = session.resume(id, mcp.now())?;
                Ok(reply::event_stream(stream.body(Some(seen), false)))
            }
            _ => Ok(listen::respond(&mcp, &session, &principal)),
        }
    };
    opened().unwrap_or_else(|error: RpcError| error.respond(None))
}

/// `DELETE`: the client ends its session; its calls are cancelled at once.
pub(super) async fn delete(State(mcp): State<Arc<Mcp>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let principal = match admit(&mcp, &parts) {
        Ok(principal) => principal,
        Err(response) => return *response,
    };
    let ended = || {
        if revision::header(&parts.headers)? == Some(revision::STATELESS) {
            return Ok(method_not_allowed("POST"));
        }
        let session = session_of(&mcp, &principal, &parts.headers)?;
        mcp.sessions.end(&session);
        Ok(StatusCode::NO_CONTENT.into_response())
    };
    ended().unwrap_or_else(|error: RpcError| error.respond(None))
}

/// Every other method.
pub(super) async fn other_method() -> Response {
    method_not_allowed("GET, POST, DELETE")
}

fn method_not_allowed(allowed: &'static str) -> Response {
    let error = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this method is not for this path");
    let mut response = error.into_response();
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

fn session_of(mcp: &Mcp, principal: &Principal, headers: &HeaderMap) -> Result<Arc<Session>, RpcError> {
    let id = revision::single(headers, SESSION_ID)?
        .ok_or_else(|| RpcError::invalid_request("Mcp-Session-Id is missing: initialize first"))?;
    mcp.sessions.find(id, principal, mcp.now())
}

fn small(body: &[u8]) -> Result<(), RpcError> {
    match body.len() > limits::MCP_SMALL_BODY_MAX {
        true => Err(RpcError::too_large("only tools/call may be longer than 64 KiB")),
        false => Ok(()),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return true };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// Whether the client can read an event stream: it says so, or says nothing.
fn reads_streams(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    let reads =
        |range: &str| range.trim_start().starts_with("text/event-stream") || range.trim_start().starts_with("*/*");
    values.peek().is_none() || values.any(|value| value.split(',').any(reads))
}

async fn read_body(body: Body) -> Result<Bytes, RpcError> {
    body.collect().await.map(http_body_util::Collected::to_bytes).map_err(|error| {
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = cause {
            if error.is::<LengthLimitError>() {
                return RpcError::too_large("the request's body is too large");
            }
            cause = error.source();
        }
        RpcError::parse("the request's body did not arrive")
    })
}
