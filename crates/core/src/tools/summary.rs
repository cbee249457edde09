//! One line about a call for the call list on this machine. Kept in memory only: it shows arguments.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::limits::SUMMARY_MAX;
use crate::line::one_line;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Shown<'a> {
    #[serde(borrow)]
    argv: Vec<std::borrow::Cow<'a, str>>,
    command: Option<std::borrow::Cow<'a, str>>,
    query: Option<std::borrow::Cow<'a, str>>,
    revision: Option<std::borrow::Cow<'a, str>>,
    path: Option<std::borrow::Cow<'a, str>>,
    patch: Option<std::borrow::Cow<'a, str>>,
    session_id: Option<std::borrow::Cow<'a, str>>,
    handle: Option<std::borrow::Cow<'a, str>>,
}

/// What a call is about, e.g. `npm test` or `src/main.rs`; empty when the arguments say nothing. At most
/// [`SUMMARY_MAX`] characters, one line, nothing that could steer a terminal or reorder text.
pub fn summary(arguments: &RawValue) -> String {
    let shown: Shown<'_> = serde_json::from_str(arguments.get()).unwrap_or_default();
    let words = if shown.argv.is_empty() {
        let patched = shown.patch.as_deref().and_then(|p| {
            p.lines().find_map(|l| l.strip_prefix("*** ").and_then(|l| l.split_once(" File: ")).map(|(_, path)| path))
        });
        shown
            .command
            .as_deref()
            .or(shown.query.as_deref())
            .or(shown.revision.as_deref())
            .or(shown.path.as_deref())
            .or(patched)
            .or(shown.session_id.as_deref())
            .or(shown.handle.as_deref())
            .unwrap_or_default()
            .to_owned()
    } else {
        shown.argv.join(" ")
    };
    one_line(&words, SUMMARY_MAX)
}
