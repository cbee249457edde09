//! The schema of a seat's store. A released step never changes.

use rusqlite_migration::M;

pub(super) const STEPS: &[M<'static>] = &[M::up(CHANNELS), M::up(ENTRIES), M::up(LEFT)];

/// Dates are milliseconds since 1970. `seat` counts what must never be used twice, however much is removed.
const CHANNELS: &str = "
CREATE TABLE seat (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    generation INTEGER NOT NULL,
    outbox_seq INTEGER NOT NULL,
    inbox_seq INTEGER NOT NULL,
    lanes_used INTEGER NOT NULL
) STRICT;
INSERT INTO seat VALUES (1, 0, 0, 0, 0);
CREATE TABLE outbox (
    source TEXT NOT NULL,
    first INTEGER NOT NULL,
    after INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    channel TEXT NOT NULL,
    seq INTEGER NOT NULL,
    text TEXT NOT NULL,
    reply_to TEXT,
    buttons TEXT NOT NULL,
    written INTEGER NOT NULL,
    skips INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    standing TEXT NOT NULL,
    detail TEXT,
    changed INTEGER NOT NULL,
    PRIMARY KEY (source, first, after, chunk)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_prepared ON outbox (seq) WHERE standing = 'prepared';
CREATE INDEX outbox_troubles ON outbox (changed) WHERE standing IN ('parked', 'unknown');
CREATE INDEX outbox_ended ON outbox (changed) WHERE standing <> 'prepared';
CREATE INDEX outbox_sent ON outbox (channel, detail) WHERE standing = 'sent';
CREATE TABLE lanes (
    channel TEXT PRIMARY KEY,
    last TEXT,
    parked TEXT,
    used INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE cursors (
    source TEXT PRIMARY KEY,
    transcript TEXT NOT NULL,
    generation INTEGER NOT NULL,
    state TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE inbox (
    seq INTEGER PRIMARY KEY,
    channel TEXT NOT NULL,
    id TEXT NOT NULL,
    binding TEXT NOT NULL,
    incoming TEXT NOT NULL,
    standing TEXT NOT NULL,
    changed INTEGER NOT NULL,
    UNIQUE (channel, id)
) STRICT;
CREATE INDEX inbox_open ON inbox (seq) WHERE standing <> 'done';
CREATE INDEX inbox_done ON inbox (changed) WHERE standing = 'done';
CREATE INDEX inbox_of_binding ON inbox (binding, seq);
CREATE TABLE seen (
    channel TEXT PRIMARY KEY,
    message TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE asks (
    seq INTEGER PRIMARY KEY,
    request TEXT NOT NULL UNIQUE,
    ask TEXT NOT NULL,
    asked INTEGER NOT NULL,
    message TEXT,
    ended TEXT,
    shown INTEGER NOT NULL
) STRICT;
CREATE TABLE bound (
    binding TEXT PRIMARY KEY,
    transcript TEXT NOT NULL,
    named INTEGER NOT NULL,
    awaited INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// How many entries of a transcript share a message: people are told when they are left out.
const ENTRIES: &str = "ALTER TABLE outbox ADD COLUMN entries INTEGER NOT NULL DEFAULT 1";

/// What the last holder of a generation left: channels with nothing under way, and up to when it had looked at transcripts.
const LEFT: &str = "
ALTER TABLE lanes ADD COLUMN settled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cursors ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE bound ADD COLUMN looked INTEGER NOT NULL DEFAULT 0;
";
