//! A disk that is full.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;

use holdfast_core::limits;
use holdfast_store::{Layout, Store, StoreError};
use holdfast_testkit::disk::{self, Disk};

use crate::{FILE, LAYOUT, both, numbers, open, run, write, write_final};

const MIB: u64 = 1024 * 1024;
/// The reserve, and about as much beside it.
const SMALL: u64 = 40 * MIB;
const LARGE: u64 = 160 * MIB;

fn with_reserve(folder: &Path) -> Store {
    Store::open(folder, &Layout { reserve: Some(disk::room), ..LAYOUT }).unwrap()
}

#[test]
fn a_full_disk_refuses_writes_keeps_what_was_acknowledged_and_recovers_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let pages = |pages: i64| run(&store, move |db| db.pragma_update(None, "max_page_count", pages));
    pages(64);
    let (done, told) = channel();
    for n in 1..=200 {
        let done = done.clone();
        both(&store, n, 4096, move |outcome| done.send((n, outcome)).unwrap());
    }
    drop(done);
    let outcomes: Vec<(i64, Result<(), StoreError>)> = told.iter().collect();
    let acked: Vec<i64> = outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).map(|(n, _)| *n).collect();
    let refused: Vec<_> = outcomes.iter().filter_map(|(_, outcome)| outcome.clone().err()).collect();
    assert!(!refused.is_empty() && refused.iter().all(|error| *error == StoreError::Full), "{refused:?}");
    assert_eq!(refused[0].code().as_str(), "storage_full");
    assert_eq!(numbers(&store), acked);
    pages(100_000);
    assert_eq!(write(&store, 1000, 4096), Ok(()));
    assert_eq!(numbers(&store).last(), Some(&1000));
}

/// A store with a reserve on a disk of [`SMALL`] bytes, which becomes [`LARGE`] when `grow` is called.
fn runs_full_and_recovers(folder: &Path, grow: impl FnOnce()) {
    let reserve = folder.join(format!("{FILE}.reserve"));
    let reserved = || std::fs::metadata(&reserve).map_or(0, |file| file.len());
    let store = with_reserve(folder);
    let mut acked = Vec::new();
    let refused = (1..).find(|&n| match write(&store, n, 200_000) {
        Ok(()) => {
            acked.push(n);
            false
        }
        Err(error) => error == StoreError::Full || panic!("{error}"),
    });
    assert!(acked.len() > 20, "{} writes fitted", acked.len());
    assert_eq!(reserved(), limits::STORE_RESERVE as u64, "an ordinary write does not get the reserve");

    // Small ones take what is left.
    acked.extend((refused.unwrap() + 1..).take_while(|&n| write(&store, n, 100).is_ok()));
    for n in 1_000_000..1_000_100 {
        assert_eq!(write_final(&store, n, 1000), Ok(()), "a final write has the reserve");
        acked.push(n);
    }
    assert_eq!(reserved(), 0);
    assert_eq!(write(&store, 2_000_000, 100), Err(StoreError::Full), "the reserve is not for ordinary writes");
    assert_eq!(numbers(&store), acked);

    // A restart changes nothing.
    store.close();
    let store = with_reserve(folder);
    assert_eq!(write(&store, 2_000_000, 100), Err(StoreError::Full));
    assert_eq!(write_final(&store, 1_000_100, 1000), Ok(()));

    grow();
    while write(&store, 2_000_000, 100) == Err(StoreError::Full) {}
    assert_eq!(reserved(), limits::STORE_RESERVE as u64, "the reserve comes before ordinary writes");
    acked.extend([1_000_100, 2_000_000]);
    assert_eq!(numbers(&store), acked);
}

#[test]
fn final_writes_have_the_reserve_of_a_full_disk_and_ordinary_ones_wait_until_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::at(folder.path());
    disk.resize(SMALL);
    runs_full_and_recovers(folder.path(), || disk.resize(LARGE));
}

/// A file system of its own, where this user may mount one.
#[cfg(target_os = "linux")]
struct Mounted(tempfile::TempDir);

#[cfg(target_os = "linux")]
impl Mounted {
    fn new() -> Option<Mounted> {
        let at = Mounted(tempfile::tempdir().unwrap());
        at.mount("size", SMALL).then_some(at)
    }

    fn mount(&self, options: &str, size: u64) -> bool {
        let options = format!("{options}={size}");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(self.0.path()).output();
        mount.is_ok_and(|mount| mount.status.success())
    }
}

#[cfg(target_os = "linux")]
impl Drop for Mounted {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0.path()).output());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_real_file_system_runs_full_and_recovers_just_so() {
    let Some(disk) = Mounted::new() else { return };
    runs_full_and_recovers(disk.0.path(), || assert!(disk.mount("remount,size", LARGE)));
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_opens_on_a_disk_without_a_free_byte_by_giving_up_its_reserve() {
    let Some(disk) = Mounted::new() else { return };
    let folder = disk.0.path();
    let store = with_reserve(folder);
    assert_eq!(write(&store, 1, 100), Ok(()));
    store.close();
    drop(store);
    let filled = std::fs::write(folder.join("filler"), vec![1; usize::try_from(SMALL).unwrap()]);
    assert_eq!(filled.unwrap_err().kind(), std::io::ErrorKind::StorageFull);

    let store = with_reserve(folder);
    assert_eq!(numbers(&store), [1]);
    assert_eq!(write_final(&store, 2, 100), Ok(()));
    assert_eq!(write(&store, 3, 100), Err(StoreError::Full));
    std::fs::remove_file(folder.join("filler")).unwrap();
    while write(&store, 3, 100) == Err(StoreError::Full) {}
    assert_eq!(numbers(&store), [1, 2, 3]);
}
