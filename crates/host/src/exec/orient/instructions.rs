//! agent_context and session_bootstrap: the instruction files and skills that apply to a folder.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use holdfast_core::code::ToolError;
use holdfast_core::limits;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::exec::call::{Call, bounded};
use crate::exec::env::Env;
use crate::exec::files::{Access, PathOnly, here};

/// Names under which projects keep instructions for agents. Of one folder each is read.
const INSTRUCTIONS: &[&str] =
    &["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md", ".cursorrules"];

/// Folders that hold one skill per folder, each with a SKILL.md.
const SKILLS: &[&str] = &[".agents/skills", ".claude/skills", ".codex/skills", "skills"];

#[derive(Serialize)]
struct Instruction {
    path: String,
    size_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    truncated: bool,
}

#[derive(Serialize)]
struct Skill {
    name: String,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default = "here")]
    path: String,
    #[serde(default = "yes")]
    include_instruction_content: bool,
    max_skills: Option<u64>,
}

fn yes() -> bool {
    true
}

pub(in crate::exec) fn agent_context(env: &Env, call: &Call) -> Result<Value, ToolError> {
    let args: Arguments = call.arguments()?;
    let max = bounded("max_skills", args.max_skills, 1, limits::SKILLS_MAX, 100)?;
    let folders = folders(env, call, &args.path)?;
    let instructions = instructions(env, call, &folders, args.include_instruction_content)?;
    let (skills, truncated) = skills(env, call, &folders, max)?;
    Ok(json!({"instructions": instructions, "skills": skills, "skills_truncated": truncated}))
}

pub(in crate::exec) fn session_bootstrap(env: &Env, call: &Call) -> Result<Value, ToolError> {
    let PathOnly { path } = call.arguments()?;
    let folders = folders(env, call, &path)?;
    let files = instructions(env, call, &folders, true)?;
    let (skills, truncated) = skills(env, call, &folders, 100)?;
    let mut text = rules(call);
    for file in &files {
        text += &format!("\n\n--- {} ---\n{}", file.path, file.content.as_deref().unwrap_or_default());
    }
    if !skills.is_empty() {
        text += "\n\nSkills of this project (read the file before using one):";
        for skill in &skills {
            text += &format!(
                "\n- {}: {} ({})",
                skill.name,
                skill.description.as_deref().unwrap_or("no description"),
                skill.path
            );
        }
    }
    let names: Vec<_> = files.iter().map(|f| json!({"path": f.path, "truncated": f.truncated})).collect();
    Ok(json!({
        "workspace": env.files.root().file_name().map(|name| name.to_string_lossy()),
        "policy": call.policy,
        "instruction_files": names,
        "skills": skills,
        "skills_truncated": truncated,
        "instructions": text,
    }))
}

/// What this account may do here, in words.
fn rules(call: &Call) -> String {
    let policy = &call.policy;
    let mut text = String::from("You work on a real machine through Holdfast. Paths are relative to the workspace.");
    text += if policy.allow_write { " You may change files." } else { " You may read but not change files." };
    text += match (policy.allow_exec, policy.exec_mode) {
        (false, _) => " You may not run programs.",
        (true, holdfast_core::policy::ExecMode::Shell) => " You may run programs and shell commands.",
        (true, _) => " You may run programs, but there is no shell.",
    };
    text + " Calls survive a broken connection: do not repeat one whose outcome you do not know before you have looked."
}

/// The workspace and every folder on the way to what was asked for, outermost first.
fn folders(env: &Env, call: &Call, path: &str) -> Result<Vec<PathBuf>, ToolError> {
    let spot = env.files.find(path, &call.policy, Access::Read)?;
    let folder =
        if spot.real.is_dir() { spot.real.clone() } else { spot.real.parent().unwrap_or(&spot.real).to_path_buf() };
    let root = env.files.root();
    let mut folders: Vec<PathBuf> =
        folder.ancestors().take_while(|dir| dir.starts_with(root)).map(Path::to_path_buf).collect();
    if folders.is_empty() {
        folders.push(folder);
    }
    folders.reverse();
    Ok(folders)
}

/// The beginning of a file that may be read; nothing for one that may not or is not there.
fn beginning(env: &Env, call: &Call, path: PathBuf, max: usize) -> Option<(String, u64, String)> {
    let real = path.canonicalize().ok()?;
    let spot = env.files.check(real, &call.policy, Access::Read).ok()?;
    let file = env.files.file(&spot).ok()?;
    let size = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    file.take(max as u64).read_to_end(&mut bytes).ok()?;
    Some((spot.shown, size, String::from_utf8_lossy(&bytes).into_owned()))
}

fn instructions(env: &Env, call: &Call, folders: &[PathBuf], content: bool) -> Result<Vec<Instruction>, ToolError> {
    let mut found: Vec<Instruction> = Vec::new();
    let mut room = limits::INSTRUCTIONS_MAX;
    for folder in folders {
        call.check()?;
        for name in INSTRUCTIONS {
            let max = room.min(limits::INSTRUCTION_FILE_MAX);
            let Some((path, size_bytes, text)) = beginning(env, call, folder.join(name), max) else { continue };
            // One file under two names is common: a link to AGENTS.md.
            if found.iter().any(|earlier| earlier.path == path) {
                continue;
            }
            let truncated = content && size_bytes > max as u64;
            if content {
                room = room.saturating_sub(text.len());
            }
            found.push(Instruction { path, size_bytes, content: content.then_some(text), truncated });
        }
    }
    Ok(found)
}

fn skills(env: &Env, call: &Call, folders: &[PathBuf], max: usize) -> Result<(Vec<Skill>, bool), ToolError> {
    let mut found: Vec<Skill> = Vec::new();
    for folder in folders {
        for place in SKILLS {
            call.check()?;
            let mut names: Vec<PathBuf> = std::fs::read_dir(folder.join(place))
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .collect();
            names.sort();
            for skill in names {
                let Some((path, _, text)) = beginning(env, call, skill.join("SKILL.md"), limits::SKILL_HEAD) else {
                    continue;
                };
                if found.len() == max {
                    return Ok((found, true));
                }
                let name = skill.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                found.push(Skill {
                    name: field(&text, "name").unwrap_or(name),
                    path,
                    description: field(&text, "description"),
                });
            }
        }
    }
    Ok((found, false))
}

/// A field of the header between two `---` lines, one line, bounded.
fn field(text: &str, name: &str) -> Option<String> {
    let header = text.strip_prefix("---")?.split_once("\n---")?.0;
    let value = header.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let value: String = value
        .trim()
        .trim_matches(['"', '\''])
        .chars()
        .filter(|c| !c.is_control())
        .take(limits::SEARCH_LINE_MAX)
        .collect();
    (!value.is_empty()).then_some(value)
}
