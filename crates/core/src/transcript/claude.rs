//! Claude Code's lines, of which the generic format is a part.

use serde_json::Value;

use super::line::{Said, items, text};
use super::{Part, is_session};

pub(super) fn read(line: &Value) -> Said {
    let parts = match text(line, "type") {
        Some("assistant") => assistant(line),
        Some("user") => user(line),
        _ => Vec::new(),
    };
    let sidechain = line.get("isSidechain").and_then(Value::as_bool).unwrap_or(false);
    let session = text(line, "sessionId").filter(|id| is_session(id));
    Said { session: session.map(str::to_owned), sidechain, parts }
}

fn assistant(line: &Value) -> Vec<Part> {
    let Some(message) = line.get("message") else { return Vec::new() };
    let mut parts: Vec<Part> = match message.get("content") {
        Some(Value::String(said)) => vec![Part::Said(said.clone())],
        content => items(content).filter_map(part).collect(),
    };
    // Each block of a message has a line of its own with the reason of the whole; the text is the last of them.
    if text(message, "stop_reason") == Some("end_turn") && parts.iter().any(|p| matches!(p, Part::Said(_))) {
        parts.push(Part::Ended);
    }
    parts
}

fn part(part: &Value) -> Option<Part> {
    match text(part, "type")? {
        "text" => Some(Part::Said(text(part, "text")?.to_owned())),
        "tool_use" => Some(Part::Used {
            tool: text(part, "name")?.to_owned(),
            input: part.get("input").cloned().unwrap_or_default(),
        }),
        _ => None,
    }
}

fn user(line: &Value) -> Vec<Part> {
    let of_ours = ["isMeta", "isCompactSummary"].iter().any(|key| line.get(key).and_then(Value::as_bool) == Some(true));
    let content = line.get("message").and_then(|m| m.get("content"));
    if items(content).any(|p| text(p, "type") == Some("tool_result")) {
        return edited(line).into_iter().collect();
    }
    let asked = content.and_then(Value::as_str).or_else(|| items(content).find_map(|p| text(p, "text")));
    match asked {
        Some(asked) if asked.starts_with("[Request interrupted by user") => vec![Part::Ended],
        // What begins with an element comes from a command of the terminal.
        Some(asked) if !of_ours && !asked.starts_with('<') => vec![Part::Asked],
        _ => Vec::new(),
    }
}

fn edited(line: &Value) -> Option<Part> {
    let result = line.get("toolUseResult")?;
    Some(Part::Edited {
        path: text(result, "filePath").map(str::to_owned),
        old: text(result, "oldString")?.to_owned(),
        new: text(result, "newString")?.to_owned(),
    })
}
