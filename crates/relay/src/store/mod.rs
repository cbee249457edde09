//! The relay's store: SQLite in WAL mode, one thread that writes, what is acknowledged is on disk.
//!
//! [`Store::write`] answers after the commit. Writes that wait together share one commit. A write that fails leaves no
//! trace, and does not disturb its neighbours. When the disk is full, writes are refused with [`StoreError::Full`] until there is
//! room again.

pub(crate) mod schema;
mod writer;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_core::code::Code;
use holdfast_core::limits;
use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::oneshot;

/// Why the store did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The disk is full. Nothing was written; the same write may be tried again later.
    #[error("the disk is full")]
    Full,
    /// Too many writes wait. Nothing was written.
    #[error("too many writes wait")]
    Busy,
    /// The folder or the file cannot be written.
    #[error("{} cannot be written: {reason}", path.display())]
    ReadOnly {
        /// What cannot be written.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// A newer Holdfast wrote this store; an older one must not touch it.
    #[error("the store was written by a newer version of Holdfast")]
    Newer,
    /// It is no store of ours, or not any more.
    #[error("the store is damaged")]
    Damaged,
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
    /// SQLite's words. They name tables and columns, never values.
    #[error("store: {0}")]
    Sqlite(String),
}

impl StoreError {
    /// The stable code.
    pub fn code(&self) -> Code {
        match self {
            StoreError::Full => Code::StorageFull,
            StoreError::Busy => Code::Busy,
            StoreError::ReadOnly { .. } | StoreError::Closed => Code::Unavailable,
            StoreError::Newer | StoreError::Damaged | StoreError::Sqlite(_) => Code::InternalError,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full,
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Damaged,
            Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { path: "store".into(), reason: "read-only".into() },
            _ => match error {
                rusqlite::Error::SqliteFailure(code, _) => StoreError::Sqlite(code.to_string()),
                other => StoreError::Sqlite(other.to_string()),
            },
        }
    }
}

/// The store. Clones share it; it closes with the last one.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    writer: writer::Writer,
    readers: Mutex<Vec<Connection>>,
    path: PathBuf,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.0.path).finish_non_exhaustive()
    }
}

/// File of the store inside the data folder.
pub const FILE: &str = "relay.sqlite";

impl Store {
    /// Opens or creates the store in a folder, and takes the missing steps of the schema. Blocks; the folder is created with
    /// mode 0700 and the file with 0600.
    pub fn open(folder: &Path) -> Result<Store, StoreError> {
        let path = folder.join(FILE);
        let cannot = |e: std::io::Error| StoreError::ReadOnly { path: path.clone(), reason: e.to_string() };
        create_private(folder, &path).map_err(cannot)?;
        let mut connection = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(|e| named(e.into(), &path))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        schema::MIGRATIONS.to_latest(&mut connection).map_err(|e| match e {
            rusqlite_migration::Error::MigrationDefinition(_) => StoreError::Newer,
            rusqlite_migration::Error::RusqliteError { err, .. } => named(err.into(), &path),
            other => StoreError::Sqlite(other.to_string()),
        })?;
        let writer = writer::Writer::start(connection)?;
        Ok(Store(Arc::new(Inner { writer, readers: Mutex::default(), path })))
    }

    /// Runs `work` on the writer thread inside a transaction and answers after the commit. An `Err` of `work` undoes what it did.
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        // A receiver that left needs no answer.
        self.submit(work, move |outcome| drop(tell.send(outcome)));
        told.await.unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }

    /// As [`Store::write`] without waiting: never blocks. `done` runs on the writer thread, in the order of the commits, so
    /// what it does to memory follows the disk; it must not block.
    pub fn submit<T, E, F, D>(&self, work: F, done: D)
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        D: FnOnce(Result<T, E>) + Send + 'static,
    {
        self.0.writer.submit(work, done);
    }

    /// Runs a query on a blocking thread with a read-only connection; it sees everything committed before.
    pub async fn read<T, E, F>(&self, query: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        let store = self.clone();
        tokio::task::spawn_blocking(move || store.read_now(query))
            .await
            .unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }

    /// As [`Store::read`], on this thread; for start-up.
    pub fn read_now<T, E: From<StoreError>>(&self, query: impl FnOnce(&Connection) -> Result<T, E>) -> Result<T, E> {
        let pooled = self.0.readers.lock().pop();
        let connection = match pooled {
            Some(connection) => connection,
            None => connect(&self.0.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?,
        };
        let answer = query(&connection);
        let mut readers = self.0.readers.lock();
        if readers.len() < limits::STORE_READERS {
            readers.push(connection);
        }
        answer
    }

    /// Waits for the writes handed in so far and closes the file. Later writes are refused. Blocks.
    pub fn close(&self) {
        self.0.writer.close();
        self.0.readers.lock().clear();
    }
}

fn named(error: StoreError, path: &Path) -> StoreError {
    match error {
        StoreError::ReadOnly { reason, .. } => StoreError::ReadOnly { path: path.into(), reason },
        other => other,
    }
}

fn connect(path: &Path, mode: OpenFlags) -> Result<Connection, StoreError> {
    // No SQLITE_OPEN_URI: a folder's name must not be read as options.
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|e| StoreError::ReadOnly { path: path.into(), reason: e.to_string() })?;
    connection.busy_timeout(limits::STORE_LOCK_WAIT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

#[cfg(unix)]
fn create_private(folder: &Path, file: &Path) -> std::io::Result<()> {
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
fn create_private(folder: &Path, file: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(file).map(drop)
}
