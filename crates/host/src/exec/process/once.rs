//! run_process and exec_command: a program run to its end.

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::limits;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::environment;
use super::output::{HeadTail, pour};
use super::trees::Trees;
use crate::exec::awake;
use crate::exec::call::{Call, bounded, encode, stopped};
use crate::exec::env::Env;
use crate::exec::files::here;
use crate::exec::{Outcome, Progress};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunProcess {
    argv: Vec<String>,
    #[serde(default = "here")]
    cwd: String,
    timeout_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecCommand {
    command: String,
    timeout_seconds: Option<u64>,
}

/// What a program left behind.
#[derive(Serialize)]
struct Finished {
    /// Nothing when a signal ended it.
    code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    stdout: String,
    stderr: String,
    stdout_truncated_bytes: u64,
    stderr_truncated_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_base64: Option<String>,
    /// It ended, but something it started did not and was ended after it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    background_ended: bool,
    /// Processes that left the program's group and still run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    escaped_pids: Vec<u32>,
}

pub(in crate::exec) async fn run_process(env: &Arc<Env>, call: &Call) -> Outcome {
    let args: RunProcess = call.arguments()?;
    let timeout = timeout(call, args.timeout_seconds)?;
    run(env, call, environment::direct(env, &call.policy, &args.argv, &args.cwd)?.command(), timeout).await
}

pub(in crate::exec) async fn exec_command(env: &Arc<Env>, call: &Call) -> Outcome {
    let args: ExecCommand = call.arguments()?;
    let timeout = timeout(call, args.timeout_seconds)?;
    run(env, call, environment::shell(env, &call.policy, &args.command, ".")?.command(), timeout).await
}

/// The program's own time. It ends before the call's budget, so that what the program wrote until then still arrives.
fn timeout(call: &Call, seconds: Option<u64>) -> Result<Duration, ToolError> {
    let (max, default) = (limits::EXEC_TIMEOUT_MAX.as_secs() as usize, limits::EXEC_TIMEOUT_DEFAULT.as_secs() as usize);
    let asked = Duration::from_secs(bounded("timeout_seconds", seconds, 1, max, default)? as u64);
    Ok(asked.min(call.budget.saturating_sub(limits::SETTLEMENT).max(Duration::from_secs(1))))
}

/// How a program run to its end came to it.
pub(crate) enum End {
    Exited(ExitStatus),
    TimedOut,
    Stopped,
}

/// What happened besides output.
pub(crate) struct Ran {
    pub(crate) end: End,
    background_ended: bool,
    escaped_pids: Vec<u32>,
    /// By which what escaped is known.
    pub(crate) mark: String,
}

/// Where a stream goes: what keeps part of it, and how.
pub(crate) struct Keep<'a, K> {
    pub(crate) to: &'a Arc<Mutex<K>>,
    pub(crate) push: fn(&mut K, &[u8]),
}

/// Runs a program until it ends, is out of time, or is not wanted any more; no process of its group outlives this. It reads
/// `input`.
pub(crate) async fn to_end<K: Send + 'static>(
    trees: &Arc<Trees>,
    stop: &CancellationToken,
    command: Command,
    input: Vec<u8>,
    timeout: Duration,
    stdout: Keep<'_, K>,
    stderr: &Arc<Mutex<HeadTail>>,
) -> Result<Ran, ToolError> {
    if stop.is_cancelled() {
        return Err(stopped());
    }
    let (trees, stdin) = (Arc::clone(trees), if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    let starting = tokio::task::spawn_blocking(move || trees.spawn(command, stdin));
    let failed = |e: tokio::task::JoinError| ToolError::new(Code::InternalError, e.to_string());
    // Whoever does not wait for the end of this ends it: a tree that is dropped is killed.
    let mut tree = starting.await.map_err(failed)??;
    let mark = tree.mark().to_owned();
    let (out, err) = tree.output();
    let writing = tree.stdin().map(|mut stdin| {
        // A program that does not read all of it has its reasons.
        tokio::spawn(async move { drop(stdin.write_all(&input).await) })
    });
    let mut reading = tokio::spawn({
        let (push, stdout, stderr) = (stdout.push, Arc::clone(stdout.to), Arc::clone(stderr));
        async move {
            let read_out = async {
                if let Some(out) = out {
                    pour(out, stdout, push).await
                }
            };
            let read_err = async {
                if let Some(err) = err {
                    pour(err, stderr, HeadTail::push).await
                }
            };
            tokio::join!(read_out, read_err);
        }
    });
    let end = tokio::select! {
        biased;
        status = tree.wait() => match status {
            Ok(status) => End::Exited(status),
            Err(_) => End::Stopped,
        },
        () = awake::pass(timeout) => End::TimedOut,
        () = stop.cancelled() => End::Stopped,
    };
    let exited = matches!(end, End::Exited(_));
    // Somebody may still hold the pipes: what the program left running, or what escaped.
    let silent = exited && tokio::time::timeout(limits::OUTPUT_DRAIN_WAIT, &mut reading).await.is_ok();
    let background_ended = exited && tree.lives();
    let mut escaped_pids = Vec::new();
    if !silent || background_ended {
        tree.ask(&CancellationToken::new()).await;
        (_, escaped_pids) = tree.end().await;
    }
    if !silent {
        let _ = tokio::time::timeout(limits::OUTPUT_DRAIN_WAIT, &mut reading).await;
        reading.abort();
    }
    if let Some(writing) = writing {
        writing.abort();
    }
    Ok(Ran { end, background_ended, escaped_pids, mark })
}

async fn run(env: &Arc<Env>, call: &Call, command: Command, timeout: Duration) -> Outcome {
    let kept = || Arc::new(Mutex::new(HeadTail::keeping(limits::OUTPUT_KEPT)));
    let (stdout, stderr) = (kept(), kept());
    let running = to_end(
        &env.trees,
        &call.stop,
        command,
        Vec::new(),
        timeout,
        Keep { to: &stdout, push: HeadTail::push },
        &stderr,
    );
    let ran = call.reporting(running, |elapsed| {
        let bytes = stdout.lock().total() + stderr.lock().total();
        Progress {
            progress: elapsed.as_secs_f64(),
            total: Some(timeout.as_secs_f64()),
            message: Some(format!("{} s, {bytes} bytes of output so far", elapsed.as_secs())),
        }
    });
    let ran = ran.await?;
    let Ran { end, background_ended, escaped_pids, mark: _ } = ran;
    let (out, err) = (stdout.lock().shown(), stderr.lock().shown());
    let (code, signal) = match &end {
        End::Exited(status) => (status.code(), signal_of(status)),
        _ => (None, None),
    };
    let escaped = !escaped_pids.is_empty();
    let finished = Finished {
        code,
        signal,
        stdout: out.text,
        stderr: err.text,
        stdout_truncated_bytes: out.truncated_bytes,
        stderr_truncated_bytes: err.truncated_bytes,
        stdout_base64: out.base64,
        stderr_base64: err.base64,
        background_ended,
        escaped_pids,
    };
    let failed = match end {
        End::Exited(status) if status.success() => return encode(&finished),
        End::Exited(_) => {
            let how = code.map(|code| format!("exited with code {code}"));
            let how = how.or(signal.map(|signal| format!("was ended by signal {signal}")));
            ToolError::new(Code::ExecutionFailed, format!("the program {}", how.unwrap_or_else(|| "failed".into())))
        }
        End::TimedOut => {
            let what = if escaped { "what still belonged to it" } else { "everything it started" };
            let seconds = timeout.as_secs();
            ToolError::new(
                Code::Timeout,
                format!("the program did not end within {seconds} s and was killed with {what}"),
            )
        }
        End::Stopped => stopped(),
    };
    Err(failed.with_details(&finished))
}

#[cfg(unix)]
pub(super) fn signal_of(status: &ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(status)
}

#[cfg(windows)]
pub(super) fn signal_of(_status: &ExitStatus) -> Option<i32> {
    None
}
