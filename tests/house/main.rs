//! The rules of the house, as tests: who may depend on whom, what is named where, how long files are, and whether what
//! is made from the sources is in date. `make limits` and `make types` (`UPDATE=1`) write it again.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

mod crates;
mod examples;
mod icons;
mod links;
mod pages;
mod sources;
#[cfg(feature = "ts")]
mod types;
mod words;

use std::path::{Path, PathBuf};

/// The top of the source tree.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `folder` (relative to the root) with one of these extensions, in a fixed order. A folder that does not exist has none.
fn files(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(dir) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            if path.is_dir() {
                if !matches!(name, "target" | "node_modules" | "corpus" | "artifacts" | "dist")
                    && !name.starts_with('.')
                {
                    open.push(path);
                }
            } else if path.extension().and_then(|e| e.to_str()).is_some_and(|e| extensions.contains(&e)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The path as people write it, relative to the root.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
