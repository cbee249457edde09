//! The files of a transcript, kept open for as long as the machine needs them: one that is open keeps its number, so that
//! nothing else is taken for it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_fs_ext::MetadataExt as _;
use holdfast_core::limits;
use holdfast_core::transcript::{FileId, Look, Place};

use super::discover::writer;

/// Where a transcript is, and whether a file is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located {
    pub path: Arc<str>,
    pub there: bool,
    /// The session that writes it, where that was asked and can be told.
    pub session: Option<String>,
}

/// [`real_path`] and what it saw.
pub(crate) fn locate(path: &Path, which_session: bool) -> Result<Located, String> {
    let path = real_path(path)?;
    let there = fs::symlink_metadata(&*path).is_ok();
    let session = (there && which_session).then(|| writer(Path::new(&*path))).flatten();
    Ok(Located { path, there, session })
}

/// The path by which a transcript is bound: absolute and without links, so that the same file has the same name. One that is
/// not there yet is named by the folder that is, also where a link leads to it.
///
/// # Errors
/// In plain words: it is no regular file, its name is not UTF-8, or the system refuses to look.
pub fn real_path(path: &Path) -> Result<Arc<str>, String> {
    let refused = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let absolute = std::path::absolute(path).map_err(|e| refused(&e))?;
    let mut rest: Vec<OsString> = Vec::new();
    let mut there = absolute;
    let mut links = 0;
    let real = loop {
        let absent = match fs::canonicalize(&there) {
            Ok(real) => break real,
            Err(e) if is_absent(&e) => e,
            Err(e) => return Err(refused(&e)),
        };
        let (Some(parent), Some(name)) = (there.parent(), there.file_name()) else { return Err(refused(&absent)) };
        there = match fs::read_link(&there) {
            Ok(target) if links < limits::TRANSCRIPT_LINKS => {
                links += 1;
                parent.join(target)
            }
            Ok(_) => return Err(refused(&"too many links lead to it")),
            Err(_) => {
                rest.push(name.to_owned());
                parent.to_path_buf()
            }
        };
    };
    if rest.is_empty() && !real.is_file() {
        return Err(refused(&"it is no regular file"));
    }
    let real: PathBuf = std::iter::once(real.into_os_string()).chain(rest.into_iter().rev()).collect();
    real.to_str().map(Arc::from).ok_or_else(|| refused(&"only a path in UTF-8 can be followed"))
}

fn is_absent(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Open files by what the system calls them.
#[derive(Debug, Default)]
pub(super) struct Files {
    open: HashMap<Place, File>,
}

impl Files {
    /// Opens the file at a path, if a regular one is there, and says how it is. Follows no link.
    pub fn look(&mut self, path: &str) -> io::Result<Option<Look>> {
        match self.open(Path::new(path)) {
            Ok(Some((place, file))) => self.keep(place, file).map(Some),
            Ok(None) => Ok(None),
            Err(e) if is_absent(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The same of a file that is known, wherever it is among those beside the path whose names begin as its own.
    pub fn find(&mut self, path: &str, file: &FileId) -> io::Result<Option<Look>> {
        if self.open.contains_key(&file.place) {
            return self.describe(file.place).map(Some);
        }
        let path = Path::new(path);
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
        let beside = match fs::read_dir(folder) {
            Ok(beside) => beside,
            Err(e) if is_absent(&e) => return Ok(None),
            Err(e) => return Err(e),
        };
        let mut looked_at = 0;
        for entry in beside {
            let entry = entry?;
            if !entry.file_name().as_encoded_bytes().starts_with(name.as_encoded_bytes()) {
                continue;
            }
            looked_at += 1;
            if looked_at > limits::TRANSCRIPT_BESIDE {
                break;
            }
            // One that was removed meanwhile, or is not for us, is not the one.
            if let Ok(Some((place, opened))) = self.open(&entry.path())
                && place == file.place
            {
                return self.keep(place, opened).map(Some);
            }
        }
        Ok(None)
    }

    /// The files beside the path that came after an open one and before the next, oldest first, and whether there are more:
    /// those named as it with a number behind, written last between the last words of the two. None, if the first was put away
    /// by another name or elsewhere: then those with numbers are something else.
    pub fn beside(&mut self, path: &str, left: Place, next: Place) -> io::Result<(Vec<Look>, bool)> {
        let (since, until) = (self.get(left)?.metadata()?.modified()?, self.get(next)?.metadata()?.modified()?);
        let mut rotated = cap_std::fs::Metadata::from_file(self.get(left)?)?.nlink() == 0;
        let path = Path::new(path);
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok((Vec::new(), false)) };
        let mut found = Vec::new();
        let mut looked_at = 0;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if !entry.file_name().as_encoded_bytes().starts_with(name.as_encoded_bytes()) {
                continue;
            }
            looked_at += 1;
            if looked_at > limits::TRANSCRIPT_BESIDE {
                return Ok((Vec::new(), true));
            }
            let Some(number) = number(name.as_encoded_bytes(), entry.file_name().as_encoded_bytes()) else { continue };
            // One that was removed meanwhile, or is not for us, is not one of them. What is open is known.
            let Ok(Some((place, opened))) = self.open(&entry.path()) else { continue };
            rotated |= place == left;
            if let Some(file) = opened.filter(|_| !self.open.contains_key(&place))
                && let Ok(written) = file.metadata().and_then(|meta| meta.modified())
                && written > since
                && written <= until
            {
                found.push((written, Reverse(number), place, file));
            }
        }
        if !rotated {
            return Ok((Vec::new(), false));
        }
        found.sort_by_key(|(written, number, ..)| (*written, *number));
        let more = found.len() > limits::TRANSCRIPT_FILES;
        found.truncate(limits::TRANSCRIPT_FILES);
        let kept: io::Result<Vec<Look>> =
            found.into_iter().map(|(_, _, place, file)| self.keep(place, Some(file))).collect();
        Ok((kept?, more))
    }

    /// At most `max` bytes of an open file; fewer only at its end.
    pub fn read(&self, place: Place, offset: u64, max: usize) -> io::Result<Vec<u8>> {
        let mut file = self.get(place)?;
        let rest = usize::try_from(file.metadata()?.len().saturating_sub(offset)).unwrap_or(max);
        let mut bytes = Vec::with_capacity(rest.min(max));
        file.seek(SeekFrom::Start(offset))?;
        file.take(max as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Lets go of one.
    pub fn close(&mut self, place: Place) {
        self.open.remove(&place);
    }

    fn get(&self, place: Place) -> io::Result<&File> {
        self.open.get(&place).ok_or_else(|| io::Error::new(ErrorKind::NotFound, "the file is not open"))
    }

    fn keep(&mut self, place: Place, opened: Option<File>) -> io::Result<Look> {
        if let Some(file) = opened {
            self.open.entry(place).or_insert(file);
        }
        self.describe(place)
    }

    fn describe(&self, place: Place) -> io::Result<Look> {
        let size = self.get(place)?.metadata()?.len();
        let mut head = self.read(place, 0, limits::TRANSCRIPT_HEAD)?;
        head.truncate(usize::try_from(size).unwrap_or(usize::MAX));
        Ok(Look { place, size, head })
    }

    /// The regular file at a path, if there is one; nothing opened, if it is open already.
    fn open(&self, path: &Path) -> io::Result<Option<(Place, Option<File>)>> {
        let named = fs::symlink_metadata(path)?;
        if !named.is_file() {
            return Ok(None);
        }
        // To open it again would tell everybody who watches the folder, us too.
        #[cfg(unix)]
        if let Some(known) =
            Some(of(&cap_std::fs::Metadata::from_just_metadata(named))).filter(|place| self.open.contains_key(place))
        {
            return Ok(Some((known, None)));
        }
        let mut options = OpenOptions::new();
        options.read(true);
        // It may be another one by now: non-blocking, so that a pipe cannot hold us up.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            &mut options,
            libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK,
        );
        let file = options.open(path)?;
        let meta = cap_std::fs::Metadata::from_file(&file)?;
        if !meta.is_file() {
            return Ok(None);
        }
        Ok(Some((of(&meta), Some(file))))
    }
}

/// The number behind the name of a rotated file.
fn number(name: &[u8], beside: &[u8]) -> Option<u32> {
    let number = std::str::from_utf8(beside.strip_prefix(name)?.strip_prefix(b".")?).ok()?;
    number.bytes().all(|b| b.is_ascii_digit()).then(|| number.parse().ok())?
}

fn of(meta: &cap_std::fs::Metadata) -> Place {
    Place { device: meta.dev(), inode: meta.ino() }
}
