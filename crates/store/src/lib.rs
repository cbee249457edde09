//! SQLite opened right: WAL, one thread that writes, what is acknowledged is on disk. The schema is the user's ([`Layout`]).
//!
//! [`Store::write`] answers after the commit. Writes that wait together share one commit. A write that fails leaves no
//! trace, and does not disturb its neighbours. When the disk is full, writes are refused with [`StoreError::Full`] until there is
//! room again; [`Store::write_final`] still has a reserve. SQLite's log is bounded whoever reads ([`limits::STORE_LOG_MAX`]),
//! and a damaged file is refused or set aside, as its user wants.

mod damage;
mod error;
mod file;
mod job;
mod log;
mod queue;
mod reserve;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::limits;
use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite_migration::{M, Migrations};
use tokio::sync::oneshot;

use crate::log::{Log, Reads};
use crate::reserve::Reserve;
use crate::writer::{Disk, Writer};

pub use error::StoreError;
pub use reserve::Room;

/// The store. Clones share it; it closes with the last one.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    writer: Writer,
    readers: Mutex<Vec<Connection>>,
    reads: Reads,
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
    /// How to tell the room on the disk, where a reserve of [`limits::STORE_RESERVE`] bytes is wanted: a file beside the
    /// store that is given up when a final write finds the disk full. Ordinary writes are refused from then on until it
    /// could be made again.
    pub reserve: Option<Room>,
    /// Bytes of a page of a store that is made new, a power of two from 512 to 65536: [`PAGE`], or more where big values are
    /// kept, each of whose pages costs a read and two writes.
    pub page: u32,
}

/// A page that suits small rows.
pub const PAGE: u32 = 4096;

impl Store {
    /// Opens or creates a store in a folder, and takes the missing steps of its schema. Blocks; the folder is created with
    /// mode 0700 and the file with 0600. After a stop that was not clean the file is checked, for at most
    /// [`limits::STORE_CHECK_MAX`].
    pub fn open(folder: &Path, layout: &Layout) -> Result<Store, StoreError> {
        let path = folder.join(layout.file);
        let cannot = |e: std::io::Error| StoreError::ReadOnly { path: path.clone(), reason: e.to_string() };
        file::create_folder(folder).map_err(cannot)?;
        let mut reserve = layout.reserve.map(|room| Reserve::take(file::beside(&path, ".reserve"), room));
        let connection = match (prepare(&path, layout), &mut reserve) {
            // Even to open it takes some room. What was acknowledged must not become unreadable for want of it.
            (Err(StoreError::Full), Some(reserve)) => {
                reserve.free();
                prepare(&path, layout)
            }
            (other, _) => other,
        };
        let connection = connection.map_err(|e| e.at(&path))?;
        if let Some(reserve) = &mut reserve {
            // Made now, so that the first write need not wait for it.
            reserve.held();
        }
        let reads = Reads::default();
        let log = Log::new(file::beside(&path, file::LOG), reads.clone());
        log.watch(&connection);
        let writer = Writer::start(Disk { connection, log, reserve })?;
        Ok(Store(Arc::new(Inner { writer, readers: Mutex::default(), reads, path })))
    }

    /// As [`Store::open`]; but a damaged store is set aside and an empty one made in its place. Says where the damaged one is
    /// now: `<file>.damaged-<unix seconds>`, of which the newest [`limits::STORE_DAMAGED_KEPT`] are kept.
    pub fn open_or_set_aside(folder: &Path, layout: &Layout) -> Result<(Store, Option<PathBuf>), StoreError> {
        match Store::open(folder, layout) {
            Err(StoreError::Damaged) => {
                let aside = Store::set_aside(folder, layout)?;
                Ok((Store::open(folder, layout)?, Some(aside)))
            }
            other => Ok((other?, None)),
        }
    }

    /// Sets the files of a closed store aside, as [`Store::open_or_set_aside`] does: for a store whose damage shows when it is
    /// read. Says where they are now.
    pub fn set_aside(folder: &Path, layout: &Layout) -> Result<PathBuf, StoreError> {
        let path = folder.join(layout.file);
        damage::set_aside(&path).map_err(|e| StoreError::ReadOnly { path, reason: e.to_string() })
    }

    /// When a store of this folder was last set aside, if that one still stands there: unix seconds.
    pub fn set_aside_at(folder: &Path, layout: &Layout) -> Option<u64> {
        damage::kept(&folder.join(layout.file)).pop()
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
        self.0.writer.submit(job::ordinary(work, done));
    }

    /// As [`Store::write`], for the end of something that was begun, a few rows: it still passes when ordinary writes are
    /// refused for want of room, because it has the reserve. It may run more than once; only the last run counts.
    pub async fn write_final<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        self.submit_final(work, move |outcome| drop(tell.send(outcome)));
        told.await.unwrap_or(Err(StoreError::Closed))
    }

    /// [`Store::write_final`] without waiting, as [`Store::submit`]. Both classes are committed in the order in which they
    /// were handed in.
    pub fn submit_final<T, F, D>(&self, work: F, done: D)
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
        D: FnOnce(Result<T, StoreError>) + Send + 'static,
    {
        self.0.writer.submit(job::last(work, done));
    }

    /// Runs a query on a blocking thread with a read-only connection; it sees everything committed before. A query is cut
    /// off with [`StoreError::Slow`] after [`limits::STORE_READ_MAX`]: a long one is made in pages, one read each.
    pub async fn read<T, E, F>(&self, query: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        let store = self.clone();
        tokio::task::spawn_blocking(move || store.query(query, Some(limits::STORE_READ_MAX)))
            .await
            .unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }

    /// As [`Store::read`], on this thread and as long as it takes: for start-up, when little is written.
    pub fn read_now<T, E: From<StoreError>>(&self, query: impl FnOnce(&Connection) -> Result<T, E>) -> Result<T, E> {
        self.query(query, None)
    }

    fn query<T, E: From<StoreError>>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, E>,
        time: Option<Duration>,
    ) -> Result<T, E> {
        let pooled = self.0.readers.lock().pop();
        let connection = match pooled {
            Some(connection) => connection,
            None => file::connect_reader(&self.0.path)?,
        };
        let answer = {
            let _open = self.0.reads.read();
            file::allow(&connection, time).map_err(StoreError::from)?;
            query(&connection)
        };
        let mut readers = self.0.readers.lock();
        // One that was left inside a transaction would keep the log from being emptied.
        if connection.is_autocommit() && readers.len() < limits::STORE_READERS {
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

/// Makes the file ready for its writer.
fn prepare(path: &Path, layout: &Layout) -> Result<Connection, StoreError> {
    file::create(path).map_err(|e| StoreError::ReadOnly { path: path.into(), reason: e.to_string() })?;
    let stopped_hard = damage::was_stopped_hard(path)?;
    let mut connection = file::connect_writer(path, layout.page)?;
    // Whatever is wrong with it, a file that is refused is left as it is.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    if stopped_hard {
        damage::check(&connection)?;
    }
    Migrations::from_slice(layout.steps).to_latest(&mut connection).map_err(|e| match e {
        rusqlite_migration::Error::MigrationDefinition(_) => StoreError::Newer,
        rusqlite_migration::Error::RusqliteError { err, .. } => err.into(),
        other => StoreError::Sqlite(other.to_string()),
    })?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(connection)
}
