//! write_file and edit_file, and the atomic commit every change goes through.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};

use cap_std::fs::{Dir, OpenOptions};
use holdfast_core::code::{Code, ToolError};
use holdfast_core::limits;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::workspace::{Access, Spot, open_file};
use crate::exec::call::{Call, bounded_text, invalid, io_error, random_name};
use crate::exec::env::Env;

/// What must be true of a file when its change is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expect {
    Anything,
    Absent,
    /// SHA-256 as lower-case hex.
    Digest(String),
}

/// A file as it is before a change.
pub(super) struct Current {
    pub(super) bytes: Vec<u8>,
    pub(super) sha256: String,
}

#[derive(Serialize)]
pub(in crate::exec) struct Written {
    path: String,
    sha256: String,
    size_bytes: usize,
    created: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    replacements: Option<usize>,
}

pub(super) fn digest(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

/// The change was made meanwhile by somebody else, or is not what the caller thinks.
pub(super) fn conflict(what: &str) -> ToolError {
    ToolError::new(Code::Conflict, what)
}

/// Reads a file that is to be changed; nothing if there is none. What is no regular file, or too big, is refused.
pub(super) fn current(dir: &Dir, name: &OsStr) -> Result<Option<Current>, ToolError> {
    match dir.symlink_metadata(name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io_error("file", &e)),
        Ok(meta) if meta.is_symlink() => {
            return Err(ToolError::new(Code::PathBoundary, "the target is a symbolic link"));
        }
        Ok(meta) if !meta.is_file() => return Err(invalid("the target is not a regular file")),
        Ok(_) => (),
    }
    let mut bytes = Vec::new();
    let file = open_file(dir, name)?;
    file.take(limits::FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|e| io_error("file", &e))?;
    if bytes.len() > limits::FILE_BYTES_MAX {
        return Err(ToolError::new(
            Code::LimitExceeded,
            format!("the file is larger than {} bytes", limits::FILE_BYTES_MAX),
        ));
    }
    Ok(Some(Current { sha256: digest(&bytes), bytes }))
}

/// Puts content in a file's place as a whole, if `expect` still holds. Permissions of the old file stay.
pub(super) fn commit(dir: &Dir, name: &OsStr, content: &[u8], expect: &Expect) -> Result<(), ToolError> {
    let failed = |e: io::Error| io_error("the file cannot be written", &e);
    let staged = Staged { dir, name: OsString::from(random_name(".holdfast-")?) };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = dir.open_with(&staged.name, &options).map_err(failed)?;
    if let Ok(meta) = dir.symlink_metadata(name) {
        file.set_permissions(meta.permissions()).map_err(failed)?;
    }
    file.write_all(content).and_then(|()| file.sync_all()).map_err(failed)?;
    drop(file);
    if *expect == Expect::Absent {
        // A hard link is the rename that refuses to replace.
        match dir.hard_link(&staged.name, dir, name) {
            Ok(()) => (),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(conflict("the file exists")),
            // Not every file system has links; an exclusive create refuses too, but shows the file while it grows.
            Err(_) => dir
                .open_with(name, &options)
                .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
                .map_err(failed)?,
        }
    } else {
        // As late as can be; what is replaced is at least never a link or a folder.
        if *expect != Expect::Anything {
            check(current(dir, name)?.as_ref(), expect)?;
        }
        dir.rename(&staged.name, dir, name).map_err(failed)?;
    }
    sync(dir);
    Ok(())
}

/// Removes a file, if `expect` still holds.
pub(super) fn remove(dir: &Dir, name: &OsStr, expect: &Expect) -> Result<(), ToolError> {
    check(current(dir, name)?.as_ref(), expect)?;
    dir.remove_file(name).map_err(|e| io_error("the file cannot be removed", &e))?;
    sync(dir);
    Ok(())
}

pub(super) fn check(current: Option<&Current>, expect: &Expect) -> Result<(), ToolError> {
    match (expect, current) {
        (Expect::Anything, _) | (Expect::Absent, None) => Ok(()),
        (Expect::Absent, Some(_)) => Err(conflict("the file exists")),
        (Expect::Digest(_), None) => Err(conflict("the file does not exist")),
        (Expect::Digest(digest), Some(current)) if *digest == current.sha256 => Ok(()),
        (Expect::Digest(_), Some(_)) => Err(conflict("the file is not what it was: its SHA-256 differs")),
    }
}

/// Makes a rename durable where folders can be synced.
fn sync(dir: &Dir) {
    if let Ok(dir) = dir.try_clone() {
        let _ = dir.into_std_file().sync_all();
    }
}

/// A temporary file beside its target; gone when dropped, whatever happened.
struct Staged<'a> {
    dir: &'a Dir,
    name: OsString,
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        let _ = self.dir.remove_file(&self.name);
    }
}

/// The precondition of `expected_sha256`.
fn expected(sha256: Option<&str>) -> Result<Expect, ToolError> {
    match sha256 {
        None => Ok(Expect::Anything),
        Some(hex) if hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
            Ok(Expect::Digest(hex.to_ascii_lowercase()))
        }
        Some(_) => Err(invalid("expected_sha256 must be 64 hexadecimal digits")),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteFile {
    path: String,
    content: String,
    #[serde(default)]
    create_only: bool,
    expected_sha256: Option<String>,
}

pub(in crate::exec) fn write_file(env: &Env, call: &Call) -> Result<Written, ToolError> {
    let args: WriteFile = call.arguments()?;
    bounded_text("content", &args.content, 0, limits::FILE_BYTES_MAX)?;
    let expect = match (args.create_only, expected(args.expected_sha256.as_deref())?) {
        (false, expect) => expect,
        (true, Expect::Anything) => Expect::Absent,
        (true, _) => return Err(invalid("create_only and expected_sha256 exclude each other")),
    };
    let spot = env.files.find(&args.path, &call.policy, Access::Write)?;
    let (dir, name) = env.files.parent(&spot, true)?;
    // What is already wrong fails before anything is written, and a file too big to read back is no base for a check.
    let existed = match &expect {
        Expect::Anything => exists(&dir, &name)?,
        expect => {
            let current = current(&dir, &name)?;
            check(current.as_ref(), expect)?;
            current.is_some()
        }
    };
    commit(&dir, &name, args.content.as_bytes(), &expect)?;
    Ok(written(spot, args.content.as_bytes(), !existed, None))
}

fn exists(dir: &Dir, name: &OsStr) -> Result<bool, ToolError> {
    match dir.symlink_metadata(name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(io_error("file", &e)),
        Ok(meta) if meta.is_symlink() => Err(ToolError::new(Code::PathBoundary, "the target is a symbolic link")),
        Ok(meta) if !meta.is_file() => Err(invalid("the target is not a regular file")),
        Ok(_) => Ok(true),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditFile {
    path: String,
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
    expected_sha256: Option<String>,
}

pub(in crate::exec) fn edit_file(env: &Env, call: &Call) -> Result<Written, ToolError> {
    let args: EditFile = call.arguments()?;
    bounded_text("old_text", &args.old_text, 1, limits::FILE_BYTES_MAX)?;
    bounded_text("new_text", &args.new_text, 0, limits::FILE_BYTES_MAX)?;
    let expect = expected(args.expected_sha256.as_deref())?;
    let spot = env.files.find(&args.path, &call.policy, Access::Write)?;
    let (dir, name) = env.files.parent(&spot, false)?;
    let current = current(&dir, &name)?.ok_or_else(|| ToolError::new(Code::NotFound, "no such file"))?;
    check(Some(&current), &expect)?;
    let text = std::str::from_utf8(&current.bytes).map_err(|_| invalid("the file is no UTF-8 text"))?;
    let found = text.matches(&args.old_text).count();
    match found {
        0 => return Err(conflict("old_text is not in the file")),
        1 => (),
        _ if args.replace_all => (),
        n => return Err(conflict(&format!("old_text is in the file {n} times; add context or set replace_all"))),
    }
    // What it will be is known before it is made.
    let size = text.len() - found * args.old_text.len() + found * args.new_text.len();
    if size > limits::FILE_BYTES_MAX {
        return Err(ToolError::new(
            Code::LimitExceeded,
            format!("the file would have more than {} bytes", limits::FILE_BYTES_MAX),
        ));
    }
    let text = text.replace(&args.old_text, &args.new_text);
    commit(&dir, &name, text.as_bytes(), &Expect::Digest(current.sha256))?;
    Ok(written(spot, text.as_bytes(), false, Some(found)))
}

fn written(spot: Spot, content: &[u8], created: bool, replacements: Option<usize>) -> Written {
    Written { path: spot.shown, sha256: digest(content), size_bytes: content.len(), created, replacements }
}
