//! Unified diffs in git's manner, made here.

use std::fmt::Write as _;

use gix::diff::blob::unified_diff::{ConsumeHunk, ContextSize, DiffLineKind, HunkHeader};
use gix::diff::blob::{Algorithm, InternedInput, UnifiedDiff, diff_with_slider_heuristics};

/// One side of a changed file.
pub(super) struct Side {
    /// Octal, as git writes it.
    pub(super) mode: u32,
    pub(super) bytes: Vec<u8>,
    /// There is more than [`holdfast_core::limits::FILE_BYTES_MAX`]; `bytes` is part of it or nothing.
    pub(super) too_large: bool,
}

/// A diff that stops growing at its bound.
pub(super) struct Text {
    text: String,
    max: usize,
    truncated: bool,
}

impl Text {
    pub(super) fn bounded(max: usize) -> Text {
        Text { text: String::new(), max, truncated: false }
    }

    pub(super) fn is_full(&self) -> bool {
        self.truncated
    }

    pub(super) fn push(&mut self, path: &str, old: Option<&Side>, new: Option<&Side>) {
        self.add(&file(path, old, new));
    }

    fn add(&mut self, text: &str) {
        let room = self.max - self.text.len();
        if text.len() <= room {
            self.text += text;
            return;
        }
        let cut = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        self.text += &text[..cut];
        self.truncated = true;
    }

    /// The text, and whether it was cut.
    pub(super) fn end(self) -> (String, bool) {
        (self.text, self.truncated)
    }
}

fn file(path: &str, old: Option<&Side>, new: Option<&Side>) -> String {
    let mut out = format!("diff --git a/{path} b/{path}\n");
    // Writing to a String cannot fail.
    let _ = match (old, new) {
        (None, Some(new)) => writeln!(out, "new file mode {:06o}", new.mode),
        (Some(old), None) => writeln!(out, "deleted file mode {:06o}", old.mode),
        (Some(old), Some(new)) if old.mode != new.mode => {
            writeln!(out, "old mode {:06o}\nnew mode {:06o}", old.mode, new.mode)
        }
        _ => Ok(()),
    };
    let name = |side: Option<&Side>, prefix: &str| side.map_or("/dev/null".to_owned(), |_| format!("{prefix}/{path}"));
    let (from, to) = (name(old, "a"), name(new, "b"));
    if [old, new].into_iter().flatten().any(|side| side.too_large) {
        let _ = writeln!(out, "Files {from} and {to} differ; they are too large to compare line by line");
        return out;
    }
    let bytes = |side: Option<&Side>| side.map_or(&[][..], |side| &side.bytes).to_vec();
    let (before, after) = (bytes(old), bytes(new));
    if before == after {
        return out;
    }
    let binary = |bytes: &[u8]| bytes.iter().take(8000).any(|b| *b == 0);
    if binary(&before) || binary(&after) {
        let _ = writeln!(out, "Binary files {from} and {to} differ");
        return out;
    }
    let (before, after) = (String::from_utf8_lossy(&before), String::from_utf8_lossy(&after));
    let input = InternedInput::new(&*before, &*after);
    let diff = diff_with_slider_heuristics(Algorithm::Histogram, &input);
    let hunks = UnifiedDiff::new(&diff, &input, Hunks::default(), ContextSize::symmetrical(3)).consume();
    let _ = write!(out, "--- {from}\n+++ {to}\n{}", hunks.unwrap_or_default());
    out
}

/// Writes hunks as git does.
#[derive(Default)]
struct Hunks(String);

impl ConsumeHunk for Hunks {
    type Out = String;

    fn consume_hunk(&mut self, header: HunkHeader, lines: &[(DiffLineKind, &[u8])]) -> std::io::Result<()> {
        let range = |start: u32, length: u32| match length {
            // Nothing stands behind the line before.
            0 => format!("{},0", start - 1),
            1 => start.to_string(),
            _ => format!("{start},{length}"),
        };
        let before = range(header.before_hunk_start, header.before_hunk_len);
        let _ = writeln!(self.0, "@@ -{before} +{} @@", range(header.after_hunk_start, header.after_hunk_len));
        for (kind, line) in lines {
            self.0.push(match kind {
                DiffLineKind::Context => ' ',
                DiffLineKind::Add => '+',
                DiffLineKind::Remove => '-',
            });
            self.0 += &String::from_utf8_lossy(line);
            if !line.ends_with(b"\n") {
                self.0 += "\n\\ No newline at end of file\n";
            }
        }
        Ok(())
    }

    fn finish(self) -> String {
        self.0
    }
}
