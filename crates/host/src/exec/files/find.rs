//! list_files and search_text: walks that respect ignore files and stay inside.

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
use crate::exec::call::{Call, bounded, bounded_text, invalid};
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
        return Err(invalid("query must be part of one line"));
    }
    let spot = env.files.find(&args.path, &call.policy, Access::Read)?;
    let matcher = RegexMatcherBuilder::new()
        .fixed_strings(true)
        .build(&args.query)
        .map_err(|_| invalid("query cannot be searched for"))?;
    let searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        // A line longer than this is no text a person wrote.
        .heap_limit(Some(limits::FILE_BYTES_MAX))
        .build();
    let mut search = Search { env, call, query: &args.query, matcher, searcher, max: max_matches, matches: Vec::new() };
    let (mut searched, mut truncated) = (0, false);
    if spot.real.is_file() {
        search.file(&spot.real)?;
        searched = 1;
    } else {
        env.files.dir(&spot)?;
        for entry in files(env, &spot) {
            if searched == max_files || search.is_full() {
                truncated = true;
                break;
            }
            searched += 1;
            search.file(entry.path())?;
        }
    }
    truncated |= search.is_full();
    search.matches.truncate(max_matches);
    Ok(json!({"matches": search.matches, "files_searched": searched, "truncated": truncated}))
}

struct Search<'a> {
    env: &'a Env,
    call: &'a Call,
    query: &'a str,
    matcher: RegexMatcher,
    searcher: Searcher,
    max: usize,
    /// One more than `max` when there are more.
    matches: Vec<Match>,
}

impl Search<'_> {
    fn is_full(&self) -> bool {
        self.matches.len() > self.max
    }

    /// Adds a file's matches. A file that cannot be read, or only in part, is passed over from there.
    fn file(&mut self, path: &Path) -> Result<(), ToolError> {
        self.call.check()?;
        // Opened as any other file, without following links: the walk may be out of date.
        let Ok(spot) = self.env.files.check(path.to_path_buf(), &self.call.policy, Access::Read) else { return Ok(()) };
        let Ok(file) = self.env.files.file(&spot) else { return Ok(()) };
        let (query, call, max, matches) = (self.query, self.call, self.max, &mut self.matches);
        let sink = Lossy(|line, text| {
            let at = text.find(query).unwrap_or(0);
            let column = text[..at].chars().count() + 1;
            matches.push(Match { path: spot.shown.clone(), line, column, text: excerpt(text, at) });
            Ok(matches.len() <= max && !call.stop.is_cancelled())
        });
        let _ = self.searcher.search_reader(&self.matcher, file, sink);
        self.call.check()
    }
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
