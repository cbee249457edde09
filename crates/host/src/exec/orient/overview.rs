//! project_overview: a first look.

use std::io::Read as _;

use holdfast_core::code::ToolError;
use holdfast_core::{limits, tools};
use serde_json::{Value, json};

use crate::exec::call::{Call, io_error};
use crate::exec::env::Env;
use crate::exec::files::{Access, Nothing};

/// Files that say how a project is built, and with what.
const BUILD_FILES: &[(&str, &str)] = &[
    ("Cargo.toml", "cargo"),
    ("package.json", "npm"),
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("deno.json", "deno"),
    ("pyproject.toml", "python"),
    ("requirements.txt", "pip"),
    ("go.mod", "go"),
    ("pom.xml", "maven"),
    ("build.gradle", "gradle"),
    ("build.gradle.kts", "gradle"),
    ("CMakeLists.txt", "cmake"),
    ("meson.build", "meson"),
    ("Makefile", "make"),
    ("justfile", "just"),
    ("Gemfile", "bundler"),
    ("composer.json", "composer"),
    ("mix.exs", "mix"),
    ("Package.swift", "swift"),
    ("flake.nix", "nix"),
    ("Dockerfile", "docker"),
    ("compose.yaml", "docker"),
];

pub(in crate::exec) fn project_overview(env: &Env, call: &Call) -> Result<Value, ToolError> {
    let Nothing {} = call.arguments()?;
    let spot = env.files.find(".", &call.policy, Access::Read)?;
    let dir = env.files.dir(&spot)?;
    let mut names = Vec::new();
    for entry in dir.entries().map_err(|e| io_error("folder", &e))?.flatten() {
        call.check()?;
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        names.push(format!("{}{}", entry.file_name().to_string_lossy(), if is_dir { "/" } else { "" }));
    }
    names.sort();
    let build: Vec<Value> = BUILD_FILES
        .iter()
        .filter(|(file, _)| names.binary_search(&(*file).to_owned()).is_ok())
        .map(|(file, with)| json!({"file": file, "with": with}))
        .collect();
    let total = names.len();
    names.truncate(limits::OVERVIEW_ENTRIES);
    let tools: Vec<&str> = tools::advertised(&call.policy).map(|tool| tool.name).collect();
    Ok(json!({
        "workspace": env.files.root().file_name().map(|name| name.to_string_lossy()),
        "entries": names,
        "entries_total": total,
        "build": build,
        "git": branch(env, call),
        "policy": call.policy,
        "tools": tools,
    }))
}

/// Branch of the workspace's own repository, read without opening it.
fn branch(env: &Env, call: &Call) -> Value {
    let head = env.files.root().join(".git").join("HEAD");
    let mut text = String::new();
    let read = env.files.check(head, &call.policy, Access::Read).and_then(|spot| env.files.file(&spot));
    match read.map(|file| file.take(limits::GIT_HEAD_MAX as u64).read_to_string(&mut text)) {
        Ok(Ok(_)) => json!({"branch": text.trim().strip_prefix("ref: refs/heads/")}),
        _ => Value::Null,
    }
}
