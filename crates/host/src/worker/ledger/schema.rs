//! The ledger's schema. A released step never changes.

use rusqlite_migration::M;

pub(super) const STEPS: &[M<'static>] = &[M::up(OPERATIONS), M::up(INPUTS)];

/// Input is counted and forgotten by itself, so that typing makes no program's end go.
const INPUTS: &str = "
DROP INDEX over;
CREATE INDEX over ON operations (changed) WHERE acked = 1
    AND kind NOT IN ('exec_stdin', 'pty_input', 'pty_resize', 'pty_close');
CREATE INDEX over_input ON operations (changed) WHERE acked = 1
    AND kind IN ('exec_stdin', 'pty_input', 'pty_resize', 'pty_close');
";

/// A new ledger has its name from its first transaction on. `acked = 0` is what a start loads; both partial indices keep the
/// cost of living operations apart from how many are remembered.
const OPERATIONS: &str = "
CREATE TABLE ledger (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    owner BLOB,
    generation INTEGER NOT NULL,
    configured BLOB
) STRICT;
INSERT INTO ledger VALUES (1, 'ledger_' || lower(hex(randomblob(16))), NULL, 0, NULL);
CREATE TABLE operations (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run TEXT,
    session TEXT,
    role TEXT NOT NULL,
    client TEXT,
    kind TEXT NOT NULL,
    request TEXT,
    digest BLOB NOT NULL,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    outcome TEXT,
    written TEXT NOT NULL,
    cancelled INTEGER NOT NULL,
    acked INTEGER NOT NULL,
    changed INTEGER NOT NULL
) STRICT;
CREATE INDEX living ON operations (seq) WHERE acked = 0;
CREATE INDEX over ON operations (changed) WHERE acked = 1;
CREATE TABLE tombstones (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tombstones_by_age ON tombstones (at);
CREATE TABLE cancelled_sessions (
    session TEXT PRIMARY KEY,
    cancellation TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX cancelled_sessions_by_age ON cancelled_sessions (at);
CREATE TABLE offsets (
    run TEXT NOT NULL,
    stream TEXT NOT NULL,
    acked INTEGER NOT NULL,
    PRIMARY KEY (run, stream)
) STRICT, WITHOUT ROWID;
";
