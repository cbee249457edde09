//! Why a store did not do what it was asked.

use std::path::{Path, PathBuf};

use holdfast_core::code::Code;
use rusqlite::{ErrorCode, ffi};

/// Why the store did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There is no room: the disk is full, or the log is as long as it may be because somebody's open read keeps it from
    /// being emptied. Nothing was written; the same write may be tried again later.
    #[error("the disk is full")]
    Full,
    /// The read was cut off after [`holdfast_core::limits::STORE_READ_MAX`]; it may be made in pages.
    #[error("the read took too long")]
    Slow,
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
            StoreError::ReadOnly { .. } | StoreError::Closed | StoreError::Slow => Code::Unavailable,
            StoreError::Newer | StoreError::Damaged | StoreError::Sqlite(_) => Code::InternalError,
        }
    }

    /// The same error about this path.
    pub(crate) fn at(self, path: &Path) -> StoreError {
        match self {
            StoreError::ReadOnly { reason, .. } => StoreError::ReadOnly { path: path.into(), reason },
            other => other,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full,
            // The first thing that finds no room when a store is opened.
            _ if error.sqlite_extended_error_code() == Some(ffi::SQLITE_IOERR_SHMSIZE) => StoreError::Full,
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Damaged,
            Some(ErrorCode::OperationInterrupted) => StoreError::Slow,
            Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { path: "store".into(), reason: "read-only".into() },
            _ => match error {
                rusqlite::Error::SqliteFailure(code, _) => StoreError::Sqlite(code.to_string()),
                other => StoreError::Sqlite(other.to_string()),
            },
        }
    }
}
