//! SQLite's files on a disk that fails, runs full or loses its power when a test says so.
//!
//! A VFS around the system's own, and the default of the process once a [`Disk`] exists. It touches only files in the
//! folder of a `Disk`; their reads, locks and shared memory stay the system's. A sync is noted and takes the time it is told
//! to, nothing more, because the power is lost only in [`Disk::lose_power`].

#![allow(unsafe_code, reason = "a VFS is a table of C functions; each block says why it is sound")]

mod record;

use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use rusqlite::ffi::{self, sqlite3_file, sqlite3_io_methods, sqlite3_vfs};

use record::Record;

/// How a disk answers an operation that it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// `SQLITE_IOERR`; of a write, the first half is done.
    Error,
    /// `SQLITE_FULL`.
    Full,
}

/// Writes, truncations and syncs of SQLite below one folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Writes.
    pub writes: u64,
    /// Truncations.
    pub truncations: u64,
    /// Syncs.
    pub syncs: u64,
}

#[derive(Default)]
struct State {
    counts: Counts,
    /// Operations until the failing ones begin, how many fail, and how.
    plan: Option<(u64, u64, Failure)>,
    failed: u64,
    /// How long a sync takes.
    sync: Duration,
    /// Bytes that the files of the folder may take together.
    capacity: Option<u64>,
    /// What was written since the last sync, per file.
    unsynced: HashMap<PathBuf, Vec<Record>>,
}

type Shared = Arc<Mutex<State>>;

/// A folder on a disk that a test controls. It ends with the value.
pub struct Disk {
    folder: PathBuf,
    state: Shared,
}

static DISKS: Mutex<Vec<(PathBuf, Shared)>> = Mutex::new(Vec::new());

/// A test that panics elsewhere must not take the others along.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk {
    /// Takes over a folder that exists. SQLite's files that are opened in it from now on are on this disk.
    pub fn at(folder: &Path) -> Disk {
        static REGISTER: Once = Once::new();
        REGISTER.call_once(register);
        let folder = folder.canonicalize().expect("the folder exists");
        let state = Shared::default();
        lock(&DISKS).push((folder.clone(), state.clone()));
        Disk { folder, state }
    }

    /// The `nth` operation from now (1 is the next) and those after it fail, `times` of them.
    pub fn fail(&self, nth: u64, times: u64, how: Failure) {
        let mut state = lock(&self.state);
        state.plan = Some((nth, times, how));
        state.failed = 0;
    }

    /// Nothing fails any more, and there is room. Says how many operations failed.
    pub fn heal(&self) -> u64 {
        let mut state = lock(&self.state);
        state.plan = None;
        state.capacity = None;
        state.failed
    }

    /// A sync takes this long from now on.
    pub fn slow(&self, sync: Duration) {
        lock(&self.state).sync = sync;
    }

    /// The files of the folder may take this many bytes together; what SQLite writes beyond is refused as full.
    pub fn resize(&self, capacity: u64) {
        lock(&self.state).capacity = Some(capacity);
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        lock(&self.state).counts
    }

    /// Copies the files into another folder as a power loss now would leave them: what was not synced is there or not, as
    /// `coin` says.
    pub fn lose_power(&self, into: &Path, mut coin: impl FnMut() -> bool) {
        let state = lock(&self.state);
        for entry in std::fs::read_dir(&self.folder).expect("the folder is read").flatten() {
            // Shared memory does not survive.
            if !entry.path().extension().is_some_and(|e| e.to_string_lossy().ends_with("-shm")) {
                let copy = into.join(entry.file_name());
                std::fs::copy(entry.path(), &copy).expect("a file is copied");
                record::replay(&copy, state.unsynced.get(&entry.path()).map_or(&[], Vec::as_slice), &mut coin);
            }
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        lock(&DISKS).retain(|(_, state)| !Arc::ptr_eq(state, &self.state));
    }
}

/// Free bytes of the disk at a folder: of a [`Disk`] with a capacity, or of the system's.
pub fn room(folder: &Path) -> Option<u64> {
    let folder = folder.canonicalize().ok()?;
    let capacity = find(&folder).and_then(|state| lock(&state).capacity);
    match capacity {
        Some(capacity) => Some(capacity.saturating_sub(taken(&folder))),
        None => {
            let disk = nix::sys::statvfs::statvfs(&folder).ok()?;
            #[allow(clippy::useless_conversion, reason = "the fields differ in width between platforms")]
            Some(u64::from(disk.blocks_available()).saturating_mul(u64::from(disk.fragment_size())))
        }
    }
}

fn find(folder: &Path) -> Option<Shared> {
    lock(&DISKS).iter().find(|(of, _)| of == folder).map(|(_, state)| state.clone())
}

fn taken(folder: &Path) -> u64 {
    let sizes = std::fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| entry.metadata().ok());
    sizes.map(|file| file.len()).sum()
}

impl State {
    /// Counts an operation; the failure, if it is one that fails.
    fn count(&mut self) -> Option<Failure> {
        let (nth, times, how) = self.plan.as_mut()?;
        *nth = nth.saturating_sub(1);
        if *nth > 0 || *times == 0 {
            return None;
        }
        *times -= 1;
        self.failed += 1;
        Some(*how)
    }
}

/// The functions of one open file: the system's, but for those that change it. `pMethods` of the file points to `ours`.
#[repr(C)]
struct Methods {
    ours: sqlite3_io_methods,
    base: *const sqlite3_io_methods,
    path: PathBuf,
    state: Shared,
}

fn register() {
    // SAFETY: the default VFS is valid for the life of the process. The copy is leaked, as a registered VFS must be; it differs
    // in its name and in `xOpen`, so every other function gets the fields it expects.
    unsafe {
        let base = ffi::sqlite3_vfs_find(std::ptr::null());
        assert!(!base.is_null(), "SQLite has a file system");
        let mut ours = Box::new(*base);
        ours.zName = c"holdfast-disk".as_ptr();
        ours.pNext = base;
        ours.xOpen = Some(open);
        BASE.get_or_init(|| Base(base));
        assert_eq!(ffi::sqlite3_vfs_register(Box::leak(ours), 1), ffi::SQLITE_OK);
    }
}

struct Base(*mut sqlite3_vfs);
// SAFETY: SQLite calls a VFS from any thread.
unsafe impl Send for Base {}
// SAFETY: as above.
unsafe impl Sync for Base {}
static BASE: std::sync::OnceLock<Base> = std::sync::OnceLock::new();

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const std::ffi::c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let Some((Base(base), base_open)) = BASE.get().and_then(|base| {
        // SAFETY: see `register`.
        Some((base, unsafe { (*base.0).xOpen }?))
    }) else {
        return ffi::SQLITE_CANTOPEN;
    };
    // SAFETY: SQLite's arguments are handed on; the file has the size that the base asked for.
    let answer = unsafe { base_open(*base, name, file, flags, out) };
    if answer != ffi::SQLITE_OK || name.is_null() {
        return answer;
    }
    // SAFETY: a name that is not null is a string.
    let path = PathBuf::from(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned());
    let Some(state) = path.parent().and_then(find) else { return answer };
    // SAFETY: an opened file has its functions. The copy lives until `close` takes it back.
    unsafe {
        let base = (*file).pMethods;
        let mut ours = *base;
        ours.xClose = Some(close);
        ours.xWrite = Some(write);
        ours.xTruncate = Some(truncate);
        ours.xSync = Some(sync);
        (*file).pMethods = Box::into_raw(Box::new(Methods { ours, base, path, state })).cast();
    }
    answer
}

/// The functions of a file that `open` has prepared.
///
/// # Safety
/// `file` is one that SQLite hands to the functions below, which it found in a [`Methods`].
unsafe fn methods<'a>(file: *mut sqlite3_file) -> (&'a Methods, &'a sqlite3_io_methods) {
    // SAFETY: `pMethods` points to the first field of a `Methods`, which is alive until `close`.
    unsafe {
        let methods = &*(*file).pMethods.cast::<Methods>();
        (methods, &*methods.base)
    }
}

/// What stands in a file from `at` on, at most `size` bytes, and how long the file is. Read through SQLite's own descriptor:
/// closing another one would take its locks away.
///
/// # Safety
/// `file` was opened by the VFS of `base`.
unsafe fn content(file: *mut sqlite3_file, base: &sqlite3_io_methods, at: i64, size: i64) -> (Vec<u8>, u64) {
    let mut whole = 0_i64;
    // SAFETY: the base's own file, and a place for the answer.
    base.xFileSize.map(|size| unsafe { size(file, &raw mut whole) });
    let there = c_int::try_from((whole - at).clamp(0, size)).unwrap_or(0);
    let mut old = vec![0; usize::try_from(there).unwrap_or(0)];
    // SAFETY: the buffer has room for `there` bytes.
    base.xRead.map(|read| unsafe { read(file, old.as_mut_ptr().cast(), there, at) });
    (old, whole.unsigned_abs())
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: the box was made by `open`, and SQLite closes a file once.
    unsafe {
        let ours = Box::from_raw((*file).pMethods.cast::<Methods>().cast_mut());
        (*file).pMethods = ours.base;
        (*ours.base).xClose.map_or(ffi::SQLITE_OK, |base| base(file))
    }
}

unsafe extern "C" fn write(file: *mut sqlite3_file, data: *const c_void, size: c_int, at: i64) -> c_int {
    // SAFETY: `data` holds `size` bytes, and `file` is ours.
    let (bytes, (ours, base)) =
        unsafe { (std::slice::from_raw_parts(data.cast::<u8>(), usize::try_from(size).unwrap_or(0)), methods(file)) };
    let mut state = lock(&ours.state);
    state.counts.writes += 1;
    // SAFETY: `file` is ours.
    let (old, old_size) = unsafe { content(file, base, at, i64::from(size)) };
    let record = Record::of_write(at.unsigned_abs(), old, old_size, bytes);
    let folder = ours.path.parent().unwrap_or(Path::new("/"));
    let fits =
        state.capacity.is_none_or(|capacity| record.growth() == 0 || taken(folder) + record.growth() <= capacity);
    let failure = state.count().or((!fits).then_some(Failure::Full));
    let size = if failure == Some(Failure::Error) { size / 2 } else { size };
    if failure == Some(Failure::Full) {
        return ffi::SQLITE_FULL;
    }
    state.unsynced.entry(ours.path.clone()).or_default().push(record);
    // SAFETY: the base's own file and SQLite's arguments, or fewer bytes of them.
    let answer = base.xWrite.map_or(ffi::SQLITE_IOERR, |write| unsafe { write(file, data, size, at) });
    if failure.is_some() { ffi::SQLITE_IOERR_WRITE } else { answer }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: i64) -> c_int {
    // SAFETY: `file` is ours.
    let (ours, base) = unsafe { methods(file) };
    let mut state = lock(&ours.state);
    state.counts.truncations += 1;
    match state.count() {
        Some(Failure::Error) => return ffi::SQLITE_IOERR_TRUNCATE,
        Some(Failure::Full) => return ffi::SQLITE_FULL,
        None => {}
    }
    // SAFETY: `file` is ours.
    let (old, old_size) = unsafe { content(file, base, size, i64::MAX) };
    let record = Record::of_truncation(size.unsigned_abs(), old, old_size);
    state.unsynced.entry(ours.path.clone()).or_default().push(record);
    // SAFETY: the base's own file and SQLite's argument.
    base.xTruncate.map_or(ffi::SQLITE_IOERR, |truncate| unsafe { truncate(file, size) })
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, _: c_int) -> c_int {
    // SAFETY: `file` is ours.
    let (ours, _) = unsafe { methods(file) };
    let mut state = lock(&ours.state);
    state.counts.syncs += 1;
    match state.count() {
        Some(Failure::Error) => return ffi::SQLITE_IOERR_FSYNC,
        Some(Failure::Full) => return ffi::SQLITE_FULL,
        None => {}
    }
    std::thread::sleep(state.sync);
    state.unsynced.remove(&ours.path);
    ffi::SQLITE_OK
}
