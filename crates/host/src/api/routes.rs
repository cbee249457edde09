//! The endpoints. Answers are JSON; errors are `{"code", "message"}`.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream::{self, Stream, StreamExt as _};
use holdfast_core::command::Command;
use holdfast_core::limits;
use holdfast_core::status::{CallRow, StatusSnapshot, TimelineEntry, call_rows};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use super::{channel, operations, page};
use crate::config::{ConfigView, LogLevel};
use crate::doctor;
use crate::drill::{self, DrillOrder};
use crate::engines::CommandError;
use crate::exec::CallBody;
use crate::logs;
use crate::resident::Resident;
use crate::support;

pub(super) fn router(resident: Resident) -> Router {
    Router::new()
        .route("/api/status", get(status))
        .route("/api/status/stream", get(status_stream))
        .route("/api/timeline", get(timeline))
        .route("/api/timeline/stream", get(timeline_stream))
        .route("/api/calls", get(calls))
        .route("/api/calls/{id}/body", get(call_body))
        .route("/api/command", post(command))
        .route("/api/logs", get(log_tail))
        .route("/api/logs/stream", get(log_stream))
        .route("/api/support", get(support_text))
        .route("/api/config", get(config))
        .route("/api/doctor", get(examine))
        .route("/api/drill", post(drill))
        .merge(channel::router())
        .merge(operations::router())
        .fallback(page::file)
        .method_not_allowed_fallback(|| async {
            refuse(StatusCode::METHOD_NOT_ALLOWED, "invalid_request", "this endpoint takes another method")
        })
        .with_state(resident)
}

/// A request that is not answered.
pub(super) struct Refusal(StatusCode, CommandError);

pub(super) fn refuse(status: StatusCode, code: &str, message: &str) -> Refusal {
    Refusal(status, CommandError::new(code, message))
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(self.1)).into_response()
    }
}

fn failed(error: CommandError) -> Refusal {
    let status = match error.code.as_str() {
        "invalid_request" => StatusCode::BAD_REQUEST,
        "not_found" => StatusCode::NOT_FOUND,
        "not_running" => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::CONFLICT,
    };
    Refusal(status, error)
}

async fn status(State(resident): State<Resident>) -> Json<Arc<StatusSnapshot>> {
    Json(resident.status())
}

pub(super) type Events<S> = Sse<axum::response::sse::KeepAliveStream<S>>;

pub(super) fn events<T: Serialize>(
    items: impl Stream<Item = T> + Send + 'static,
) -> Events<impl Stream<Item = Result<Event, Infallible>>> {
    // The types hold nothing that JSON cannot; an empty event is what a failure would leave.
    let lines = items.map(|item| Ok(Event::default().json_data(item).unwrap_or_default()));
    Sse::new(lines).keep_alive(KeepAlive::new().interval(limits::SSE_COMMENT))
}

/// The snapshot now, then each that differs.
async fn status_stream(State(resident): State<Resident>) -> impl IntoResponse {
    let snapshots = stream::unfold(
        (resident, None),
        |(resident, watch): (Resident, Option<watch::Receiver<Arc<StatusSnapshot>>>)| async move {
            let mut watch = match watch {
                None => {
                    let watch = resident.watch();
                    return Some((resident.status(), (resident, Some(watch))));
                }
                Some(watch) => watch,
            };
            watch.changed().await.ok()?;
            let snapshot = watch.borrow_and_update().clone();
            Some((snapshot, (resident, Some(watch))))
        },
    );
    events(snapshots)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct From {
    #[serde(default)]
    from: u64,
}

async fn timeline(State(resident): State<Resident>, Query(From { from }): Query<From>) -> Json<Vec<TimelineEntry>> {
    Json(resident.hub().steps(from).0)
}

/// Steps that are known, then each as it comes. Ends when the reader fell behind: it asks again with what it has.
async fn timeline_stream(State(resident): State<Resident>, Query(From { from }): Query<From>) -> impl IntoResponse {
    let (known, coming) = resident.hub().steps(from);
    let coming = stream::unfold(coming, |mut coming| async move {
        match coming.recv().await {
            Ok(entry) => Some((entry, coming)),
            Err(RecvError::Lagged(_) | RecvError::Closed) => None,
        }
    });
    events(stream::iter(known).chain(coming))
}

async fn calls(State(resident): State<Resident>) -> Json<Vec<CallRow>> {
    Json(call_rows(&resident.hub().steps(0).0))
}

/// The body of a request, if it arrived.
pub(super) type Body = Result<Bytes, BytesRejection>;

pub(super) fn read<T: for<'de> Deserialize<'de>>(body: Body) -> Result<T, Refusal> {
    let body = body.map_err(|e| refuse(e.status(), "invalid_request", "the body is too large or did not arrive"))?;
    // What the parser says may repeat a secret of the body.
    serde_json::from_slice(&body)
        .map_err(|_| refuse(StatusCode::BAD_REQUEST, "invalid_request", "the body is not what this endpoint takes"))
}

async fn command(State(resident): State<Resident>, body: Body) -> Result<Json<Value>, Refusal> {
    let command: Command = read(body)?;
    resident.dispatch(command).await.map(Json).map_err(failed)
}

/// How many of the newest lines, and the least that is shown.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tail {
    #[serde(default = "default_lines")]
    lines: usize,
    #[serde(default = "every_level")]
    level: LogLevel,
}

fn default_lines() -> usize {
    200
}

fn every_level() -> LogLevel {
    LogLevel::Debug
}

fn no_log<E>(_: E) -> Refusal {
    refuse(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "the log cannot be read")
}

async fn log_tail(
    State(resident): State<Resident>,
    Query(Tail { lines, level }): Query<Tail>,
) -> Result<Json<Vec<String>>, Refusal> {
    let dir = resident.dirs().logs();
    let read = tokio::task::spawn_blocking(move || logs::tail(&dir, lines, level)).await;
    Ok(Json(read.map_err(no_log)?.map_err(no_log)?))
}

/// Lines that are there, then each as it comes.
async fn log_stream(
    State(resident): State<Resident>,
    Query(Tail { lines, level }): Query<Tail>,
) -> Result<impl IntoResponse, Refusal> {
    let dir = resident.dirs().logs();
    let read = tokio::task::spawn_blocking(move || logs::follow(&dir, lines, level)).await;
    let (known, follower) = read.map_err(no_log)?.map_err(no_log)?;
    let coming = stream::unfold(follower, |mut follower| async move {
        tokio::time::sleep(limits::SHELL_TURN_MAX).await;
        let read = tokio::task::spawn_blocking(move || follower.more().map(|lines| (lines, follower))).await;
        read.ok()?.ok().map(|(lines, follower)| (stream::iter(lines), follower))
    });
    Ok(events(stream::iter(known).chain(coming.flatten())))
}

async fn support_text(State(resident): State<Resident>) -> String {
    let (status, config) = (resident.status(), resident.config().await.config);
    support::text(resident.dirs(), Some(&status), config).await
}

/// What a call was asked and answered, for whoever switched that on.
async fn call_body(State(resident): State<Resident>, Path(id): Path<String>) -> Result<Json<CallBody>, Refusal> {
    let running = resident.running().map_err(failed)?;
    let body = running.link.as_ref().and_then(|link| link.body(&id));
    let none = || refuse(StatusCode::NOT_FOUND, "not_found", "nothing is kept of this call");
    body.map(Json).ok_or_else(none)
}

async fn config(State(resident): State<Resident>) -> Json<ConfigView> {
    Json(resident.config().await)
}

async fn examine(State(resident): State<Resident>) -> Json<doctor::Report> {
    let snapshot = resident.status();
    Json(doctor::examine(resident.dirs(), Some(&snapshot)).await)
}

/// One JSON line per step, the verdict last.
async fn drill(State(resident): State<Resident>, body: Body) -> Result<Response, Refusal> {
    let order: DrillOrder = read(body)?;
    let running = resident.running().map_err(failed)?;
    let lines = drill::run(running, order).await.map_err(failed)?;
    let lines = lines.map(|line| {
        let mut text = serde_json::to_vec(&line).unwrap_or_default();
        text.push(b'\n');
        Ok::<_, Infallible>(Bytes::from(text))
    });
    let kind = [(axum::http::header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, axum::body::Body::from_stream(lines)).into_response())
}
