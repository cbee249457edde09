//! The folder of a run: where it is and what stands in it.

use std::io;
use std::path::{Path, PathBuf};

use holdfast_core::id::RunId;
use holdfast_core::run::{Spec, VERSIONS};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::files::{self, FileError};

const META: &str = "meta";
pub(super) const CLAIM: &str = "claim";
pub(super) const EXIT: &str = "exit";
pub(super) const LEADER: &str = "leader";

/// More than any file of a run can have.
const FILE_MAX: usize = 2 * 1024 * 1024;

/// The folder of an attempt at a run, below the folder of all runs.
pub fn folder(runs: &Path, run: &RunId, attempt: u32) -> PathBuf {
    runs.join(format!("{run}-{attempt}"))
}

/// Where the runner of a folder is to listen, for [`Spec::socket`]: a short path in a folder of this user, which is made.
pub fn socket(folder: &Path) -> Result<PathBuf, FileError> {
    #[cfg(unix)]
    let home = {
        let given = std::env::var_os("XDG_RUNTIME_DIR").filter(|v| !v.is_empty()).map(PathBuf::from);
        match given.filter(|given| given.is_absolute() && given.is_dir()) {
            Some(given) => given.join("holdfast"),
            None => PathBuf::from(format!("/tmp/holdfast-{}", nix::unistd::geteuid())),
        }
    };
    #[cfg(windows)]
    let home = folder.to_path_buf();
    files::make_dir(&home)?;
    // In a folder that everybody may write to, somebody else may have been first.
    if home.is_symlink() {
        return Err(FileError::NotOurs { path: home, why: "it is a symbolic link" });
    }
    files::own_dir(&home)?;
    let digest = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    Ok(home.join(format!("run-{}", &data_encoding::HEXLOWER.encode(&digest)[..24])))
}

/// Makes the folder of a run and writes what is to run, durably: a claim must not be lost with the folder it stands in.
/// Nothing runs yet.
pub fn prepare(folder: &Path, spec: &Spec) -> Result<(), FileError> {
    files::make_dir(folder)?;
    write(&folder.join(META), spec)?;
    // The folder of all runs may be new, too.
    folder.ancestors().skip(1).take(2).try_for_each(|above| sync_folder(above).map_err(FileError::io(above)))
}

/// What was to run. Fails with `InvalidData` for a version that this build does not understand.
pub fn spec(folder: &Path) -> io::Result<Spec> {
    let spec: Spec = read(&folder.join(META))?.ok_or(io::ErrorKind::NotFound)?;
    match VERSIONS.contains(&spec.version) {
        true => Ok(spec),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "the run is of another version of Holdfast")),
    }
}

/// Replaces a file of a run as a whole, durably.
pub(super) fn write(path: &Path, what: &impl Serialize) -> Result<(), FileError> {
    let text = serde_json::to_vec(what).map_err(|e| FileError::io(path)(e.into()))?;
    files::replace(path, &text)?;
    sync_folder(path.parent().unwrap_or(path)).map_err(FileError::io(path))
}

/// Reads a file of a run; `None` if there is none. Fails with `InvalidData` if it says nothing, cut off or not.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match files::read(path, FILE_MAX) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e)),
        Err(e) if e.is_absent() => Ok(None),
        Err(FileError::Io { source, .. }) => Err(source),
        Err(e) => Err(io::Error::other(e)),
    }
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    std::fs::File::open(folder)?.sync_all()?;
    #[cfg(windows)]
    let _ = folder;
    Ok(())
}
