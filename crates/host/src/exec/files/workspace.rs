//! Which files a call may touch, and how they are opened so that nobody can swap them in between.
//!
//! A path is made real first and checked; then the folder it lies in is opened component by component from a trusted
//! base, following no link. Whatever is put in a component's place meanwhile makes the call fail and cannot redirect it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};

use cap_fs_ext::{DirExt as _, MetadataExt as _, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions};
use holdfast_core::code::{Code, ToolError};
use holdfast_core::limits;
use holdfast_core::policy::Policy;
use sha2::{Digest as _, Sha256};

use crate::exec::call::{invalid, io_error};

/// The workspace, and the folders of Holdfast itself.
pub(crate) struct Workspace {
    root: PathBuf,
    /// Real paths of Holdfast's folders.
    private: Vec<PathBuf>,
    /// Device and inode of those that exist. Names can lie (a bind mount, a case-insensitive file system); these do not.
    private_ids: Vec<(u64, u64)>,
}

/// What a path is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    /// The target may be absent; it must be no link and not part of a git folder.
    Write,
}

/// A checked target: its real path, and how results call it.
#[derive(Debug, Clone)]
pub(crate) struct Spot {
    pub(crate) real: PathBuf,
    pub(crate) shown: String,
    /// Where the walk to it starts: the workspace, or the root of its file system.
    base: PathBuf,
}

impl Workspace {
    pub(in crate::exec) fn open(root: &Path, private: &[PathBuf]) -> io::Result<Workspace> {
        let root = root.canonicalize()?;
        if !root.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        // A folder that does not exist yet is guarded by the name it will have.
        let private: Vec<PathBuf> = private.iter().map(|p| nearest_real(p).unwrap_or_else(|_| p.clone())).collect();
        if private.iter().any(|private| root.starts_with(private)) {
            return Err(io::Error::other("it lies in one of Holdfast's own folders, which are closed to tools"));
        }
        let id = |path: &PathBuf| Dir::open_ambient_dir(path, ambient_authority()).and_then(|dir| identity(&dir)).ok();
        let private_ids = private.iter().filter_map(id).collect();
        Ok(Workspace { root, private, private_ids })
    }

    /// The workspace's real path.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Checks a path from arguments.
    pub(crate) fn find(&self, path: &str, policy: &Policy, access: Access) -> Result<Spot, ToolError> {
        if path.is_empty() || path.len() > limits::PATH_MAX || path.contains('\0') {
            return Err(invalid(format!("path must have 1 to {} bytes and no NUL", limits::PATH_MAX)));
        }
        let asked = self.root.join(path);
        let real = match access {
            Access::Read => asked.canonicalize().map_err(|e| io_error("path", &e))?,
            Access::Write => {
                if asked.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
                    return Err(ToolError::new(Code::PathBoundary, "the target is a symbolic link"));
                }
                nearest_real(&asked).map_err(|e| io_error("path", &e))?
            }
        };
        self.check(real, policy, access)
    }

    /// Checks a real path.
    pub(in crate::exec) fn check(&self, real: PathBuf, policy: &Policy, access: Access) -> Result<Spot, ToolError> {
        let refused = |why: &str| Err(ToolError::new(Code::PathBoundary, why));
        let inside = real.starts_with(&self.root);
        if !inside && !policy.unrestricted_paths {
            return refused("the path lies outside the workspace");
        }
        if self.is_private(&real) {
            return refused("Holdfast's own folders are closed to tools");
        }
        // On Windows a colon names a stream behind a file, or a device.
        if cfg!(windows)
            && real.components().any(|c| matches!(c, Component::Normal(n) if n.to_string_lossy().contains(':')))
        {
            return Err(invalid("the path is not plain"));
        }
        if access == Access::Write && real.components().any(|c| is_git_folder(c.as_os_str())) {
            return refused("git folders are closed to writing tools");
        }
        let base = if inside { self.root.clone() } else { real.ancestors().last().unwrap_or(&real).to_path_buf() };
        Ok(Spot { shown: self.show(&real, policy), real, base })
    }

    /// Whether a real path lies in one of Holdfast's folders.
    pub(in crate::exec) fn is_private(&self, real: &Path) -> bool {
        self.private.iter().any(|private| real.starts_with(private))
    }

    /// How a real path is called in results.
    pub(in crate::exec) fn show(&self, real: &Path, policy: &Policy) -> String {
        match real.strip_prefix(&self.root) {
            Ok(rest) if rest.as_os_str().is_empty() => ".".into(),
            Ok(rest) => rest.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/"),
            Err(_) if policy.expose_absolute_paths => real.to_string_lossy().into_owned(),
            Err(_) => {
                let digest = Sha256::digest(real.as_os_str().as_encoded_bytes());
                format!("<external-path:{}>", &data_encoding::HEXLOWER.encode(&digest)[..12])
            }
        }
    }

    /// Opens the folder a target lies in, making absent ones when `make` is set.
    pub(crate) fn parent(&self, spot: &Spot, make: bool) -> Result<(Dir, OsString), ToolError> {
        let name = spot.real.file_name().ok_or_else(|| invalid("the path names no file"))?.to_os_string();
        let dir = self.walk(&spot.base, spot.real.parent().unwrap_or(&spot.base), make)?;
        Ok((dir, name))
    }

    /// Opens a folder.
    pub(in crate::exec) fn dir(&self, spot: &Spot) -> Result<Dir, ToolError> {
        self.walk(&spot.base, &spot.real, false)
    }

    /// Opens a regular file for reading.
    pub(in crate::exec) fn file(&self, spot: &Spot) -> Result<File, ToolError> {
        let (dir, name) = self.parent(spot, false)?;
        open_file(&dir, &name)
    }

    fn walk(&self, base: &Path, to: &Path, make: bool) -> Result<Dir, ToolError> {
        let failed = |e: io::Error| io_error("folder", &e);
        let mut dir = Dir::open_ambient_dir(base, ambient_authority()).map_err(failed)?;
        for component in to.strip_prefix(base).unwrap_or(Path::new("")).components() {
            let Component::Normal(name) = component else {
                return Err(invalid("the path is not plain"));
            };
            dir = match dir.open_dir_nofollow(name) {
                Err(e) if make && e.kind() == io::ErrorKind::NotFound => match dir.create_dir(name) {
                    Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed(e)),
                    _ => dir.open_dir_nofollow(name).map_err(failed)?,
                },
                other => other.map_err(failed)?,
            };
            if self.private_ids.contains(&identity(&dir).map_err(failed)?) {
                return Err(ToolError::new(Code::PathBoundary, "Holdfast's own folders are closed to tools"));
            }
        }
        Ok(dir)
    }
}

fn identity(dir: &Dir) -> io::Result<(u64, u64)> {
    dir.dir_metadata().map(|meta| (meta.dev(), meta.ino()))
}

/// Opens a regular file in a folder, following no link. Non-blocking, so that a planted pipe cannot hold a thread.
pub(crate) fn open_file(dir: &Dir, name: &OsStr) -> Result<File, ToolError> {
    let mut options = OpenOptions::new();
    options.read(true).follow(cap_fs_ext::FollowSymlinks::No).nonblock(true);
    let file = dir.open_with(name, &options).map_err(|e| io_error("file", &e))?;
    if file.metadata().is_ok_and(|meta| meta.is_file()) { Ok(file) } else { Err(invalid("not a regular file")) }
}

/// The real path of something that may not exist yet: its nearest existing folder made real, and the rest as named.
fn nearest_real(path: &Path) -> io::Result<PathBuf> {
    let mut absent = Vec::new();
    let mut at = path;
    loop {
        match at.canonicalize() {
            Ok(real) => return Ok(absent.into_iter().rev().fold(real, |real, name: &OsStr| real.join(name))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                // A link that points nowhere is there all the same.
                if at.symlink_metadata().is_ok() {
                    return Err(e);
                }
                // `..` below something absent has no meaning that could be checked.
                let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
                    return Err(io::Error::from(io::ErrorKind::InvalidInput));
                };
                absent.push(name);
                at = parent;
            }
            Err(e) => return Err(e),
        }
    }
}

/// `.git` in every spelling a file system may take for it.
fn is_git_folder(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let plain: String = name
        .chars()
        .filter(
            |c| !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'),
        )
        .collect();
    let plain = plain.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    plain == ".git" || plain == "git~1" || plain.starts_with(".git:")
}
