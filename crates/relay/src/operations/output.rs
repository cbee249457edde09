//! What is kept of output: the first and the last bytes of each stream, and not too much of all together.

use bytes::Bytes;
use holdfast_core::limits;
use holdfast_core::operation::{Outcome, Stream, Streams};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::store::StoreError;

/// How much is kept, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Of the beginning of each stream.
    pub(super) head: u64,
    /// Of the end of each stream; up to one row more may stay.
    pub(super) tail: u64,
    /// Of all streams together.
    pub(super) total: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { head: limits::CONTROL_HEAD, tail: limits::CONTROL_TAIL, total: limits::CONTROL_TOTAL }
    }
}

/// One stream of one operation, named by its row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Of(pub(super) i64, pub(super) Stream);

/// What stands at an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// Bytes from there on; none means that nothing more came yet.
    Bytes(Bytes),
    /// It was given up; output goes on at `first_available`.
    Gone {
        /// In bytes from the stream's beginning.
        first_available: u64,
    },
    /// Nothing ever came that far.
    Beyond,
}

/// How much of a stream has come, what was given up included.
pub(super) fn received(db: &Connection, Of(operation, stream): Of) -> Result<u64, StoreError> {
    let sql = "SELECT received FROM streams WHERE operation = ?1 AND stream = ?2";
    let mut query = db.prepare_cached(sql)?;
    Ok(query.query_row(params![operation, stream.as_str()], |row| row.get(0)).optional()?.unwrap_or(0))
}

/// The same of all streams of an operation.
pub(super) fn received_all(db: &Connection, operation: i64) -> Result<Streams, StoreError> {
    let mut query = db.prepare_cached("SELECT stream, received FROM streams WHERE operation = ?1")?;
    streams(query.query_map([operation], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

fn streams(rows: impl Iterator<Item = rusqlite::Result<(String, u64)>>) -> Result<Streams, StoreError> {
    let mut streams = Streams::new();
    for row in rows {
        let (name, bytes) = row?;
        streams.extend(Stream::parse(&name).map(|stream| (stream, bytes)));
    }
    Ok(streams)
}

/// What the worker never sent of the streams of an operation, in bytes of those that lack some.
pub(super) fn missing_all(db: &Connection, operation: i64) -> Result<Streams, StoreError> {
    let mut query = db.prepare_cached("SELECT stream, missing FROM streams WHERE operation = ?1 AND missing > 0")?;
    streams(query.query_map([operation], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// The stream goes on at `next`: what lies between will never come. Never goes back.
pub(super) fn skip(db: &Connection, of: Of, from: u64, next: u64) -> Result<(), StoreError> {
    let missing = next.saturating_sub(unbroken(db, of, from)?);
    advance(db, of, next, missing)
}

fn advance(db: &Connection, of: Of, next: u64, missing: u64) -> Result<(), StoreError> {
    let sql = "INSERT INTO streams (operation, stream, received, missing) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (operation, stream)
               DO UPDATE SET received = max(received, excluded.received), missing = missing + excluded.missing";
    db.prepare_cached(sql)?.execute(params![of.0, of.1.as_str(), next, missing])?;
    Ok(())
}

/// What has come of a stream that goes on at `from`: a hole is never stored.
fn unbroken(db: &Connection, of: Of, from: u64) -> Result<u64, StoreError> {
    match received(db, of)? {
        less if less < from => Err(StoreError::Sqlite("output with a hole before it".into())),
        received => Ok(received),
    }
}

/// Adds output, without what is there already; then gives up what is beyond the bounds.
pub(super) fn append(db: &Connection, bounds: &Bounds, of: Of, from: u64, data: &[u8]) -> Result<(), StoreError> {
    let at = unbroken(db, of, from)?;
    let known = usize::try_from(at - from).unwrap_or(usize::MAX);
    let Some(data) = data.get(known..).filter(|new| !new.is_empty()) else { return Ok(()) };
    // No row lies in both head and tail.
    let cut = usize::try_from(bounds.head.saturating_sub(at)).unwrap_or(usize::MAX).min(data.len());
    let (head, tail) = data.split_at(cut);
    let (middle, end) = (at + head.len() as u64, at + data.len() as u64);
    add(db, of, at, head, 0)?;
    add(db, of, middle, tail, bounds.head)?;
    advance(db, of, end, 0)?;
    let sql =
        "DELETE FROM chunks WHERE operation = ?1 AND stream = ?2 AND at BETWEEN ?3 AND ?4 AND at + length(data) <= ?4";
    let over = end.saturating_sub(bounds.tail);
    if over > bounds.head {
        db.prepare_cached(sql)?.execute(params![of.0, of.1.as_str(), bounds.head, over])?;
    }
    weighs(db, of.0)?;
    make_room(db, bounds, of)
}

/// An operation has something to give up.
pub(super) fn weighs(db: &Connection, operation: i64) -> Result<(), StoreError> {
    db.prepare_cached("UPDATE operations SET output = 1 WHERE n = ?1 AND output = 0")?.execute([operation])?;
    Ok(())
}

/// Puts bytes into the last row, if that ends here, is small and does not begin before `first`; else into a new one. So
/// output that comes byte by byte costs neither a row a byte nor the rewriting of a big one.
fn add(db: &Connection, of: Of, at: u64, data: &[u8], first: u64) -> Result<(), StoreError> {
    if data.is_empty() {
        return Ok(());
    }
    let sql =
        "SELECT rowid, at, length(data) FROM chunks WHERE operation = ?1 AND stream = ?2 ORDER BY at DESC LIMIT 1";
    let last = db
        .prepare_cached(sql)?
        .query_row(params![of.0, of.1.as_str()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, u64>(1)?, row.get::<_, u64>(2)?))
        })
        .optional()?;
    let small = |begin: u64, size: u64| {
        begin >= first && begin + size == at && size + data.len() as u64 <= limits::CONTROL_CHUNK_SMALL as u64
    };
    match last {
        Some((row, begin, size)) if small(begin, size) => {
            let mut joined: Vec<u8> = db
                .prepare_cached("SELECT data FROM chunks WHERE rowid = ?1")?
                .query_row([row], |found| found.get(0))?;
            joined.extend_from_slice(data);
            db.prepare_cached("UPDATE chunks SET data = ?2 WHERE rowid = ?1")?.execute(params![row, joined])?;
        }
        _ => {
            let sql = "INSERT INTO chunks (operation, stream, at, data) VALUES (?1, ?2, ?3, ?4)";
            db.prepare_cached(sql)?.execute(params![of.0, of.1.as_str(), at, data])?;
        }
    }
    Ok(())
}

/// Keeps the total, outcomes included: the oldest ended operations give up their output first, then the stream that grows gives up its own,
/// the beginning of its tail before its head.
pub(super) fn make_room(db: &Connection, bounds: &Bounds, of: Of) -> Result<(), StoreError> {
    while total(db)? > bounds.total {
        let sql = "SELECT n FROM operations WHERE ended IS NOT NULL AND output = 1 ORDER BY ended, n LIMIT 1";
        let oldest: Option<i64> = db.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?;
        let given_up = match oldest {
            Some(operation) => drop_output(db, operation)?,
            None => drop_own(db, bounds, of)?,
        };
        if given_up == 0 && oldest.is_none() {
            break;
        }
    }
    Ok(())
}

fn total(db: &Connection) -> Result<u64, StoreError> {
    Ok(db.prepare_cached("SELECT output FROM totals")?.query_row([], |row| row.get(0))?)
}

/// Gives up some of the output of an operation, from the beginning of its streams; tells how many rows. One write must stay
/// short: whoever wants all of it gone asks again until there is none.
pub(super) fn drop_output(db: &Connection, operation: i64) -> Result<usize, StoreError> {
    let sql = "DELETE FROM chunks WHERE rowid IN
               (SELECT rowid FROM chunks WHERE operation = ?1 ORDER BY stream, at LIMIT ?2)";
    let rows = db.prepare_cached(sql)?.execute(params![operation, limits::CONTROL_ROWS_AT_ONCE])?;
    if rows < limits::CONTROL_ROWS_AT_ONCE {
        lighten(db, operation)?;
    }
    Ok(rows)
}

/// What is left of an operation without output weighs little.
fn lighten(db: &Connection, operation: i64) -> Result<(), StoreError> {
    db.prepare_cached("UPDATE operations SET output = 0 WHERE n = ?1")?.execute([operation])?;
    let sql = "SELECT outcome FROM operations WHERE n = ?1 AND octet_length(outcome) > ?2";
    let heavy: Option<String> = db
        .prepare_cached(sql)?
        .query_row(params![operation, limits::CONTROL_OUTCOME_SMALL], |row| row.get(0))
        .optional()?;
    if let Some(outcome) = heavy.and_then(|text| serde_json::from_str::<Outcome>(&text).ok()) {
        let outcome = serde_json::to_string(&outcome.within(limits::CONTROL_OUTCOME_SMALL)).unwrap_or_default();
        db.prepare_cached("UPDATE operations SET outcome = ?2 WHERE n = ?1")?.execute(params![operation, outcome])?;
    }
    Ok(())
}

fn drop_own(db: &Connection, bounds: &Bounds, of: Of) -> Result<usize, StoreError> {
    let sql = "DELETE FROM chunks WHERE rowid =
               (SELECT rowid FROM chunks WHERE operation = ?1 AND stream = ?2 ORDER BY at < ?3, at LIMIT 1)";
    Ok(db.prepare_cached(sql)?.execute(params![of.0, of.1.as_str(), bounds.head])?)
}

/// At most `max` bytes from an offset, up to the next gap.
pub(super) fn read(db: &Connection, of: Of, offset: u64, max: usize) -> Result<Found, StoreError> {
    let Of(operation, stream) = of;
    let received = received(db, of)?;
    if offset >= received {
        return Ok(if offset == received { Found::Bytes(Bytes::new()) } else { Found::Beyond });
    }
    // From the row that begins at or before the offset: it may hold it or lie before a gap.
    let sql = "SELECT at, data FROM chunks WHERE operation = ?1 AND stream = ?2 AND at >= coalesce(
               (SELECT max(at) FROM chunks WHERE operation = ?1 AND stream = ?2 AND at <= ?3), ?3) ORDER BY at";
    let mut query = db.prepare_cached(sql)?;
    let mut rows = query.query(params![operation, stream.as_str(), offset])?;
    let mut data = Vec::new();
    while let Some(row) = rows.next()? {
        let (at, piece) = (row.get::<_, u64>(0)?, row.get_ref(1)?.as_blob().unwrap_or_default());
        let wanted = offset + data.len() as u64;
        if at + piece.len() as u64 <= wanted {
            continue;
        }
        if at > wanted {
            match data.is_empty() {
                true => return Ok(Found::Gone { first_available: at }),
                false => break,
            }
        }
        let from = usize::try_from(wanted - at).unwrap_or(0);
        data.extend_from_slice(&piece[from..(from + max - data.len()).min(piece.len())]);
        if data.len() == max {
            break;
        }
    }
    match data.is_empty() {
        true => Ok(Found::Gone { first_available: received }),
        false => Ok(Found::Bytes(data.into())),
    }
}
