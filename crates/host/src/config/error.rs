//! What is wrong with a configuration file, and where.

use std::path::PathBuf;

use crate::files::FileError;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The text is not a valid configuration.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong, with the nearest known key if a key is unknown.
        message: String,
    },
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Line and column, both from 1, of a byte offset in a text.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The candidate fewest edits away from `word`, if it is close enough to be a slip of the pen.
pub(super) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|c| (edits(word, c), c))
        .filter(|(d, c)| *d <= c.chars().count().max(word.chars().count()) / 2)
        .min()
        .map(|(_, c)| c)
}

/// Insertions, deletions and replacements that turn one word into the other.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_one_in_characters() {
        assert_eq!(position("a = 1", 0), (1, 1));
        assert_eq!(position("# ü\nkey", 5), (2, 1));
        assert_eq!(position("ü = x", 5), (1, 5));
    }

    #[test]
    fn a_slip_finds_its_word_and_a_stranger_finds_none() {
        let keys = ["listen", "public_url", "url"];
        assert_eq!(nearest("lisen", keys.into_iter()), Some("listen"));
        assert_eq!(nearest("publicUrl", keys.into_iter()), Some("public_url"));
        assert_eq!(nearest("qqqqqqqq", keys.into_iter()), None);
    }
}
