//! The window's words: what it says exists in `locale/en.ftl`, and what exists there is said. (Those of tray and notices
//! are held to this by a test in core.)

use std::collections::BTreeSet;

use crate::{files, read, root};

/// An id as it stands in a source: whole, or the beginning of one that is put together.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Whole(String),
    Beginning(String),
}

fn said(source: &str) -> Vec<Said> {
    let mut found = Vec::new();
    for quote in ['\'', '"', '`'] {
        for (at, _) in source.match_indices(&format!("{quote}ui-")) {
            let rest = &source[at + quote.len_utf8()..];
            let id: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
            let after = &rest[id.len()..];
            if after.starts_with(quote) {
                found.push(Said::Whole(id));
            } else if after.starts_with("${") {
                found.push(Said::Beginning(id));
            }
        }
    }
    found
}

#[test]
fn the_window_says_what_the_file_of_words_has_and_nothing_else() {
    let words = read(&root().join("locale/en.ftl"));
    let known: BTreeSet<&str> = words.lines().filter_map(|l| l.split_once(" =")).map(|(id, _)| id).collect();
    let said: BTreeSet<Said> = files("ui/src", &["ts", "svelte"]).iter().flat_map(|path| said(&read(path))).collect();
    let missing: Vec<&Said> = said
        .iter()
        .filter(|said| match said {
            Said::Whole(id) => !known.contains(id.as_str()),
            Said::Beginning(start) => !known.iter().any(|id| id.starts_with(start.as_str())),
        })
        .collect();
    assert!(missing.is_empty(), "the window says what locale/en.ftl does not have: {missing:?}");
    let unsaid: Vec<&&str> = known
        .iter()
        .filter(|id| id.starts_with("ui-"))
        .filter(|id| {
            !said.iter().any(|said| match said {
                Said::Whole(whole) => whole == *id,
                Said::Beginning(start) => id.starts_with(start.as_str()),
            })
        })
        .collect();
    assert!(unsaid.is_empty(), "locale/en.ftl has what nobody says: {unsaid:?}");
}
