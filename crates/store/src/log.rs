//! The size of SQLite's log (the `-wal` file).
//!
//! SQLite empties it by itself when it is about [`limits::STORE_LOG_KEPT`] long. It cannot while a read that began earlier
//! is open: then the log grows with every commit. Our own reads are cut off after [`limits::STORE_READ_MAX`]; for those of
//! others there is a bound, at which writes are refused until the log could be emptied.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use holdfast_core::limits;
use rusqlite::Connection;

use crate::job::Class;

pub(crate) struct Log {
    file: PathBuf,
    /// When it was last tried to empty it.
    tried: Option<Instant>,
}

impl Log {
    pub(crate) fn new(file: PathBuf) -> Log {
        Log { file, tried: None }
    }

    /// Whether a write of this class may still add to it.
    pub(crate) fn has_room(&self, class: Class) -> bool {
        let kept = match class {
            Class::Ordinary => 2 * limits::STORE_WRITE_MAX,
            Class::Final => limits::STORE_WRITE_MAX,
        };
        self.size() < (limits::STORE_LOG_MAX - kept) as u64
    }

    /// Empties a long log, now and then.
    pub(crate) fn tend(&mut self, connection: &Connection) {
        let due = self.tried.is_none_or(|at| at.elapsed() >= limits::STORE_CHECKPOINT_EVERY);
        if due && self.size() >= limits::STORE_LOG_LONG as u64 {
            self.empty(connection);
        }
    }

    /// Empties it, unless an open read prevents that for longer than a moment.
    pub(crate) fn empty(&mut self, connection: &Connection) {
        let wait = |time: Duration| connection.busy_timeout(time);
        // Whether it worked shows in the size.
        drop(wait(limits::STORE_CHECKPOINT_WAIT));
        drop(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        drop(wait(limits::STORE_LOCK_WAIT));
        self.tried = Some(Instant::now());
    }

    fn size(&self) -> u64 {
        std::fs::metadata(&self.file).map_or(0, |file| file.len())
    }
}
