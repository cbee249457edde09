//! The control store by itself.

mod cost;
mod keeping;
mod output;

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::control::{Change, Found, Record};
use holdfast_core::id::{DeviceId, OperationId, RunId};
use holdfast_core::operation::{Digest, Operation, Outcome, State, Streams};
use holdfast_core::policy::Role;
use rusqlite::Connection;
use rusqlite_migration::Migrations;

use super::output::Bounds;
use super::{schema, store};
use crate::store::StoreError;

pub(super) fn database() -> Connection {
    let mut db = Connection::open_in_memory().unwrap();
    db.pragma_update(None, "foreign_keys", true).unwrap();
    Migrations::from_slice(schema::STEPS).to_latest(&mut db).unwrap();
    db
}

pub(super) fn device() -> DeviceId {
    DeviceId::mint([1; 12])
}

pub(super) fn id(number: u32) -> OperationId {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    OperationId::mint(bytes)
}

pub(super) fn record(number: u32) -> Record {
    let mut run = [9; 16];
    run[..4].copy_from_slice(&number.to_be_bytes());
    let operation = Operation {
        request_id: id(number),
        run_id: Some(RunId::mint(run)),
        session_id: None,
        role: Role::Operator,
        client: None,
        after: None,
        request: serde_json::from_str(r#"{"type":"exec","command":{"argv":["true"]},"env":{"KEY":"secret"}}"#).unwrap(),
    };
    Record {
        digest: Digest::of(&operation),
        operation: Arc::new(operation),
        principal: "acct_a client".into(),
        key: Some(format!("key {number}").into()),
        state: State::Queued,
        sent_to: None,
        cancelled: false,
        received: Streams::new(),
        written: Streams::new(),
        outcome: None,
        order: u64::from(number),
        created: 1_000,
        ttl: Duration::from_secs(60),
    }
}

pub(super) fn apply(db: &Connection, changes: &[Change], now: u64) -> Result<Found, StoreError> {
    store::apply(db, &Bounds::default(), &device(), changes, &moment(now))
}

/// A calendar alone.
pub(super) fn moment(unix: u64) -> store::Moment {
    store::Moment { unix, boot: None }
}

pub(super) fn admit(db: &Connection, number: u32) {
    assert_eq!(apply(db, &[Change::Admit(Box::new(record(number)))], 1_000), Ok(Found::Nothing));
}

pub(super) fn end(db: &Connection, number: u32, now: u64) {
    let outcome = Outcome::Completed { exit: None, value: None };
    let end = Change::End { id: id(number), outcome, written: Streams::new(), frees_key: false };
    apply(db, &[end], now).unwrap();
}

pub(super) fn number(db: &Connection, sql: &str) -> i64 {
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}
