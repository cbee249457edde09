//! Private files: folders 0700, files 0600, replaced as a whole, and never reached through a planted link.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use holdfast_core::limits;

/// A file operation that failed, with the path it was about.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It belongs to somebody else, or others may write to it.
    #[error("{}: not used, because {why}", path.display())]
    NotOurs {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl FileError {
    /// Wraps an I/O error with its path.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> FileError + '_ {
        move |source| FileError::Io { path: path.to_path_buf(), source }
    }

    /// Whether the file is simply not there.
    pub fn is_absent(&self) -> bool {
        matches!(self, FileError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    fn not_ours(path: &Path, why: &'static str) -> FileError {
        FileError::NotOurs { path: path.to_path_buf(), why }
    }
}

/// Makes a folder and its parents, 0700. One that exists stays as it is.
pub fn make_dir(path: &Path) -> Result<(), FileError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(FileError::io(path))
}

/// Checks that a folder belongs to this user, and closes it to everybody else. On Windows the folders of a user's profile are
/// closed to other users by what they inherit; nothing is checked there.
pub fn own_dir(path: &Path) -> Result<(), FileError> {
    #[cfg(not(unix))]
    let _ = path;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let meta = fs::metadata(path).map_err(FileError::io(path))?;
        if meta.uid() != nix::unistd::geteuid().as_raw() {
            return Err(FileError::not_ours(path, "it belongs to another user"));
        }
        if meta.mode() & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(FileError::io(path))?;
        }
    }
    Ok(())
}

/// Opens a private file for reading and writing, made 0600 when absent. A symbolic link, or a file of another user, is
/// refused.
pub fn open(path: &Path) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    open_checked(path, options)
}

/// Reads a private file of at most `max` bytes as text. Refuses what [`open`] refuses, and a file others can read.
pub fn read(path: &Path, max: usize) -> Result<String, FileError> {
    let mut options = OpenOptions::new();
    options.read(true);
    let file = open_checked(path, options)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if file.metadata().map_err(FileError::io(path))?.mode() & 0o077 != 0 {
            return Err(FileError::not_ours(path, "others may read or write it"));
        }
    }
    let mut text = String::new();
    file.take(max as u64 + 1).read_to_string(&mut text).map_err(FileError::io(path))?;
    if text.len() > max {
        return Err(FileError::not_ours(path, "it is larger than it can be"));
    }
    Ok(text)
}

/// Replaces a file as a whole: a reader sees the old content or the new one. 0600.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    #[cfg(test)]
    fault::write(dir).map_err(FileError::io(path))?;
    // tempfile makes its files 0600.
    let mut file = tempfile::NamedTempFile::new_in(dir).map_err(FileError::io(dir))?;
    file.write_all(content).and_then(|()| file.as_file().sync_all()).map_err(FileError::io(path))?;
    file.persist(path).map_err(|e| FileError::io(path)(e.error))?;
    Ok(())
}

/// Removes a file; one that is not there is no error.
pub fn remove(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(FileError::io(path)(e)),
        _ => Ok(()),
    }
}

/// Bytes this user may still write on the disk of a folder; `None` where that cannot be told.
pub fn free_space(dir: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let stat = nix::sys::statvfs::statvfs(dir).ok()?;
        #[allow(clippy::useless_conversion, reason = "the fields differ in width between platforms")]
        Some(u64::from(stat.blocks_available()).saturating_mul(u64::from(stat.fragment_size())))
    }
    #[cfg(windows)]
    crate::platform::free_space(dir)
}

/// Whether the disk of a folder has come so close to full that output waits: less than [`limits::SPOOL_FLOOR`] and less than a
/// quarter of it left. What is left is for those who make room: ledgers and stores that have to write before they can forget.
pub fn is_nearly_full(dir: &Path) -> bool {
    #[cfg(unix)]
    let size = nix::sys::statvfs::statvfs(dir).ok().map(|stat| {
        #[allow(clippy::useless_conversion, reason = "the fields differ in width between platforms")]
        u64::from(stat.blocks()).saturating_mul(u64::from(stat.fragment_size()))
    });
    #[cfg(windows)]
    let size: Option<u64> = None;
    let floor = limits::SPOOL_FLOOR.min(size.map_or(u64::MAX, |size| size / 4));
    free_space(dir).is_some_and(|free| free < floor)
}

#[cfg_attr(not(unix), allow(unused_mut))]
fn open_checked(path: &Path, mut options: OpenOptions) -> Result<File, FileError> {
    #[cfg(test)]
    fault::wait(path);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
        // Non-blocking, so that a planted pipe cannot hold us up; it means nothing for a regular file.
        options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK);
        let file = options.open(path).map_err(|e| match e.raw_os_error() {
            Some(libc::ELOOP) => FileError::not_ours(path, "it is a symbolic link"),
            _ => FileError::io(path)(e),
        })?;
        let meta = file.metadata().map_err(FileError::io(path))?;
        if !meta.is_file() {
            return Err(FileError::not_ours(path, "it is not a regular file"));
        }
        if meta.uid() != nix::unistd::geteuid().as_raw() {
            return Err(FileError::not_ours(path, "it belongs to another user"));
        }
        Ok(file)
    }
    #[cfg(not(unix))]
    options.open(path).map_err(FileError::io(path))
}

/// Disks that are full or do not answer, for tests that cannot mount one.
#[cfg(test)]
pub(crate) mod fault {
    use std::io;
    use std::path::{Path, PathBuf};

    use parking_lot::{Condvar, Mutex};

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Fault {
        Full,
        Silent,
    }

    static FAULTS: Mutex<Vec<(PathBuf, Fault)>> = Mutex::new(Vec::new());
    static HEALED: Condvar = Condvar::new();

    /// Files below this folder meet it until the value is dropped.
    pub(crate) struct Faulty(PathBuf);

    impl Faulty {
        pub(crate) fn at(folder: &Path, fault: Fault) -> Faulty {
            FAULTS.lock().push((folder.to_path_buf(), fault));
            Faulty(folder.to_path_buf())
        }
    }

    impl Drop for Faulty {
        fn drop(&mut self) {
            FAULTS.lock().retain(|(folder, _)| *folder != self.0);
            HEALED.notify_all();
        }
    }

    /// Waits as long as the disk does not answer.
    pub(super) fn wait(path: &Path) {
        let silent = |faults: &mut Vec<(PathBuf, Fault)>| {
            faults.iter().any(|(folder, fault)| *fault == Fault::Silent && path.starts_with(folder))
        };
        HEALED.wait_while(&mut FAULTS.lock(), silent);
    }

    pub(super) fn write(dir: &Path) -> io::Result<()> {
        wait(dir);
        let full = |(folder, fault): &(PathBuf, Fault)| *fault == Fault::Full && dir.starts_with(folder);
        if FAULTS.lock().iter().any(full) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn folders_are_0700_and_files_0600() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("a/b");
        make_dir(&data).unwrap();
        assert_eq!((mode(&data), mode(&dir.path().join("a"))), (0o700, 0o700));
        open(&data.join("lock")).unwrap();
        replace(&data.join("api.json"), b"{}").unwrap();
        assert_eq!((mode(&data.join("lock")), mode(&data.join("api.json"))), (0o600, 0o600));
    }

    #[test]
    fn an_open_data_folder_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        own_dir(dir.path()).unwrap();
        assert_eq!(mode(dir.path()), 0o700);
    }

    #[test]
    fn a_planted_link_pipe_or_readable_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        fs::write(&target, "x").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(open(&link).unwrap_err().to_string().ends_with("not used, because it is a symbolic link"));
        fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read(&target, 10).unwrap_err().to_string().ends_with("others may read or write it"));
        fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&target, 1).unwrap(), "x");
        assert!(read(&target, 0).is_err());
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        assert!(read(&pipe, 10).unwrap_err().to_string().ends_with("it is not a regular file"));
        assert!(read(&dir.path().join("none"), 10).unwrap_err().is_absent());
    }
}
