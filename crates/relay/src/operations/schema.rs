//! The schema of the control store, as the steps that lead to it. Steps are only ever appended.

use rusqlite_migration::M;

/// Operations, what is kept of their output, and the sessions that were cancelled. `n` is the order of admission.
///
/// Output is cut into rows so that its middle can be given up; a row never crosses the end of the head. The totals follow by
/// triggers, so that no way of removing something forgets them.
const OPERATIONS: &str = "
CREATE TABLE operations (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    device TEXT NOT NULL,
    account TEXT NOT NULL,
    principal TEXT NOT NULL,
    key TEXT,
    run TEXT UNIQUE,
    session TEXT,
    kind TEXT NOT NULL,
    input INTEGER NOT NULL,
    summary TEXT NOT NULL,
    digest BLOB NOT NULL,
    operation TEXT,
    state TEXT NOT NULL,
    sent_to TEXT,
    cancelled INTEGER NOT NULL DEFAULT 0,
    outcome TEXT,
    written TEXT,
    output INTEGER NOT NULL DEFAULT 0,
    place INTEGER NOT NULL,
    created INTEGER NOT NULL,
    ttl INTEGER NOT NULL,
    ended INTEGER
) STRICT;
CREATE UNIQUE INDEX operations_by_key ON operations (device, principal, key) WHERE key IS NOT NULL;
CREATE INDEX operations_living ON operations (device) WHERE ended IS NULL;
CREATE INDEX operations_ended ON operations (ended, n) WHERE ended IS NOT NULL;
CREATE INDEX operations_with_output ON operations (ended, n) WHERE ended IS NOT NULL AND output = 1;
CREATE INDEX operations_listed ON operations (device) WHERE input = 0;
CREATE INDEX operations_ended_inputs ON operations (ended) WHERE input = 1 AND ended IS NOT NULL;
CREATE TABLE streams (
    operation INTEGER NOT NULL REFERENCES operations ON DELETE CASCADE,
    stream TEXT NOT NULL,
    received INTEGER NOT NULL,
    PRIMARY KEY (operation, stream)
) STRICT, WITHOUT ROWID;
CREATE TABLE chunks (
    operation INTEGER NOT NULL REFERENCES operations ON DELETE CASCADE,
    stream TEXT NOT NULL,
    at INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX chunks_in_order ON chunks (operation, stream, at);
CREATE TABLE cancellations (
    id TEXT NOT NULL,
    device TEXT NOT NULL,
    session TEXT NOT NULL,
    confirmed INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    PRIMARY KEY (device, session)
) STRICT, WITHOUT ROWID;
CREATE TABLE totals (
    ended INTEGER NOT NULL,
    output INTEGER NOT NULL
) STRICT;
INSERT INTO totals VALUES (0, 0);
CREATE TRIGGER ended_counted AFTER UPDATE OF ended ON operations WHEN (OLD.ended IS NULL) <> (NEW.ended IS NULL) BEGIN
    UPDATE totals SET ended = ended + iif(NEW.ended IS NULL, -1, 1);
END;
CREATE TRIGGER ended_removed AFTER DELETE ON operations WHEN OLD.ended IS NOT NULL BEGIN
    UPDATE totals SET ended = ended - 1;
END;
CREATE TRIGGER output_kept AFTER INSERT ON chunks BEGIN
    UPDATE totals SET output = output + length(NEW.data);
END;
CREATE TRIGGER output_grew AFTER UPDATE OF data ON chunks BEGIN
    UPDATE totals SET output = output + length(NEW.data) - length(OLD.data);
END;
CREATE TRIGGER output_given_up AFTER DELETE ON chunks BEGIN
    UPDATE totals SET output = output - length(OLD.data);
END;
";

/// What will never come of a stream is counted; an outcome counts as what it weighs; each account has a bound of its own.
const BOUNDS: &str = "
ALTER TABLE streams ADD COLUMN missing INTEGER NOT NULL DEFAULT 0;
CREATE INDEX operations_ended_of_account ON operations (account, ended, n) WHERE ended IS NOT NULL;
CREATE TABLE accounts (
    account TEXT PRIMARY KEY,
    ended INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO accounts SELECT account, count(*) FROM operations WHERE ended IS NOT NULL GROUP BY account;
UPDATE totals SET output = output + (SELECT coalesce(sum(octet_length(outcome)), 0) FROM operations);
CREATE TRIGGER ended_counted_of_account AFTER UPDATE OF ended ON operations WHEN OLD.ended IS NULL AND NEW.ended IS NOT NULL BEGIN
    INSERT INTO accounts VALUES (NEW.account, 1) ON CONFLICT (account) DO UPDATE SET ended = ended + 1;
END;
CREATE TRIGGER ended_removed_of_account AFTER DELETE ON operations WHEN OLD.ended IS NOT NULL BEGIN
    UPDATE accounts SET ended = ended - 1 WHERE account = OLD.account;
    DELETE FROM accounts WHERE account = OLD.account AND ended < 1;
    UPDATE totals SET output = output - coalesce(octet_length(OLD.outcome), 0);
END;
CREATE TRIGGER outcome_weighed AFTER UPDATE OF outcome ON operations BEGIN
    UPDATE totals SET output = output + coalesce(octet_length(NEW.outcome), 0) - coalesce(octet_length(OLD.outcome), 0);
END;
";

/// Input is counted, found and forgotten by itself, so that typing makes no program's result go; and it knows its run, because
/// its key is needed as long as that lives. How long something has waited is known without the calendar, within one boot.
const INPUTS: &str = "
ALTER TABLE operations ADD COLUMN input_for TEXT;
ALTER TABLE totals ADD COLUMN inputs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN inputs INTEGER NOT NULL DEFAULT 0;
DROP INDEX operations_ended;
DROP INDEX operations_ended_of_account;
DROP INDEX operations_ended_inputs;
CREATE INDEX operations_ended ON operations (input, ended, n) WHERE ended IS NOT NULL;
CREATE INDEX operations_ended_of_account ON operations (input, account, ended, n) WHERE ended IS NOT NULL;
DROP TRIGGER ended_counted;
DROP TRIGGER ended_removed;
DROP TRIGGER ended_counted_of_account;
DROP TRIGGER ended_removed_of_account;
UPDATE totals SET inputs = (SELECT count(*) FROM operations WHERE ended IS NOT NULL AND input = 1);
UPDATE totals SET ended = ended - inputs;
UPDATE accounts SET inputs =
    (SELECT count(*) FROM operations WHERE ended IS NOT NULL AND input = 1 AND operations.account = accounts.account);
UPDATE accounts SET ended = ended - inputs;
ALTER TABLE operations ADD COLUMN boot TEXT;
ALTER TABLE operations ADD COLUMN boot_at INTEGER;
CREATE TRIGGER ended_counted AFTER UPDATE OF ended ON operations WHEN OLD.ended IS NULL AND NEW.ended IS NOT NULL BEGIN
    UPDATE totals SET ended = ended + (NEW.input = 0), inputs = inputs + (NEW.input = 1);
    INSERT INTO accounts VALUES (NEW.account, NEW.input = 0, NEW.input = 1) ON CONFLICT (account)
        DO UPDATE SET ended = ended + (NEW.input = 0), inputs = inputs + (NEW.input = 1);
END;
CREATE TRIGGER ended_removed AFTER DELETE ON operations WHEN OLD.ended IS NOT NULL BEGIN
    UPDATE totals SET ended = ended - (OLD.input = 0), inputs = inputs - (OLD.input = 1),
        output = output - coalesce(octet_length(OLD.outcome), 0);
    UPDATE accounts SET ended = ended - (OLD.input = 0), inputs = inputs - (OLD.input = 1) WHERE account = OLD.account;
    DELETE FROM accounts WHERE account = OLD.account AND ended < 1 AND inputs < 1;
END;
";

/// Every step, oldest first. `PRAGMA user_version` counts those already taken.
pub(super) const STEPS: &[M<'static>] = &[M::up(OPERATIONS), M::up(BOUNDS), M::up(INPUTS)];
