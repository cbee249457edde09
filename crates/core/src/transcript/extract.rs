//! What of an entry is said in a chat.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::elements::without_elements;
use super::tools::{self, Series};
use super::{Entry, Part};
use crate::chat::{fences, tables};
use crate::limits;
use crate::line::lines;
use crate::redact::redact;

/// What agents write when they have nothing to say, in lower case and without a full stop.
const SILENT: [&str; 3] = ["no response requested", "waiting for user response", "(no content)"];

/// What is kept from one entry to the next. It belongs to a cursor and is stored with it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Extraction {
    /// Entries of other sessions are passed over; the first one that names a session decides, if nobody did.
    session: Option<String>,
    /// Somebody decided, so that no entry does.
    #[serde(default)]
    named: bool,
    /// Entries from before this time, in milliseconds since 1970, are passed over.
    since: Option<u64>,
    /// The series that the last tool belonged to.
    series: Option<Series>,
    /// The file of the last edit, for lines that tell of a change without naming the file.
    edited: Option<String>,
}

/// What an entry comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The entry's bytes.
    pub range: Range<u64>,
    /// When it was written, in milliseconds since 1970.
    pub at: Option<u64>,
    /// Markdown: cleaned, without tables and secrets; blocks of code as written. Blank, if there is nothing to say.
    pub text: String,
    /// What it tells about the agent's work.
    pub turn: Option<Turn>,
}

/// Whether an agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It was asked something.
    Began,
    /// It said something, and goes on.
    Speaks,
    /// It uses tools.
    Tools,
    /// It waits for the next question.
    Ended,
}

/// Pieces that become one message.
pub fn join<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n\n")
}

impl Extraction {
    /// For one session only, and from a time on, where that is known: the copy of a session begins with all that the first one
    /// said, under the copy's name but with the old times.
    pub fn new(session: Option<String>, since: Option<u64>) -> Extraction {
        Extraction { named: session.is_some(), session, since, ..Extraction::default() }
    }

    /// Other text stands at the path from now on: its first session counts, unless somebody decided.
    pub fn begin_anew(&mut self) {
        if !self.named {
            self.session = None;
        }
        (self.series, self.edited) = (None, None);
    }

    /// What is taken next is read at this time. A time that lies ahead of it tells nothing of what is old: the calendar was set
    /// back.
    pub fn at(&mut self, now: u64) {
        self.since = self.since.filter(|since| *since <= now);
    }

    /// Takes the next entry of the transcript.
    pub fn take(&mut self, entry: &Entry) -> Piece {
        let mut piece = Piece { range: entry.range.clone(), at: entry.at, text: String::new(), turn: None };
        if entry.sidechain || !self.is_ours(entry) {
            return piece;
        }
        for part in &entry.parts {
            let (text, turn) = match part {
                Part::Asked => {
                    self.series = None;
                    (None, Some(Turn::Began))
                }
                Part::Ended => (None, Some(Turn::Ended)),
                Part::Said(text) => (self.said(text), Some(Turn::Speaks)),
                Part::Used { tool, input } => {
                    if matches!(tool.as_str(), "Edit" | "MultiEdit") {
                        self.edited =
                            input.get("file_path").and_then(|p| p.as_str()).map(|p| p.chars().take(4096).collect());
                    }
                    (self.used(tool, input), Some(Turn::Tools))
                }
                Part::Edited { path, old, new } => (self.change(path.as_deref(), old, new), None),
            };
            piece.turn = turn.or(piece.turn);
            let Some(text) = text else { continue };
            if !piece.text.is_empty() {
                piece.text.push_str(if matches!(part, Part::Used { .. }) { "\n\n" } else { "\n" });
            }
            piece.text.push_str(&text);
        }
        piece
    }

    fn is_ours(&mut self, entry: &Entry) -> bool {
        if let (Some(since), Some(at)) = (self.since, entry.at)
            && at < since
        {
            return false;
        }
        match (&self.session, &entry.session) {
            (Some(ours), Some(theirs)) => ours == theirs,
            (None, Some(theirs)) => {
                self.session = Some(theirs.chars().take(limits::CHAT_ID_MAX).collect());
                true
            }
            (_, None) => true,
        }
    }

    fn said(&mut self, text: &str) -> Option<String> {
        let mut end = text.len().min(limits::TRANSCRIPT_TEXT_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut said = without_elements(&lines(&text[..end]));
        if end < text.len() {
            said.push_str("\n…");
        }
        let said = said.trim();
        let plain = said.to_lowercase();
        if said.is_empty() || SILENT.contains(&plain.trim_end_matches('.')) {
            return None;
        }
        self.series = None;
        // A block that is not closed would swallow what follows.
        Some(fences(&tables(&redact(said))).trim().to_owned())
    }

    fn used(&mut self, tool: &str, input: &serde_json::Value) -> Option<String> {
        let shown = tools::show(tool, input)?;
        let goes_on = shown.series.is_some() && shown.series == self.series;
        self.series = shown.series;
        (!goes_on).then_some(shown.text)
    }

    fn change(&mut self, path: Option<&str>, old: &str, new: &str) -> Option<String> {
        let last = self.edited.take();
        let path = path.map(str::to_owned).or(last)?;
        if is_memory(&path) {
            return None;
        }
        let marked = |mark: &'static str, text: &str| -> Vec<String> {
            redact(&lines(text)).lines().map(|line| format!("{mark} {line}")).collect()
        };
        let all = [marked("-", old), marked("+", new)].concat();
        if all.is_empty() {
            return None;
        }
        let mut shown = all.iter().take(limits::DIFF_LINES).cloned().collect::<Vec<_>>().join("\n");
        shown = tools::shorten(&shown, limits::DIFF_MAX, limits::DIFF_LINES);
        if all.len() > limits::DIFF_LINES {
            shown.push_str(&format!("\n... +{} lines", all.len() - limits::DIFF_LINES));
        }
        Some(tools::block("diff", &shown))
    }
}

/// Notes that an agent keeps for itself.
fn is_memory(path: &str) -> bool {
    let path = path.replace('\\', "/");
    let own = [".mixdog/projects/", ".claude/projects/"].iter().any(|folder| path.contains(folder));
    path.rsplit('/').next() == Some("MEMORY.md") || (own && path.contains("/memory/"))
}
