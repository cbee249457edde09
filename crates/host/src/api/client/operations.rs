//! Durable operations, asked for through the holder and kept by the relay.

use std::time::Duration;

use bytes::Bytes;
use holdfast_core::limits;
use holdfast_core::operation::{Request, Stream};
pub use holdfast_relay::operations::OperationView;
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Holder, accepted, answer, owner, silent};
use crate::api::client::Owner;
use crate::engines::CommandError;
use crate::paths::Dirs;

/// What stands at an offset of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Output; none yet if it is empty.
    Bytes {
        /// The bytes from there on.
        bytes: Bytes,
        /// Where to go on.
        next: u64,
        /// That was all: the operation has ended.
        end: bool,
    },
    /// It was not kept; output goes on here.
    Gone(u64),
}

impl Holder {
    /// Starts an operation. The same key again, from the same side, is the same operation.
    pub async fn operation_start(
        &self,
        request: &Request,
        session: Option<&str>,
        key: Option<&str>,
        ttl: Option<Duration>,
    ) -> Result<OperationView, CommandError> {
        let ttl_ms = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let body = json!({"request": request, "session": session, "key": key, "ttl_ms": ttl_ms});
        answer(self.asked(Method::POST, "/api/operations").json(&body)).await
    }

    /// Gives input to an operation that runs.
    pub async fn operation_input(&self, id: &str, request: &Request, key: &str) -> Result<OperationView, CommandError> {
        let path = format!("/api/operations/{id}/input");
        answer(self.asked(Method::POST, &path).json(&json!({"request": request, "key": key}))).await
    }

    /// One operation.
    pub async fn operation(&self, id: &str) -> Result<OperationView, CommandError> {
        answer(self.asked(Method::GET, &format!("/api/operations/{id}"))).await
    }

    /// Cancels an operation; it ends as soon as its worker can be told.
    pub async fn operation_cancel(&self, id: &str) -> Result<OperationView, CommandError> {
        answer(self.asked(Method::POST, &format!("/api/operations/{id}/cancel"))).await
    }

    /// Cancels what was started under a session's name, and what will be.
    pub async fn operation_cancel_session(&self, session: &str) -> Result<(), CommandError> {
        let request = self.asked(Method::POST, "/api/operations/cancel-session").json(&json!({"session": session}));
        accepted(request.send().await.map_err(silent)?).await.map(drop)
    }

    /// The newest operations, at most [`limits::CONTROL_LIST_MAX`].
    pub async fn operations(&self, living: bool) -> Result<Vec<OperationView>, CommandError> {
        #[derive(Deserialize)]
        struct Listed {
            operations: Vec<OperationView>,
        }
        let path = format!("/api/operations?living={living}");
        answer::<Listed>(self.asked(Method::GET, &path)).await.map(|listed| listed.operations)
    }

    /// Output from an offset; waits for some if there is none yet, at most [`limits::CONTROL_WAIT_MAX`].
    pub async fn operation_output(&self, id: &str, stream: Stream, offset: u64) -> Result<Piece, CommandError> {
        let wait = limits::CONTROL_WAIT_MAX;
        let stream = stream.as_str();
        let path = format!("/api/operations/{id}/output?stream={stream}&offset={offset}&wait_ms={}", wait.as_millis());
        let request = self.request(Method::GET, &path).timeout(wait + limits::API_ANSWER);
        let response = request.send().await.map_err(silent)?;
        if response.status() == StatusCode::GONE {
            let gone: Value = response.json().await.map_err(silent)?;
            let first = gone["first_available"].as_u64().filter(|first| *first > offset);
            return first.map(Piece::Gone).ok_or_else(strange);
        }
        let response = accepted(response).await?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let next = header("x-next-offset").and_then(|next| next.parse().ok()).ok_or_else(strange)?;
        let end = header("x-end").as_deref() == Some("true");
        Ok(Piece::Bytes { bytes: response.bytes().await.map_err(silent)?, next, end })
    }

    fn asked(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.request(method, path).timeout(limits::API_ANSWER)
    }
}

fn strange() -> CommandError {
    CommandError::new("failed", "the relay answered with something that is no output")
}

/// Follows an operation for as long as it takes: a Holdfast that ends and comes again, or a relay that is away, only make it
/// wait.
#[derive(Debug)]
pub struct Follower {
    dirs: Dirs,
    id: String,
}

impl Follower {
    /// Of this operation, through whoever holds the data folder.
    pub fn new(dirs: Dirs, id: impl Into<String>) -> Follower {
        Follower { dirs, id: id.into() }
    }

    /// The next piece of a stream. `away` is told why it has to wait, each time it tries again.
    pub async fn next(&self, stream: Stream, offset: u64, away: impl Fn(&str)) -> Result<Piece, CommandError> {
        self.patiently(async |holder| holder.operation_output(&self.id, stream, offset).await, away).await
    }

    /// How it stands.
    pub async fn view(&self, away: impl Fn(&str)) -> Result<OperationView, CommandError> {
        self.patiently(async |holder| holder.operation(&self.id).await, away).await
    }

    /// Starts it: that is, what is followed is the operation of this key, started now or before.
    pub async fn start(
        dirs: Dirs,
        request: &Request,
        session: Option<&str>,
        key: &str,
        away: impl Fn(&str),
    ) -> Result<(Follower, OperationView), CommandError> {
        let mut follower = Follower { dirs, id: String::new() };
        let start = async |holder: &Holder| holder.operation_start(request, session, Some(key), None).await;
        let started = follower.patiently(start, away).await?;
        follower.id = started.id.to_string();
        Ok((follower, started))
    }

    /// Gives it input; the key makes a repetition harmless. What is returned follows the input on its way.
    pub async fn input(&self, request: &Request, key: &str, away: impl Fn(&str)) -> Result<Follower, CommandError> {
        let give = async |holder: &Holder| holder.operation_input(&self.id, request, key).await;
        let given = self.patiently(give, away).await?;
        Ok(Follower { dirs: self.dirs.clone(), id: given.id.to_string() })
    }

    /// Waits for its end, looking now and then.
    pub async fn end(&self, away: impl Fn(&str)) -> Result<OperationView, CommandError> {
        let mut pause = limits::OPERATION_LOOK_MIN;
        loop {
            let view = self.view(&away).await?;
            if view.state.is_final() {
                return Ok(view);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(limits::RECONNECT_STEADY);
        }
    }

    async fn patiently<T>(
        &self,
        ask: impl AsyncFn(&Holder) -> Result<T, CommandError>,
        away: impl Fn(&str),
    ) -> Result<T, CommandError> {
        loop {
            let why = match owner(&self.dirs).await {
                Ok(Owner::Holder(holder)) => match ask(&holder).await {
                    Err(error) if is_passing(&error.code) => error.message,
                    settled => return settled,
                },
                // The lock goes back at once: whoever starts next shall have it.
                Ok(Owner::Us(_)) => "no Holdfast runs on this data folder".into(),
                Err(error) => error.to_string(),
            };
            away(&why);
            tokio::time::sleep(limits::RECONNECT_STEADY).await;
        }
    }
}

/// Whether the same request may succeed later. One whose outcome nobody knows is answered with what became of it: it has a
/// key, or comes to the same when it is done again.
fn is_passing(code: &str) -> bool {
    matches!(
        code,
        "unavailable" | "silent" | "not_running" | "busy" | "rate_limited" | "storage_full" | "outcome_unknown"
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Json;
    use axum::http::StatusCode;
    use axum::routing::post;
    use parking_lot::Mutex;

    use super::*;
    use crate::files;
    use crate::lock::DataLock;

    /// A holder whose relay answers starts like this, one after the other, and with the operation in the end: what it was asked.
    async fn holder(dirs: &Dirs, answers: &'static [(u16, &'static str)]) -> Arc<Mutex<Vec<Value>>> {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (heard, next) = (Arc::clone(&asked), Arc::new(AtomicUsize::new(0)));
        let start = move |Json(body): Json<Value>| {
            heard.lock().push(body);
            let answer = match answers.get(next.fetch_add(1, Ordering::Relaxed)) {
                Some((status, code)) => {
                    (StatusCode::from_u16(*status).unwrap(), json!({"code": code, "message": "not now"}))
                }
                None => {
                    let view = json!({
                        "id": "op_aaaaaaaaaaaaaaaaaaaaaa", "kind": "exec", "summary": "true", "state": "queued",
                        "worker_live": true, "cancelled": false, "ending": false, "received": {}, "written": {},
                        "created": 1,
                    });
                    (StatusCode::ACCEPTED, view)
                }
            };
            std::future::ready((answer.0, Json(answer.1)))
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let file = json!({"address": listener.local_addr().unwrap(), "token": "t", "pid": std::process::id(), "started_at": 1});
        files::replace(&dirs.api_file(), file.to_string().as_bytes()).unwrap();
        let router = axum::Router::new().route("/api/operations", post(start));
        tokio::spawn(async move { axum::serve(listener, router).await });
        asked
    }

    #[tokio::test]
    async fn a_start_whose_answer_was_lost_is_asked_for_again_under_its_key_and_a_refused_one_is_not() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let dirs = Dirs { config: folder.path().join("config"), data: folder.path().join("data") };
        dirs.prepare().unwrap();
        let _held = DataLock::take(&dirs.data).unwrap();
        let request: Request = serde_json::from_value(json!({"type": "exec", "command": {"argv": ["true"]}})).unwrap();
        let away = Mutex::new(Vec::new());
        let start = async || {
            Follower::start(dirs.clone(), &request, None, "once", |why| away.lock().push(why.to_owned())).await
        };

        let asked = holder(&dirs, &[(500, "outcome_unknown"), (503, "unavailable")]).await;
        let (_, started) = start().await.unwrap();
        assert_eq!(started.id.as_str(), "op_aaaaaaaaaaaaaaaaaaaaaa");
        assert_eq!(*away.lock(), ["not now", "not now"]);
        let bodies = asked.lock().clone();
        assert!(bodies.len() == 3 && bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
        assert_eq!(bodies[0]["key"], "once");

        let asked = holder(&dirs, &[(409, "conflict")]).await;
        assert_eq!(start().await.unwrap_err().code, "conflict");
        assert_eq!(asked.lock().len(), 1);
    }
}
