//! SQLite's log, while somebody reads.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_core::limits;
use holdfast_store::{Store, StoreError};
use rusqlite::Connection;

use crate::{FILE, numbers, open, write, write_final};

const PIECE: usize = 256 * 1024;

fn log_size(folder: &Path) -> usize {
    usize::try_from(std::fs::metadata(folder.join(format!("{FILE}-wal"))).map_or(0, |file| file.len())).unwrap()
}

/// Writes until it is refused as full; how many fitted. The log is never longer than it may be.
fn fill(folder: &Path, from: i64, write: impl Fn(i64) -> Result<(), StoreError>) -> i64 {
    for n in from.. {
        let outcome = write(n);
        assert!(log_size(folder) <= limits::STORE_LOG_MAX, "{n}: {} bytes", log_size(folder));
        match outcome {
            Ok(()) => {}
            Err(StoreError::Full) => return n - from,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!()
}

/// Another program that reads and does not end.
fn open_read(folder: &Path) -> Connection {
    let reader = Connection::open(folder.join(FILE)).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM left_side").unwrap();
    reader.query_row("SELECT count(*) FROM left_side", [], |_| Ok(())).unwrap();
    reader
}

#[test]
fn a_log_that_a_foreign_reader_keeps_from_being_emptied_has_a_bound_and_writes_go_on_when_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let reader = open_read(folder.path());
    let ordinary = fill(folder.path(), 1, |n| write(&store, n, PIECE));
    assert!(log_size(folder.path()) >= limits::STORE_LOG_MAX - 2 * limits::STORE_WRITE_MAX);
    assert!(ordinary > 100, "{ordinary}");
    let last = fill(folder.path(), 1_000_000, |n| write_final(&store, n, PIECE));
    assert!(last > 40, "final writes have room beyond ordinary ones: {last}");
    assert_eq!(write(&store, ordinary + 1, 1), Err(StoreError::Full));

    drop(reader);
    assert_eq!(write(&store, ordinary + 1, 1), Ok(()));
    assert!(log_size(folder.path()) <= limits::STORE_LOG_KEPT, "{} bytes", log_size(folder.path()));
    let stored = (1..=ordinary + 1).chain(1_000_000..1_000_000 + last).collect::<Vec<_>>();
    assert_eq!(numbers(&store), stored);
}

#[test]
fn one_group_of_big_writes_does_not_pass_the_bound_either() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let _reader = open_read(folder.path());
    let (done, told) = std::sync::mpsc::channel();
    let (release, held) = std::sync::mpsc::channel::<()>();
    // Holds the writer, so that what follows is one group.
    store.submit(
        move |_| {
            held.recv().unwrap();
            Ok::<_, StoreError>(())
        },
        |_| (),
    );
    for n in 1..=100 {
        let done = done.clone();
        crate::both(&store, n, 1024 * 1024, move |outcome| done.send((n, outcome)).unwrap());
    }
    drop(done);
    release.send(()).unwrap();
    let (stored, refused): (Vec<_>, Vec<_>) = told.iter().partition(|(_, outcome)| outcome.is_ok());
    assert!(log_size(folder.path()) <= limits::STORE_LOG_MAX, "{} bytes", log_size(folder.path()));
    assert!(stored.len() >= 30 && refused.iter().all(|(_, outcome)| *outcome == Err(StoreError::Full)), "{refused:?}");
    assert_eq!(numbers(&store), stored.iter().map(|(n, _)| *n).collect::<Vec<_>>());
}

#[test]
fn reads_that_overlap_without_end_do_not_keep_the_log_from_being_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let ended = AtomicBool::new(false);
    let reads = |store: &Store| {
        while !ended.load(Ordering::Relaxed) {
            // It reads a while, so that there is always one open.
            let slow = "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
                        SELECT count(*) + (SELECT count(*) FROM left_side) FROM c";
            store.read_now(|db| Ok::<_, StoreError>(db.query_row(slow, [], |_| Ok(()))?)).unwrap();
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| reads(&store));
        }
        let outcomes: Vec<_> = (1..=250).map(|n| write(&store, n, PIECE)).collect();
        ended.store(true, Ordering::Relaxed);
        assert_eq!(outcomes, vec![Ok(()); 250]);
    });
    assert!(log_size(folder.path()) < limits::STORE_LOG_MAX / 2, "{} bytes", log_size(folder.path()));
}
