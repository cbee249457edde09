//! Which repository a path belongs to, and whether all of it lies where the call may read.

use std::path::{Path, PathBuf};

use holdfast_core::code::{Code, ToolError};
use holdfast_core::limits;
use holdfast_core::policy::Policy;

use crate::exec::call::Call;
use crate::exec::env::Env;
use crate::exec::files::Access;

/// A repository whose working tree and git folder passed the check.
pub(crate) struct Found {
    /// Real path of the working tree.
    pub(crate) root: PathBuf,
    pub(crate) shown: String,
    /// What was asked for, relative to the working tree; empty for all of it.
    pub(crate) below: PathBuf,
}

pub(crate) fn find(env: &Env, policy: &Policy, path: &str) -> Result<Found, ToolError> {
    let spot = env.files.find(path, policy, Access::Read)?;
    for root in spot.real.ancestors() {
        let Ok(at) = env.files.check(root.to_path_buf(), policy, Access::Read) else { break };
        if root.join(".git").symlink_metadata().is_ok() {
            let below = spot.real.strip_prefix(root).unwrap_or(Path::new("")).to_path_buf();
            return Ok(Found { root: root.to_path_buf(), shown: at.shown, below });
        }
    }
    Err(ToolError::new(Code::NotFound, "no git repository there within the workspace"))
}

/// Refuses a git folder that leads elsewhere: what it lends from, or links in it that leave the workspace.
pub(super) fn contained(env: &Env, call: &Call, git: &Path, common: &Path) -> Result<(), ToolError> {
    let outside = || ToolError::new(Code::PathBoundary, "the repository reaches outside the workspace");
    let inside = |path: &Path| -> Result<PathBuf, ToolError> {
        let real = path.canonicalize().map_err(|_| outside())?;
        env.files.check(real.clone(), &call.policy, Access::Read).map_err(|_| outside())?;
        Ok(real)
    };
    inside(git)?;
    let common = inside(common)?;
    let mut folders: Vec<PathBuf> =
        [git.to_path_buf(), common.clone(), common.join("objects/info"), common.join("objects/pack")].into();
    folders.push(common.join("objects"));
    folders.push(common.join("refs"));
    while let Some(folder) = folders.pop() {
        call.check()?;
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let kind = entry.file_type();
            if kind.as_ref().is_ok_and(std::fs::FileType::is_symlink) {
                inside(&entry.path())?;
            } else if kind.is_ok_and(|kind| kind.is_dir()) && folder.starts_with(common.join("refs")) {
                folders.push(entry.path());
            }
        }
    }
    // Stores that lend objects may lend from others in turn.
    let mut stores = vec![common.join("objects")];
    let mut seen = 0;
    while let Some(store) = stores.pop() {
        seen += 1;
        for line in std::fs::read_to_string(store.join("info/alternates")).unwrap_or_default().lines() {
            if !line.is_empty() && !line.starts_with('#') {
                if seen > limits::GIT_STORES_MAX {
                    return Err(outside());
                }
                stores.push(inside(&store.join(line))?);
            }
        }
    }
    Ok(())
}
