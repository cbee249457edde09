//! What may stand in which file, and how long a file may be.

use std::path::PathBuf;

use crate::{files, read, shown};

const SOURCE_FOLDERS: [&str; 6] = ["crates", "tests", "benches", "fuzz", "src-tauri", "ui/src"];
const LINES_MAX: usize = 500;
const SHELL_LINES_MAX: usize = 450;

fn sources() -> Vec<PathBuf> {
    SOURCE_FOLDERS.iter().flat_map(|folder| files(folder, &["rs", "ts", "js", "mjs", "py", "svelte"])).collect()
}

/// Whether `word` stands in `line` as a whole word.
fn has_word(line: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(inside) && !line[at + word.len()..].starts_with(inside))
}

/// Fails with every line of `paths` that holds one of `words`, all of them in one message.
fn assert_absent(rule: &str, paths: impl IntoIterator<Item = PathBuf>, found: impl Fn(&str) -> bool) {
    let mut hits = Vec::new();
    for path in paths {
        for (number, line) in read(&path).lines().enumerate() {
            if found(line) {
                hits.push(format!("{}:{}: {}", shown(&path), number + 1, line.trim()));
            }
        }
    }
    assert!(hits.is_empty(), "{rule}:\n{}", hits.join("\n"));
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

#[test]
fn core_names_no_io_no_clock_and_no_ambient_randomness() {
    let banned = [
        "tokio",
        "std::fs",
        "std::net",
        "std::env",
        "std::process",
        "std::thread",
        "std::io",
        "Instant::now",
        "SystemTime",
        "rand::rng",
        "thread_rng",
        "OsRng",
        "from_os_rng",
        "getrandom",
    ];
    assert_absent("core is pure", files("crates/core/src", &["rs"]), |line| {
        !is_comment(line) && banned.iter().any(|word| has_word(line, word))
    });
}

#[test]
fn rmcp_is_named_only_in_the_relays_mcp_room() {
    let elsewhere = files("crates", &["rs"]).into_iter().filter(|p| !shown(p).starts_with("crates/relay/src/mcp"));
    assert_absent("rmcp is named only in crates/relay/src/mcp", elsewhere, |line| {
        !is_comment(line) && has_word(line, "rmcp")
    });
}

#[test]
fn tauri_is_named_only_in_its_shell() {
    let elsewhere = sources().into_iter().filter(|path| {
        let path = shown(path);
        !["src-tauri/", "tests/house/", "tests/ipc/", "ui/src/transport"].iter().any(|at| path.starts_with(at))
    });
    assert_absent("tauri is named only in its shell", elsewhere, |line| has_word(line, "tauri"));
}

#[test]
fn the_desktop_shell_stays_thin() {
    let lines = |path: PathBuf| read(&path).lines().filter(|line| !line.trim().is_empty()).count();
    let all: usize = files("src-tauri", &["rs"]).into_iter().map(lines).sum();
    assert!(all <= SHELL_LINES_MAX, "{all} lines that are not blank; what decides something belongs into core or host");
}

#[test]
fn nothing_is_left_for_later() {
    let elsewhere = sources().into_iter().filter(|path| !shown(path).starts_with("tests/house/"));
    let words = ["TODO", "FIXME", "XXX", "HACK", "todo!", "unimplemented!"];
    assert_absent("finish it or file an issue", elsewhere, |line| {
        words.iter().any(|word| has_word(line, word)) || line.contains("#[ignore")
    });
}

#[test]
fn a_file_is_named_for_the_domain() {
    for path in sources() {
        let name = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_lowercase();
        for word in ["manager", "service", "helper", "helpers", "util", "utils", "common", "misc"] {
            assert!(!name.split(['_', '-', '.']).any(|part| part == word), "{} says nothing", shown(&path));
        }
    }
}

#[test]
fn no_file_is_longer_than_it_should_be() {
    let mut lengths = Vec::new();
    let mut too_long = Vec::new();
    for path in sources() {
        let text = read(&path);
        let lines = text.lines().count();
        lengths.push((lines, shown(&path)));
        let excused = text.lines().take(20).any(|line| is_comment(line) && line.contains("Over 500 lines because"));
        if lines > LINES_MAX && !excused {
            too_long.push(format!("{}: {lines} lines", shown(&path)));
        }
    }
    lengths.sort();
    let at = |percent: usize| lengths[(lengths.len() - 1) * percent / 100].0;
    println!("{} files, median {} lines, p90 {}, longest {:?}", lengths.len(), at(50), at(90), lengths.last());
    assert!(
        too_long.is_empty(),
        "split it, or write at its top \"Over 500 lines because …\":\n{}",
        too_long.join("\n")
    );
}
