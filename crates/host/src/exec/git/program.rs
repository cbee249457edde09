//! The tools by the git program.

use std::sync::Arc;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::limits;

use super::repository::Found;
use super::safe::{Git, Output};
use super::{Commit, Diff, Entry, Log, Shown, Status};
use crate::exec::call::Call;
use crate::exec::env::Env;

/// Options of everything that shows a diff.
const PLAIN_DIFF: &[&str] =
    &["--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", "--src-prefix=a/", "--dst-prefix=b/"];

/// One record of a commit, in fields that end with NUL.
const FORMAT: &str = "--format=tformat:%H%x00%P%x00%an%x00%ae%x00%aI%x00%s%x00%B";
const FIELDS: usize = 7;

/// One run that talks to nobody.
async fn git(
    env: &Arc<Env>,
    call: &Call,
    found: &Found,
    arguments: &[&str],
    filters: &[String],
    max: usize,
) -> Result<Output, ToolError> {
    silent(env, call, found).run(arguments, filters, max).await
}

fn silent<'a>(env: &'a Arc<Env>, call: &'a Call, found: &'a Found) -> Git<'a> {
    Git {
        env,
        policy: &call.policy,
        stop: &call.stop,
        folder: &found.root,
        transports: None,
        timeout: limits::CALL_TIMEOUT_DEFAULT,
    }
}

/// As [`git`], for commands that must succeed, with every filter of the repository's own configuration off.
async fn run(env: &Arc<Env>, call: &Call, found: &Found, arguments: &[&str], max: usize) -> Result<Output, ToolError> {
    let filters = silent(env, call, found).own_keys(r"^filter\.").await?;
    let output = git(env, call, found, arguments, &filters, max).await?;
    if output.status.success() {
        return Ok(output);
    }
    Err(ToolError::new(Code::ExecutionFailed, "git cannot read the repository"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(super) async fn status(env: &Arc<Env>, call: &Call, found: &Found) -> Result<Status, ToolError> {
    let below = pathspec(found);
    let arguments = [
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        "--untracked-files=normal",
        "--ignore-submodules=all",
        "--no-renames",
        "--",
        &below,
    ];
    let output = run(env, call, found, &arguments, limits::FILE_BYTES_MAX).await?;
    let text = text(&output.bytes);
    let (mut branch, mut head, mut entries) = (None, None, Vec::new());
    for record in text.split('\0') {
        if let Some(name) = record.strip_prefix("# branch.head ") {
            branch = Some(name.to_owned()).filter(|name| name != "(detached)");
        } else if let Some(id) = record.strip_prefix("# branch.oid ") {
            head = Some(id.to_owned()).filter(|id| id != "(initial)");
        } else if let Some(path) = record.strip_prefix("? ") {
            entries.push(Entry { path: path.into(), unstaged: Some("untracked"), ..Entry::default() });
        } else if let Some(rest) = record.strip_prefix("1 ") {
            // XY, submodule, three modes, two ids, path.
            let mut fields = rest.splitn(8, ' ');
            let (staged, unstaged) = fields.next().unwrap_or_default().split_at_checked(1).unwrap_or_default();
            let path = fields.nth(6).unwrap_or_default().to_owned();
            entries.push(Entry { path, staged: word(staged), unstaged: word(unstaged) });
        } else if let Some(rest) = record.strip_prefix("u ") {
            let path = rest.splitn(10, ' ').nth(9).unwrap_or_default().to_owned();
            entries.push(Entry { path, unstaged: Some("conflicted"), ..Entry::default() });
        }
    }
    let mut status = Status::new(found, branch, head, entries);
    status.truncated |= output.truncated;
    Ok(status)
}

fn word(letter: &str) -> Option<&'static str> {
    match letter {
        "A" => Some("added"),
        "M" => Some("modified"),
        "D" => Some("deleted"),
        "T" => Some("type_changed"),
        "R" => Some("renamed"),
        "C" => Some("copied"),
        _ => None,
    }
}

/// What was asked for, literally.
fn pathspec(found: &Found) -> String {
    let below = found.below.to_string_lossy();
    if below.is_empty() { ":(top)".into() } else { format!(":(top,literal){below}") }
}

pub(super) async fn diff(
    env: &Arc<Env>,
    call: &Call,
    found: &Found,
    staged: bool,
    max: usize,
) -> Result<Diff, ToolError> {
    let below = pathspec(found);
    let mut arguments = vec!["diff"];
    arguments.extend(PLAIN_DIFF);
    if staged {
        arguments.push("--cached");
    }
    arguments.extend(["--", &below]);
    let output = run(env, call, found, &arguments, max).await?;
    Ok(Diff { repository: found.shown.clone(), staged, diff: text(&output.bytes), truncated: output.truncated })
}

pub(super) async fn log(env: &Arc<Env>, call: &Call, found: &Found, max: usize, email: bool) -> Result<Log, ToolError> {
    let repository = found.shown.clone();
    let born = git(env, call, found, &["rev-parse", "--verify", "--quiet", "HEAD"], &[], 256).await?;
    if !born.status.success() {
        return Ok(Log { repository, commits: Vec::new() });
    }
    let count = format!("--max-count={max}");
    // The whole message is of no use here; %B is left out of the record.
    let format = FORMAT.trim_end_matches("%x00%B");
    let output =
        run(env, call, found, &["log", "-z", "--no-color", &count, format, "HEAD", "--"], limits::FILE_BYTES_MAX)
            .await?;
    let text = text(&output.bytes);
    let fields: Vec<&str> = text.split('\0').collect();
    Ok(Log { repository, commits: fields.chunks_exact(FIELDS - 1).map(|fields| commit(fields, email)).collect() })
}

fn commit(fields: &[&str], email: bool) -> Commit {
    let field = |number: usize| fields.get(number).copied().unwrap_or_default();
    Commit {
        id: field(0).into(),
        parents: field(1).split_whitespace().map(str::to_owned).collect(),
        author: field(2).into(),
        author_email: email.then(|| field(3).into()),
        date: field(4).into(),
        subject: field(5).into(),
    }
}

pub(super) async fn show(
    env: &Arc<Env>,
    call: &Call,
    found: &Found,
    revision: &str,
    max: usize,
) -> Result<Shown, ToolError> {
    let wanted = format!("{revision}^{{commit}}");
    let named =
        git(env, call, found, &["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted], &[], 256).await?;
    let id = text(&named.bytes).trim().to_owned();
    if !named.status.success() || id.is_empty() {
        return Err(ToolError::new(Code::NotFound, "no such commit"));
    }
    let header =
        run(env, call, found, &["show", "--no-patch", "--no-color", FORMAT, &id, "--"], limits::FILE_BYTES_MAX).await?;
    let header = text(&header.bytes);
    let fields: Vec<&str> = header.splitn(FIELDS, '\0').collect();
    let mut arguments = vec!["show", "--format=", "--diff-merges=first-parent", "--no-renames"];
    arguments.extend(PLAIN_DIFF);
    arguments.extend([&*id, "--"]);
    let patch = run(env, call, found, &arguments, max).await?;
    Ok(Shown {
        repository: found.shown.clone(),
        commit: commit(&fields, false),
        message: fields.get(6).copied().unwrap_or_default().trim_end_matches('\n').to_owned() + "\n",
        diff: text(&patch.bytes),
        truncated: patch.truncated,
    })
}
