//! The files of a store: private to this user, and opened with the settings that every connection needs.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdfast_core::limits;
use rusqlite::{Connection, OpenFlags};

use crate::StoreError;

/// SQLite's log, beside the main file.
pub(crate) const LOG: &str = "-wal";
/// Everything SQLite keeps beside the main file, itself first.
pub(crate) const ALL: [&str; 3] = ["", LOG, "-shm"];

/// A file beside another one: its name and a suffix.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Opens the one connection that writes.
pub(crate) fn connect_writer(path: &Path, page: u32) -> Result<Connection, StoreError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "page_size", page)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS an ordinary sync leaves data in the drive's cache; elsewhere these mean nothing.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.query_row(&format!("PRAGMA journal_size_limit = {}", limits::STORE_LOG_KEPT), [], |_| Ok(()))?;
    connection.set_prepared_statement_cache_capacity(limits::STORE_STATEMENTS);
    Ok(connection)
}

/// Opens a connection that only reads.
pub(crate) fn connect_reader(path: &Path) -> Result<Connection, StoreError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn connect(path: &Path, mode: OpenFlags) -> Result<Connection, StoreError> {
    // No SQLITE_OPEN_URI: a folder's name must not be read as options.
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|e| StoreError::ReadOnly { path: path.into(), reason: e.to_string() })?;
    connection.busy_timeout(limits::STORE_LOCK_WAIT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// Cuts statements of a connection off that are still running after this time.
pub(crate) fn allow(connection: &Connection, time: Option<Duration>) -> rusqlite::Result<()> {
    /// Instructions between two looks at the clock: well below a millisecond.
    const LOOK_EVERY: i32 = 10_000;
    let until = time.map(|time| Instant::now() + time);
    connection.progress_handler(LOOK_EVERY, until.map(|until| move || Instant::now() >= until))
}

/// Makes a folder and its parents, 0700.
#[cfg(unix)]
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Opens a file, made 0600 when absent, and closes it to everybody else.
#[cfg(unix)]
pub(crate) fn create(file: &Path) -> io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    // SQLite gives its -wal and -shm files the mode of the main file.
    let created = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(file)?;
    if created.metadata()?.permissions().mode() & 0o077 != 0 {
        created.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(created)
}

/// Makes a folder and its parents.
#[cfg(not(unix))]
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Opens a file, made when absent.
#[cfg(not(unix))]
pub(crate) fn create(file: &Path) -> io::Result<File> {
    fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_that_runs_for_longer_than_allowed_is_cut_off_and_the_next_has_its_own_time() {
        let db = Connection::open_in_memory().unwrap();
        let count = |to: &str| {
            let sql = format!(
                "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c {to}) SELECT count(*) FROM c"
            );
            db.query_row(&sql, [], |row| row.get::<_, i64>(0)).map_err(StoreError::from)
        };
        allow(&db, Some(Duration::from_millis(20))).unwrap();
        assert_eq!(count(""), Err(StoreError::Slow));
        allow(&db, Some(limits::STORE_READ_MAX)).unwrap();
        assert_eq!(count("WHERE n < 1000"), Ok(1000));
        allow(&db, None).unwrap();
        assert_eq!(count("WHERE n < 100000"), Ok(100_000));
    }
}
