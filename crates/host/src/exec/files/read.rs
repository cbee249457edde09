//! list_roots, list_dir, read_file.

use std::io::Read as _;

use base64::Engine as _;
use holdfast_core::code::ToolError;
use holdfast_core::limits;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Access;
use crate::exec::call::{Call, bounded, invalid, io_error};
use crate::exec::env::Env;

/// Arguments of tools that take a folder and nothing else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::exec) struct PathOnly {
    #[serde(default = "here")]
    pub(in crate::exec) path: String,
}

pub(in crate::exec) fn here() -> String {
    ".".into()
}

/// Arguments of tools that take none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::exec) struct Nothing {}

pub(in crate::exec) fn list_roots(env: &Env, call: &Call) -> Result<Value, ToolError> {
    let Nothing {} = call.arguments()?;
    let root = env.files.root();
    let mut entry = json!({"path": ".", "name": root.file_name().map(|name| name.to_string_lossy())});
    if call.policy.expose_absolute_paths {
        entry["absolute_path"] = json!(root.to_string_lossy());
    }
    Ok(json!({"roots": [entry], "unrestricted_paths": call.policy.unrestricted_paths}))
}

#[derive(Serialize)]
struct Entry {
    name: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

pub(in crate::exec) fn list_dir(env: &Env, call: &Call) -> Result<Value, ToolError> {
    let PathOnly { path } = call.arguments()?;
    let spot = env.files.find(&path, &call.policy, Access::Read)?;
    let dir = env.files.dir(&spot)?;
    let mut entries = Vec::new();
    let mut total = 0usize;
    for entry in dir.entries().map_err(|e| io_error("folder", &e))? {
        call.check()?;
        let entry = entry.map_err(|e| io_error("folder", &e))?;
        total += 1;
        if entries.len() == limits::DIR_ENTRIES_MAX {
            continue;
        }
        let kind = entry.file_type().map_err(|e| io_error("folder", &e))?;
        let size = kind.is_file().then(|| entry.metadata().map(|meta| meta.len()).ok()).flatten();
        let kind = match kind {
            kind if kind.is_dir() => "dir",
            kind if kind.is_file() => "file",
            kind if kind.is_symlink() => "symlink",
            _ => "other",
        };
        entries.push(Entry { name: entry.file_name().to_string_lossy().into_owned(), kind, size });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(json!({"path": spot.shown, "truncated": total > entries.len(), "total": total, "entries": entries}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadFile {
    path: String,
    start_line: Option<u64>,
    end_line: Option<u64>,
    max_bytes: Option<u64>,
}

#[derive(Serialize)]
struct FileText {
    path: String,
    size_bytes: u64,
    sha256: String,
    total_lines: u64,
    start_line: u64,
    /// Last line shown.
    end_line: u64,
    encoding: &'static str,
    content: String,
    truncated: bool,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_line: Option<u64>,
}

pub(in crate::exec) fn read_file(env: &Env, call: &Call) -> Result<impl Serialize + use<>, ToolError> {
    let args: ReadFile = call.arguments()?;
    let max = bounded("max_bytes", args.max_bytes, 1, limits::FILE_BYTES_MAX, limits::FILE_BYTES_DEFAULT)?;
    let (first, last) = (args.start_line.unwrap_or(1), args.end_line.unwrap_or(u64::MAX));
    if first == 0 || last < first {
        return Err(invalid("start_line counts from 1 and end_line is not before it"));
    }
    let spot = env.files.find(&args.path, &call.policy, Access::Read)?;
    let mut file = env.files.file(&spot)?;

    // The whole file is read, for its digest and number of lines, but never more of it kept than is shown.
    let mut hash = Sha256::new();
    let mut kept = Vec::new();
    let (mut size, mut line, mut overflow, mut ends_in_newline) = (0u64, 1u64, false, true);
    let mut block = vec![0; 64 * 1024];
    loop {
        call.check()?;
        let read = file.read(&mut block).map_err(|e| io_error("file", &e))?;
        if read == 0 {
            break;
        }
        let block = &block[..read];
        hash.update(block);
        size += read as u64;
        ends_in_newline = block.ends_with(b"\n");
        for piece in block.split_inclusive(|b| *b == b'\n') {
            if (first..=last).contains(&line) && !overflow {
                let room = max - kept.len();
                overflow = piece.len() > room;
                kept.extend_from_slice(&piece[..piece.len().min(room)]);
            }
            line += u64::from(piece.ends_with(b"\n"));
        }
    }
    let total_lines = if ends_in_newline { line - 1 } else { line };
    if overflow {
        cut(&mut kept);
    }
    let shown_lines =
        kept.iter().filter(|b| **b == b'\n').count() as u64 + u64::from(!kept.is_empty() && !kept.ends_with(b"\n"));
    let end_line = (first + shown_lines).saturating_sub(1);
    let (encoding, content) = match String::from_utf8(kept) {
        Ok(text) => ("utf-8", text),
        Err(bytes) => ("base64", base64::engine::general_purpose::STANDARD.encode(bytes.as_bytes())),
    };
    Ok(FileText {
        path: spot.shown,
        size_bytes: size,
        sha256: data_encoding::HEXLOWER.encode(&hash.finalize()),
        total_lines,
        start_line: first,
        end_line,
        encoding,
        content,
        truncated: overflow,
        next_line: overflow.then_some(end_line + 1),
    })
}

/// Takes the last, incomplete line away, or if there is only one line the last, incomplete character.
fn cut(kept: &mut Vec<u8>) {
    if let Some(newline) = kept.iter().rposition(|b| *b == b'\n') {
        kept.truncate(newline + 1);
    } else if let Err(e) = std::str::from_utf8(kept)
        && e.error_len().is_none()
    {
        kept.truncate(e.valid_up_to());
    }
}
