//! Writing a spool.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;

use holdfast_core::operation::Stream;
use holdfast_core::run::Segment;

use super::reader::segments;
use crate::files::is_nearly_full;
use crate::run::sync_folder;

/// Appends output to the segments of a run. What the disk does not take is kept until it does: no byte is lost or doubled.
#[derive(Debug)]
pub(crate) struct Writer {
    folder: PathBuf,
    tracks: BTreeMap<Stream, Track>,
}

#[derive(Debug, Default)]
struct Track {
    /// Bytes on disk, or given up.
    written: u64,
    open: Option<(Segment, File)>,
    /// What found no room; nothing more is written before it is.
    kept: Vec<u8>,
}

impl Writer {
    /// Of a folder without output.
    pub(crate) fn new(folder: PathBuf) -> Writer {
        Writer { folder, tracks: BTreeMap::new() }
    }

    /// Appends bytes and says how many of them stand in the spool; the rest is kept. Only while nothing is kept.
    pub(crate) fn append(&mut self, stream: Stream, bytes: &[u8]) -> u64 {
        let track = self.tracks.entry(stream).or_default();
        let wrote = track.write(&self.folder, stream, bytes);
        track.kept.extend_from_slice(&bytes[wrote..]);
        wrote as u64
    }

    /// Tries again to write what is kept. Says what stands in the spool of it, per stream.
    pub(crate) fn retry(&mut self) -> Vec<(Stream, u64)> {
        let mut all = Vec::new();
        for (stream, track) in &mut self.tracks {
            let kept = std::mem::take(&mut track.kept);
            let wrote = track.write(&self.folder, *stream, &kept);
            track.kept = kept[wrote..].to_vec();
            all.push((*stream, wrote as u64));
        }
        all.retain(|(_, bytes)| *bytes > 0);
        all
    }

    /// Whether something found no room.
    pub(crate) fn is_full(&self) -> bool {
        self.tracks.values().any(|track| !track.kept.is_empty())
    }

    /// Removes a segment that is not being written to. One that cannot be removed now goes with the folder.
    pub(crate) fn remove(&self, segment: Segment) {
        let _ = std::fs::remove_file(self.folder.join(segment.name()));
    }

    /// Makes all that was written durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        for segment in segments(&self.folder)? {
            File::open(self.folder.join(segment.name()))?.sync_all()?;
        }
        sync_folder(&self.folder)
    }
}

impl Track {
    /// Writes until the disk takes no more, for whatever reason.
    fn write(&mut self, folder: &std::path::Path, stream: Stream, bytes: &[u8]) -> usize {
        let mut wrote = 0;
        while wrote < bytes.len() {
            let segment = Segment::at(stream, self.written);
            let left = usize::try_from(segment.end() - self.written).unwrap_or(usize::MAX);
            let piece = &bytes[wrote..bytes.len().min(wrote.saturating_add(left))];
            let done = self.file(folder, segment).and_then(|file| file.write(piece));
            match done {
                Ok(0) => break,
                Ok(done) => {
                    wrote += done;
                    self.written += done as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        wrote
    }

    fn file(&mut self, folder: &std::path::Path, segment: Segment) -> io::Result<&mut File> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != segment) {
            if segment.number > 0 && is_nearly_full(folder) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let mut options = OpenOptions::new();
            options.append(true).create(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            self.open = Some((segment, options.open(folder.join(segment.name()))?));
        }
        self.open.as_mut().map(|(_, file)| file).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
