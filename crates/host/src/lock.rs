//! One owner of a data folder: an operating-system lock, which ends with the process however that ends.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use crate::files::{self, FileError};

/// The data folder, owned until this is dropped.
#[derive(Debug)]
pub struct DataLock {
    _file: File,
}

/// Why the data folder could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("{} is in use by another Holdfast{}", dir.display(), pid.map(|p| format!(" (process {p})")).unwrap_or_default())]
    Held {
        /// The folder.
        dir: PathBuf,
        /// The holder's process id, as it wrote it; for people.
        pid: Option<u32>,
    },
    /// The lock file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

impl DataLock {
    /// Whether a folder is a data folder that some process had at some time. Makes nothing.
    pub fn was_taken(dir: &Path) -> bool {
        dir.join("lock").exists()
    }

    /// Takes the lock of a data folder without waiting.
    pub fn take(dir: &Path) -> Result<DataLock, LockError> {
        let path = dir.join("lock");
        let mut file = files::open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // What stands in the file is only for the message.
                let _ = (&file).take(16).read_to_string(&mut text);
                return Err(LockError::Held { dir: dir.to_path_buf(), pid: text.trim().parse().ok() });
            }
            Err(TryLockError::Error(e)) => return Err(FileError::io(&path)(e).into()),
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()))
            .map_err(FileError::io(&path))?;
        Ok(DataLock { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_taker_is_told_who_holds_it_and_gets_it_when_the_first_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let first = DataLock::take(dir.path()).unwrap();
        match DataLock::take(dir.path()) {
            Err(LockError::Held { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(first);
        DataLock::take(dir.path()).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_planted_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, dir.path().join("lock")).unwrap();
        assert!(matches!(DataLock::take(dir.path()), Err(LockError::File(FileError::NotOurs { .. }))));
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }
}
