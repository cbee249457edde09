//! What an agent wrote about itself: lines of its transcript, where we stand in that file, and what of it is worth saying.
//!
//! [`Follow`] decides what to read and where, and gives out [`Entry`]s in order: none is lost and none comes twice, whatever
//! happens to the file. [`Extraction`] makes texts of them. [`discovery`] says which transcript a person most likely means.

mod begin;
mod bookmark;
mod claude;
mod codex;
mod cursor;
pub mod discovery;
mod elements;
mod extract;
mod follow;
mod io;
mod line;
mod position;
#[cfg(test)]
mod tests;
mod tools;

use std::ops::Range;

use serde_json::Value;

use crate::limits;

pub use bookmark::Bookmark;
pub use cursor::{Cursor, FileId, Look, Place};
pub use extract::{Extraction, Piece, Turn, join};
pub use follow::Follow;
pub use io::{Binding, FollowView, Input, Output, Start, Told};
pub use line::{Line, read_line};

/// Whether this may be the id of a session: letters, digits, `-` and `_`, the first a letter or digit, at most
/// [`limits::CHAT_ID_MAX`] bytes. Anything else would be an option or a path for a program that is given it.
pub fn is_session(id: &str) -> bool {
    let fits = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
    id.len() <= limits::CHAT_ID_MAX && id.bytes().all(fits) && id.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// One line that says something.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its bytes in the file, the line end included.
    pub range: Range<u64>,
    /// The session that wrote it, where the line says so.
    pub session: Option<String>,
    /// Written by an agent that another one started.
    pub sidechain: bool,
    /// When, in milliseconds since 1970.
    pub at: Option<u64>,
    /// What it says, in order; never empty.
    pub parts: Vec<Part>,
}

/// One thing a line says.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A person asked something, so a turn begins.
    Asked,
    /// The agent said this.
    Said(String),
    /// The agent called a tool.
    Used {
        /// As the agent knows it; `mcp__server__tool` for one of a server.
        tool: String,
        /// What it was given.
        input: Value,
    },
    /// A file was changed.
    Edited {
        /// Where the line says which.
        path: Option<String>,
        /// The text that was replaced.
        old: String,
        /// What stands there now.
        new: String,
    },
    /// The turn is over.
    Ended,
}
