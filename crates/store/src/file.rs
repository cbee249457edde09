//! The files of a store: private to this user, and opened with the settings that every connection needs.

use std::fs;
use std::path::Path;

use holdfast_core::limits;
use rusqlite::{Connection, OpenFlags};

use crate::StoreError;

pub(crate) fn connect(path: &Path, mode: OpenFlags) -> Result<Connection, StoreError> {
    // No SQLITE_OPEN_URI: a folder's name must not be read as options.
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|e| StoreError::ReadOnly { path: path.into(), reason: e.to_string() })?;
    connection.busy_timeout(limits::STORE_LOCK_WAIT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

#[cfg(unix)]
pub(crate) fn create_private(folder: &Path, file: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // SQLite gives its -wal and -shm files the mode of the main file.
    let created = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(file)?;
    if created.metadata()?.permissions().mode() & 0o077 != 0 {
        created.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn create_private(folder: &Path, file: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(file).map(drop)
}
