//! What became of a run.

use std::io;
use std::path::Path;

use holdfast_core::run::{Claim, End, Identity};

use super::folder::{CLAIM, EXIT, read};
use crate::identity;

/// What is found in the folder of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nobody claimed it yet. A runner may still be about to: [`claim`](super::claim) it as void to be sure that nothing runs.
    NotStarted,
    /// Nothing ran and nothing will.
    Void,
    /// Its runner lives.
    Lives(Identity),
    /// Its runner is gone, or about to go.
    Gone {
        /// Which it was.
        identity: Identity,
        /// How the program ended; `None` if the runner did not come to say it.
        end: Option<End>,
    },
}

/// Looks what became of a run. Fails if its files cannot be read, with `InvalidData` if its claim says nothing.
pub fn look(folder: &Path) -> io::Result<Found> {
    let identity = match read(&folder.join(CLAIM))? {
        None => return Ok(Found::NotStarted),
        Some(Claim::Void) => return Ok(Found::Void),
        Some(Claim::Runner(identity)) => identity,
    };
    // First whether it lives: one that is gone can write its end no more.
    let lives = lives(&identity);
    let end = match read(&folder.join(EXIT)) {
        // It says nothing, and what is left running is to be looked for all the same.
        Err(e) if e.kind() == io::ErrorKind::InvalidData => None,
        end => end?,
    };
    match lives && end.is_none() {
        true => Ok(Found::Lives(identity)),
        false => Ok(Found::Gone { identity, end }),
    }
}

pub(super) fn lives(identity: &Identity) -> bool {
    identity.boot == identity::boot() && identity::lives(identity.pid, identity.started.as_deref())
}
