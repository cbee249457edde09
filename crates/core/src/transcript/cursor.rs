//! Where we stand in which file.

use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::limits;

/// A file as the system names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// Its device.
    pub device: u64,
    /// Its number there. It may be another file's later, but not while this one is open.
    pub inode: u64,
}

/// A file as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Which.
    pub place: Place,
    /// Bytes.
    pub size: u64,
    /// Its first [`limits::TRANSCRIPT_HEAD`] bytes, or all if it has fewer.
    pub head: Vec<u8>,
}

/// By what a file is known again after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    /// Where it was.
    pub place: Place,
    /// Of its head, this many bytes count: those that were delivered. What follows may still be written anew.
    pub head: u64,
    /// SHA-256 of those, in hexadecimal.
    pub hash: String,
}

/// How far a file was delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Grows by one with each file, or new beginning of one, that stands for a transcript. Together with a range of bytes it
    /// names an entry for ever.
    pub generation: u64,
    /// The file.
    pub file: FileId,
    /// End of the last line that was delivered.
    pub offset: u64,
}

/// What a file is to one that we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Likeness {
    /// That one, perhaps longer or shorter.
    Same,
    /// Another one that begins with the same text: it was copied or written anew.
    Copy,
    /// Another one, or another text in the same place.
    Other,
}

impl Cursor {
    /// Names the file's entries in records of what was sent.
    pub fn source(&self, transcript: &str) -> Arc<str> {
        format!("{}:{transcript}", self.generation).into()
    }
}

impl FileId {
    /// Of a file that begins with this, and was delivered up to `offset`.
    pub(super) fn of(place: Place, head: &[u8], offset: u64) -> FileId {
        let length = head.len().min(limits::TRANSCRIPT_HEAD).min(usize::try_from(offset).unwrap_or(usize::MAX));
        FileId { place, head: length as u64, hash: hash(&head[..length]) }
    }

    pub(super) fn likeness(&self, look: &Look) -> Likeness {
        let begins = usize::try_from(self.head).ok().and_then(|n| look.head.get(..n)).map(hash);
        match begins {
            Some(begins) if begins == self.hash && look.place == self.place => Likeness::Same,
            // A short beginning is soon the same by chance.
            Some(begins) if begins == self.hash && self.head == limits::TRANSCRIPT_HEAD as u64 => Likeness::Copy,
            _ => Likeness::Other,
        }
    }
}

fn hash(head: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(head))
}
