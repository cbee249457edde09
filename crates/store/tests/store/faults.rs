//! A disk that fails at one operation or from there on, and one that loses its power.

use std::path::Path;
use std::sync::mpsc::channel;

use holdfast_store::{Store, StoreError};
use holdfast_testkit::disk::{Disk, Failure};
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use crate::{both, numbers, open, run, write, write_final};

/// A short life of a store: alone and shared commits, both classes, a log that is emptied again and again. What was
/// acknowledged is pushed to `acked`.
fn live(folder: &Path, acked: &mut Vec<i64>) -> Result<Store, StoreError> {
    let store = open(folder)?;
    let (done, told) = channel();
    let ack = done.clone();
    store.submit(
        |db| Ok::<_, StoreError>(db.pragma_update(None, "wal_autocheckpoint", 8)?),
        move |outcome| ack.send((0, outcome)).unwrap(),
    );
    drop(told.recv());
    let first = acked.len() as i64 * 1000;
    for round in 0..4 {
        let numbers = first + round * 10 + 1..first + round * 10 + 5;
        for n in numbers.clone() {
            let done = done.clone();
            both(&store, n, 6000, move |outcome| done.send((n, outcome)).unwrap());
        }
        acked.extend(told.iter().take(numbers.count()).filter(|(_, outcome)| outcome.is_ok()).map(|(n, _)| n));
        let last = first + round * 10 + 5;
        acked.extend(write_final(&store, last, 600).is_ok().then_some(last));
    }
    Ok(store)
}

/// Lives with the failure at every operation in turn, until there is none left to fail.
fn fails_everywhere(times: u64, how: Failure) {
    for nth in 1.. {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::at(folder.path());
        disk.fail(nth, times, how);
        let mut acked = Vec::new();
        let store = live(folder.path(), &mut acked);
        let failed = disk.heal();
        let place = format!("{how:?} at {nth}");
        if let Ok(store) = store {
            // It goes on as if nothing had been.
            assert_eq!(write(&store, 90_000, 100), Ok(()), "{place}");
            acked.push(90_000);
            store.close();
        }
        let found = numbers(&open(folder.path()).unwrap_or_else(|error| panic!("{place}: {error}")));
        let lost: Vec<_> = acked.iter().filter(|n| !found.contains(n)).collect();
        assert!(lost.is_empty(), "{place}: {lost:?} were acknowledged");
        if failed == 0 {
            assert_eq!(acked.len(), 21, "without a failure all is acknowledged");
            assert!(nth > 50, "{nth} operations");
            return;
        }
    }
}

#[test]
fn an_operation_that_fails_once_loses_nothing_that_was_acknowledged() {
    fails_everywhere(1, Failure::Error);
}

#[test]
fn a_disk_that_fails_from_any_operation_on_loses_nothing_that_was_acknowledged() {
    fails_everywhere(u64::MAX, Failure::Error);
}

#[test]
fn a_disk_that_is_full_at_any_operation_loses_nothing_that_was_acknowledged() {
    fails_everywhere(1, Failure::Full);
    fails_everywhere(u64::MAX, Failure::Full);
}

#[test]
fn what_was_refused_does_not_come_back_after_a_crash() {
    for nth in 1.. {
        let (folder, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let disk = std::sync::Arc::new(Disk::at(folder.path()));
        let store = open(folder.path()).unwrap();
        assert_eq!(write(&store, 1, 3000), Ok(()));
        disk.fail(nth, 1, Failure::Error);
        let (done, told) = channel();
        let (lost, path) = (disk.clone(), after.path().to_owned());
        // Everything that was handed to the disk survives, synced or not: that is what a killed process leaves.
        both(&store, 2, 3000, move |outcome| {
            lost.lose_power(&path, || true);
            done.send(outcome).unwrap();
        });
        let refused = told.recv().unwrap().is_err();
        let found = numbers(&open(after.path()).unwrap());
        assert_eq!(found, if refused { vec![1] } else { vec![1, 2] }, "failure at {nth}");
        if disk.heal() == 0 {
            assert!(nth > 2, "{nth} operations");
            return;
        }
    }
}

#[test]
fn what_is_acknowledged_survives_a_loss_of_power_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let disk = std::sync::Arc::new(Disk::at(folder.path()));
    let store = open(folder.path()).unwrap();
    run(&store, |db| db.pragma_update(None, "wal_autocheckpoint", 16));
    let mut dice = SmallRng::seed_from_u64(4);
    for n in 1..=120 {
        // Told on the writer's thread: nothing was done since the commit.
        let (done, told) = channel();
        let (disk, after, mut coin) =
            (disk.clone(), tempfile::tempdir().unwrap(), SmallRng::seed_from_u64(dice.random()));
        let path = after.path().to_owned();
        both(&store, n, 3000, move |outcome| {
            disk.lose_power(&path, || coin.random());
            done.send(outcome).unwrap();
        });
        assert_eq!(told.recv().unwrap(), Ok(()));
        assert_eq!(numbers(&open(after.path()).unwrap()), (1..=n).collect::<Vec<_>>());
    }
}
