//! What is kept over restarts: the last catalogue of each device, and the records of calls.

use std::collections::HashMap;
use std::time::Duration;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::id::{CallId, DeviceId, InstanceId, KeptId};
use holdfast_core::limits;
use holdfast_core::switchboard::{
    Catalogue, IdempotencyKey, NewRecord, Outcome, RestoredCall, StoreAnswer, StoreRequest,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::value::RawValue;

use crate::store::{Store, StoreError};

/// What is remembered of one device.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) catalogue: Option<Catalogue>,
    pub(super) calls: Vec<RestoredCall>,
}

/// Reads what is remembered of every device. A call that was never sent ends here: nothing was done. Blocks.
pub(super) fn load(store: &Store, now: i64) -> Result<HashMap<DeviceId, Memory>, StoreError> {
    let memories = store.read_now(|db| read(db, now))?;
    store.submit(move |db| end_unsent(db, now), report("end calls that were never sent"));
    Ok(memories)
}

fn end_unsent(db: &Connection, now: i64) -> Result<(), StoreError> {
    let error = ToolError::nothing_done(Code::Unavailable, "the relay was restarted before the call was sent");
    let error = serde_json::to_string(&error).unwrap_or_default();
    db.execute("DELETE FROM calls WHERE ended IS NULL AND instance IS NULL AND handle IS NULL", [])?;
    let sql = "UPDATE calls SET ended = ?1, error = ?2, key = NULL WHERE ended IS NULL AND instance IS NULL";
    db.execute(sql, params![now, error])?;
    Ok(())
}

fn read(db: &Connection, now: i64) -> Result<HashMap<DeviceId, Memory>, StoreError> {
    let mut memories: HashMap<DeviceId, Memory> = HashMap::new();
    let mut query = db.prepare("SELECT device, body FROM catalogues")?;
    for row in query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))? {
        let (device, body) = row?;
        if let Ok(device) = DeviceId::parse(&device) {
            memories.entry(device).or_default().catalogue = serde_json::from_str(&body).ok();
        }
    }
    let mut query = db.prepare(
        "SELECT device, principal, tool, key, digest, call, instance, budget_ms, control, hold_until, handle FROM calls
         WHERE ended IS NULL AND instance IS NOT NULL ORDER BY opened",
    )?;
    for row in query.query_map([], |row| Ok((row.get::<_, String>(0)?, restored(row, now)?)))? {
        if let (device, Some(call)) = row?
            && let Ok(device) = DeviceId::parse(&device)
        {
            memories.entry(device).or_default().calls.push(call);
        }
    }
    Ok(memories)
}

/// `None` for a row no version of ours wrote.
fn restored(row: &Row<'_>, now: i64) -> rusqlite::Result<Option<RestoredCall>> {
    let text = |at: usize| row.get::<_, String>(at);
    let (Ok(id), Ok(instance)) = (CallId::parse(&text(5)?), InstanceId::parse(&text(6)?)) else { return Ok(None) };
    let key = match (row.get::<_, Option<String>>(3)?, row.get::<_, Option<[u8; 32]>>(4)?) {
        (Some(key), Some(digest)) => Some(IdempotencyKey { key, digest }),
        _ => None,
    };
    let handle = row.get::<_, Option<String>>(10)?.and_then(|handle| KeptId::parse(&handle).ok());
    let hold_until: Option<i64> = row.get(9)?;
    let hold = hold_until.and_then(|until| u64::try_from(until - now).ok()).filter(|left| *left > 0);
    Ok(Some(RestoredCall {
        id,
        principal: text(1)?.into(),
        tool: text(2)?.into(),
        key,
        handle,
        instance: Some(instance),
        budget: Duration::from_millis(row.get::<_, i64>(7)?.unsigned_abs()),
        control: row.get(8)?,
        hold_left: hold.map(Duration::from_secs),
    }))
}

/// Keeps a device's catalogue. A failure costs only the memory of it after a restart.
pub(super) fn keep_catalogue(store: &Store, device: &DeviceId, catalogue: &Catalogue, now: i64) {
    let (device, body) = (device.to_string(), serde_json::to_string(catalogue).unwrap_or_default());
    store.submit(
        move |db| {
            let sql =
                "INSERT INTO catalogues VALUES (?1, ?2, ?3) ON CONFLICT (device) DO UPDATE SET body = ?2, seen = ?3";
            db.execute(sql, params![device, body, now]).map_err(StoreError::from)
        },
        report("keep a catalogue"),
    );
}

fn report<T>(what: &'static str) -> impl FnOnce(Result<T, StoreError>) {
    move |done| {
        if let Err(error) = done {
            tracing::warn!(%error, "could not {what}");
        }
    }
}

/// Does what the switchboard asks, and answers it if it waits for an answer.
pub(super) fn keep(
    store: &Store,
    device: &DeviceId,
    request: StoreRequest,
    now: i64,
    told: impl FnOnce(CallId, StoreAnswer) + Send + 'static,
) {
    let device = device.to_string();
    let call = request.call().clone();
    let answered = request.is_answered();
    let refusal = match request {
        StoreRequest::Keep { .. } => StoreAnswer::NotKept,
        _ => StoreAnswer::Refused,
    };
    // What ends a record has the reserve of a full disk.
    let is_end = matches!(request, StoreRequest::Finish { .. } | StoreRequest::Forget { .. });
    let work = move |db: &Connection| apply(db, &device, &request, now);
    let done = move |answer: Result<StoreAnswer, StoreError>| {
        let answer = answer.unwrap_or_else(|error| {
            tracing::warn!(%error, "could not keep a call's record");
            refusal
        });
        if answered {
            told(call, answer);
        }
    };
    match is_end {
        true => store.submit_final(work, done),
        false => store.submit(work, done),
    }
}

fn apply(db: &Connection, device: &str, request: &StoreRequest, now: i64) -> Result<StoreAnswer, StoreError> {
    let call = request.call().as_str();
    match request {
        StoreRequest::Reserve { key, record, .. } => {
            forget_expired(db, now)?;
            if let Some(known) = known(db, device, record, key)? {
                return Ok(known);
            }
            let sql = "SELECT count(*) FROM calls WHERE account = ?1 AND key IS NOT NULL";
            if count(db, sql, &[&record.account.as_str()])? >= limits::IDEMPOTENCY_KEYS_MAX {
                return Ok(StoreAnswer::Bound);
            }
            insert(db, device, call, record, now)?;
            db.execute("UPDATE calls SET key = ?2, digest = ?3 WHERE call = ?1", params![call, key.key, key.digest])?;
        }
        StoreRequest::Keep { handle, grant, record, .. } => {
            forget_expired(db, now)?;
            if !make_room(db, record.account.as_str())? {
                return Ok(StoreAnswer::NotKept);
            }
            insert(db, device, call, record, now)?;
            let sql = "UPDATE calls SET handle = ?2, grant_id = ?3 WHERE call = ?1";
            db.execute(sql, params![call, handle.as_str(), &**grant])?;
            return Ok(StoreAnswer::Kept);
        }
        StoreRequest::Assign { instance, .. } => {
            db.execute("UPDATE calls SET instance = ?2 WHERE call = ?1", params![call, instance.as_str()])?;
        }
        StoreRequest::Finish { outcome, frees_key, .. } => {
            let (result, error) = match outcome {
                Ok(result) => (Some(result.get()), None),
                Err(error) => (None, serde_json::to_string(error).ok()),
            };
            let bytes = result.map_or(0, str::len);
            db.execute(
                "UPDATE calls SET ended = ?2, result = ?3, error = ?4, bytes = ?5, key = CASE WHEN ?6 THEN NULL ELSE key END
                 WHERE call = ?1",
                params![call, now, result, error, bytes, frees_key],
            )?;
            shed(db, call)?;
        }
        StoreRequest::Forget { .. } => {
            db.execute("DELETE FROM calls WHERE call = ?1", [call])?;
        }
        StoreRequest::Hold { hold, .. } => {
            let until = hold.map(|hold| now.saturating_add_unsigned(hold.as_secs()));
            db.execute("UPDATE calls SET hold_until = ?2 WHERE call = ?1", params![call, until])?;
        }
    }
    Ok(StoreAnswer::Committed)
}

/// Makes a call's record if there is none.
fn insert(db: &Connection, device: &str, call: &str, record: &NewRecord, now: i64) -> Result<(), StoreError> {
    let NewRecord { account, principal, tool, instance, budget, control } = record;
    let instance = instance.as_ref().map(InstanceId::as_str);
    let budget = i64::try_from(budget.as_millis()).unwrap_or(i64::MAX);
    db.execute(
        "INSERT INTO calls (call, device, account, principal, tool, instance, budget_ms, control, opened)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (call) DO NOTHING",
        params![call, device, account.as_str(), &**principal, &**tool, instance, budget, control, now],
    )?;
    Ok(())
}

/// The earliest end of a record that is still kept.
pub(super) fn oldest_kept(now: i64) -> i64 {
    now.saturating_sub_unsigned(limits::RECORD_KEPT.as_secs())
}

pub(super) fn forget_expired(db: &Connection, now: i64) -> Result<(), StoreError> {
    db.execute("DELETE FROM calls WHERE ended < ?1", [oldest_kept(now)])?;
    Ok(())
}

fn count(db: &Connection, sql: &str, params: &[&dyn rusqlite::ToSql]) -> Result<usize, StoreError> {
    let count: i64 = db.query_row(sql, params, |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// One handle more: where a bound is reached, the account's oldest finished one goes. `false`: it has none.
fn make_room(db: &Connection, account: &str) -> Result<bool, StoreError> {
    let own = "SELECT count(*) FROM calls WHERE account = ?1 AND handle IS NOT NULL";
    let full = count(db, own, &[&account])? >= limits::HANDLES_PER_ACCOUNT
        || count(db, "SELECT count(*) FROM calls WHERE handle IS NOT NULL", &[])? >= limits::HANDLES_MAX;
    if !full {
        return Ok(true);
    }
    let oldest = "SELECT call, key IS NOT NULL FROM calls
                  WHERE account = ?1 AND handle IS NOT NULL AND ended IS NOT NULL ORDER BY ended LIMIT 1";
    let oldest = db.query_row(oldest, [account], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).optional()?;
    let Some((call, keyed)) = oldest else { return Ok(false) };
    let gone =
        if keyed { "UPDATE calls SET handle = NULL WHERE call = ?1" } else { "DELETE FROM calls WHERE call = ?1" };
    db.execute(gone, [call])?;
    Ok(true)
}

/// The results under handles are bounded for each account: the oldest ones go, and their records say so.
fn shed(db: &Connection, call: &str) -> Result<(), StoreError> {
    let error = ToolError::new(Code::LimitExceeded, "the tool ran; its result made room for newer ones");
    let error = serde_json::to_string(&error).unwrap_or_default();
    loop {
        let sql = "SELECT total(bytes) FROM calls WHERE handle IS NOT NULL
                   AND account = (SELECT account FROM calls WHERE call = ?1 AND handle IS NOT NULL)";
        if count(db, &format!("SELECT CAST(({sql}) AS INTEGER)"), &[&call])? <= limits::KEPT_BYTES_MAX {
            return Ok(());
        }
        let shed = db.execute(
            "UPDATE calls SET result = NULL, bytes = 0, error = ?2 WHERE call = (SELECT call FROM calls
             WHERE handle IS NOT NULL AND bytes > 0 AND call <> ?1
             AND account = (SELECT account FROM calls WHERE call = ?1) ORDER BY ended LIMIT 1)",
            params![call, error],
        )?;
        if shed == 0 {
            return Ok(());
        }
    }
}

/// What a key already stands for.
fn known(
    db: &Connection,
    device: &str,
    record: &NewRecord,
    key: &IdempotencyKey,
) -> Result<Option<StoreAnswer>, StoreError> {
    let row = db
        .query_row(
            "SELECT digest, ended IS NOT NULL, result, error FROM calls
             WHERE device = ?1 AND principal = ?2 AND tool = ?3 AND key = ?4",
            params![device, &*record.principal, &*record.tool, key.key],
            |row| {
                let ended: bool = row.get(1)?;
                Ok((row.get::<_, Vec<u8>>(0)?, ended, outcome(row.get(2)?, row.get(3)?)))
            },
        )
        .optional()?;
    Ok(row.map(|(first, ended, outcome)| match (first == key.digest, ended) {
        (false, _) => StoreAnswer::Conflict,
        (true, false) => StoreAnswer::Unfinished,
        (true, true) => StoreAnswer::Known(outcome),
    }))
}

/// The end that a record says.
pub(super) fn outcome(result: Option<String>, error: Option<String>) -> Outcome {
    let lost = || ToolError::new(Code::OutcomeUnknown, "the outcome was not kept");
    match (result, error) {
        (Some(result), _) => RawValue::from_string(result).map_err(|_| lost()),
        (None, Some(error)) => Err(serde_json::from_str(&error).unwrap_or_else(|_| lost())),
        (None, None) => Err(lost()),
    }
}
