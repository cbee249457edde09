//! Lines of Codex's rollouts.

use serde_json::{Value, json};

use super::Part;
use super::line::{Said, items, text};

pub(super) fn read(line: &Value) -> Said {
    let payload = line.get("payload").unwrap_or(&Value::Null);
    let part = match text(line, "type") {
        Some("response_item") => item(payload),
        // These say again what items say, except for the end.
        Some("event_msg") => match text(payload, "type") {
            Some("task_complete" | "turn_complete" | "turn_aborted") => Some(Part::Ended),
            _ => None,
        },
        _ => None,
    };
    Said { parts: part.into_iter().collect(), ..Said::default() }
}

fn item(item: &Value) -> Option<Part> {
    match text(item, "type")? {
        "message" => message(item),
        "function_call" => {
            let arguments = text(item, "arguments").unwrap_or_default();
            Some(used(item, serde_json::from_str(arguments).unwrap_or_else(|_| json!({ "input": arguments }))))
        }
        "custom_tool_call" => Some(used(item, json!({ "input": text(item, "input") }))),
        "local_shell_call" => Some(Part::Used {
            tool: "local_shell".into(),
            input: json!({ "command": item.get("action").and_then(|a| a.get("command")) }),
        }),
        "web_search_call" => Some(Part::Used {
            tool: "web_search".into(),
            input: json!({ "query": item.get("action").and_then(|a| text(a, "query")) }),
        }),
        _ => None,
    }
}

fn used(item: &Value, input: Value) -> Part {
    let name = text(item, "name").unwrap_or("tool");
    let tool = match text(item, "namespace").map(|n| n.trim_end_matches("__")) {
        Some(namespace) if !name.starts_with("mcp__") => format!("{namespace}__{name}"),
        _ => name.to_owned(),
    };
    Part::Used { tool, input }
}

fn message(item: &Value) -> Option<Part> {
    let mut texts = items(item.get("content")).filter_map(|p| text(p, "text"));
    match text(item, "role")? {
        "assistant" => {
            let said = texts.collect::<Vec<_>>().join("\n");
            (!said.is_empty()).then_some(Part::Said(said))
        }
        // What the tool itself tells the model stands in elements.
        "user" => texts.next().filter(|asked| !asked.starts_with('<')).map(|_| Part::Asked),
        _ => None,
    }
}
