//! Process sessions: programs that outlive the call that started them. They belong to the principal that did.

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_core::code::{Code, ToolError};
use holdfast_core::limits;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::environment;
use super::once::signal_of;
use super::output::{Ring, pour, readable};
use super::trees::Tree;
use crate::exec::Outcome;
use crate::exec::call::{Call, Owner, bounded, bounded_text, encode, random_name, stopped};
use crate::exec::env::Env;
use crate::exec::files::here;

/// The sessions of one executor, in order of their start.
#[derive(Default)]
pub(in crate::exec) struct Sessions(Mutex<Vec<Arc<Session>>>);

struct Session {
    id: String,
    owner: Owner,
    stdin: tokio::sync::Mutex<Option<ChildStdin>>,
    stdout: Arc<Mutex<Ring>>,
    stderr: Arc<Mutex<Ring>>,
    state: Mutex<State>,
    /// Counts every change of output and state, for those who wait.
    changes: watch::Sender<u64>,
    ask: CancellationToken,
    force: CancellationToken,
}

struct State {
    exit: Option<Exit>,
    /// When it exited or was last read.
    touched: Instant,
}

#[derive(Clone)]
struct Exit {
    code: Option<i32>,
    signal: Option<i32>,
    escaped: Vec<u32>,
}

/// Sessions in numbers, for `diagnose_runtime`.
#[derive(Serialize)]
pub(in crate::exec) struct SessionCounts {
    open: usize,
    running: usize,
    maximum: usize,
}

impl Sessions {
    pub(in crate::exec) fn counts(&self) -> SessionCounts {
        let all = self.0.lock();
        SessionCounts {
            open: all.len(),
            running: all.iter().filter(|s| s.state.lock().exit.is_none()).count(),
            maximum: limits::PROC_SESSIONS_MAX,
        }
    }

    /// A session of this owner; anybody else's does not exist.
    fn find(&self, call: &Call, id: &str) -> Result<Arc<Session>, ToolError> {
        let mut all = self.0.lock();
        all.retain(|s| !s.expired());
        let found = all.iter().find(|s| s.id == id && s.owner == call.owner);
        found.cloned().ok_or_else(|| ToolError::new(Code::NotFound, "no such process session"))
    }

    /// Adds what `start` makes if there is room; an exited session nobody read for the longest time makes it.
    fn add(&self, start: impl FnOnce() -> Result<Arc<Session>, ToolError>) -> Result<Arc<Session>, ToolError> {
        let mut all = self.0.lock();
        all.retain(|s| !s.expired());
        if all.len() == limits::PROC_SESSIONS_MAX {
            let exited = all.iter().enumerate().filter(|(_, s)| s.state.lock().exit.is_some());
            let Some((oldest, _)) = exited.min_by_key(|(_, s)| s.state.lock().touched) else {
                let full = format!("{} process sessions are running; end one first", limits::PROC_SESSIONS_MAX);
                return Err(ToolError::nothing_done(Code::LimitExceeded, full));
            };
            all.remove(oldest);
        }
        let session = start()?;
        all.push(Arc::clone(&session));
        Ok(session)
    }
}

impl Session {
    fn expired(&self) -> bool {
        let state = self.state.lock();
        state.exit.is_some() && state.touched.elapsed() > limits::PROC_IDLE
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Owns the tree: reads its output, ends it when asked, and notes its exit.
    async fn attend(self: Arc<Self>, mut tree: Tree) {
        let (out, err) = tree.output();
        let mut reading = tokio::spawn({
            let session = Arc::clone(&self);
            async move {
                let push = |ring: &mut Ring, bytes: &[u8]| {
                    ring.push(bytes);
                    session.changed();
                };
                let out = async {
                    if let Some(out) = out {
                        pour(out, Arc::clone(&session.stdout), push).await
                    }
                };
                let err = async {
                    if let Some(err) = err {
                        pour(err, Arc::clone(&session.stderr), push).await
                    }
                };
                tokio::join!(out, err);
            }
        });
        let mut status: Option<ExitStatus> = tokio::select! {
            status = tree.wait() => status.ok(),
            () = self.ask.cancelled() => None,
        };
        match status {
            Some(_) => {
                let _ = tokio::time::timeout(limits::OUTPUT_DRAIN_WAIT, &mut reading).await;
            }
            None => status = tree.ask(&self.force).await,
        }
        let mut escaped = Vec::new();
        if status.is_none() || tree.lives() || !reading.is_finished() {
            let last;
            (last, escaped) = tree.end().await;
            status = status.or(last);
        } else {
            drop(tree);
        }
        if !reading.is_finished() {
            let _ = tokio::time::timeout(limits::OUTPUT_DRAIN_WAIT, &mut reading).await;
            reading.abort();
        }
        *self.stdin.lock().await = None;
        {
            let mut state = self.state.lock();
            state.exit = Some(Exit {
                code: status.and_then(|s| s.code()),
                signal: status.as_ref().and_then(signal_of),
                escaped,
            });
            state.touched = Instant::now();
        }
        self.changed();
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StartProcess {
    argv: Vec<String>,
    #[serde(default = "here")]
    cwd: String,
}

pub(in crate::exec) fn start_process(env: &Arc<Env>, call: &Call) -> Outcome {
    let args: StartProcess = call.arguments()?;
    let command = environment::direct(env, &call.policy, &args.argv, &args.cwd)?.command();
    call.check()?;
    let mut started = None;
    let session = env.sessions.add(|| {
        let mut tree = env.trees.spawn(command, Stdio::piped())?;
        let ring = || Arc::new(Mutex::new(Ring::keeping(limits::PROC_OUTPUT)));
        let session = Arc::new(Session {
            id: random_name("proc_")?,
            owner: call.owner.clone(),
            stdin: tokio::sync::Mutex::new(tree.stdin()),
            stdout: ring(),
            stderr: ring(),
            state: Mutex::new(State { exit: None, touched: Instant::now() }),
            changes: watch::Sender::new(0),
            ask: env.trees.closing().child_token(),
            force: CancellationToken::new(),
        });
        started = Some(tree);
        Ok(session)
    })?;
    if let Some(tree) = started {
        // Ends when the tree does, which `Trees::close` sees to.
        tokio::spawn(Arc::clone(&session).attend(tree));
    }
    encode(&json!({"session_id": session.id, "running": true}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadProcess {
    session_id: String,
    #[serde(default)]
    stdout_offset: u64,
    #[serde(default)]
    stderr_offset: u64,
    max_bytes: Option<u64>,
    wait_ms: Option<u64>,
    #[serde(default)]
    wait_for_exit: bool,
}

/// A stream from an offset on.
#[derive(Serialize)]
struct Page {
    /// Where `text` starts: later than asked when the oldest output is gone.
    offset: u64,
    next_offset: u64,
    /// Bytes between the offset asked for and `offset`, no longer kept.
    dropped_bytes: u64,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// There is more behind `next_offset` already.
    more: bool,
}

fn page(ring: &Mutex<Ring>, asked: u64, max: usize, complete: bool) -> Page {
    let ring = ring.lock();
    let (offset, mut bytes) = ring.from(asked, max);
    // A character whose end did not arrive yet waits for it, unless nothing will.
    let more = offset + bytes.len() as u64 != ring.end();
    if more || !complete {
        let whole = super::output::whole_characters(&bytes);
        if whole > 0 {
            bytes.truncate(whole);
        }
    }
    let next_offset = offset + bytes.len() as u64;
    let (text, base64) = readable(bytes);
    Page { offset, next_offset, dropped_bytes: offset.saturating_sub(asked), text, base64, more }
}

pub(in crate::exec) async fn read_process(env: &Arc<Env>, call: &Call) -> Outcome {
    let args: ReadProcess = call.arguments()?;
    let max = bounded("max_bytes", args.max_bytes, 1, limits::PROC_READ_MAX, limits::PROC_READ_DEFAULT)?;
    let wait = bounded("wait_ms", args.wait_ms, 0, limits::PROC_WAIT_MAX.as_millis() as usize, 0)?;
    let session = env.sessions.find(call, &args.session_id)?;
    let mut changes = session.changes.subscribe();
    let wanted = async {
        loop {
            let exited = session.state.lock().exit.is_some();
            let news =
                session.stdout.lock().end() > args.stdout_offset || session.stderr.lock().end() > args.stderr_offset;
            if exited || (news && !args.wait_for_exit) || changes.changed().await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        _ = tokio::time::timeout(Duration::from_millis(wait as u64), wanted) => (),
        () = call.stop.cancelled() => return Err(stopped()),
    }
    // First the exit, then the output: so that an exit is never shown without the last output.
    let exit = {
        let mut state = session.state.lock();
        state.touched = Instant::now();
        state.exit.clone()
    };
    let exited = exit.is_some();
    encode(&json!({
        "session_id": session.id,
        "running": !exited,
        "code": exit.as_ref().and_then(|e| e.code),
        "signal": exit.as_ref().and_then(|e| e.signal),
        "escaped_pids": exit.map(|e| e.escaped).unwrap_or_default(),
        "stdout": page(&session.stdout, args.stdout_offset, max, exited),
        "stderr": page(&session.stderr, args.stderr_offset, max, exited),
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteProcess {
    session_id: String,
    data: String,
    #[serde(default)]
    close_stdin: bool,
}

pub(in crate::exec) async fn write_process(env: &Arc<Env>, call: &Call) -> Outcome {
    let args: WriteProcess = call.arguments()?;
    bounded_text("data", &args.data, 0, limits::STDIN_WRITE_MAX)?;
    let session = env.sessions.find(call, &args.session_id)?;
    let closed = || ToolError::new(Code::Conflict, "the program does not read its input any more");
    let mut stdin = session
        .stdin
        .try_lock()
        .map_err(|_| ToolError::nothing_done(Code::Busy, "another write to this session is under way"))?;
    let pipe = stdin.as_mut().ok_or_else(closed)?;
    let (data, mut written) = (args.data.as_bytes(), 0);
    let write = async {
        while written < data.len() {
            match pipe.write(&data[written..]).await {
                Ok(count @ 1..) => written += count,
                _ => return false,
            }
        }
        pipe.flush().await.is_ok()
    };
    let taken = tokio::select! {
        taken = tokio::time::timeout(limits::STDIN_WRITE_WAIT, write) => taken,
        () = call.stop.cancelled() => return Err(stopped().with_details(&json!({"written_bytes": written}))),
        () = session.ask.cancelled() => Ok(false),
    };
    match taken {
        Ok(true) => {
            if args.close_stdin {
                *stdin = None;
            }
            encode(&json!({"session_id": session.id, "written_bytes": written, "stdin_open": stdin.is_some()}))
        }
        Ok(false) => Err(closed().with_details(&json!({"written_bytes": written}))),
        Err(_) => Err(ToolError::new(Code::Timeout, "the program does not take its input")
            .with_details(&json!({"written_bytes": written}))),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KillProcess {
    session_id: String,
    #[serde(default)]
    force: bool,
}

pub(in crate::exec) async fn kill_process(env: &Arc<Env>, call: &Call) -> Outcome {
    let args: KillProcess = call.arguments()?;
    let session = env.sessions.find(call, &args.session_id)?;
    if args.force {
        session.force.cancel();
    }
    session.ask.cancel();
    let mut changes = session.changes.subscribe();
    let ended = async {
        while session.state.lock().exit.is_none() {
            if changes.changed().await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = ended => (),
        () = call.stop.cancelled() => return Err(stopped()),
    }
    let exit = session.state.lock().exit.clone();
    encode(&json!({
        "session_id": session.id,
        "running": exit.is_none(),
        "code": exit.as_ref().and_then(|e| e.code),
        "signal": exit.as_ref().and_then(|e| e.signal),
        "escaped_pids": exit.map(|e| e.escaped).unwrap_or_default(),
    }))
}
