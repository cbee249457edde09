//! One file: fetched into a part beside its place, verified, and put there as a whole.
//!
//! The part's name belongs to the operation. What a crash left of it is where the repetition goes on; the digest of the whole
//! decides whether that was right.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, SeekFrom};
use std::sync::Arc;

use cap_fs_ext::{MetadataExt as _, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, OpenOptions};
use holdfast_core::code::Code;
use holdfast_core::operation::Failure;
use reqwest::{Response, StatusCode, Version, header};
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncSeekExt as _, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::again::{Broken, Tries, or_stopped, stopped};
use super::fetch::{Answer, Fetch, in_time};
use crate::exec::{Env, Spot, io_error, open_file};

const HASHED_AT_ONCE: usize = 128 * 1024;

/// A file that is to be there in the end.
pub(super) struct Wanted {
    pub(super) spot: Spot,
    /// Name of its part, in the same folder.
    pub(super) part: OsString,
    pub(super) size: u64,
    pub(super) sha256: [u8; 32],
    pub(super) url: Url,
}

/// How it came to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// It was.
    Present,
    /// It was fetched, with so many bytes over the network.
    Fetched(u64),
}

/// Makes a file be there. Whatever happens, what stands under its name is what stood there before, or all of it.
pub(super) async fn settle(
    env: &Arc<Env>,
    fetch: &Fetch,
    wanted: &Arc<Wanted>,
    stop: &CancellationToken,
) -> Result<Came, Failure> {
    let (files, file, end) = (Arc::clone(env), Arc::clone(wanted), stop.clone());
    let opened = blocking(move || {
        let (dir, name) = files.files.parent(&file.spot, true)?;
        match is_there(&dir, &name, &file, &end)? {
            true => Ok(None),
            false => Part::open(dir, &file, &end).map(|part| Some((part, name))),
        }
    });
    let Some((mut part, name)) = opened.await? else { return Ok(Came::Present) };
    let mut tries = Tries::new(stop);
    while tries.make(or_stopped(stop, part.fill(fetch, wanted))).await?.is_none() {}
    let fetched = part.fetched;
    let turn = Arc::clone(&env.mutations).lock_owned().await;
    let file = part.file.try_clone().await.map_err(disk)?.into_std().await;
    blocking(move || {
        let _turn = turn;
        part.put(&file, &name)
    })
    .await?;
    Ok(Came::Fetched(fetched))
}

/// Whether the file is there already.
fn is_there(dir: &Dir, name: &OsStr, wanted: &Wanted, stop: &CancellationToken) -> Result<bool, Failure> {
    if !may_be_replaced(dir, name)? {
        return Ok(false);
    }
    let file = open_file(dir, name)?.into_std();
    if file.metadata().map_err(disk)?.len() != wanted.size {
        return Ok(false);
    }
    Ok(digest(file, stop)?.0.finalize()[..] == wanted.sha256)
}

/// Whether something is there; what is no regular file stays as it is.
fn may_be_replaced(dir: &Dir, name: &OsStr) -> Result<bool, Failure> {
    let refused = |code, why| Err(Failure::new(code, why));
    match dir.symlink_metadata(name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(disk(e)),
        Ok(meta) if meta.is_symlink() => refused(Code::PathBoundary, "the target is a symbolic link"),
        Ok(meta) if !meta.is_file() => refused(Code::InvalidRequest, "the target is not a regular file"),
        Ok(_) => Ok(true),
    }
}

/// The digest of a file from its beginning on, and its length.
fn digest(mut file: std::fs::File, stop: &CancellationToken) -> Result<(Sha256, u64), Failure> {
    let (mut hasher, mut len) = (Sha256::new(), 0);
    let mut bytes = vec![0; HASHED_AT_ONCE];
    loop {
        if stop.is_cancelled() {
            return Err(stopped());
        }
        match file.read(&mut bytes).map_err(disk)? {
            0 => return Ok((hasher, len)),
            n => {
                hasher.update(&bytes[..n]);
                len += n as u64;
            }
        }
    }
}

/// What of a file is here. Gone when dropped, unless it was put in its place or the process was killed.
struct Part {
    dir: Dir,
    name: OsString,
    file: File,
    hasher: Sha256,
    len: u64,
    /// The most there ever was: less than that is no progress.
    best: u64,
    /// Bytes that came over the network.
    fetched: u64,
    /// Whether it comes from more than one answer.
    resumed: bool,
}

impl Part {
    fn open(dir: Dir, wanted: &Wanted, stop: &CancellationToken) -> Result<Part, Failure> {
        let name = wanted.part.clone();
        let mut options = OpenOptions::new();
        options.read(true).write(true).follow(cap_fs_ext::FollowSymlinks::No).nonblock(true);
        let left = dir.open_with(&name, &options).ok().filter(|file| {
            // Under another name it would be somebody else's file too.
            file.metadata().is_ok_and(|meta| meta.is_file() && meta.nlink() == 1 && meta.len() <= wanted.size)
        });
        let (file, hasher, len) = match left {
            Some(file) => {
                let file = file.into_std();
                let (hasher, len) = digest(file.try_clone().map_err(disk)?, stop)?;
                (file, hasher, len)
            }
            None => {
                match dir.remove_file(&name) {
                    Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(disk(e)),
                    _ => {}
                }
                let file = dir.open_with(&name, options.create_new(true)).map_err(disk)?;
                (file.into_std(), Sha256::new(), 0)
            }
        };
        Ok(Part { dir, name, file: File::from_std(file), hasher, len, best: len, fetched: 0, resumed: len > 0 })
    }

    /// One try to have all of it.
    async fn fill(&mut self, fetch: &Fetch, wanted: &Wanted) -> Result<(), Broken> {
        if self.len < wanted.size {
            self.pull(fetch, wanted).await?;
        }
        self.file.flush().await.map_err(disk)?;
        if self.hasher.clone().finalize()[..] == wanted.sha256 {
            return Ok(());
        }
        if self.resumed {
            self.restart().await?;
            return Err(Broken::network("what was resumed had changed meanwhile"));
        }
        Err(integrity("its SHA-256 is not the one that was announced"))
    }

    async fn pull(&mut self, fetch: &Fetch, wanted: &Wanted) -> Result<(), Broken> {
        let Answer { mut response, url } = fetch.open(&wanted.url, self.len).await?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT if self.len > 0 && begins_at(&response) == Some(self.len) => {
                self.resumed = true
            }
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                self.restart().await?;
                return Err(Broken::network("the server did not go on where it was asked to"));
            }
            _ => self.restart().await?,
        }
        let announced: Option<u64> =
            response.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if announced.is_some_and(|more| self.len.saturating_add(more) != wanted.size) {
            return Err(integrity("its size is not the one that was announced"));
        }
        let says_its_end = announced.is_some()
            || response.headers().contains_key(header::TRANSFER_ENCODING)
            || response.version() > Version::HTTP_11;
        let best = self.best;
        loop {
            match in_time(response.chunk()).await {
                Ok(Some(bytes)) => self.take(&bytes, wanted.size).await?,
                Ok(None) if self.len < wanted.size && says_its_end => {
                    return Err(integrity("it is shorter than it was announced"));
                }
                Ok(None) if self.len < wanted.size => {
                    return Err(Broken::Network { why: "the answer was cut off".into(), progress: self.best > best });
                }
                Ok(None) => return Ok(()),
                Err(Broken::Network { why, .. }) => {
                    fetch.forget(&url);
                    return Err(Broken::Network { why, progress: self.best > best });
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    async fn take(&mut self, bytes: &[u8], size: u64) -> Result<(), Broken> {
        if self.len + bytes.len() as u64 > size {
            return Err(integrity("it is longer than it was announced"));
        }
        self.file.write_all(bytes).await.map_err(disk)?;
        self.hasher.update(bytes);
        self.len += bytes.len() as u64;
        self.fetched += bytes.len() as u64;
        self.best = self.best.max(self.len);
        Ok(())
    }

    async fn restart(&mut self) -> Result<(), Broken> {
        self.file.flush().await.map_err(disk)?;
        self.file.set_len(0).await.map_err(disk)?;
        self.file.seek(SeekFrom::Start(0)).await.map_err(disk)?;
        (self.hasher, self.len, self.resumed) = (Sha256::new(), 0, false);
        Ok(())
    }

    /// Puts it in its place, durably; permissions of an old file stay.
    fn put(self, file: &std::fs::File, name: &OsStr) -> Result<(), Failure> {
        if may_be_replaced(&self.dir, name)? {
            let meta = self.dir.symlink_metadata(name).map_err(disk)?;
            let file = cap_std::fs::File::from_std(file.try_clone().map_err(disk)?);
            file.set_permissions(meta.permissions()).map_err(disk)?;
        }
        file.sync_all().map_err(disk)?;
        self.dir.rename(&self.name, &self.dir, name).map_err(disk)?;
        if let Ok(dir) = self.dir.try_clone() {
            let _ = dir.into_std_file().sync_all();
        }
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // After it was put in its place there is none.
        let _ = self.dir.remove_file(&self.name);
    }
}

/// Where an answer to a range begins.
fn begins_at(response: &Response) -> Option<u64> {
    let range = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}

fn integrity(why: &str) -> Broken {
    Failure::new(Code::IntegrityError, why).into()
}

fn disk(error: io::Error) -> Failure {
    io_error("the file cannot be written", &error).into()
}

/// Work that blocks, on a thread that may.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Failure::new(Code::InternalError, "the operation failed unexpectedly")))
}
