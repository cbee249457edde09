//! The control store: what the machines of all devices change, and what readers see.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::control::{Change, Found, Loaded, Record, SessionCancel, evidence};
use holdfast_core::id::{DeviceId, LedgerId, OperationId};
use holdfast_core::limits;
use holdfast_core::operation::{Digest, Operation, Outcome, State, Stream, Streams};
use holdfast_core::status::UnixMs;
use holdfast_store::Layout;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::output::{self, Bounds, Of};
use super::schema;
use crate::clock::BootMoment;
use crate::store::{Store, StoreError};

/// File of the control store inside the data folder: its own, so that output never delays the relay's other writes.
const FILE: &str = "operations.sqlite";

/// Most of it is output, in rows of many pages.
const PAGE: u32 = 8192;

/// Opens or creates the control store. A damaged one is set aside: tool calls and administration do without it. Blocks.
///
/// Says when that was, if it was done now or earlier: unix seconds.
pub(super) fn open(folder: &Path) -> Result<(Store, Option<u64>), StoreError> {
    let layout = Layout { file: FILE, steps: schema::STEPS, reserve: None, page: PAGE };
    let (store, aside) = Store::open_or_set_aside(folder, &layout)?;
    if let Some(aside) = aside {
        tracing::error!(aside = %aside.display(), "the store of operations was damaged and is set aside; a new one begins");
    }
    Ok((store, Store::set_aside_at(folder, &layout)))
}

/// When something happens.
#[derive(Debug, Clone)]
pub(super) struct Moment {
    /// By the calendar.
    pub unix: UnixMs,
    /// Within this boot of the machine, if boots can be told apart.
    pub boot: Option<BootMoment>,
}

impl Moment {
    /// How long ago that was: by the calendar only if the machine was started anew in between.
    fn since(&self, created: UnixMs, boot: Option<&str>, boot_at: Option<u64>) -> Duration {
        let own = self.boot.as_ref().filter(|own| boot == Some(&*own.boot));
        match own.zip(boot_at) {
            Some((own, then)) => own.at.saturating_sub(Duration::from_millis(then)),
            None => Duration::from_millis(self.unix.saturating_sub(created)),
        }
    }
}

/// Applies the changes of one commit of a device's machine.
pub(super) fn apply(
    db: &Connection,
    bounds: &Bounds,
    device: &DeviceId,
    changes: &[Change],
    now: &Moment,
) -> Result<Found, StoreError> {
    let mut found = Found::Nothing;
    for change in changes {
        match change {
            Change::Admit(record) => found = admit(db, device, record, now.boot.as_ref())?,
            Change::Adopt(record) => found = adopt(db, device, record, now)?,
            Change::Recall { principal, key } => found = known(db, device, principal, key)?,
            other => change_one(db, bounds, device, other, now.unix)?,
        }
    }
    Ok(found)
}

fn admit(db: &Connection, device: &DeviceId, record: &Record, boot: Option<&BootMoment>) -> Result<Found, StoreError> {
    if let Some(key) = &record.key {
        match known(db, device, &record.principal, key)? {
            Found::Nothing => {}
            known => return Ok(known),
        }
    }
    let operation = &*record.operation;
    if let Some(session) = &operation.session_id {
        let sql = "SELECT 1 FROM cancellations WHERE device = ?1 AND session = ?2";
        if db.prepare_cached(sql)?.exists(params![device.as_str(), session])? {
            return Ok(Found::SessionCancelled);
        }
    }
    match insert(db, device, record, boot)? {
        true => Ok(Found::Nothing),
        false => Err(StoreError::Sqlite("an operation's id or run stands there already".into())),
    }
}

/// What the worker has and this store does not.
fn adopt(db: &Connection, device: &DeviceId, record: &Record, now: &Moment) -> Result<Found, StoreError> {
    let record = Record { created: now.unix, ..record.clone() };
    if insert(db, device, &record, now.boot.as_ref())? {
        let sql = "UPDATE operations SET sent_to = ?2, cancelled = ?3 WHERE id = ?1";
        let ledger = record.sent_to.as_ref().map(|ledger| ledger.as_str());
        db.prepare_cached(sql)?.execute(params![record.operation.request_id.as_str(), ledger, record.cancelled])?;
        return Ok(Found::Nothing);
    }
    Ok(Found::Known { id: record.operation.request_id.clone(), digest: record.digest })
}

/// Whether it stands there now and did not before.
fn insert(db: &Connection, device: &DeviceId, record: &Record, boot: Option<&BootMoment>) -> Result<bool, StoreError> {
    let operation = &*record.operation;
    let sql = "INSERT INTO operations
               (id, device, account, principal, key, run, session, kind, input, summary, digest, operation, state, place, created, ttl, input_for, boot, boot_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
               ON CONFLICT DO NOTHING";
    let run = |of: bool| operation.run_id.as_ref().filter(|_| of).map(|run| run.as_str());
    let inserted = db.prepare_cached(sql)?.execute(params![
        operation.request_id.as_str(),
        device.as_str(),
        account_of(&record.principal),
        &*record.principal,
        record.key.as_deref(),
        run(operation.kind().is_run()),
        operation.session_id,
        operation.kind().as_str(),
        operation.kind().is_input(),
        operation.request.summary(),
        record.digest.0,
        text(operation),
        record.state.as_str(),
        record.order,
        record.created,
        u64::try_from(record.ttl.as_millis()).unwrap_or(u64::MAX >> 1),
        run(operation.kind().is_input()),
        boot.map(|moment| &*moment.boot),
        boot.map(|moment| u64::try_from(moment.at.as_millis()).unwrap_or(u64::MAX >> 1)),
    ])?;
    Ok(inserted == 1)
}

/// The account in a principal's name: its first word.
pub(super) fn account_of(principal: &str) -> &str {
    principal.split(' ').next().unwrap_or_default()
}

fn known(db: &Connection, device: &DeviceId, principal: &str, key: &str) -> Result<Found, StoreError> {
    let sql = "SELECT id, digest FROM operations WHERE device = ?1 AND principal = ?2 AND key = ?3";
    let mut query = db.prepare_cached(sql)?;
    let row = query.query_row(params![device.as_str(), principal, key], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, [u8; 32]>(1)?))
    });
    match row.optional()? {
        None => Ok(Found::Nothing),
        Some((id, digest)) => Ok(Found::Known { id: id_of(&id)?, digest: Digest(digest) }),
    }
}

/// What is no id was not written by us.
fn id_of(text: &str) -> Result<OperationId, StoreError> {
    OperationId::parse(text).map_err(|_| StoreError::Damaged)
}

/// Plain data: nothing in it fails to serialise.
fn text<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn change_one(
    db: &Connection,
    bounds: &Bounds,
    device: &DeviceId,
    change: &Change,
    now: UnixMs,
) -> Result<(), StoreError> {
    let set = |sql: &str, id: &OperationId, value: &dyn rusqlite::ToSql| {
        db.prepare_cached(sql)?.execute(params![id.as_str(), value]).map(drop).map_err(StoreError::from)
    };
    match change {
        Change::Admit(_) | Change::Adopt(_) | Change::Recall { .. } => Ok(()),
        Change::Sent { id, ledger } => {
            set("UPDATE operations SET sent_to = ?2 WHERE id = ?1 AND ended IS NULL", id, &ledger.as_str())
        }
        Change::State { id, state } => {
            set("UPDATE operations SET state = ?2 WHERE id = ?1 AND ended IS NULL", id, &state.as_str())
        }
        Change::Cancel { id } => set("UPDATE operations SET cancelled = ?2 WHERE id = ?1 AND ended IS NULL", id, &true),
        Change::Output { id, stream, offset, bytes } => match living(db, id)? {
            Some(row) => output::append(db, bounds, Of(row, *stream), *offset, bytes),
            None => Ok(()),
        },
        Change::Gap { id, stream, offset, next } => match living(db, id)? {
            Some(row) => output::skip(db, Of(row, *stream), *offset, *next),
            None => Ok(()),
        },
        Change::End { id, outcome, written, frees_key } => match living(db, id)? {
            Some(row) => end(db, bounds, row, End { outcome, written, frees_key: *frees_key, now }),
            None => Ok(()),
        },
        Change::Late { id, outcome } => late(db, device, id, outcome),
        Change::CancelSession(SessionCancel { cancellation, session }) => {
            let sql = "INSERT INTO cancellations (id, device, session, created) VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT (device, session) DO NOTHING";
            db.prepare_cached(sql)?.execute(params![cancellation, device.as_str(), session, now])?;
            Ok(())
        }
        Change::SessionConfirmed { cancellation } => {
            let sql = "UPDATE cancellations SET confirmed = 1 WHERE device = ?1 AND id = ?2";
            db.prepare_cached(sql)?.execute(params![device.as_str(), cancellation])?;
            Ok(())
        }
    }
}

fn living(db: &Connection, id: &OperationId) -> Result<Option<i64>, StoreError> {
    let mut query = db.prepare_cached("SELECT n FROM operations WHERE id = ?1 AND ended IS NULL")?;
    Ok(query.query_row([id.as_str()], |row| row.get(0)).optional()?)
}

struct End<'a> {
    outcome: &'a Outcome,
    written: &'a Streams,
    frees_key: bool,
    now: UnixMs,
}

/// What it asked is forgotten with its end: nobody needs it any more, and it may hold secrets.
fn end(db: &Connection, bounds: &Bounds, row: i64, end: End<'_>) -> Result<(), StoreError> {
    let sql = "UPDATE operations SET state = ?2, outcome = ?3, written = ?4, ended = ?5, key = iif(?6, NULL, key), operation = NULL
               WHERE n = ?1 RETURNING account, input";
    let End { outcome, written, frees_key, now } = end;
    let (state, outcome) = (outcome.state().as_str(), text(outcome));
    let (account, input): (String, bool) = db
        .prepare_cached(sql)?
        .query_row(params![row, state, outcome, text(written), now, frees_key], |row| Ok((row.get(0)?, row.get(1)?)))?;
    // Two, so that a store above its bound comes below it; each end adds one.
    for _ in 0..2 {
        let mut over = db.prepare_cached("SELECT iif(?2, inputs, ended) > ?1 FROM totals")?;
        if over.query_row(params![limits::OPERATIONS_KEPT, input], |row| row.get::<_, bool>(0))? {
            forget_first(db, input, UnixMs::MAX >> 1)?;
        }
        let mut over =
            db.prepare_cached("SELECT 1 FROM accounts WHERE account = ?1 AND iif(?3, inputs, ended) > ?2")?;
        if over.exists(params![account, limits::OPERATIONS_KEPT_ACCOUNT, input])? {
            forget_first_of(db, input, &account)?;
        }
    }
    if outcome.len() > limits::CONTROL_OUTCOME_SMALL {
        output::weighs(db, row)?;
        output::make_room(db, bounds, Of(row, Stream::Stdout))?;
    }
    Ok(())
}

fn late(db: &Connection, device: &DeviceId, id: &OperationId, late: &Outcome) -> Result<(), StoreError> {
    let sql =
        "SELECT outcome FROM operations WHERE id = ?1 AND device = ?2 AND state = 'unknown' AND ended IS NOT NULL";
    let stored = db
        .prepare_cached(sql)?
        .query_row(params![id.as_str(), device.as_str()], |row| row.get::<_, Option<String>>(0))
        .optional()?
        .flatten();
    let end = stored.and_then(|stored| serde_json::from_str::<Outcome>(&stored).ok());
    let Some(end) = end.and_then(|end| evidence(&end, late)) else { return Ok(()) };
    let sql = "UPDATE operations SET outcome = ?2 WHERE id = ?1";
    db.prepare_cached(sql)?.execute(params![id.as_str(), text(&end)])?;
    Ok(())
}

/// Forgets operations that ended before `before`, as many as one write may; tells whether there may be more to forget.
pub(super) fn forget(db: &Connection, before: UnixMs) -> Result<bool, StoreError> {
    for _ in 0..limits::CONTROL_FORGET_AT_ONCE {
        if !forget_oldest(db, before)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The same of input, which has no output. Its key is kept until its run was over for as long: before that, whoever asks again
/// would give it to the program a second time.
pub(super) fn forget_inputs(db: &Connection, before: UnixMs) -> Result<bool, StoreError> {
    let sql = "DELETE FROM operations WHERE n IN
               (SELECT n FROM operations AS given WHERE input = 1 AND ended IS NOT NULL AND ended < ?1
                AND (key IS NULL OR NOT EXISTS
                     (SELECT 1 FROM operations WHERE run = given.input_for AND coalesce(ended, ?1) >= ?1))
                LIMIT ?2)";
    let forgotten = db.prepare_cached(sql)?.execute(params![before, limits::CONTROL_ROWS_AT_ONCE])?;
    Ok(forgotten == limits::CONTROL_ROWS_AT_ONCE)
}

/// Forgets the operation that ended first, if that was before `before`, or as much of its output as one step may; tells
/// whether there was one. Input is none.
pub(super) fn forget_oldest(db: &Connection, before: UnixMs) -> Result<bool, StoreError> {
    forget_first(db, false, before)
}

fn forget_first(db: &Connection, input: bool, before: UnixMs) -> Result<bool, StoreError> {
    let sql =
        "SELECT n FROM operations WHERE input = ?2 AND ended IS NOT NULL AND ended < ?1 ORDER BY ended, n LIMIT 1";
    let oldest: Option<i64> = db.prepare_cached(sql)?.query_row(params![before, input], |row| row.get(0)).optional()?;
    match oldest {
        Some(operation) => forget_one(db, operation).map(|()| true),
        None => Ok(false),
    }
}

/// The same of one account, whenever it ended.
fn forget_first_of(db: &Connection, input: bool, account: &str) -> Result<(), StoreError> {
    let sql =
        "SELECT n FROM operations WHERE input = ?2 AND account = ?1 AND ended IS NOT NULL ORDER BY ended, n LIMIT 1";
    let oldest: Option<i64> =
        db.prepare_cached(sql)?.query_row(params![account, input], |row| row.get(0)).optional()?;
    oldest.map_or(Ok(()), |operation| forget_one(db, operation))
}

fn forget_one(db: &Connection, operation: i64) -> Result<(), StoreError> {
    if output::drop_output(db, operation)? < limits::CONTROL_ROWS_AT_ONCE {
        db.prepare_cached("DELETE FROM operations WHERE n = ?1")?.execute([operation])?;
    }
    Ok(())
}

/// Forgets the cancelled sessions that workers confirmed and that are older than `before`.
pub(super) fn forget_sessions(db: &Connection, before: UnixMs) -> Result<(), StoreError> {
    db.prepare_cached("DELETE FROM cancellations WHERE confirmed = 1 AND created < ?1")?.execute([before])?;
    Ok(())
}

/// What every device's machine begins with. A row that does not parse was not written by us: it is left alone.
pub(super) fn load(db: &Connection, now: &Moment) -> Result<HashMap<DeviceId, Loaded>, StoreError> {
    let mut devices: HashMap<DeviceId, Loaded> = HashMap::new();
    let sql = "SELECT device, n, operation, digest, principal, key, state, sent_to, cancelled, place, created, ttl, boot, boot_at
               FROM operations INDEXED BY operations_living WHERE ended IS NULL ORDER BY n";
    let mut query = db.prepare(sql)?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let received = output::received_all(db, row.get(1)?)?;
        if let (Ok(device), Some(record)) = (DeviceId::parse(&row.get::<_, String>(0)?), record(row, received)?) {
            let boot: Option<String> = row.get(12)?;
            let spent = now.since(record.created, boot.as_deref(), row.get(13)?);
            let left = record.ttl.saturating_sub(spent);
            devices.entry(device).or_default().living.push((record, left));
        }
    }
    let sql = "SELECT device, id, session FROM cancellations WHERE confirmed = 0 ORDER BY created, id";
    let mut query = db.prepare(sql)?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        if let Ok(device) = DeviceId::parse(&row.get::<_, String>(0)?) {
            let cancel = SessionCancel { cancellation: row.get(1)?, session: row.get(2)? };
            devices.entry(device).or_default().sessions.push(cancel);
        }
    }
    Ok(devices)
}

fn record(row: &Row<'_>, received: Streams) -> Result<Option<Record>, StoreError> {
    let operation = serde_json::from_str::<Operation>(&row.get::<_, String>(2)?);
    let state = State::parse(&row.get::<_, String>(6)?);
    let sent_to = row.get::<_, Option<String>>(7)?.map(|text| LedgerId::parse(&text)).transpose();
    let (Ok(operation), Some(state), Ok(sent_to)) = (operation, state, sent_to) else { return Ok(None) };
    Ok(Some(Record {
        operation: Arc::new(operation),
        digest: Digest(row.get(3)?),
        principal: row.get::<_, String>(4)?.into(),
        key: row.get::<_, Option<String>>(5)?.map(Arc::from),
        state,
        sent_to,
        cancelled: row.get(8)?,
        received,
        written: Streams::new(),
        outcome: None,
        order: row.get(9)?,
        created: row.get(10)?,
        ttl: Duration::from_millis(row.get(11)?),
    }))
}
