//! Promoted calls, by their handles: read, waited for, stopped.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::id::{CallId, DeviceId, KeptId};
use holdfast_core::switchboard::{Input, Outcome};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{DeviceRoom, Devices, store};
use crate::GrantId;
use crate::store::StoreError;

/// A promoted call, as its record says.
pub struct KeptCall {
    /// When it was promoted or, if it has an idempotency key, opened; in seconds since 1970.
    pub opened: i64,
    /// When it ended, in seconds since 1970, and how. `None`: it runs, or waits for its device.
    pub end: Option<(i64, Outcome)>,
    call: CallId,
    /// It may have reached the device.
    sent: bool,
}

// A result is never printed.
impl std::fmt::Debug for KeptCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptCall").field("call", &self.call).field("ended", &self.end.is_some()).finish_non_exhaustive()
    }
}

impl DeviceRoom {
    /// The call of a handle; one that runs may end within `wait`. `None`: there is no such handle on this device, it is another
    /// principal's, or it is not kept any more.
    pub async fn kept(
        self: &Arc<Self>,
        principal: &str,
        handle: &KeptId,
        wait: Duration,
    ) -> Result<Option<KeptCall>, StoreError> {
        let store = &self.shared.store;
        let find = self.finder(principal, handle);
        let found = match store.read(find.clone()).await? {
            Some(found) if found.end.is_none() => found,
            ended_or_none => return Ok(ended_or_none),
        };
        if let Some(mut running) = self.attend(&found.call) {
            // Dropped before the end it leaves, which does not stop a promoted call.
            let Ok(end) = tokio::time::timeout(wait, running.end()).await else { return Ok(Some(found)) };
            end.commit.done();
            let again = store.read(find.clone()).await?;
            // One waiter too many was turned away, or the daemon will send the result again: it goes on.
            if again.as_ref().is_none_or(|found| found.end.is_some()) || self.holds(&found.call) {
                return Ok(again);
            }
        }
        // It left the switchboard, which told the store: behind that word the record has its end.
        let found = store.write_final(find).await?;
        let now = self.shared.pace.unix();
        Ok(found.map(|found| match found.end {
            Some(_) => found,
            None => KeptCall { end: Some((now, Err(lost(found.sent)))), ..found },
        }))
    }

    /// Stops the call of a handle, for everybody. `None` as for [`DeviceRoom::kept`]; `false`: it had ended.
    pub async fn cancel_kept(&self, principal: &str, handle: &KeptId) -> Result<Option<bool>, StoreError> {
        let found = self.shared.store.read(self.finder(principal, handle)).await?;
        Ok(found.map(|found| {
            let runs = found.end.is_none();
            if runs {
                self.tell(Input::Cancel { call: found.call });
            }
            runs
        }))
    }

    fn finder(
        &self,
        principal: &str,
        handle: &KeptId,
    ) -> impl Fn(&Connection) -> Result<Option<KeptCall>, StoreError> + Clone + Send + 'static {
        let at = [handle.to_string(), self.id().to_string(), principal.to_owned()];
        let since = store::oldest_kept(self.shared.pace.unix());
        move |db| find(db, &at, since)
    }
}

/// The end of a call of which neither switchboard nor record knows more: the disk was full when it ended.
fn lost(sent: bool) -> ToolError {
    match sent {
        true => ToolError::new(Code::OutcomeUnknown, "no word of the call's outcome will come"),
        false => ToolError::nothing_done(Code::Unavailable, "the call was not sent"),
    }
}

fn find(db: &Connection, at: &[String; 3], since: i64) -> Result<Option<KeptCall>, StoreError> {
    let row = db.query_row(
        "SELECT call, instance IS NOT NULL, opened, ended, result, error FROM calls
         WHERE handle = ?1 AND device = ?2 AND principal = ?3 AND (ended IS NULL OR ended >= ?4)",
        params![at[0], at[1], at[2], since],
        |row| {
            let ended: Option<i64> = row.get(3)?;
            let outcome = store::outcome(row.get(4)?, row.get(5)?);
            Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?, ended.map(|ended| (ended, outcome))))
        },
    );
    // A row no version of ours wrote is none.
    let found = row.optional()?.and_then(|(call, sent, opened, end)| {
        let call = CallId::parse(&call).ok()?;
        Some(KeptCall { opened, end, call, sent })
    });
    Ok(found)
}

impl Devices {
    /// Stops every promoted call whose grant does not stand any more.
    pub async fn cancel_kept_of_revoked(&self, is_live: impl Fn(&GrantId) -> bool) -> Result<(), StoreError> {
        for (device, call, grant) in self.shared.store.read(running).await? {
            if !is_live(&grant.into())
                && let (Ok(device), Ok(call)) = (DeviceId::parse(&device), CallId::parse(&call))
                && let Some(room) = self.known(&device)
            {
                room.tell(Input::Cancel { call });
            }
        }
        Ok(())
    }

    /// Forgets the records of calls that ended long ago.
    pub async fn forget_expired(&self) -> Result<(), StoreError> {
        let now = self.shared.pace.unix();
        self.end_lost(now).await?;
        self.shared.store.write(move |db| store::forget_expired(db, now)).await
    }

    /// A handle whose call ended without a word in its record would hold its place for ever.
    async fn end_lost(&self, now: i64) -> Result<(), StoreError> {
        for (device, call, _) in self.shared.store.read(running).await? {
            if let (Ok(device), Ok(call)) = (DeviceId::parse(&device), CallId::parse(&call))
                && self.known(&device).is_some_and(|room| !room.holds(&call))
            {
                // An end that is on its way comes first.
                self.shared.store.write_final(move |db| end_one(db, &call, now)).await?;
            }
        }
        Ok(())
    }
}

fn end_one(db: &Connection, call: &CallId, now: i64) -> Result<(), StoreError> {
    let sql = "SELECT instance IS NOT NULL FROM calls WHERE call = ?1 AND ended IS NULL";
    let sent: Option<bool> = db.query_row(sql, [call.as_str()], |row| row.get(0)).optional()?;
    if let Some(sent) = sent {
        let error = serde_json::to_string(&lost(sent)).unwrap_or_default();
        db.execute("UPDATE calls SET ended = ?2, error = ?3 WHERE call = ?1", params![call.as_str(), now, error])?;
    }
    Ok(())
}

/// Promoted calls without an end: device, call, grant.
fn running(db: &Connection) -> Result<Vec<(String, String, String)>, StoreError> {
    let mut query = db
        .prepare("SELECT device, call, coalesce(grant_id, '') FROM calls WHERE handle IS NOT NULL AND ended IS NULL")?;
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
