//! Each change as statements.

use holdfast_core::id::OperationId;
use holdfast_core::status::UnixMs;
use holdfast_core::worker::{Change, Found, Known, Row};
use holdfast_store::StoreError;
use rusqlite::{Connection, params};

use super::columns::{self, json};

/// Carries one change out inside a transaction, and says what stood there before.
pub(super) fn carry_out(db: &Connection, at: UnixMs, change: &Change) -> Result<Found, StoreError> {
    match change {
        Change::Admit(row) => return admit(db, at, row),
        Change::Recall(id) => return look(db, id),
        Change::Cancel { id } => return cancel(db, at, id),
        Change::CancelSession { session, cancellation } => return cancel_session(db, at, session, cancellation),
        Change::Settle(row) => {
            execute(db, "DELETE FROM tombstones WHERE id = ?1", params![row.operation.request_id.as_str()])?;
            insert(db, at, row)?;
        }
        Change::Starting { id, attempt, generation } => {
            execute(
                db,
                "UPDATE operations SET state = 'starting', attempt = ?2, generation = ?3, changed = ?4
                 WHERE id = ?1 AND outcome IS NULL",
                params![id.as_str(), attempt, generation, at],
            )?;
        }
        Change::Running { id } => {
            execute(
                db,
                "UPDATE operations SET state = 'running', changed = ?2 WHERE id = ?1 AND outcome IS NULL",
                params![id.as_str(), at],
            )?;
        }
        Change::Ended { id, outcome, written } => {
            execute(
                db,
                "UPDATE operations SET state = ?2, outcome = ?3, written = ?4, changed = ?5
                 WHERE id = ?1 AND outcome IS NULL",
                params![id.as_str(), outcome.state().as_str(), json(outcome)?, json(written)?, at],
            )?;
        }
        Change::Acked { id } => {
            execute(
                db,
                "DELETE FROM offsets WHERE run = (SELECT run FROM operations
                 WHERE id = ?1 AND kind IN ('exec', 'pty_open', 'port_forward_connect'))",
                params![id.as_str()],
            )?;
            execute(db, "UPDATE operations SET acked = 1, request = NULL WHERE id = ?1", params![id.as_str()])?;
        }
        Change::Offset { run, stream, offset } => {
            execute(
                db,
                "INSERT INTO offsets VALUES (?1, ?2, ?3)
                 ON CONFLICT (run, stream) DO UPDATE SET acked = max(acked, excluded.acked)",
                params![run.as_str(), stream.as_str(), offset],
            )?;
        }
        Change::Generation(generation) => {
            execute(db, "UPDATE ledger SET generation = max(generation, ?1)", params![generation])?;
        }
        Change::Configured(config) => {
            execute(db, "UPDATE ledger SET configured = ?1", params![config.0])?;
        }
    }
    Ok(Found::default())
}

/// Inserts, and looks only where nothing was inserted: between the two no other write can come.
fn admit(db: &Connection, at: UnixMs, row: &Row) -> Result<Found, StoreError> {
    let operation = &row.operation;
    let cancelled = stands(db, "SELECT 1 FROM tombstones WHERE id = ?1", operation.request_id.as_str())?
        || operation.session_id.as_deref().map_or(Ok(false), |session| is_cancelled(db, session))?;
    if !cancelled && insert(db, at, row)? {
        return Ok(Found::default());
    }
    Ok(Found { known: known(db, &operation.request_id)?, cancelled })
}

fn insert(db: &Connection, at: UnixMs, row: &Row) -> Result<bool, StoreError> {
    let operation = &row.operation;
    let inserted = execute(
        db,
        "INSERT INTO operations (id, run, session, role, client, kind, request, digest, state, attempt, generation,
             outcome, written, cancelled, acked, changed)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) ON CONFLICT (id) DO NOTHING",
        params![
            operation.request_id.as_str(),
            operation.run_id.as_ref().map(|run| run.as_str()),
            operation.session_id,
            operation.role.as_str(),
            operation.client,
            operation.kind().as_str(),
            json(&operation.request)?,
            row.digest.0,
            row.state.as_str(),
            row.attempt,
            row.generation,
            row.outcome.as_ref().map(json).transpose()?,
            json(&row.written)?,
            row.cancelled,
            row.acked,
            at,
        ],
    )?;
    Ok(inserted == 1)
}

fn look(db: &Connection, id: &OperationId) -> Result<Found, StoreError> {
    let cancelled = stands(db, "SELECT 1 FROM tombstones WHERE id = ?1", id.as_str())?;
    Ok(Found { known: known(db, id)?, cancelled })
}

fn cancel(db: &Connection, at: UnixMs, id: &OperationId) -> Result<Found, StoreError> {
    let found = look(db, id)?;
    match found.known {
        Some(_) => {
            execute(db, "UPDATE operations SET cancelled = 1 WHERE id = ?1 AND outcome IS NULL", params![id.as_str()])?
        }
        None => execute(db, "INSERT OR IGNORE INTO tombstones VALUES (?1, ?2)", params![id.as_str(), at])?,
    };
    Ok(found)
}

fn cancel_session(db: &Connection, at: UnixMs, session: &str, name: &str) -> Result<Found, StoreError> {
    let cancelled = is_cancelled(db, session)?;
    if !cancelled {
        execute(db, "INSERT INTO cancelled_sessions VALUES (?1, ?2, ?3)", params![session, name, at])?;
        execute(
            db,
            "UPDATE operations SET cancelled = 1 WHERE acked = 0 AND session = ?1 AND outcome IS NULL",
            params![session],
        )?;
    }
    Ok(Found { known: None, cancelled })
}

fn is_cancelled(db: &Connection, session: &str) -> Result<bool, StoreError> {
    stands(db, "SELECT 1 FROM cancelled_sessions WHERE session = ?1", session)
}

fn stands(db: &Connection, query: &'static str, key: &str) -> Result<bool, StoreError> {
    Ok(db.prepare_cached(query)?.exists(params![key])?)
}

fn known(db: &Connection, id: &OperationId) -> Result<Option<Known>, StoreError> {
    let mut query = db.prepare_cached(columns::KNOWN)?;
    let mut rows = query.query(params![id.as_str()])?;
    rows.next()?.map(columns::known).transpose()
}

fn execute(db: &Connection, statement: &'static str, with: impl rusqlite::Params) -> Result<usize, StoreError> {
    Ok(db.prepare_cached(statement)?.execute(with)?)
}
