//! Each change as statements.

use holdfast_core::chat::outbox::{Key, Record};
use holdfast_core::chat::{asks, inbox, outbox};
use holdfast_core::limits;
use holdfast_core::status::UnixMs;
use holdfast_store::StoreError;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::columns::{self, date, json};

/// Carries one change of the outbox out; the key, if it stood there already.
pub(super) fn outbox(
    db: &Connection,
    at: UnixMs,
    generation: u64,
    change: &outbox::Change,
) -> Result<Option<Key>, StoreError> {
    use outbox::Change;
    match change {
        Change::Prepare(record) => return prepare(db, at, record),
        Change::Ended { key, standing, generation } => {
            let (word, detail) = columns::standing(standing);
            execute(
                db,
                "UPDATE outbox SET standing = ?5, detail = ?6, generation = ?7, changed = ?8
                 WHERE source = ?1 AND first = ?2 AND after = ?3 AND chunk = ?4",
                params![&*key.source, key.start, key.end, key.chunk, word, detail, generation, at],
            )?;
        }
        Change::Skipped(key) => {
            execute(
                db,
                "UPDATE outbox SET standing = 'skipped', changed = ?5
                 WHERE source = ?1 AND first = ?2 AND after = ?3 AND chunk = ?4",
                params![&*key.source, key.start, key.end, key.chunk, at],
            )?;
        }
        Change::Joined(key) => {
            execute(
                db,
                "DELETE FROM outbox
                 WHERE source = ?1 AND first = ?2 AND after = ?3 AND chunk = ?4 AND standing = 'prepared'",
                params![&*key.source, key.start, key.end, key.chunk],
            )?;
        }
        Change::Again { key, seq } => {
            execute(
                db,
                "UPDATE outbox SET standing = 'prepared', detail = NULL, seq = ?5, written = ?6, changed = ?6
                 WHERE source = ?1 AND first = ?2 AND after = ?3 AND chunk = ?4",
                params![&*key.source, key.start, key.end, key.chunk, seq, at],
            )?;
            counted(db, *seq)?;
        }
        Change::Lane(lane) => {
            execute(db, "UPDATE seat SET lanes_used = lanes_used + 1", [])?;
            execute(
                db,
                "INSERT INTO lanes (channel, last, parked, used) VALUES (?1, ?2, ?3, (SELECT lanes_used FROM seat)) ON CONFLICT (channel) DO UPDATE
                 SET last = excluded.last, parked = excluded.parked, used = excluded.used",
                params![lane.channel.as_str(), lane.last.as_ref().map(|last| last.as_str()), lane.parked],
            )?;
        }
        Change::Settled(channel) => {
            execute(
                db,
                "INSERT INTO lanes (channel, used, settled) VALUES (?1, (SELECT lanes_used FROM seat), ?2)
                 ON CONFLICT (channel) DO UPDATE SET settled = excluded.settled",
                params![channel.as_str(), generation],
            )?;
        }
        Change::Forget(channel) => {
            execute(db, "DELETE FROM lanes WHERE channel = ?1", params![channel.as_str()])?;
        }
        Change::Cursor { source, state } => {
            let (generation, transcript) = source.split_once(':').unwrap_or(("0", source));
            execute(
                db,
                "INSERT INTO cursors VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (source) DO UPDATE
                 SET state = excluded.state, at = excluded.at",
                params![&**source, transcript, generation.parse::<u64>().unwrap_or_default(), &**state, at],
            )?;
        }
        Change::Prune => prune(db, at)?,
    }
    Ok(None)
}

fn prepare(db: &Connection, at: UnixMs, record: &Record) -> Result<Option<Key>, StoreError> {
    let key = &record.key;
    // Ranges of one origin lie apart, so only the last that begins no later can cover this one.
    let covers = "SELECT after > ?3 OR first < ?2 FROM
                  (SELECT first, after FROM outbox WHERE source = ?1 AND first <= ?2
                   ORDER BY first DESC, after DESC LIMIT 1)
                  WHERE after >= ?3";
    let covered: Option<bool> =
        db.prepare_cached(covers)?.query_row(params![&*key.source, key.start, key.end], |row| row.get(0)).optional()?;
    if record.skips == 0 && covered == Some(true) {
        return Ok(Some(key.clone()));
    }
    let inserted = execute(
        db,
        "INSERT INTO outbox VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 'prepared', NULL, ?13, ?14)
         ON CONFLICT DO NOTHING",
        params![
            &*key.source,
            key.start,
            key.end,
            key.chunk,
            record.channel.as_str(),
            record.seq,
            record.text,
            record.reply_to.as_ref().map(|id| id.as_str()),
            json(&record.buttons)?,
            date(at, record.age),
            record.skips,
            record.generation,
            at,
            record.entries,
        ],
    )?;
    counted(db, record.seq)?;
    let same = "SELECT 1 FROM outbox
                WHERE source = ?1 AND first = ?2 AND after = ?3 AND chunk = ?4 AND generation = ?5 AND seq = ?6";
    let known = inserted == 0
        && !db.prepare_cached(same)?.exists(params![
            &*key.source,
            key.start,
            key.end,
            key.chunk,
            record.generation,
            record.seq
        ])?;
    Ok(known.then(|| key.clone()))
}

fn counted(db: &Connection, seq: u64) -> Result<(), StoreError> {
    execute(db, "UPDATE seat SET outbox_seq = max(outbox_seq, ?1)", params![seq]).map(|_| ())
}

/// Of cursors, each transcript's newest counts, and the newest of all: its generation must not be given again.
fn prune(db: &Connection, at: UnixMs) -> Result<(), StoreError> {
    let before = date(at, limits::OUTBOX_KEPT);
    execute(db, "DELETE FROM outbox WHERE standing <> 'prepared' AND changed < ?1", params![before])?;
    execute(
        db,
        "DELETE FROM outbox WHERE standing <> 'prepared' AND changed <= (SELECT changed FROM outbox
         WHERE standing <> 'prepared' ORDER BY changed DESC LIMIT 1 OFFSET ?1)",
        params![limits::OUTBOX_KEPT_MAX],
    )?;
    execute(
        db,
        "DELETE FROM cursors WHERE generation < (SELECT max(generation) FROM cursors AS newer
         WHERE newer.transcript = cursors.transcript)",
        [],
    )?;
    execute(
        db,
        "DELETE FROM cursors WHERE source IN (SELECT source FROM cursors ORDER BY generation DESC LIMIT -1 OFFSET ?1)",
        params![limits::FORWARDER_CURSORS],
    )?;
    Ok(())
}

/// Carries one change of the inbox out; the number, if the message stood there already under another.
pub(super) fn inbox(db: &Connection, at: UnixMs, change: &inbox::Change) -> Result<Option<u64>, StoreError> {
    use inbox::Change;
    match change {
        Change::Take(message) => {
            let (channel, id) = (message.incoming.channel.as_str(), message.incoming.id.as_str());
            let inserted = execute(
                db,
                "INSERT INTO inbox VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
                params![
                    message.seq,
                    channel,
                    id,
                    &*message.binding,
                    json(&message.incoming)?,
                    columns::inbox_standing(message.standing),
                    at,
                ],
            )?;
            execute(db, "UPDATE seat SET inbox_seq = max(inbox_seq, ?1)", params![message.seq])?;
            let stands = "SELECT seq FROM inbox WHERE channel = ?1 AND id = ?2";
            let number: Option<u64> =
                db.prepare_cached(stands)?.query_row(params![channel, id], |row| row.get(0)).optional()?;
            return Ok((inserted == 0 && number != Some(message.seq)).then_some(message.seq));
        }
        Change::Stands(seq, standing) => {
            execute(
                db,
                "UPDATE inbox SET standing = ?2, changed = ?3 WHERE seq = ?1",
                params![seq, columns::inbox_standing(*standing), at],
            )?;
        }
        Change::Rebound(seq, binding) => {
            execute(db, "UPDATE inbox SET binding = ?2, changed = ?3 WHERE seq = ?1", params![seq, &**binding, at])?;
        }
        Change::Again { seq, next } => {
            execute(
                db,
                "UPDATE inbox SET seq = ?2, standing = 'stored', changed = ?3 WHERE seq = ?1",
                params![seq, next, at],
            )?;
            execute(db, "UPDATE seat SET inbox_seq = max(inbox_seq, ?1)", params![next])?;
        }
        Change::Seen { channel, message } => {
            execute(
                db,
                "INSERT INTO seen VALUES (?1, ?2) ON CONFLICT (channel) DO UPDATE SET message = excluded.message",
                params![channel.as_str(), message.as_str()],
            )?;
        }
        Change::Forget(channel) => {
            execute(db, "DELETE FROM seen WHERE channel = ?1", params![channel.as_str()])?;
        }
        Change::Prune => {
            let before = date(at, limits::INBOX_KEPT);
            execute(db, "DELETE FROM inbox WHERE standing = 'done' AND changed < ?1", params![before])?;
        }
    }
    Ok(None)
}

/// Carries one change of the prompts out.
pub(super) fn asks(db: &Connection, at: UnixMs, change: &asks::Change) -> Result<(), StoreError> {
    match change {
        asks::Change::Put(row) => execute(
            db,
            "INSERT INTO asks (request, ask, asked, message, ended, shown) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (request) DO UPDATE
             SET message = excluded.message, ended = excluded.ended, shown = excluded.shown",
            params![
                row.ask.request,
                json(&row.ask)?,
                date(at, row.age),
                row.message.as_ref().map(|id| id.as_str()),
                row.end.as_ref().map(json).transpose()?,
                row.shown,
            ],
        )?,
        asks::Change::Remove(request) => execute(db, "DELETE FROM asks WHERE request = ?1", params![request])?,
    };
    Ok(())
}

pub(super) fn execute(
    db: &Connection,
    statement: &'static str,
    with: impl rusqlite::Params,
) -> Result<usize, StoreError> {
    Ok(db.prepare_cached(statement)?.execute(with)?)
}
