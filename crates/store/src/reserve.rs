//! Disk space held back for final writes: a file that is removed when the disk is full.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use holdfast_core::limits;
use rand::rngs::SmallRng;
use rand::{RngCore as _, SeedableRng as _};

use crate::file;

/// Tells the free bytes on the disk of a folder; `None` where that cannot be told.
pub type Room = fn(&Path) -> Option<u64>;

pub(crate) struct Reserve {
    file: PathBuf,
    room: Room,
    held: bool,
    /// When it was last tried to make it again.
    tried: Option<Instant>,
}

impl Reserve {
    /// Takes over the file that is there, or makes it.
    pub(crate) fn take(file: PathBuf, room: Room) -> Reserve {
        let held = fs::metadata(&file).is_ok_and(|found| found.len() == limits::STORE_RESERVE as u64);
        Reserve { file, room, held, tried: None }
    }

    /// Gives the space up.
    pub(crate) fn free(&mut self) {
        // What cannot be removed is still held.
        self.held = self.held && fs::remove_file(&self.file).is_err();
        // Not at once again, even where the disk's room is not told rightly: the final writes come first.
        self.tried = Some(Instant::now());
    }

    /// Whether the space is held, after trying to take it back.
    pub(crate) fn held(&mut self) -> bool {
        let due = self.tried.is_none_or(|at| at.elapsed() >= limits::STORE_RESERVE_EVERY);
        if !self.held && due {
            self.tried = Some(Instant::now());
            self.held = self.fits() && self.make().is_ok();
        }
        self.held
    }

    /// Twice the space must be free, so that the attempt itself does not fill the disk, nor the next write.
    fn fits(&self) -> bool {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        (self.room)(folder).is_none_or(|free| free >= 2 * limits::STORE_RESERVE as u64)
    }

    fn make(&self) -> io::Result<()> {
        let made = self.fill();
        if made.is_err() {
            drop(fs::remove_file(&self.file));
        }
        made
    }

    /// Noise, because a file system may store a hole, or what it can compress, in no space at all.
    fn fill(&self) -> io::Result<()> {
        let mut out = file::create(&self.file)?;
        out.set_len(0)?;
        let mut noise = SmallRng::seed_from_u64(0);
        let mut piece = vec![0; 64 * 1024];
        for _ in 0..limits::STORE_RESERVE / piece.len() {
            noise.fill_bytes(&mut piece);
            out.write_all(&piece)?;
        }
        out.sync_all()
    }
}
