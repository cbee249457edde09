//! The schema, as the steps that lead to it. Steps are only ever appended: a released one never changes.

use rusqlite_migration::M;

/// People, devices, clients and what they were granted.
const PEOPLE: &str = "
CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    password TEXT,
    version INTEGER NOT NULL DEFAULT 1,
    active INTEGER NOT NULL DEFAULT 1,
    default_device TEXT,
    created INTEGER NOT NULL
) STRICT;
CREATE TABLE devices (
    id TEXT PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts ON DELETE CASCADE,
    name TEXT NOT NULL,
    token BLOB NOT NULL UNIQUE,
    created INTEGER NOT NULL,
    revoked INTEGER
) STRICT;
CREATE INDEX devices_of_account ON devices (account);
CREATE TABLE enrolments (
    code BLOB PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts ON DELETE CASCADE,
    expires INTEGER NOT NULL,
    enrolment BLOB,
    device TEXT,
    sealed BLOB
) STRICT;
CREATE TABLE clients (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    refreshes INTEGER NOT NULL,
    source BLOB NOT NULL,
    created INTEGER NOT NULL,
    last_used INTEGER
) STRICT;
CREATE TABLE grants (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    account TEXT NOT NULL REFERENCES accounts ON DELETE CASCADE,
    device TEXT NOT NULL REFERENCES devices ON DELETE CASCADE,
    client TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT,
    scopes TEXT NOT NULL,
    audience TEXT,
    created INTEGER NOT NULL
) STRICT;
CREATE INDEX grants_of_account ON grants (account, client);
CREATE TABLE pairs (
    grant_id TEXT NOT NULL REFERENCES grants ON DELETE CASCADE,
    generation INTEGER NOT NULL,
    access BLOB UNIQUE,
    access_expires INTEGER NOT NULL,
    refresh BLOB UNIQUE,
    refresh_expires INTEGER,
    first_used INTEGER,
    successor BLOB,
    PRIMARY KEY (grant_id, generation)
) STRICT, WITHOUT ROWID;
";

/// What the relay remembers of a device's link: its last catalogue, and the calls made with an idempotency key.
const LINK: &str = "
CREATE TABLE catalogues (
    device TEXT PRIMARY KEY,
    body TEXT NOT NULL,
    seen INTEGER NOT NULL
) STRICT;
CREATE TABLE keyed_calls (
    device TEXT NOT NULL,
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    key TEXT NOT NULL,
    account TEXT NOT NULL,
    digest BLOB NOT NULL,
    call TEXT NOT NULL,
    instance TEXT,
    budget_ms INTEGER NOT NULL,
    control INTEGER NOT NULL,
    opened INTEGER NOT NULL,
    hold_until INTEGER,
    ended INTEGER,
    result TEXT,
    error TEXT,
    PRIMARY KEY (device, principal, tool, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX keyed_calls_of_account ON keyed_calls (account);
CREATE INDEX keyed_calls_ended ON keyed_calls (ended);
";

/// When a grant was last used, for people.
const USE: &str = "ALTER TABLE grants ADD COLUMN last_used INTEGER;";

/// The records of calls: made with an idempotency key, or promoted, or both.
const CALLS: &str = "
CREATE TABLE calls (
    call TEXT PRIMARY KEY,
    device TEXT NOT NULL,
    account TEXT NOT NULL,
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    key TEXT,
    digest BLOB,
    handle TEXT UNIQUE,
    grant_id TEXT,
    instance TEXT,
    budget_ms INTEGER NOT NULL,
    control INTEGER NOT NULL,
    opened INTEGER NOT NULL,
    hold_until INTEGER,
    ended INTEGER,
    bytes INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    result TEXT
) STRICT;
CREATE UNIQUE INDEX calls_of_key ON calls (device, principal, tool, key) WHERE key IS NOT NULL;
CREATE INDEX calls_keyed ON calls (account) WHERE key IS NOT NULL;
CREATE INDEX calls_promoted ON calls (account, ended, bytes) WHERE handle IS NOT NULL;
CREATE INDEX calls_ended ON calls (ended);
INSERT INTO calls (call, device, account, principal, tool, key, digest, instance, budget_ms, control, opened, hold_until, ended, error, result)
SELECT call, device, account, principal, tool, key, digest, instance, budget_ms, control, opened, hold_until, ended, error, result
FROM keyed_calls;
DROP TABLE keyed_calls;
";

/// Every step, oldest first. `PRAGMA user_version` counts those already taken.
pub(crate) const STEPS: &[M<'static>] = &[M::up(PEOPLE), M::up(LINK), M::up(USE), M::up(CALLS)];

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;
    use rusqlite_migration::Migrations;

    const MIGRATIONS: Migrations<'static> = Migrations::from_slice(STEPS);

    /// What a relay had stored under the schema after `steps` steps.
    fn filled(steps: usize) -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        MIGRATIONS.to_version(&mut db, steps).unwrap();
        if steps >= 1 {
            db.execute_batch(
                "INSERT INTO accounts (id, name, role, created) VALUES ('acct_x', 'ada', 'owner', 1);
                 INSERT INTO devices (id, account, name, token, created) VALUES ('dev_x', 'acct_x', 'laptop', x'01', 1);
                 INSERT INTO clients (id, name, redirect_uris, refreshes, source, created) VALUES ('client_x', 'x', '[]', 1, x'02', 1);
                 INSERT INTO grants (id, kind, account, device, client, name, scopes, created)
                 VALUES ('grant_x', 'client', 'acct_x', 'dev_x', 'client_x', 'x', 'mcp', 1);
                 INSERT INTO pairs (grant_id, generation, access, access_expires) VALUES ('grant_x', 0, x'03', 9);",
            )
            .unwrap();
        }
        if steps == 2 || steps == 3 {
            db.execute_batch(
                "INSERT INTO keyed_calls (device, principal, tool, key, account, digest, call, budget_ms, control, opened)
                 VALUES ('dev_x', 'p', 't', 'k', 'acct_x', x'04', 'call_x', 5, 0, 1);",
            )
            .unwrap();
        }
        db
    }

    #[test]
    fn every_released_schema_is_brought_to_the_newest_with_what_it_holds() {
        MIGRATIONS.validate().unwrap();
        for steps in 1..=STEPS.len() {
            let mut db = filled(steps);
            MIGRATIONS.to_latest(&mut db).unwrap();
            let version: usize = db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
            assert_eq!(version, STEPS.len());
            let kept = "SELECT a.name || d.name || p.access_expires FROM accounts a JOIN devices d ON d.account = a.id
                        JOIN grants g ON g.device = d.id JOIN pairs p ON p.grant_id = g.id";
            assert_eq!(db.query_row(kept, [], |row| row.get::<_, String>(0)).unwrap(), "adalaptop9", "from {steps}");
            let calls =
                "SELECT count(*) FROM calls WHERE call = 'call_x' AND key = 'k' AND handle IS NULL AND digest = x'04'";
            let keyed: usize = db.query_row(calls, [], |row| row.get(0)).unwrap();
            assert_eq!(keyed, usize::from(steps == 2 || steps == 3), "from {steps}");
        }
    }
}
