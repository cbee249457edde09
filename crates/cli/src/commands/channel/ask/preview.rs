//! What a tool is asked for, as a person reads it.

use serde_json::{Map, Value};

/// Everything a tool will get: what matters most of the tools that are known, then each other value under its name. The
/// description of a command is not in it.
pub(super) fn preview(tool: &str, input: &Value) -> String {
    let Value::Object(all) = input else {
        return if input.is_null() { String::new() } else { pretty(input) };
    };
    let mut rest = all.clone();
    let text = main_part(tool, &mut rest).unwrap_or_else(|| {
        rest = all.clone();
        String::new()
    });
    match (text.is_empty(), rest.is_empty()) {
        (_, true) => text,
        (true, false) => pretty(&Value::Object(rest)),
        (false, false) => format!("{}\n{}", text.trim_end(), pretty(&Value::Object(rest))),
    }
}

/// Takes out of the input what it says.
fn main_part(tool: &str, input: &mut Map<String, Value>) -> Option<String> {
    let mut text = |key: &str| match input.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let marked = |mark: &str, text: &str| text.lines().map(|line| format!("{mark} {line}\n")).collect::<String>();
    match tool {
        "Bash" => {
            let command = text("command")?;
            if input.get("description").is_some_and(Value::is_string) {
                input.remove("description");
            }
            Some(command)
        }
        "Edit" => {
            let (path, old, new) = (text("file_path")?, text("old_string")?, text("new_string")?);
            Some(format!("{path}\n{}{}", marked("-", &old), marked("+", &new)))
        }
        "Write" => Some(format!("{}\n{}", text("file_path")?, text("content")?)),
        _ => None,
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_preview_is_the_command_or_the_change_or_the_whole_input() {
        assert_eq!(preview("Bash", &json!({"command": "ls -l", "description": "Lists"})), "ls -l");
        let edit = json!({"file_path": "/a", "old_string": "x\ny", "new_string": "z"});
        assert_eq!(preview("Edit", &edit), "/a\n- x\n- y\n+ z\n");
        assert_eq!(preview("Write", &json!({"file_path": "/a", "content": "hello"})), "/a\nhello");
        assert_eq!(preview("WebFetch", &json!({"url": "https://x"})), "{\n  \"url\": \"https://x\"\n}");
        assert_eq!(preview("Bash", &Value::Null), "");
    }

    #[test]
    fn no_value_beside_what_is_known_of_a_tool_is_left_out() {
        let input = json!({"command": "ls", "description": "Lists", "dangerouslyDisableSandbox": true});
        assert_eq!(preview("Bash", &input), "ls\n{\n  \"dangerouslyDisableSandbox\": true\n}");
        let input = json!({"file_path": "/a", "old_string": "x", "new_string": "y", "replace_all": true});
        assert_eq!(preview("Edit", &input), "/a\n- x\n+ y\n{\n  \"replace_all\": true\n}");
        let input = json!({"command": ["ls"], "description": "Lists"});
        assert_eq!(preview("Bash", &input), pretty(&input), "no text");
    }

    #[test]
    fn of_a_tool_that_is_not_known_every_value_is_shown() {
        for input in [
            json!({"command": "ls", "host": "prod", "description": "Lists"}),
            json!({"file_path": "/a", "content": "x", "mode": 511}),
        ] {
            assert_eq!(preview("mcp__x__run", &input), pretty(&input));
        }
    }
}
