//! One line, and sometimes a block, for a tool that an agent used.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::line::{items, text};
use crate::limits;
use crate::line::{lines, one_line};
use crate::redact::redact;

/// Tools that are plumbing: their effect is seen elsewhere. The last ones belong to bridges as ours.
const HIDDEN: [&str; 14] = [
    "ToolSearch",
    "SendMessage",
    "TeamCreate",
    "TaskCreate",
    "TaskUpdate",
    "TaskList",
    "TaskGet",
    "write_stdin",
    "reply",
    "fetch",
    "activate_channel_bridge",
    "rebind_current_transcript",
    "reload_config",
    "forward_to_discord",
];

/// Tools of which a series is one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Series {
    Explorer,
    Memory,
}

/// How a tool is shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub series: Option<Series>,
    pub text: String,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Plain,
    Series(Series),
    Shell,
    Patch,
    Agent,
}

/// How a tool is shown; nothing for one that is hidden.
pub(super) fn show(tool: &str, input: &Value) -> Option<Shown> {
    let server = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    let bare = server.map_or(tool, |(_, bare)| bare);
    if HIDDEN.contains(&bare) {
        return None;
    }
    let (kind, label) = kind(bare, server.map(|(server, _)| server), input);
    let series = match kind {
        Kind::Series(series) => Some(series),
        _ => None,
    };
    let label = one_line(&label, limits::TOOL_SUMMARY_MAX).replace(['*', '`'], "");
    let mut text = format!("● **{label}**");
    let said = match (series, server) {
        (Some(Series::Memory), _) => None,
        (None, Some((server, bare))) => Some(format!("{server}: {bare}")),
        _ => summary(kind, input),
    };
    if let Some(said) = said.filter(|said| !said.trim().is_empty()) {
        text.push_str(&format!(" ({})", one_line(redact(said.trim()).trim(), limits::TOOL_SUMMARY_MAX)));
    }
    let (language, max, inside) = match kind {
        Kind::Shell => ("", limits::TOOL_BLOCK_MAX, command(input)),
        Kind::Patch => ("diff", limits::TOOL_BLOCK_MAX, patch(input).map(str::to_owned)),
        Kind::Agent => ("", limits::TOOL_PROMPT_MAX, first(input, &["prompt", "message"]).map(str::to_owned)),
        _ => ("", 0, None),
    };
    if let Some(inside) = inside.filter(|inside| !inside.trim().is_empty()) {
        let inside = shorten(redact(&lines(&inside)).trim_end(), max, limits::TOOL_BLOCK_LINES);
        text.push_str(&format!("\n{}", block(language, &inside)));
    }
    Some(Shown { series, text })
}

/// A block of code with a fence that its text does not have.
pub(super) fn block(language: &str, inside: &str) -> String {
    let longest = inside.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{inside}\n{fence}")
}

/// At most so many lines and characters; what is missing is told by `…`.
pub(super) fn shorten(text: &str, max: usize, most: usize) -> String {
    let mut short = text.lines().take(most).collect::<Vec<_>>().join("\n");
    if text.lines().nth(most).is_some() {
        short.push_str(" …");
    }
    if short.chars().nth(max).is_some() {
        short = short.chars().take(max - 1).chain(['…']).collect();
    }
    short
}

fn kind(bare: &str, server: Option<&str>, input: &Value) -> (Kind, Cow<'static, str>) {
    let plain = |label: &'static str| (Kind::Plain, Cow::Borrowed(label));
    let memory = server == Some("memory") || matches!(bare, "memory" | "Memory" | "recall" | "remember");
    match bare {
        _ if memory => (Kind::Series(Series::Memory), "Memory".into()),
        _ if server.is_some() => plain("MCP Server"),
        "Read" | "NotebookRead" | "Grep" | "Glob" | "LS" | "read" | "grep" | "glob" | "list" | "view_image" => {
            (Kind::Series(Series::Explorer), "Explorer".into())
        }
        "Bash" | "bash" | "PowerShell" | "shell" | "shell_command" | "local_shell" | "exec_command" => {
            (Kind::Shell, "Run".into())
        }
        "apply_patch" => {
            let adds = patch(input).is_some_and(|p| p.contains("*** Add File:") && !p.contains("*** Update File:"));
            (Kind::Patch, if adds { "Create" } else { "Update" }.into())
        }
        "Edit" | "MultiEdit" | "NotebookEdit" => plain("Update"),
        "Write" => plain("Create"),
        "Task" | "task" => (Kind::Agent, "Task".into()),
        "Agent" | "agent" | "spawn_agent" => (Kind::Agent, "Agent".into()),
        "WebSearch" | "web_search" => plain("Web Search"),
        "WebFetch" => plain("Web Fetch"),
        "Skill" | "skill" => plain("Skill"),
        "TodoWrite" | "update_plan" => plain("Plan"),
        other => (Kind::Plain, other.replace('_', " ").into()),
    }
}

/// What it was given, in a few words.
fn summary(kind: Kind, input: &Value) -> Option<String> {
    match kind {
        Kind::Shell => command(input),
        Kind::Patch => patch(input)?.lines().find_map(|line| {
            let (_, path) = line.strip_prefix("*** ")?.split_once(" File: ")?;
            Some(base_name(path).to_owned())
        }),
        Kind::Agent => first(input, &["description", "subagent_type", "agent_type"]).map(str::to_owned),
        _ => {
            let path = first(input, &["file_path", "notebook_path"]).map(|path| base_name(path).to_owned());
            let pattern = || text(input, "pattern").map(|pattern| format!("\"{pattern}\""));
            let other =
                || first(input, &["query", "url", "skill", "command", "description", "name"]).map(str::to_owned);
            let folder = || text(input, "path").map(|path| base_name(path).to_owned());
            path.or_else(pattern).or_else(other).or_else(folder)
        }
    }
}

fn first<'a>(input: &'a Value, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| text(input, key).filter(|said| !said.trim().is_empty()))
}

/// The command of a shell, without the shell around it.
fn command(input: &Value) -> Option<String> {
    if let Some(line) = first(input, &["command", "cmd", "input"]) {
        return Some(line.to_owned());
    }
    let words: Vec<&str> = items(input.get("command")).filter_map(Value::as_str).collect();
    match words.as_slice() {
        [] => None,
        [shell, flag, line] if shell.ends_with("sh") && flag.starts_with('-') && flag.ends_with('c') => {
            Some((*line).to_owned())
        }
        words => Some(words.join(" ")),
    }
}

fn patch(input: &Value) -> Option<&str> {
    first(input, &["input", "patch"])
}

fn base_name(path: &str) -> &str {
    let path = path.trim_end_matches(['/', '\\']);
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
