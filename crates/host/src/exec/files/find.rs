//! list_files and search_text: walks that respect ignore files and stay inside.

use std::io::Read as _;
use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use holdfast_core::code::ToolError;
use holdfast_core::limits;
use ignore::{DirEntry, WalkBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::read::here;
use super::workspace::{Access, Spot};
use crate::exec::call::{Call, bounded, bounded_text, io_error};
use crate::exec::env::Env;

/// The regular files below a spot, in order of their paths. Links are neither followed nor shown.
fn files<'a>(env: &'a Env, spot: &Spot) -> impl Iterator<Item = DirEntry> + use<'a> {
    let mut walk = WalkBuilder::new(&spot.real);
    walk.hidden(false)
        .require_git(false)
        .follow_links(false)
        .sort_by_file_name(|a, b| a.cmp(b))
        .filter_entry(|entry| entry.file_name() != ".git");
    walk.build()
        .flatten()
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter(|entry| !env.files.is_private(entry.path()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListFiles {
    #[serde(default = "here")]
    path: String,
    max_files: Option<u64>,
}

pub(in crate::exec) fn list_files(env: &Env, call: &Call) -> Result<Value, ToolError> {
    let args: ListFiles = call.arguments()?;
    let max = bounded("max_files", args.max_files, 1, limits::LIST_FILES_MAX, 1000)?;
    let spot = env.files.find(&args.path, &call.policy, Access::Read)?;
    // The walk goes by path; that the folder can be opened without a link says that it is what was checked.
    env.files.dir(&spot)?;
    let (mut found, mut truncated) = (Vec::new(), false);
    for entry in files(env, &spot) {
        call.check()?;
        if found.len() == max {
            truncated = true;
            break;
        }
        // A folder that was swapped for a link under the walk must not show what lies behind it.
        if let Ok(real) = env.files.check(entry.path().to_path_buf(), &call.policy, Access::Read)
            && env.files.parent(&real, false).is_ok()
        {
            found.push(real.shown);
        }
    }
    Ok(json!({"path": spot.shown, "files": found, "truncated": truncated}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchText {
    query: String,
    #[serde(default = "here")]
    path: String,
    max_matches: Option<u64>,
    max_files: Option<u64>,
}

#[derive(Serialize)]
struct Match {
    path: String,
    line: u64,
    /// In characters, from 1.
    column: usize,
    text: String,
}

pub(in crate::exec) fn search_text(env: &Env, call: &Call) -> Result<Value, ToolError> {
    let args: SearchText = call.arguments()?;
    bounded_text("query", &args.query, 1, limits::SEARCH_QUERY_MAX)?;
    let max_matches = bounded("max_matches", args.max_matches, 1, limits::SEARCH_MATCHES_MAX, 100)?;
    let max_files = bounded("max_files", args.max_files, 1, limits::SEARCH_FILES_MAX, 10_000)?;
    if args.query.contains('\n') {
        return Err(crate::exec::call::invalid("query must be part of one line"));
    }
    let spot = env.files.find(&args.path, &call.policy, Access::Read)?;
    let matcher = RegexMatcherBuilder::new()
        .fixed_strings(true)
        .build(&args.query)
        .map_err(|_| crate::exec::call::invalid("query cannot be searched for"))?;
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        // A line longer than this is no text a person wrote.
        .heap_limit(Some(limits::FILE_BYTES_MAX))
        .build();
    let (mut matches, mut searched, mut truncated) = (Vec::new(), 0, false);
    if spot.real.is_file() {
        search(env, call, &mut searcher, &matcher, &args.query, &spot.real, max_matches, &mut matches)?;
        searched = 1;
    } else {
        env.files.dir(&spot)?;
        for entry in files(env, &spot) {
            if searched == max_files || matches.len() > max_matches {
                truncated = true;
                break;
            }
            searched += 1;
            search(env, call, &mut searcher, &matcher, &args.query, entry.path(), max_matches, &mut matches)?;
        }
    }
    truncated |= matches.len() > max_matches;
    matches.truncate(max_matches);
    Ok(json!({"matches": matches, "files_searched": searched, "truncated": truncated}))
}

/// Adds a file's matches, one more than `max` at most. A file that cannot be read is passed over.
#[allow(clippy::too_many_arguments, reason = "one call site, and a struct would only repeat the names")]
fn search(
    env: &Env,
    call: &Call,
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    query: &str,
    path: &Path,
    max: usize,
    matches: &mut Vec<Match>,
) -> Result<(), ToolError> {
    call.check()?;
    // Opened as any other file, without following links: the walk may be out of date.
    let Ok(spot) = env.files.check(path.to_path_buf(), &call.policy, Access::Read) else { return Ok(()) };
    let Ok(file) = env.files.file(&spot) else { return Ok(()) };
    let sink = Lossy(|line, text| {
        let at = text.find(query).unwrap_or(0);
        let column = text[..at].chars().count() + 1;
        matches.push(Match { path: spot.shown.clone(), line, column, text: excerpt(text, at) });
        Ok(matches.len() <= max && !call.stop.is_cancelled())
    });
    // `by_ref` keeps the searcher from mapping a file that may shrink.
    if let Err(e) = searcher.search_reader(matcher, file.take(u64::MAX), sink)
        && e.kind() == std::io::ErrorKind::PermissionDenied
    {
        return Err(io_error("file", &e));
    }
    call.check()
}

/// A line, or the part of a long one around the match.
fn excerpt(line: &str, at: usize) -> String {
    let line = line.trim_end_matches(['\n', '\r']);
    if line.chars().count() <= limits::SEARCH_LINE_MAX {
        return line.to_owned();
    }
    let before = line[..at.min(line.len())].chars().count();
    let from = before.saturating_sub(limits::SEARCH_LINE_MAX / 4);
    line.chars().skip(from).take(limits::SEARCH_LINE_MAX).collect()
}
