//! The size of SQLite's log (the `-wal` file).
//!
//! It is emptied when it is half as long as [`limits::STORE_LOG_KEPT`], after the commit is told: nobody who waits for one waits
//! for that too. While a read that began earlier is open it cannot be: then the log grows with every commit. Our own reads are waited for, and end within [`limits::STORE_READ_MAX`];
//! for those of others there is a bound, at which writes are refused until the log could be emptied.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_core::limits;
use parking_lot::RwLock;
use rusqlite::Connection;

use crate::job::Class;

/// Held by each of our own reads; alone by whoever empties the log.
pub(crate) type Reads = Arc<RwLock<()>>;

pub(crate) struct Log {
    file: PathBuf,
    reads: Reads,
    /// When it was last tried to empty it.
    tried: Option<Instant>,
    /// Bytes of a page.
    page: Option<u64>,
}

thread_local! {
    /// Pages in the log after this thread's last commit.
    static PAGES: Cell<u64> = const { Cell::new(0) };
}

impl Log {
    pub(crate) fn new(file: PathBuf, reads: Reads) -> Log {
        Log { file, reads, tried: None, page: None }
    }

    /// Whether a write of this class may still add to it.
    pub(crate) fn has_room(&self, class: Class) -> bool {
        let kept = match class {
            Class::Ordinary => 2 * limits::STORE_WRITE_MAX,
            Class::Final => limits::STORE_WRITE_MAX,
        };
        self.size() < (limits::STORE_LOG_MAX - kept) as u64
    }

    /// Has this log's length told to the thread that commits, in place of SQLite's own habit of emptying it within a commit.
    pub(crate) fn watch(&self, connection: &Connection) {
        connection.wal_hook(Some(|_, pages| {
            PAGES.set(u64::try_from(pages).unwrap_or(0));
            Ok(())
        }));
    }

    /// Empties the log when it is due, and a long one with patience, now and then.
    pub(crate) fn tend(&mut self, connection: &Connection) {
        let page = *self.page.get_or_insert_with(|| {
            connection.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap_or(u64::from(crate::PAGE))
        });
        if PAGES.take() * page >= limits::STORE_LOG_KEPT as u64 / 2 {
            // As far as it can be without waiting for anybody.
            drop(connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())));
        }
        if self.is_due() && self.size() >= limits::STORE_LOG_LONG as u64 {
            self.empty(connection, limits::STORE_CHECKPOINT_WAIT);
        }
    }

    /// Empties it, if our own reads end within `patience` and those of others at once or, now and then, within
    /// [`limits::STORE_CHECKPOINT_WAIT`]. Whether it worked shows in the size.
    pub(crate) fn empty(&mut self, connection: &Connection, patience: Duration) {
        let wait = |time: Duration| connection.busy_timeout(time);
        let _alone = self.reads.try_write_for(patience);
        drop(wait(if self.is_due() { limits::STORE_CHECKPOINT_WAIT } else { Duration::ZERO }));
        drop(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        drop(wait(limits::STORE_LOCK_WAIT));
        self.tried = Some(Instant::now());
    }

    fn is_due(&self) -> bool {
        self.tried.is_none_or(|at| at.elapsed() >= limits::STORE_CHECKPOINT_EVERY)
    }

    fn size(&self) -> u64 {
        std::fs::metadata(&self.file).map_or(0, |file| file.len())
    }
}
