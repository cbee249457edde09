//! Reading a spool while it grows.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use holdfast_core::operation::{Stream, Streams};
use holdfast_core::run::{Segment, inside};

/// What stands at an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// These bytes, at least one.
    Bytes(Bytes),
    /// Nothing, and never again: output goes on at `next`.
    Gap {
        /// An offset behind the one asked for.
        next: u64,
    },
    /// Nothing yet: everything written was read.
    End,
}

/// Reads the streams of a run. Keeps the file it read last open.
#[derive(Debug)]
pub struct Reader {
    folder: PathBuf,
    open: Option<(Segment, File)>,
}

impl Reader {
    /// A reader of a run's folder.
    pub fn new(folder: PathBuf) -> Reader {
        Reader { folder, open: None }
    }

    /// At most `max` bytes from an offset. They never cross a segment's end, so fewer are no end.
    pub fn read(&mut self, stream: Stream, offset: u64, max: usize) -> io::Result<Read> {
        let segment = Segment::at(stream, offset);
        if self.open.as_ref().is_none_or(|(open, _)| *open != segment) {
            let Some(file) = self.find(segment)? else {
                let later =
                    segments(&self.folder)?.into_iter().find(|s| s.stream == stream && s.number > segment.number);
                let Some(later) = later else { return Ok(Read::End) };
                // Segments are made in their order: one that is not there beside a later one was removed, unless both were
                // made while this looked.
                if self.find(segment)?.is_none() {
                    return Ok(Read::Gap { next: later.start() });
                }
                return self.read(stream, offset, max);
            };
            self.open = Some((segment, file));
        }
        let Some((_, file)) = &mut self.open else { return Ok(Read::End) };
        file.seek(SeekFrom::Start(offset - segment.start()))?;
        let mut bytes = Vec::with_capacity(max.min((segment.end() - offset) as usize));
        file.take(max as u64).read_to_end(&mut bytes)?;
        match bytes.is_empty() {
            true => Ok(Read::End),
            false => Ok(Read::Bytes(bytes.into())),
        }
    }

    fn find(&self, segment: Segment) -> io::Result<Option<File>> {
        match File::open(self.folder.join(segment.name())) {
            Ok(file) => Ok(Some(file)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// The segments in a folder, in their order.
pub(super) fn segments(folder: &Path) -> io::Result<Vec<Segment>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        all.extend(entry?.file_name().to_str().and_then(Segment::parse));
    }
    all.sort_unstable();
    Ok(all)
}

/// All bytes written so far, per stream that has any.
pub fn written(folder: &Path) -> io::Result<Streams> {
    let mut written = Streams::new();
    for segment in segments(folder)? {
        let length = std::fs::metadata(folder.join(segment.name())).map(|meta| meta.len());
        match length {
            Ok(length) => _ = written.insert(segment.stream, segment.start() + length),
            // Removed while this looked; a later one is there.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    written.retain(|_, bytes| *bytes > 0);
    Ok(written)
}

/// Removes the segments of a stream that lie wholly below an acknowledged offset, but for the last. Only for a run whose
/// runner is gone; one that lives is asked to.
pub fn trim(folder: &Path, stream: Stream, offset: u64) -> io::Result<()> {
    let mut of_stream: Vec<Segment> = segments(folder)?.into_iter().filter(|s| s.stream == stream).collect();
    of_stream.pop();
    let below = inside(0..offset);
    for segment in of_stream.into_iter().filter(|segment| below.contains(&segment.number)) {
        std::fs::remove_file(folder.join(segment.name()))?;
    }
    Ok(())
}

/// Removes the folder of a run that is over, its socket's name too. One that is not there is no error.
pub fn remove(folder: &Path) -> io::Result<()> {
    if let Ok(spec) = crate::run::spec(folder) {
        let _ = std::fs::remove_file(spec.socket);
    }
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
