//! The store: killed at any point, on a full disk, with writes that fail beside others.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "panics are findings")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

use holdfast_store::{Layout, Store, StoreError};
use rusqlite::params;
use rusqlite_migration::M;

const FILE: &str = "test.sqlite";

fn open(folder: &Path) -> Result<Store, StoreError> {
    const STEPS: &[M<'static>] = &[M::up(
        "CREATE TABLE left_side (n INTEGER PRIMARY KEY, fill BLOB);
         CREATE TABLE right_side (n INTEGER PRIMARY KEY);",
    )];
    Store::open(folder, &Layout { file: FILE, steps: STEPS, reserve: None })
}

/// A write of two rows that belong together.
fn both(store: &Store, n: i64, fill: usize, done: impl FnOnce(Result<(), StoreError>) + Send + 'static) {
    store.submit(
        move |db| {
            db.execute("INSERT INTO left_side VALUES (?1, zeroblob(?2))", params![n, fill])?;
            db.execute("INSERT INTO right_side VALUES (?1)", [n])?;
            Ok(())
        },
        done,
    );
}

fn numbers(store: &Store) -> Vec<i64> {
    let column = |sql: &'static str| {
        let query = |db: &rusqlite::Connection| {
            let mut query = db.prepare(sql)?;
            let rows = query.query_map([], |row| row.get(0))?;
            Ok::<_, StoreError>(rows.collect::<Result<Vec<i64>, _>>()?)
        };
        store.read_now(query).unwrap()
    };
    let left = column("SELECT n FROM left_side ORDER BY n");
    assert_eq!(left, column("SELECT n FROM right_side ORDER BY n"), "half a write");
    left
}

/// What the child of the next test does: writes for ever, and says what was acknowledged.
#[test]
fn writes_for_ever_when_it_is_the_child() {
    let Ok(folder) = std::env::var("HOLDFAST_TEST_STORE") else { return };
    let store = open(folder.as_ref()).unwrap();
    let first = numbers(&store).last().copied().unwrap_or(0) + 1;
    let (acked, acks) = channel();
    for group in 0.. {
        // Eight at once, so that some share a commit.
        for n in first + group * 8..first + group * 8 + 8 {
            let acked = acked.clone();
            both(&store, n, 512, move |outcome| acked.send((n, outcome)).unwrap());
        }
        for (n, outcome) in acks.iter().take(8) {
            outcome.unwrap();
            println!("acked {n}");
        }
    }
}

#[test]
fn a_store_killed_at_any_point_has_every_acknowledged_write_whole() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writes_for_ever_when_it_is_the_child", "--nocapture"])
            .env("HOLDFAST_TEST_STORE", folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acked = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("acked ")?.parse::<i64>().ok());
        let last = acked.nth(16 + round * 23).unwrap();
        child.kill().unwrap();
        let last = acked.last().unwrap_or(last);
        child.wait().unwrap();
        let store = open(folder.path()).unwrap();
        let found = numbers(&store);
        assert_eq!(found[..usize::try_from(last).unwrap()], (1..=last).collect::<Vec<_>>(), "round {round}");
        store.close();
    }
}

#[test]
fn a_full_disk_refuses_writes_keeps_what_was_acknowledged_and_recovers_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let pages = |pages: i64| {
        let (done, told) = channel();
        let work =
            move |db: &rusqlite::Connection| Ok::<_, StoreError>(db.pragma_update(None, "max_page_count", pages)?);
        store.submit(work, move |outcome| done.send(outcome).unwrap());
        told.recv().unwrap().unwrap();
    };
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
    let (done, told) = channel();
    both(&store, 1000, 4096, move |outcome| done.send(outcome).unwrap());
    assert_eq!(told.recv().unwrap(), Ok(()));
    assert_eq!(numbers(&store).last(), Some(&1000));
}

#[test]
fn a_failing_or_panicking_write_leaves_no_trace_and_does_not_disturb_its_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    // Holds the writer, so that what follows shares one commit.
    let (release, held) = channel::<()>();
    store.submit(
        move |_| {
            held.recv().unwrap();
            Ok::<_, StoreError>(())
        },
        |_| (),
    );
    let (done, told) = channel();
    let tell = |name: &'static str| {
        let done = done.clone();
        move |outcome: Result<(), StoreError>| done.send((name, outcome.is_ok())).unwrap()
    };
    both(&store, 1, 1, tell("before"));
    let fails = |db: &rusqlite::Connection| {
        db.execute("INSERT INTO left_side VALUES (2, NULL)", [])?;
        Err(StoreError::Closed)
    };
    store.submit(fails, tell("fails"));
    let panics = |db: &rusqlite::Connection| {
        db.execute("INSERT INTO left_side VALUES (3, NULL)", [])?;
        panic!("a defect")
    };
    store.submit(panics, tell("panics"));
    both(&store, 1, 1, tell("same key"));
    both(&store, 4, 1, tell("after"));
    release.send(()).unwrap();
    let outcomes: Vec<_> = told.iter().take(5).collect();
    assert_eq!(outcomes, [("before", true), ("fails", false), ("panics", false), ("same key", false), ("after", true)]);
    assert_eq!(numbers(&store), [1, 4]);
}

#[test]
fn a_closed_store_refuses_and_has_written_what_was_handed_in() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let (done, told) = channel();
    for n in 1..=50 {
        let done = done.clone();
        both(&store, n, 1, move |outcome| done.send(outcome).unwrap());
    }
    store.close();
    assert_eq!(told.try_iter().filter(Result::is_ok).count(), 50);
    both(&store, 99, 1, move |outcome| done.send(outcome).unwrap());
    assert_eq!(told.recv().unwrap(), Err(StoreError::Closed));
    assert_eq!(numbers(&open(folder.path()).unwrap()).len(), 50);
}

#[test]
fn a_folder_that_cannot_be_written_and_a_newer_store_are_clear_errors() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = open(&file).unwrap_err();
    assert!(matches!(&error, StoreError::ReadOnly { path, .. } if *path == file.join(FILE)), "{error}");
    let (done, told) = channel();
    let store = open(folder.path()).unwrap();
    let newer = |db: &rusqlite::Connection| Ok::<_, StoreError>(db.pragma_update(None, "user_version", 9999)?);
    store.submit(newer, move |outcome| done.send(outcome).unwrap());
    told.recv().unwrap().unwrap();
    store.close();
    assert_eq!(open(folder.path()).unwrap_err(), StoreError::Newer);
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_the_files_whatever_mode_they_had() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("data");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let store = open(&inner).unwrap();
    assert_eq!(mode(&inner), 0o700);
    for suffix in ["", "-wal", "-shm"] {
        assert_eq!(mode(&inner.join(format!("{FILE}{suffix}"))), 0o600, "{suffix}");
    }
    store.close();
    drop(store);
    std::fs::set_permissions(inner.join(FILE), std::fs::Permissions::from_mode(0o644)).unwrap();
    let store = open(&inner).unwrap();
    assert_eq!(mode(&inner.join(FILE)), 0o600);
    store.close();
}
