//! What git locks in a project and leaves locked when it is killed: every later step would fail for it. What a step of ours
//! left is unlocked; what may be somebody else's is told of.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use data_encoding::HEXLOWER;
use holdfast_core::code::Code;
use holdfast_core::operation::Failure;
use sha2::{Digest as _, Sha256};

use crate::{files, identity};

/// Where git keeps what it locks: a working tree's own folder, and the one it shares with others.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) project: PathBuf,
    pub(super) own: PathBuf,
    pub(super) shared: PathBuf,
}

/// A file that stands as long as a step works in a project, outside of it: found by a later process, its step was killed.
pub(super) struct Note {
    file: PathBuf,
    place: Place,
}

impl Note {
    /// Notes that a step begins in this process, which was `born` then, after what a killed one left was unlocked. Blocks.
    pub(super) fn put(notes: &Path, place: Place, born: SystemTime) -> Result<Note, Failure> {
        let digest = Sha256::digest(place.project.as_os_str().as_encoded_bytes());
        let file = notes.join(HEXLOWER.encode(&digest));
        if let Ok(since) = modified(&file)
            && !place.unlock(since, born)
        {
            return Err(locked("a lock of git"));
        }
        let put = files::make_dir(notes).and_then(|()| files::replace(&file, &[]));
        put.map_err(|e| Failure::nothing_done(Code::InternalError, format!("no note of the step can be kept: {e}")))?;
        let note = Note { file, place };
        match note.place.own.join("index.lock").symlink_metadata() {
            Ok(_) => Err(locked(".git/index.lock")),
            Err(_) => Ok(note),
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // A step that was cut short may have been killed, or is about to end.
        let unlocked = modified(&self.file).is_ok_and(|since| self.place.unlock(since, SystemTime::now()));
        if unlocked {
            // One that stays does no harm: what it unlocks is older than the next process.
            let _ = std::fs::remove_file(&self.file);
        }
    }
}

impl Place {
    /// Removes the locks that were made in this time, unless somebody's git runs here. Whether there is none of them any more.
    fn unlock(&self, since: SystemTime, until: SystemTime) -> bool {
        let mut locks = Vec::new();
        for folder in [&self.own, &self.shared] {
            locks.extend(["index.lock", "HEAD.lock", "packed-refs.lock"].map(|name| folder.join(name)));
        }
        for refs in ["refs/heads", "refs/remotes"] {
            collect(&self.shared.join(refs), &mut locks);
        }
        locks.retain(|lock| modified(lock).is_ok_and(|at| since < at && at <= until));
        if locks.is_empty() {
            return true;
        }
        let mine = !identity::works_in("git", &self.project);
        mine && locks.iter().all(|lock| match std::fs::remove_file(lock) {
            Ok(()) => {
                tracing::info!("removed what a git that was killed had locked: {}", lock.display());
                true
            }
            // The folders can be the same.
            Err(e) => e.kind() == io::ErrorKind::NotFound,
        })
    }
}

/// A lock that may be somebody else's.
pub(super) fn locked(what: &str) -> Failure {
    let why = format!("{what} exists: another git works in this project, or was killed in it; if none does, remove it");
    Failure::nothing_done(Code::Busy, why)
}

/// The lock that git says it found, if that is why it failed.
pub(super) fn found(said: &str) -> Option<&str> {
    let (before, _) = said.split_once(".lock': File exists")?;
    let path = before.rsplit('\'').next()?;
    path.rfind(".git/").map(|at| &said[before.len() - path.len() + at..before.len() + ".lock".len()])
}

fn modified(path: &Path) -> io::Result<SystemTime> {
    let metadata = path.symlink_metadata()?;
    match metadata.is_file() {
        true => metadata.modified(),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Locks below a folder. Links are not followed.
fn collect(folder: &Path, locks: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, locks),
            Ok(_) if path.extension().is_some_and(|extension| extension == "lock") => locks.push(path),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_that_git_complains_of_is_named() {
        let said = "fatal: Unable to create '/home/a/app/.git/index.lock': File exists.\n\nAnother git process …";
        assert_eq!(found(said), Some(".git/index.lock"));
        let said =
            "fatal: cannot lock ref 'refs/heads/main': Unable to create '/a/.git/refs/heads/main.lock': File exists.";
        assert_eq!(found(said), Some(".git/refs/heads/main.lock"));
        assert_eq!(found("fatal: '/a/.git/x.lock': No such file"), None);
        assert_eq!(found("error: 'x.lock': File exists"), None);
    }
}
