//! What a bot's seat keeps on disk: the lock, the generation, and the advert.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use holdfast_core::code::Code;
use holdfast_core::limits;
use holdfast_core::seat::{Advert, ConnId, LockTry, Look, Record, Reserved, Taker, Unusable};
use sha2::{Digest as _, Sha256};

use super::process::{self, Proof};
use crate::files::{self, FileError};
use crate::status_hub::unix_ms;

/// The folder of one bot's seat, and the lock while it is ours.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    me: Taker,
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    file: File,
    generation: u64,
}

/// Where the seat of a bot is kept, independent of any data folder.
pub(super) fn place(state: &Path, service: &str, bot: &str) -> PathBuf {
    let digest = Sha256::new().chain_update(service).chain_update([0]).chain_update(bot).finalize();
    state.join("seats").join(data_encoding::HEXLOWER.encode(&digest))
}

impl Folder {
    /// The folder is made when the lock is first tried.
    pub(super) fn new(path: PathBuf, me: Taker) -> Folder {
        Folder { path, me, held: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn lock_file(&self) -> PathBuf {
        self.path.join("lock")
    }

    fn record_file(&self) -> PathBuf {
        self.path.join("generation.json")
    }

    fn advert_file(&self) -> PathBuf {
        self.path.join("active-instance.json")
    }

    /// Tries the lock, without waiting.
    pub(super) fn try_lock(&mut self) -> LockTry {
        match self.lock() {
            Ok(tried) => tried,
            Err(why) => LockTry::Broken(why),
        }
    }

    fn lock(&mut self) -> Result<LockTry, Unusable> {
        files::make_dir(&self.path).and_then(|()| files::own_dir(&self.path)).map_err(unusable)?;
        // Looked at before, so that who waits never stands in the way of the one it is kept for.
        if self.record()?.kept_from(&self.me.instance, unix_ms()) {
            return Ok(LockTry::Reserved);
        }
        let path = self.lock_file();
        let file = files::open(&path).map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Ok(LockTry::Held),
            Err(std::fs::TryLockError::Error(e)) => return Err(unusable(FileError::io(&path)(e))),
        }
        // Replaced between opening and locking: somebody else may lock the new one.
        if !same_file(&file, &path) {
            return Ok(LockTry::Held);
        }
        // Only under the lock it is certain.
        let record = self.record()?;
        if record.kept_from(&self.me.instance, unix_ms()) {
            return Ok(LockTry::Reserved);
        }
        self.held = Some(Held { file, generation: record.generation });
        Ok(LockTry::Ours { last: record.generation })
    }

    fn record(&self) -> Result<Record, Unusable> {
        let path = self.record_file();
        match files::read(&path, limits::SEAT_LINE_MAX) {
            Err(e) if e.is_absent() => Ok(Record::default()),
            Err(e) => Err(unusable(e)),
            // Starting over would use a generation twice.
            Ok(text) => serde_json::from_str(&text).map_err(|_| {
                let why = FileError::NotOurs { path, why: "it is not the generation of a seat" };
                Unusable::for_good(Code::IntegrityError, why.to_string())
            }),
        }
    }

    /// Puts a generation on disk, and this process into the lock file.
    pub(super) fn stamp(&mut self, generation: u64) -> Result<u64, Unusable> {
        let lock = self.lock_file();
        let Some(held) = &mut self.held else {
            return Err(unusable(FileError::NotOurs { path: lock, why: "it is not locked" }));
        };
        held.generation = generation;
        let record = Record { generation, reserved_for: None };
        write_record(&self.path.join("generation.json"), &record).map_err(unusable)?;
        let proof = Proof::of_this_process().to_string();
        rewrite(&mut held.file, &proof).map_err(FileError::io(&lock)).map_err(unusable)?;
        Ok(generation)
    }

    /// Whether the lock is still the one the path names, and which generation the disk knows.
    pub(super) fn look(&self, connected: Option<ConnId>) -> Look {
        let intact = self.held.as_ref().is_some_and(|held| same_file(&held.file, &self.lock_file()));
        if !intact {
            return Look::Replaced;
        }
        match self.record() {
            Ok(record) => Look::Intact { generation: record.generation, connected },
            // Damaged by hand. The lock is what counts; the record is written again when it is let go.
            Err(_) => Look::Intact { generation: 0, connected },
        }
    }

    /// Whether the lock is ours and the disk knows no later generation.
    pub(super) fn holds(&self, generation: u64) -> bool {
        matches!(self.look(None), Look::Intact { generation: now, .. } if now <= generation)
    }

    /// Lets go, and keeps the seat for one process for a moment.
    pub(super) fn unlock(&mut self, taker: Option<&Taker>) {
        let Some(mut held) = self.held.take() else { return };
        let until = unix_ms() + u64::try_from(limits::SEAT_RESERVED.as_millis()).unwrap_or_default();
        let reserved_for = taker.map(|t| Reserved { instance: t.instance.clone(), until });
        let written = write_record(&self.record_file(), &Record { generation: held.generation, reserved_for });
        // The one does not depend on the other: a full disk still lets a file be removed.
        for told in [written, files::remove(&self.advert_file())] {
            if let Err(e) = told {
                tracing::warn!("the seat's folder cannot be written: {e}");
            }
        }
        // Whoever locks it next must not be taken for this process.
        let _ = rewrite(&mut held.file, "");
        let_go(&held.file);
    }

    /// Lets go of what is no longer ours, and touches nothing.
    pub(super) fn abandon(&mut self) {
        if let Some(held) = self.held.take() {
            let_go(&held.file);
        }
    }

    /// Says who holds the seat. For people only.
    pub(super) fn advertise(&self, advert: &Advert) {
        let written = serde_json::to_vec(advert).map_err(std::io::Error::from).map_err(FileError::io(&self.path));
        if let Err(e) = written.and_then(|text| files::replace(&self.advert_file(), &text)) {
            tracing::warn!("the seat's holder cannot be shown to others: {e}");
        }
    }

    /// Who says that it holds the seat and still lives; `None` when nobody does or nobody can tell.
    pub(super) fn advertised(&self) -> Option<Advert> {
        let text = files::read(&self.advert_file(), limits::SEAT_LINE_MAX).ok()?;
        let advert: Advert = serde_json::from_str(&text).ok()?;
        let proof = Proof { pid: advert.pid, started: advert.process_started.clone() };
        (advert.boot == process::boot() && proof.lives()).then_some(advert)
    }

    /// Which process locked the lock, as it wrote itself. Nothing while one has just locked it or let go.
    pub(super) fn locker(&self) -> Option<Proof> {
        let mut text = String::new();
        let file = files::open(&self.lock_file()).ok()?;
        file.take(limits::SEAT_LINE_MAX as u64).read_to_string(&mut text).ok()?;
        text.parse().ok()
    }
}

/// Why a file of the seat cannot be used, and whether that may pass by itself.
pub(super) fn unusable(error: FileError) -> Unusable {
    use std::io::ErrorKind;
    let reason = error.to_string();
    match &error {
        FileError::NotOurs { .. } => Unusable::for_good(Code::PermissionDenied, reason),
        FileError::Io { path, source } => match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                Unusable::for_now(Code::StorageFull, format!("the disk of {} is full", path.display()))
            }
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::NotADirectory => {
                Unusable::for_good(Code::PermissionDenied, reason)
            }
            ErrorKind::Unsupported => Unusable::for_good(Code::Unavailable, reason),
            _ => Unusable::for_now(Code::Unavailable, reason),
        },
    }
}

fn write_record(path: &Path, record: &Record) -> Result<(), FileError> {
    let text = serde_json::to_vec(record).map_err(std::io::Error::from).map_err(FileError::io(path))?;
    files::replace(path, &text)
}

/// Said to the system, not left to the closing: a child that is being started has the file for a moment too.
fn let_go(file: &File) {
    // It goes with the file at the latest.
    let _ = file.unlock();
}

fn rewrite(file: &mut File, text: &str) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text.as_bytes())
}

/// Whether a path names the file that is open.
fn same_file(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let (Ok(open), Ok(named)) = (file.metadata(), std::fs::symlink_metadata(path)) else { return false };
        (open.dev(), open.ino()) == (named.dev(), named.ino())
    }
    // An open file cannot be replaced there.
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use holdfast_core::id::SeatId;

    fn id(name: &str) -> SeatId {
        SeatId::mint([name.as_bytes()[0]; SeatId::RANDOM_BYTES])
    }

    fn folder(at: &Path, instance: &str) -> Folder {
        Folder::new(at.to_path_buf(), Taker { instance: id(instance), pid: 1 })
    }

    #[test]
    fn a_seat_has_its_own_folder_by_service_and_bot() {
        let path = place(Path::new("/state"), "telegram", "123");
        assert_eq!(path.parent(), Some(Path::new("/state/seats")));
        assert_eq!(path.file_name().unwrap().len(), 64);
        assert_ne!(path, place(Path::new("/state"), "telegram", "1234"));
        assert_ne!(path, place(Path::new("/state"), "telegram1", "23"));
    }

    #[test]
    fn one_locks_and_the_generation_outlives_it() {
        let dir = tempfile::tempdir().unwrap();
        let (mut a, mut b) = (folder(dir.path(), "a"), folder(dir.path(), "b"));
        assert_eq!(a.try_lock(), LockTry::Ours { last: 0 });
        assert_eq!(a.stamp(1).unwrap(), 1);
        assert_eq!(b.try_lock(), LockTry::Held);
        assert_eq!(b.locker().unwrap().pid, std::process::id());
        a.unlock(None);
        assert!(b.locker().is_none(), "who let go is not taken for who locks next");
        assert_eq!(b.try_lock(), LockTry::Ours { last: 1 });
    }

    #[test]
    fn a_seat_that_was_let_go_for_one_is_not_locked_by_another() {
        let dir = tempfile::tempdir().unwrap();
        let (mut a, mut b, mut c) = (folder(dir.path(), "a"), folder(dir.path(), "b"), folder(dir.path(), "c"));
        a.try_lock();
        a.stamp(1).unwrap();
        a.unlock(Some(&Taker { instance: id("b"), pid: 2 }));
        assert_eq!((c.try_lock(), b.try_lock()), (LockTry::Reserved, LockTry::Ours { last: 1 }));
        b.stamp(2).unwrap();
        assert_eq!(c.try_lock(), LockTry::Held);
    }

    #[test]
    fn a_replaced_or_removed_lock_file_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let (mut a, mut b) = (folder(dir.path(), "a"), folder(dir.path(), "b"));
        a.try_lock();
        a.stamp(1).unwrap();
        assert_eq!(a.look(None), Look::Intact { generation: 1, connected: None });
        std::fs::remove_file(dir.path().join("lock")).unwrap();
        assert_eq!(a.look(None), Look::Replaced);
        assert_eq!(b.try_lock(), LockTry::Ours { last: 1 });
        assert_eq!(a.look(None), Look::Replaced);
        b.stamp(2).unwrap();
        a.abandon();
        assert_eq!(b.look(None), Look::Intact { generation: 2, connected: None });
    }

    #[test]
    fn what_is_planted_in_the_folder_is_refused_or_means_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut a = folder(dir.path(), "a");
        for text in ["", "{}", "null", r#"{"instance":"x","pid":1}"#] {
            files::replace(&a.advert_file(), text.as_bytes()).unwrap();
            assert_eq!(a.advertised(), None, "{text}");
        }
        files::replace(&a.record_file(), b"7").unwrap();
        let LockTry::Broken(why) = a.try_lock() else { panic!() };
        assert!(
            why.reason.ends_with("generation.json: not used, because it is not the generation of a seat"),
            "{why:?}"
        );
        assert_eq!((why.code, why.for_good), (Code::IntegrityError, true));
        files::remove(&a.record_file()).unwrap();
        std::os::unix::fs::symlink("/dev/null", a.lock_file()).unwrap();
        let LockTry::Broken(why) = a.try_lock() else { panic!() };
        assert!(why.reason.ends_with("it is a symbolic link"), "{why:?}");
        assert_eq!((why.code, why.for_good), (Code::PermissionDenied, true));
    }

    #[test]
    fn an_advert_of_a_dead_process_or_an_earlier_boot_shows_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let a = folder(dir.path(), "a");
        let me = Proof::of_this_process();
        let advert = Advert {
            instance: id("a"),
            pid: me.pid,
            process_started: me.started,
            boot: process::boot(),
            host: "here".into(),
            generation: 3,
            channel: None,
            transcript: None,
            backend_ready: true,
            since: 1,
        };
        a.advertise(&advert);
        assert_eq!(a.advertised(), Some(advert.clone()));
        a.advertise(&Advert { boot: "another".into(), ..advert.clone() });
        assert_eq!(a.advertised(), None);
        #[cfg(target_os = "linux")]
        {
            a.advertise(&Advert { process_started: Some("1".into()), ..advert });
            assert_eq!(a.advertised(), None, "the number was given to another process");
        }
    }
}
