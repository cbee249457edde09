//! A file that is damaged.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use holdfast_core::limits;
use holdfast_store::{Store, StoreError};
use tempfile::TempDir;

use crate::{FILE, LAYOUT, numbers, open, run, write};

/// A store of a few hundred pages, one of them in the middle spoilt. `hard`: as a kill leaves it, with a log.
fn spoilt(hard: bool) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    for n in 1..=300 {
        assert_eq!(write(&store, n, 1000), Ok(()));
    }
    store.close();
    drop(store);
    let copy = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    assert_eq!(write(&store, 301, 1000), Ok(()));
    if !hard {
        store.close();
    }
    for file in fs::read_dir(folder.path()).unwrap().flatten() {
        fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    let file = fs::OpenOptions::new().write(true).open(copy.path().join(FILE)).unwrap();
    file.write_all_at(&[0xff; 4096], 40 * 4096).unwrap();
    copy
}

fn aside(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.contains(".damaged-")).collect()
}

#[test]
fn after_a_hard_stop_the_whole_file_is_checked_and_a_damaged_one_refused() {
    let folder = spoilt(true);
    assert_eq!(open(folder.path()).unwrap_err(), StoreError::Damaged);
    assert_eq!(aside(folder.path()), [""; 0], "it is left where it is");
}

#[test]
fn a_damaged_store_is_set_aside_whole_where_its_user_wants_that() {
    let folder = spoilt(true);
    let spoilt = fs::read(folder.path().join(FILE)).unwrap();
    let (store, aside) = Store::open_or_set_aside(folder.path(), &LAYOUT).unwrap();
    let aside = aside.unwrap();
    assert!(fs::read(&aside).unwrap() == spoilt, "it is left as it was");
    assert!(fs::metadata(format!("{}-wal", aside.display())).unwrap().len() > 0, "its log is kept with it");
    assert_eq!(numbers(&store), [0; 0]);
    assert_eq!(write(&store, 1, 1), Ok(()));
    store.close();
    drop(store);
    let (store, aside) = Store::open_or_set_aside(folder.path(), &LAYOUT).unwrap();
    assert_eq!((numbers(&store), aside), (vec![1], None));
}

#[test]
fn damage_that_shows_only_when_it_is_read_is_said_so_and_can_be_set_aside_then() {
    let folder = spoilt(false);
    let store = open(folder.path()).unwrap();
    let all = |db: &rusqlite::Connection| {
        Ok::<_, StoreError>(db.query_row("SELECT sum(length(fill)) FROM left_side", [], |_| Ok(()))?)
    };
    assert_eq!(store.read_now(all), Err(StoreError::Damaged));
    store.close();
    drop(store);
    let aside = Store::set_aside(folder.path(), &LAYOUT).unwrap();
    assert!(aside.exists());
    assert_eq!(numbers(&open(folder.path()).unwrap()), [0; 0]);
}

#[test]
fn what_is_no_store_and_a_log_without_its_file_are_damage_and_a_newer_store_is_none() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE), "a letter to a friend, longer than the head of a database".repeat(20)).unwrap();
    assert_eq!(open(folder.path()).unwrap_err(), StoreError::Damaged);

    let folder = spoilt(true);
    fs::write(folder.path().join(FILE), "").unwrap();
    assert_eq!(open(folder.path()).unwrap_err(), StoreError::Damaged);

    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    run(&store, |db| db.pragma_update(None, "user_version", 9999));
    store.close();
    drop(store);
    assert_eq!(Store::open_or_set_aside(folder.path(), &LAYOUT).unwrap_err(), StoreError::Newer);
    assert_eq!(aside(folder.path()), [""; 0]);
}

#[test]
fn only_the_newest_damaged_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for n in 0..limits::STORE_DAMAGED_KEPT + 2 {
        fs::write(folder.path().join(FILE), format!("damaged {n}").repeat(100)).unwrap();
        all.push(Store::open_or_set_aside(folder.path(), &LAYOUT).unwrap().1.unwrap());
    }
    let kept: Vec<bool> = all.iter().map(|path| path.exists()).collect();
    assert_eq!(kept, [false, false, true, true, true]);
}
