//! What is kept over restarts: the last catalogue of each device, and the calls made with an idempotency key.

use std::collections::HashMap;
use std::time::Duration;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::id::{CallId, DeviceId, InstanceId};
use holdfast_core::limits;
use holdfast_core::switchboard::{Catalogue, KeyScope, Outcome, RestoredCall, StoreAnswer, StoreRequest};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::value::RawValue;

use crate::store::{Store, StoreError};

/// What is remembered of one device.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) catalogue: Option<Catalogue>,
    pub(super) calls: Vec<RestoredCall>,
}

/// Reads what is remembered of every device. A call that was never sent is forgotten here: nothing was done. Blocks.
pub(super) fn load(store: &Store, now: i64) -> Result<HashMap<DeviceId, Memory>, StoreError> {
    let memories = store.read_now(|db| read(db, now))?;
    store.submit(
        |db| {
            db.execute("DELETE FROM keyed_calls WHERE ended IS NULL AND instance IS NULL", []).map_err(StoreError::from)
        },
        report("forget calls that were never sent"),
    );
    Ok(memories)
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
        "SELECT device, principal, tool, key, digest, call, instance, budget_ms, control, hold_until FROM keyed_calls
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
    let hold_until: Option<i64> = row.get(9)?;
    let hold = hold_until.and_then(|until| u64::try_from(until - now).ok()).filter(|left| *left > 0);
    Ok(Some(RestoredCall {
        id,
        scope: KeyScope { principal: text(1)?.into(), tool: text(2)?.into(), key: text(3)?.into() },
        digest: row.get(4)?,
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
    let silent = matches!(request, StoreRequest::Forget { .. } | StoreRequest::Hold { .. });
    store.submit(
        move |db| apply(db, &device, &request, now),
        move |answer| {
            let answer = answer.unwrap_or_else(|error: StoreError| {
                tracing::warn!(%error, "could not keep a keyed call");
                StoreAnswer::Refused
            });
            if !silent {
                told(call, answer);
            }
        },
    );
}

fn apply(db: &Connection, device: &str, request: &StoreRequest, now: i64) -> Result<StoreAnswer, StoreError> {
    let at = |scope: &KeyScope| {
        [device.to_owned(), scope.principal.to_string(), scope.tool.to_string(), scope.key.to_string()]
    };
    match request {
        StoreRequest::Reserve { call, scope, digest, account, instance, budget, control } => {
            let expired = now - i64::try_from(limits::IDEMPOTENCY_KEPT.as_secs()).unwrap_or(i64::MAX);
            db.execute("DELETE FROM keyed_calls WHERE ended < ?1", [expired])?;
            if let Some(known) = known(db, &at(scope), digest)? {
                return Ok(known);
            }
            let count =
                db.query_row("SELECT count(*) FROM keyed_calls WHERE account = ?1", [account.as_str()], |row| {
                    row.get(0)
                });
            if usize::try_from(count.unwrap_or(0_i64)).unwrap_or(0) >= limits::IDEMPOTENCY_KEYS_MAX {
                return Ok(StoreAnswer::Bound);
            }
            let [device, principal, tool, key] = at(scope);
            let instance = instance.as_ref().map(InstanceId::as_str);
            let budget = i64::try_from(budget.as_millis()).unwrap_or(i64::MAX);
            db.execute(
                "INSERT INTO keyed_calls (device, principal, tool, key, account, digest, call, instance, budget_ms, control, opened)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                params![device, principal, tool, key, account.as_str(), digest, call.as_str(), instance, budget, control, now],
            )?;
        }
        StoreRequest::Assign { call, instance, .. } => {
            update(db, request, device, "instance = ?6", &[&call.as_str(), &instance.as_str()])?;
        }
        StoreRequest::Finish { call, outcome, .. } => {
            let (result, error) = match outcome {
                Ok(result) => (Some(result.get()), None),
                Err(error) => (None, serde_json::to_string(error).ok()),
            };
            update(
                db,
                request,
                device,
                "ended = ?6, result = ?7, error = ?8",
                &[&call.as_str(), &now, &result, &error],
            )?;
        }
        StoreRequest::Forget { call, scope } => {
            let [device, principal, tool, key] = at(scope);
            db.execute(
                "DELETE FROM keyed_calls WHERE device = ?1 AND principal = ?2 AND tool = ?3 AND key = ?4 AND call = ?5",
                params![device, principal, tool, key, call.as_str()],
            )?;
        }
        StoreRequest::Hold { call, hold, .. } => {
            let until = hold.map(|hold| now.saturating_add_unsigned(hold.as_secs()));
            update(db, request, device, "hold_until = ?6", &[&call.as_str(), &until])?;
        }
    }
    Ok(StoreAnswer::Committed)
}

fn update(
    db: &Connection,
    request: &StoreRequest,
    device: &str,
    set: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<(), StoreError> {
    let scope = request.scope();
    let mut all: Vec<&dyn rusqlite::ToSql> = vec![&device, &scope.principal, &scope.tool, &scope.key];
    all.extend(values);
    let sql = format!(
        "UPDATE keyed_calls SET {set} WHERE device = ?1 AND principal = ?2 AND tool = ?3 AND key = ?4 AND call = ?5"
    );
    db.execute(&sql, all.as_slice())?;
    Ok(())
}

/// What a key already stands for.
fn known(db: &Connection, at: &[String; 4], digest: &[u8; 32]) -> Result<Option<StoreAnswer>, StoreError> {
    let row = db
        .query_row(
            "SELECT digest, ended IS NOT NULL, result, error FROM keyed_calls
             WHERE device = ?1 AND principal = ?2 AND tool = ?3 AND key = ?4",
            rusqlite::params_from_iter(at),
            |row| {
                let ended: bool = row.get(1)?;
                Ok((
                    row.get::<_, Vec<u8>>(0)?,
                    ended,
                    row.get::<_, Option<String>>(2)?,
                    row.get::<_, Option<String>>(3)?,
                ))
            },
        )
        .optional()?;
    Ok(row.map(|(first, ended, result, error)| match (first == digest, ended) {
        (false, _) => StoreAnswer::Conflict,
        (true, false) => StoreAnswer::Unfinished,
        (true, true) => outcome(result, error).map_or(StoreAnswer::Unfinished, StoreAnswer::Known),
    }))
}

fn outcome(result: Option<String>, error: Option<String>) -> Option<Outcome> {
    match (result, error) {
        (Some(result), _) => RawValue::from_string(result).ok().map(Ok),
        (None, Some(error)) => serde_json::from_str::<ToolError>(&error).ok().map(Err),
        (None, None) => Some(Err(ToolError::new(Code::OutcomeUnknown, "the outcome was not kept"))),
    }
}
