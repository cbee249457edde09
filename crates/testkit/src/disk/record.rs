//! What was done to a file since it was last synced, so that it can be undone, in whole or in part.

use std::fs::OpenOptions;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// One change of a file.
pub(super) struct Record {
    at: u64,
    /// What stood there; shorter than `new` where the file ended.
    old: Vec<u8>,
    old_size: u64,
    /// What stands there now; `None` after a truncation to `at`.
    new: Option<Vec<u8>>,
}

impl Record {
    /// A write over `old`, in a file of `old_size` bytes.
    pub(super) fn of_write(at: u64, old: Vec<u8>, old_size: u64, new: &[u8]) -> Record {
        Record { at, old, old_size, new: Some(new.to_vec()) }
    }

    /// A cut of everything after `at`, which is `old`.
    pub(super) fn of_truncation(at: u64, old: Vec<u8>, old_size: u64) -> Record {
        Record { at, old, old_size, new: None }
    }

    /// By how much a write lengthens the file.
    pub(super) fn growth(&self) -> u64 {
        let end = self.at + self.new.as_ref().map_or(0, |new| new.len() as u64);
        end.saturating_sub(self.old_size)
    }
}

/// Undoes the changes of a file, and does those again that the coin keeps.
pub(super) fn replay(path: &Path, records: &[Record], coin: &mut impl FnMut() -> bool) {
    let mut file = OpenOptions::new().write(true).open(path).expect("the copy can be written");
    let mut put = |at: u64, bytes: &[u8], size: Option<u64>| {
        file.seek(SeekFrom::Start(at)).expect("a file can be sought");
        file.write_all(bytes).expect("a file can be written");
        if let Some(size) = size {
            file.set_len(size).expect("a file can be cut");
        }
    };
    for record in records.iter().rev() {
        put(record.at, &record.old, Some(record.old_size));
    }
    for record in records.iter().filter(|_| coin()) {
        match &record.new {
            Some(new) => put(record.at, new, None),
            None => put(record.at, &[], Some(record.at)),
        }
    }
}
