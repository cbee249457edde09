//! `docs/errors.md`, and whether every code that a source gives to a program has its row there.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use holdfast_core::code::Code;
use holdfast_core::request_code;
use holdfast_core::status::{Severity, WarningCode};

use super::check;
use crate::{files, read, shown};

#[test]
fn the_page_of_error_codes_is_in_date() {
    let mut page = String::from(
        "# Error codes\n\nPrograms match on codes; messages are for people and may change. Made by `make limits` from \
         `crates/core/src/code.rs`, `request_code.rs` and `status/warning.rs`; change it there.\n\n\
         ## Of a tool\n\n\
         A failed tool is a result with `isError: true` and `structuredContent.error {code, message, retryable, details?}`. \
         `retryable: true` means that sending the same call again does no harm: nothing was done, or what was done changed nothing.\n\n\
         | code | meaning | to an older peer |\n|---|---|---|\n",
    );
    for code in Code::ALL {
        let older = code.on_base_wire();
        let older = if older == *code { String::new() } else { format!("`{}`", older.as_str()) };
        let _ = writeln!(page, "| `{}` | {} | {older} |", code.as_str(), code.meaning().trim());
    }
    page.push_str(
        "\n## Of a command or a request\n\n\
         The local API and the relay's own paths answer `{code, message}`; the command line prints the same with `--json`, as \
         `{\"error\": {\"code\", \"message\"}}` on stderr. The codes above stand there too. The OAuth paths answer with the codes of \
         OAuth's own standards.\n\n\
         | code | meaning |\n|---|---|\n",
    );
    for (code, meaning) in request_code::ALL {
        let _ = writeln!(page, "| `{code}` | {meaning} |");
    }
    page.push_str(
        "\n## Of a warning\n\n\
         `health` in the status snapshot (`holdfast status --json`, `GET /api/status`) lists what is wrong now; a warning goes when \
         its cause does.\n\n\
         | code | how bad | meaning |\n|---|---|---|\n",
    );
    for code in WarningCode::ALL {
        let severity = match code.severity() {
            Severity::Info => "good to know",
            Severity::Warning => "works, but not as promised",
            Severity::NeedsYou => "needs a person",
        };
        let _ = writeln!(page, "| `{}` | {severity} | {} |", code.as_str(), code.meaning().trim());
    }
    check("docs/errors.md", "make limits", &page);
}

/// What is said after each of `before` in a source, as far as it is a literal.
fn literals_after(source: &str, before: &[&str]) -> Vec<String> {
    let rest = |at: usize, before: &str| source[at + before.len()..].trim_start();
    let found = before.iter().flat_map(|b| source.match_indices(b).map(|(at, _)| rest(at, b)));
    found.filter_map(|rest| rest.strip_prefix('"')?.split('"').next()).map(str::to_owned).collect()
}

/// Every literal within each stretch from one of `from` to the next `to`.
fn literals_within(source: &str, from: &str, to: &str) -> Vec<String> {
    let stretches = source.match_indices(from).filter_map(|(at, _)| source[at..].split(to).next());
    stretches.flat_map(|s| s.split('"').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Lower case, digits and `_`.
fn is_code(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// The codes that a source hands out by the ways there are.
fn handed_out(source: &str) -> BTreeSet<String> {
    let mut found = literals_after(source, &["CommandError::new(", "too_many(", "conflict(", "\"code\":"]);
    // `StatusCode::…, "code"`
    for (at, _) in source.match_indices("StatusCode::") {
        if let Some((name, rest)) = source[at + "StatusCode::".len()..].split_once(',')
            && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
            && let Some(code) = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next())
        {
            found.push(code.to_owned());
        }
    }
    found.extend(literals_within(source, "pub fn code(", "\n    }"));
    found.extend(literals_within(source, "pub const fn code(", "\n    }"));
    found.extend(literals_within(source, "let code = if ", "};"));
    found.extend(literals_within(source, "let (code, message) =", "};"));
    found.into_iter().filter(|text| is_code(text)).collect()
}

#[test]
fn every_code_that_a_source_hands_out_has_its_row() {
    let known: BTreeSet<&str> = Code::ALL
        .iter()
        .map(|code| code.as_str())
        .chain(request_code::ALL.iter().map(|(code, _)| *code))
        .chain(WarningCode::ALL.iter().map(|code| code.as_str()))
        .collect();
    let folders = ["crates/host/src", "crates/relay/src", "crates/cli/src"];
    let mut strangers = Vec::new();
    let mut met = BTreeSet::new();
    for path in folders.iter().flat_map(|folder| files(folder, &["rs"])) {
        let text = read(&path);
        if shown(&path).contains("/tests") {
            continue;
        }
        let product = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for code in handed_out(product) {
            if !known.contains(code.as_str()) {
                strangers.push(format!("{}: {code}", shown(&path)));
            }
            met.insert(code);
        }
    }
    assert!(strangers.is_empty(), "crates/core/src/request_code.rs has no row for:\n{}", strangers.join("\n"));
    let gone: Vec<&str> = request_code::ALL.iter().map(|(code, _)| *code).filter(|code| !met.contains(*code)).collect();
    assert!(
        gone.is_empty(),
        "nobody hands out {gone:?} any more: take the rows out of crates/core/src/request_code.rs"
    );
}
