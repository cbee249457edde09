//! The store: killed, without power, on a full or failing disk, with a damaged file, and with somebody else reading.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "panics are findings")]

mod damage;
mod faults;
mod files;
mod group;
mod kill;
mod log;
mod room;

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

use holdfast_store::{Layout, PAGE, Store, StoreError};
use rusqlite::{Connection, params};
use rusqlite_migration::M;

const FILE: &str = "test.sqlite";

const LAYOUT: Layout = Layout {
    file: FILE,
    steps: &[M::up(
        "CREATE TABLE left_side (n INTEGER PRIMARY KEY, fill BLOB);
         CREATE TABLE right_side (n INTEGER PRIMARY KEY);",
    )],
    reserve: None,
    page: PAGE,
};

fn open(folder: &Path) -> Result<Store, StoreError> {
    Store::open(folder, &LAYOUT)
}

/// Two rows that belong together.
fn rows(db: &Connection, n: i64, fill: usize) -> Result<(), StoreError> {
    db.execute("INSERT INTO left_side VALUES (?1, zeroblob(?2))", params![n, fill])?;
    db.execute("INSERT INTO right_side VALUES (?1)", [n])?;
    Ok(())
}

/// A write of two rows that belong together.
fn both(store: &Store, n: i64, fill: usize, done: impl FnOnce(Result<(), StoreError>) + Send + 'static) {
    store.submit(move |db| rows(db, n, fill), done);
}

/// [`both`], and its outcome.
fn write(store: &Store, n: i64, fill: usize) -> Result<(), StoreError> {
    let (done, told) = channel();
    both(store, n, fill, move |outcome| done.send(outcome).unwrap());
    told.recv().unwrap()
}

/// The same as a final write.
fn write_final(store: &Store, n: i64, fill: usize) -> Result<(), StoreError> {
    final_told(store, n, fill).recv().unwrap()
}

fn final_told(store: &Store, n: i64, fill: usize) -> Receiver<Result<(), StoreError>> {
    let (done, told) = channel();
    store.submit_final(move |db| rows(db, n, fill), move |outcome| done.send(outcome).unwrap());
    told
}

/// Does this on the writer's connection.
fn run(store: &Store, work: impl FnOnce(&Connection) -> rusqlite::Result<()> + Send + 'static) {
    let (done, told) = channel();
    store.submit(move |db| work(db).map_err(StoreError::from), move |outcome| done.send(outcome).unwrap());
    told.recv().unwrap().unwrap();
}

/// The numbers that are stored, none of them by half.
fn numbers(store: &Store) -> Vec<i64> {
    let column = |sql: &'static str| {
        let query = |db: &Connection| {
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
