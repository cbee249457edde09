//! Tools that read a repository: by our own reader, or by the git program where programs may be run. Neither runs what
//! the repository's configuration or attributes name.

mod diff;
mod own;
mod program;
mod repository;
mod safe;

use std::sync::Arc;

use holdfast_core::code::ToolError;
use holdfast_core::limits;
use holdfast_core::policy::ExecMode;
use serde::{Deserialize, Serialize};

use super::Outcome;
use super::call::{Call, bounded, bounded_text, encode, invalid};
use super::env::Env;
use super::files::{PathOnly, here};
use super::route::blocking;
pub(crate) use repository::{Found, find};
pub(crate) use safe::{Git, Output, exists};

#[derive(Serialize)]
struct Status {
    repository: String,
    /// Nothing when no branch is checked out.
    branch: Option<String>,
    /// Nothing before the first commit.
    head: Option<String>,
    clean: bool,
    entries: Vec<Entry>,
    truncated: bool,
}

/// One path that is not as in the head commit.
#[derive(Serialize, Default)]
struct Entry {
    path: String,
    /// Index against head.
    #[serde(skip_serializing_if = "Option::is_none")]
    staged: Option<&'static str>,
    /// Working tree against index.
    #[serde(skip_serializing_if = "Option::is_none")]
    unstaged: Option<&'static str>,
}

#[derive(Serialize)]
struct Diff {
    repository: String,
    staged: bool,
    diff: String,
    truncated: bool,
}

#[derive(Serialize)]
struct Log {
    repository: String,
    commits: Vec<Commit>,
}

#[derive(Serialize)]
struct Commit {
    id: String,
    parents: Vec<String>,
    author: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    author_email: Option<String>,
    date: String,
    subject: String,
}

#[derive(Serialize)]
struct Shown {
    repository: String,
    #[serde(flatten)]
    commit: Commit,
    message: String,
    diff: String,
    truncated: bool,
}

/// Whether the git program may be used for this call.
fn may_run(call: &Call) -> bool {
    call.policy.exec_mode >= ExecMode::Direct
}

impl Status {
    fn new(found: &Found, branch: Option<String>, head: Option<String>, mut entries: Vec<Entry>) -> Status {
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let truncated = entries.len() > limits::GIT_STATUS_MAX;
        entries.truncate(limits::GIT_STATUS_MAX);
        Status { repository: found.shown.clone(), branch, head, clean: entries.is_empty(), entries, truncated }
    }
}

pub(super) async fn git_status(env: &Arc<Env>, call: Call) -> Outcome {
    let PathOnly { path } = call.arguments()?;
    let found = find(env, &call.policy, &path)?;
    if may_run(&call) && safe::exists() {
        return encode(&program::status(env, &call, &found).await?);
    }
    blocking(env, call, move |env, call| own::status(env, call, &found)).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiffArguments {
    #[serde(default = "here")]
    path: String,
    #[serde(default)]
    staged: bool,
    max_bytes: Option<u64>,
}

pub(super) async fn git_diff(env: &Arc<Env>, call: Call) -> Outcome {
    let args: DiffArguments = call.arguments()?;
    let max = text_bound(args.max_bytes)?;
    let found = find(env, &call.policy, &args.path)?;
    if may_run(&call) && safe::exists() {
        return encode(&program::diff(env, &call, &found, args.staged, max).await?);
    }
    blocking(env, call, move |env, call| own::diff(env, call, &found, args.staged, max)).await
}

fn text_bound(max_bytes: Option<u64>) -> Result<usize, ToolError> {
    bounded("max_bytes", max_bytes, 1, limits::FILE_BYTES_MAX, limits::FILE_BYTES_DEFAULT)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogArguments {
    #[serde(default = "here")]
    path: String,
    max_count: Option<u64>,
    #[serde(default)]
    include_author_email: bool,
}

pub(super) async fn git_log(env: &Arc<Env>, call: Call) -> Outcome {
    let args: LogArguments = call.arguments()?;
    let max = bounded("max_count", args.max_count, 1, limits::GIT_LOG_MAX, 20)?;
    let found = find(env, &call.policy, &args.path)?;
    if may_run(&call) && safe::exists() {
        return encode(&program::log(env, &call, &found, max, args.include_author_email).await?);
    }
    blocking(env, call, move |env, call| own::log(env, call, &found, max, args.include_author_email)).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShowArguments {
    #[serde(default = "here")]
    path: String,
    #[serde(default = "head")]
    revision: String,
    max_bytes: Option<u64>,
}

fn head() -> String {
    "HEAD".into()
}

pub(super) async fn git_show(env: &Arc<Env>, call: Call) -> Outcome {
    let args: ShowArguments = call.arguments()?;
    bounded_text("revision", &args.revision, 1, limits::GIT_REVISION_MAX)?;
    // A dash would be an option, and a colon names a file instead of a commit.
    if args.revision.starts_with('-') || args.revision.contains(|c: char| c.is_control() || c == ':') {
        return Err(invalid("revision must name a commit"));
    }
    let max = text_bound(args.max_bytes)?;
    let found = find(env, &call.policy, &args.path)?;
    if may_run(&call) && safe::exists() {
        return encode(&program::show(env, &call, &found, &args.revision, max).await?);
    }
    blocking(env, call, move |env, call| own::show(env, call, &found, &args.revision, max)).await
}
