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
    // As a whole first: a runner that comes late must find no folder rather than one whose claim is gone already. What a crash
    // leaves of it is a folder that nobody knows.
    let aside = folder.with_extension("gone");
    let place = if std::fs::rename(folder, &aside).is_ok() { &aside } else { folder };
    match std::fs::remove_dir_all(place) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::Writer;
    use holdfast_core::limits;

    const S: u64 = limits::SPOOL_SEGMENT;
    const OUT: Stream = Stream::Stdout;

    fn names(folder: &Path) -> Vec<String> {
        segments(folder).unwrap().into_iter().map(Segment::name).collect()
    }

    #[test]
    fn a_stream_reads_back_across_segments_and_its_middle_may_be_gone() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::new(dir.path().to_path_buf());
        let bytes: Vec<u8> = (0..3 * S + 10).map(|n| (n % 253) as u8).collect();
        assert_eq!(writer.append(OUT, &bytes[..7]), 7);
        assert_eq!(writer.append(OUT, &bytes[7..]), 3 * S + 3);
        assert_eq!(written(dir.path()).unwrap(), [(OUT, 3 * S + 10)].into());
        let mut reader = Reader::new(dir.path().to_path_buf());
        assert_eq!(
            reader.read(OUT, S - 2, 100).unwrap(),
            Read::Bytes(bytes[S as usize - 2..S as usize].to_vec().into())
        );
        assert_eq!(
            reader.read(OUT, 3 * S, 4).unwrap(),
            Read::Bytes(bytes[3 * S as usize..3 * S as usize + 4].to_vec().into())
        );
        assert_eq!(reader.read(OUT, 3 * S + 10, 4).unwrap(), Read::End);
        assert_eq!(reader.read(Stream::Stderr, 0, 4).unwrap(), Read::End);
        writer.remove(Segment { stream: OUT, number: 1 });
        assert_eq!(reader.read(OUT, S + 5, 4).unwrap(), Read::Gap { next: 2 * S });
        assert_eq!(written(dir.path()).unwrap(), [(OUT, 3 * S + 10)].into());
    }

    #[test]
    fn trimming_leaves_what_is_not_acknowledged_and_the_last_segment() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::new(dir.path().to_path_buf());
        writer.append(OUT, &vec![1; 2 * S as usize]);
        writer.append(Stream::Stderr, &[2]);
        std::fs::write(dir.path().join("exit"), "").unwrap();
        trim(dir.path(), OUT, S - 1).unwrap();
        assert_eq!(names(dir.path()), ["stdout.0", "stdout.1", "stderr.0"]);
        trim(dir.path(), OUT, 2 * S).unwrap();
        trim(dir.path(), Stream::Stderr, 1).unwrap();
        assert_eq!(names(dir.path()), ["stdout.1", "stderr.0"]);
        assert_eq!(written(dir.path()).unwrap(), [(OUT, 2 * S), (Stream::Stderr, 1)].into());
        remove(dir.path()).unwrap();
        remove(dir.path()).unwrap();
        assert!(!dir.path().exists());
    }
}
