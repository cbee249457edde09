//! SQLite opened right: WAL, one thread that writes, what is acknowledged is on disk. The schema is the user's ([`Layout`]).
//!
//! [`Store::write`] answers after the commit. Writes that wait together share one commit. A write that fails leaves no
//! trace, and does not disturb its neighbours. When the disk is full, writes are refused with [`StoreError::Full`] until there is
//! room again.

mod error;
mod file;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_core::limits;
use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};
use rusqlite_migration::{M, Migrations};
use tokio::sync::oneshot;

pub use error::StoreError;

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

/// What a user of a store decides about it.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The file's name inside its folder.
    pub file: &'static str,
    /// Every step of the schema, oldest first. A released step never changes; `PRAGMA user_version` counts those taken.
    pub steps: &'static [M<'static>],
}

impl Store {
    /// Opens or creates a store in a folder, and takes the missing steps of its schema. Blocks; the folder is created with
    /// mode 0700 and the file with 0600.
    pub fn open(folder: &Path, layout: &Layout) -> Result<Store, StoreError> {
        let path = folder.join(layout.file);
        let cannot = |e: std::io::Error| StoreError::ReadOnly { path: path.clone(), reason: e.to_string() };
        file::create_private(folder, &path).map_err(cannot)?;
        let mut connection = file::connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(|e| StoreError::from(e).at(&path))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        Migrations::from_slice(layout.steps).to_latest(&mut connection).map_err(|e| match e {
            rusqlite_migration::Error::MigrationDefinition(_) => StoreError::Newer,
            rusqlite_migration::Error::RusqliteError { err, .. } => StoreError::from(err).at(&path),
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
            None => file::connect(&self.0.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?,
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
