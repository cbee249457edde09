//! What a step costs does not depend on what a device did before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use holdfast_core::code::Code;
use holdfast_core::control::Change;
use holdfast_core::id::LedgerId;
use holdfast_core::operation::{Failure, Outcome, State, Stream, Streams};
use rusqlite::Connection;

use super::super::output::{Bounds, Of, append, read};
use super::super::store::{forget_inputs, forget_oldest, load};
use super::super::view::{Page, list, one};
use super::{admit, apply, database, device, end, id, moment, record};

/// What SQLite's machine does for `work`, in instructions.
fn instructions(db: &Connection, work: impl FnOnce(&Connection)) -> u64 {
    let count = Arc::new(AtomicU64::new(0));
    let counter = count.clone();
    let tick = move || {
        counter.fetch_add(1, Ordering::Relaxed);
        false
    };
    db.progress_handler(1, Some(tick)).unwrap();
    work(db);
    db.progress_handler(1, None::<fn() -> bool>).unwrap();
    count.load(Ordering::Relaxed)
}

/// A store that remembers so many ended operations.
fn with_ended(count: u32) -> Connection {
    let db = database();
    (1..=3).for_each(|n| admit(&db, n));
    end(&db, 3, 2_000);
    let sql = "WITH RECURSIVE more (k) AS (SELECT 10 UNION ALL SELECT k + 1 FROM more WHERE k < 9 + ?1)
        INSERT INTO operations (id, device, account, principal, key, run, kind, input, summary, digest, state, output, place, created, ttl, ended)
        SELECT id || k, device, account || (k % 2), principal, key || k, run || k, kind, k % 2, summary, digest, state, 0, place, created, ttl, ended + k
        FROM operations, more WHERE n = 3";
    assert_eq!(db.execute(sql, [count]).unwrap(), count as usize);
    db.execute("UPDATE totals SET ended = ended + ?1 / 2, inputs = inputs + ?1 / 2", [count]).unwrap();
    db.execute(
        "INSERT INTO accounts SELECT account || k, iif(k, 0, ?1 / 2), iif(k, ?1 / 2, 0) FROM accounts, (SELECT 0 AS k UNION SELECT 1)",
        [count],
    )
    .unwrap();
    db
}

/// Everything that is done to a store, each step with its cost.
fn costs(db: &Connection) -> Vec<(&'static str, u64)> {
    let mut costs = Vec::new();
    let mut step = |name, work: &dyn Fn(&Connection)| costs.push((name, instructions(db, work)));
    let change =
        |change: Change| move |db: &Connection| drop(apply(db, std::slice::from_ref(&change), 9_000_000).unwrap());
    let output =
        |offset| Change::Output { id: id(1), stream: Stream::Stdout, offset, bytes: Bytes::from_static(&[7; 5_000]) };
    let failed = || Outcome::Failed { error: Failure::new(Code::Timeout, ""), started: true, evidence: None };
    step("admit", &change(Change::Admit(Box::new(record(5)))));
    step("admit again", &change(Change::Admit(Box::new(record(5)))));
    step("recall", &change(Change::Recall { principal: record(1).principal, key: "nobody's".into() }));
    step("sent", &change(Change::Sent { id: id(1), ledger: LedgerId::mint([1; 16]) }));
    step("state", &change(Change::State { id: id(1), state: State::Running }));
    step("output", &change(output(0)));
    step("more output", &change(output(5_000)));
    step("end", &change(Change::End { id: id(1), outcome: failed(), written: Streams::new(), frees_key: false }));
    step("late", &change(Change::Late { id: id(1), outcome: failed() }));
    step("one", &|db| drop(one(db, &device(), &id(2)).unwrap().unwrap()));
    step("read", &|db| drop(read(db, Of(1, Stream::Stdout), 7_000, 100).unwrap()));
    let page = |living| Page { living, before: None, limit: Some(3) };
    step("newest", &|db| assert_eq!(list(db, &device(), Some("acct_a0"), &page(false)).unwrap().unwrap().len(), 3));
    step("living", &|db| assert_eq!(list(db, &device(), None, &page(true)).unwrap().unwrap().len(), 2));
    step("load", &|db| drop(load(db, &moment(0)).unwrap()));
    let tight = Bounds { total: 5_000, ..Bounds::default() };
    step("make room", &|db| append(db, &tight, Of(2, Stream::Stdout), 0, &[7; 5_000]).unwrap());
    step("nothing to forget", &|db| assert!(!forget_oldest(db, 1).unwrap()));
    step("no input to forget", &|db| assert!(!forget_inputs(db, 1).unwrap()));
    step("forget", &|db| assert!(forget_oldest(db, u64::MAX >> 1).unwrap()));
    costs
}

#[test]
fn every_step_costs_the_same_with_100_000_ended_operations_as_with_10() {
    assert_eq!(costs(&with_ended(99_000)), costs(&with_ended(10)));
}
