//! How values stand in columns. What cannot be read back is damage, of an operation its own alone: another build may have
//! written it.

use holdfast_core::operation::{Digest, Kind, Operation, Outcome, State};
use holdfast_core::worker::{Known, Row};
use holdfast_store::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// As text.
pub(super) fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|e| StoreError::Sqlite(e.to_string()))
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|_| StoreError::Damaged)
}

/// An id, or the name of a kind, a state or a stream.
pub(super) fn word<T: DeserializeOwned>(text: String) -> Result<T, StoreError> {
    serde_json::from_value(Value::String(text)).map_err(|_| StoreError::Damaged)
}

/// The columns of [`known`].
pub(super) const KNOWN: &str = "SELECT run, kind, digest, state, outcome, written FROM operations WHERE id = ?1";

/// What stands in a row; of one that cannot be read, that nobody knows how it ended.
pub(super) fn known(row: &rusqlite::Row<'_>) -> Result<Known, StoreError> {
    match understood(row) {
        Err(StoreError::Damaged) => Ok(Known {
            run_id: row.get::<_, Option<_>>(0)?.and_then(|run| word(run).ok()),
            kind: word(row.get(1)?).unwrap_or(Kind::Exec),
            digest: Digest(row.get(2)?),
            state: State::Unknown,
            outcome: Some(unreadable()),
            written: from_json(&row.get::<_, String>(5)?).unwrap_or_default(),
        }),
        read => read,
    }
}

/// The end of an operation whose row cannot be read.
pub(super) fn unreadable() -> Outcome {
    let reason = "this build cannot read what the ledger says of it; another one may have written it".into();
    Outcome::Unknown { reason, evidence: None }
}

fn understood(row: &rusqlite::Row<'_>) -> Result<Known, StoreError> {
    Ok(Known {
        run_id: row.get::<_, Option<_>>(0)?.map(word).transpose()?,
        kind: word(row.get(1)?)?,
        digest: Digest(row.get(2)?),
        state: word(row.get(3)?)?,
        outcome: row.get::<_, Option<String>>(4)?.as_deref().map(from_json).transpose()?,
        written: from_json(&row.get::<_, String>(5)?)?,
    })
}

/// The columns of [`living`].
pub(super) const LIVING: &str =
    "SELECT id, run, session, role, client, request, digest, state, attempt, generation, outcome,
    written, cancelled, acked, changed, seq FROM operations WHERE acked = 0 ORDER BY seq";

/// The column that says where a row stands.
pub(super) const SEQ: usize = 15;

/// A row that is not over, and when it last changed.
pub(super) fn living(row: &rusqlite::Row<'_>) -> Result<(Row, u64), StoreError> {
    let operation = Operation {
        request_id: word(row.get(0)?)?,
        run_id: row.get::<_, Option<_>>(1)?.map(word).transpose()?,
        session_id: row.get(2)?,
        role: word(row.get(3)?)?,
        client: row.get(4)?,
        after: None,
        request: from_json(&row.get::<_, String>(5)?)?,
    };
    let living = Row {
        operation,
        digest: Digest(row.get(6)?),
        state: word(row.get(7)?)?,
        attempt: row.get(8)?,
        generation: row.get(9)?,
        outcome: row.get::<_, Option<String>>(10)?.as_deref().map(from_json).transpose()?,
        written: from_json(&row.get::<_, String>(11)?)?,
        cancelled: row.get(12)?,
        acked: row.get(13)?,
    };
    Ok((living, row.get(14)?))
}
