//! One line about a call for the call list on this machine. Kept in memory only: it shows arguments.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::limits::{ASK_TEXT_MAX, SUMMARY_MAX};
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

/// All that a call asks for, for whoever allows it: one argument a line, of a file's content its length. At most
/// [`ASK_TEXT_MAX`] characters, and how many more there are.
pub fn whole(arguments: &RawValue) -> (String, usize) {
    let all: serde_json::Map<String, serde_json::Value> = serde_json::from_str(arguments.get()).unwrap_or_default();
    let mut lines = Vec::new();
    for (key, value) in &all {
        let value = match value {
            serde_json::Value::String(text) if key == "content" => format!("{} bytes", text.len()),
            serde_json::Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let value = value.replace("\r\n", "⏎").replace('\n', "⏎");
        lines.push(one_line(&format!("{key}: {value}"), usize::MAX));
    }
    let text = lines.join("\n");
    let hidden = text.chars().count().saturating_sub(ASK_TEXT_MAX);
    (text.chars().take(ASK_TEXT_MAX).collect(), hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(arguments: &serde_json::Value) -> (String, usize) {
        whole(&RawValue::from_string(arguments.to_string()).unwrap())
    }

    #[test]
    fn who_allows_a_call_sees_all_of_it_or_how_much_is_missing() {
        let padded = format!("echo {}; rm -rf x\nb\u{1b}[2J", " ".repeat(500));
        let (text, hidden) = shown(&serde_json::json!({"argv": ["sh", "-c", "a b"], "command": padded, "cwd": "src"}));
        assert!(text.starts_with("argv: [\"sh\",\"-c\",\"a b\"]\ncommand: echo "), "{text}");
        assert!(text.ends_with("; rm -rf x⏎b [2J\ncwd: src") && hidden == 0, "{text}");
        let (text, hidden) = shown(&serde_json::json!({"path": "a", "content": "secret"}));
        assert_eq!(
            (text.lines().count(), text.contains("content: 6 bytes"), text.contains("secret"), hidden),
            (2, true, false, 0)
        );
        let (text, hidden) = shown(&serde_json::json!({"command": "x".repeat(ASK_TEXT_MAX)}));
        assert_eq!((text.chars().count(), hidden), (ASK_TEXT_MAX, "command: ".len()));
    }
}
