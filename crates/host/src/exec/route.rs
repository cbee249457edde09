//! From a tool's name to its work.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::limits;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::call::{Call, bounded, bounded_text, encode, stopped};
use super::env::Env;
use super::{Outcome, Progress, files, git, orient, process};

pub(super) async fn run(env: &Arc<Env>, tool: &str, call: Call) -> Outcome {
    match tool {
        "drill_wait" => drill_wait(&call).await,
        "session_bootstrap" => blocking(env, call, orient::session_bootstrap).await,
        "agent_context" => blocking(env, call, orient::agent_context).await,
        "project_overview" => blocking(env, call, orient::project_overview).await,
        "diagnose_runtime" => blocking(env, call, orient::diagnose_runtime).await,
        "list_roots" => blocking(env, call, files::list_roots).await,
        "list_dir" => blocking(env, call, files::list_dir).await,
        "read_file" => blocking(env, call, files::read_file).await,
        "list_files" => blocking(env, call, files::list_files).await,
        "search_text" => blocking(env, call, files::search_text).await,
        "view_image" => blocking(env, call, files::view_image).await,
        "git_status" => git::git_status(env, call).await,
        "git_diff" => git::git_diff(env, call).await,
        "git_log" => git::git_log(env, call).await,
        "git_show" => git::git_show(env, call).await,
        "write_file" => mutating(env, call, files::write_file).await,
        "edit_file" => mutating(env, call, files::edit_file).await,
        "apply_patch" => mutating(env, call, files::apply_patch).await,
        "run_process" => process::run_process(env, &call).await,
        "exec_command" => process::exec_command(env, &call).await,
        "start_process" => process::start_process(env, &call),
        "read_process" => process::read_process(env, &call).await,
        "write_process" => process::write_process(env, &call).await,
        "kill_process" => process::kill_process(env, &call).await,
        "read_result" => env.results.read(&call).await,
        _ => Err(ToolError::new(Code::NotFound, "this device has no such tool")),
    }
}

/// Runs work that blocks, on a thread that may.
pub(super) async fn blocking<T: Serialize>(
    env: &Arc<Env>,
    call: Call,
    work: impl FnOnce(&Env, &Call) -> Result<T, ToolError> + Send + 'static,
) -> Outcome {
    let env = Arc::clone(env);
    // A panic is raised again here, where the dispatcher answers for it.
    match tokio::task::spawn_blocking(move || work(&env, &call).and_then(|value| encode(&value))).await {
        Ok(outcome) => outcome,
        Err(lost) => std::panic::resume_unwind(lost.try_into_panic().unwrap_or_else(|_| Box::new("no runtime"))),
    }
}

/// As [`blocking`], but after every change that came before.
async fn mutating<T: Serialize>(
    env: &Arc<Env>,
    call: Call,
    work: impl FnOnce(&Env, &Call) -> Result<T, ToolError> + Send + 'static,
) -> Outcome {
    let turn = tokio::select! {
        turn = Arc::clone(&env.mutations).lock_owned() => turn,
        () = call.stop.cancelled() => return Err(stopped()),
    };
    blocking(env, call, move |env, call| {
        let _turn = turn;
        call.check()?;
        work(env, call)
    })
    .await
}

/// The drill's own call: waits, and hands back what it was given.
async fn drill_wait(call: &Call) -> Outcome {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Arguments {
        wait_ms: u64,
        #[serde(default)]
        echo: String,
    }
    let Arguments { wait_ms, echo } = call.arguments()?;
    bounded("wait_ms", Some(wait_ms), 0, limits::DRILL_WAIT_MAX.as_millis() as usize, 0)?;
    bounded_text("echo", &echo, 0, limits::DRILL_ECHO_MAX)?;
    let wait = tokio::time::sleep(Duration::from_millis(wait_ms));
    let waiting = call.reporting(wait, |elapsed| Progress {
        progress: elapsed.as_millis() as f64,
        total: Some(wait_ms as f64),
        message: None,
    });
    tokio::select! {
        () = waiting => encode(&json!({"waited_ms": wait_ms, "echo": echo})),
        () = call.stop.cancelled() => Err(stopped()),
    }
}
