//! Writes that share a commit.

use std::sync::mpsc::channel;
use std::time::Duration;

use holdfast_store::StoreError;
use holdfast_testkit::disk::Disk;

use crate::{both, numbers, open, write};

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
fn sixteen_who_write_one_after_the_other_share_their_commits_and_one_alone_has_each_to_itself() {
    const EACH: i64 = 40;
    let syncs = || {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::at(folder.path());
        // So long that all others come meanwhile.
        disk.slow(Duration::from_millis(25));
        let store = open(folder.path()).unwrap();
        let before = disk.counts().syncs;
        for n in 0..EACH {
            assert_eq!(write(&store, n, 100), Ok(()));
        }
        let alone = disk.counts().syncs - before;
        std::thread::scope(|scope| {
            for producer in 1..=16 {
                let store = &store;
                scope.spawn(move || {
                    for n in 0..EACH {
                        assert_eq!(write(store, producer * 1000 + n, 100), Ok(()));
                    }
                });
            }
        });
        (alone, disk.counts().syncs - before - alone)
    };
    // On a busy machine a thread may begin when others are done, and then it writes alone.
    let shares = (0..5).any(|_| {
        let (alone, shared) = syncs();
        assert_eq!(alone, EACH.unsigned_abs(), "one sync each");
        shared < 2 * alone
    });
    assert!(shares, "sixteen times as many writes took twice the syncs");
}
