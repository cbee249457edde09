//! The worker's ledger: what it received, how each stands, and how each ended, in `<data>/worker/ledger.sqlite`.
//!
//! One process has it, because one process has the data folder. No bulk bytes: output stays in the spool.

mod changes;
mod columns;
mod schema;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use holdfast_core::limits;
use holdfast_core::operation::Digest;
use holdfast_core::status::UnixMs;
use holdfast_core::worker::{Change, Found, LedgerError, Living, Stored};
use holdfast_store::{Layout, PAGE, Store, StoreError};
use rusqlite::{Connection, params};

use crate::files;
use crate::status_hub::unix_ms;

const LAYOUT: Layout =
    Layout { file: "ledger.sqlite", steps: schema::STEPS, reserve: Some(files::free_space), page: PAGE };

/// See the module. Clones share it.
#[derive(Debug, Clone)]
pub struct Ledger(Store);

/// An opened ledger.
pub struct Opened {
    /// The ledger.
    pub ledger: Ledger,
    /// What is not over.
    pub stored: Stored,
    /// Why and where an earlier ledger was set aside; this one is new then.
    pub(super) set_aside: Option<(Aside, PathBuf)>,
}

/// Why a ledger is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aside {
    /// It is damaged.
    Damaged,
    /// It is another device's: what it knows is no business of this one's relay.
    OfAnother,
}

impl Ledger {
    /// Opens or makes the ledger of a folder for the device whose credential has this SHA-256. One that is damaged or
    /// another device's is set aside. Blocks.
    pub fn open(folder: &Path, owner: [u8; 32]) -> Result<Opened, StoreError> {
        let (store, damaged) = Store::open_or_set_aside(folder, &LAYOUT)?;
        let mut set_aside = damaged.map(|to| (Aside::Damaged, to));
        let ledger = Ledger(store);
        let read = |ours| Ok((ours, ledger.read()?));
        let why = match ledger.belongs_to(owner).and_then(read) {
            Ok((true, stored)) => return Ok(Opened { ledger, stored, set_aside }),
            Ok((false, _)) => Aside::OfAnother,
            Err(StoreError::Damaged) if set_aside.is_none() => Aside::Damaged,
            Err(error) => {
                ledger.close();
                return Err(error);
            }
        };
        ledger.close();
        set_aside = Some((why, Store::set_aside(folder, &LAYOUT)?));
        let ledger = Ledger(Store::open(folder, &LAYOUT)?);
        ledger.belongs_to(owner)?;
        let stored = ledger.read()?;
        Ok(Opened { ledger, stored, set_aside })
    }

    /// Whether it is this device's; a new one is from now on.
    fn belongs_to(&self, owner: [u8; 32]) -> Result<bool, StoreError> {
        self.write_now(move |db| {
            db.execute("UPDATE ledger SET owner = ?1 WHERE owner IS NULL", params![owner])?;
            Ok(db.query_row("SELECT owner = ?1 FROM ledger", params![owner], |row| row.get(0))?)
        })
    }

    /// What is not over. An operation that cannot be read is over here: the folder of its run is nobody's, which ends what
    /// runs there, and the relay hears that nobody knows how it ended.
    fn read(&self) -> Result<Stored, StoreError> {
        let (stored, unreadable) = self.0.read_now(stored)?;
        if !unreadable.is_empty() {
            tracing::error!("{} operations of the ledger cannot be read: their outcome is unknown", unreadable.len());
            let (at, outcome) = (unix_ms(), columns::json(&columns::unreadable())?);
            self.write_now(move |db| {
                let sql =
                    "UPDATE operations SET state = 'unknown', outcome = ?2, acked = 1, request = NULL, changed = ?3
                           WHERE seq = ?1";
                for seq in &unreadable {
                    db.execute(sql, params![seq, outcome, at])?;
                }
                Ok(())
            })?;
        }
        Ok(stored)
    }

    /// Writes before anything else does, and waits for it. Blocks.
    fn write_now<T: Send + 'static>(
        &self,
        work: impl Fn(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (tell, told) = mpsc::channel();
        // It waits for the answer below.
        self.0.submit_final(work, move |outcome| _ = tell.send(outcome));
        told.recv().unwrap_or(Err(StoreError::Closed))
    }

    /// Makes changes durable, all or none, in the order in which they are handed in. Never blocks; `done` runs on the thread
    /// that writes. Whatever belongs to something received before passes while the disk is too full to receive more.
    pub fn commit(&self, changes: Vec<Change>, done: impl FnOnce(Result<Vec<Found>, LedgerError>) + Send + 'static) {
        let at = unix_ms();
        let receives = changes.iter().any(|change| matches!(change, Change::Admit(_)));
        let work = move |db: &Connection| {
            changes.iter().map(|change| changes::carry_out(db, at, change)).collect::<Result<Vec<_>, StoreError>>()
        };
        let done = move |outcome: Result<_, StoreError>| {
            done(outcome.map_err(|error| match error {
                StoreError::Full => LedgerError::Full,
                error => {
                    tracing::error!("the ledger was not written: {error}");
                    LedgerError::Failed
                }
            }));
        };
        match receives {
            true => self.0.submit(work, done),
            false => self.0.submit_final(work, done),
        }
    }

    /// Tries whether there is room to receive more. Never blocks.
    pub(super) fn try_room(&self, done: impl FnOnce(bool) + Send + 'static) {
        // Changes nothing, and is written all the same.
        let write = |db: &Connection| Ok::<_, StoreError>(db.execute("UPDATE ledger SET one = one", [])?);
        self.0.submit(write, move |outcome| done(outcome != Err(StoreError::Full)));
    }

    /// Forgets what was over for longer than [`limits::OPERATIONS_KEPT_FOR`], and the oldest beyond
    /// [`limits::OPERATIONS_KEPT`], input by itself; a few at a time, so that nothing else waits for it.
    pub(super) async fn sweep(&self, now: UnixMs) -> Result<(), StoreError> {
        let kept_for = u64::try_from(limits::OPERATIONS_KEPT_FOR.as_millis()).unwrap_or(u64::MAX);
        let before = now.saturating_sub(kept_for);
        for [count, remove] in SWEEPS {
            loop {
                let swept = self.0.write(move |db: &Connection| {
                    let kept: u64 = db.prepare_cached(count)?.query_row([], |row| row.get(0))?;
                    let aged = db.prepare_cached(remove)?.execute(params![before, SWEEP])? as u64;
                    let too_many = kept.saturating_sub(limits::OPERATIONS_KEPT as u64 + aged).min(SWEEP);
                    let beyond = db.prepare_cached(remove)?.execute(params![u64::MAX >> 1, too_many])? as u64;
                    Ok::<_, StoreError>(aged + beyond)
                });
                if swept.await? == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Waits for the commits handed in so far. Blocks.
    pub fn close(&self) {
        self.0.close();
    }
}

/// Rows that go in one transaction of a sweep.
const SWEEP: u64 = 500;

/// What counts the rows of each table that may go, and what removes at most `?2` of them that are older than `?1`.
const SWEEPS: [[&str; 2]; 4] = [
    [
        "SELECT count(*) FROM operations WHERE acked = 1
         AND kind NOT IN ('exec_stdin', 'pty_input', 'pty_resize', 'pty_close')",
        "DELETE FROM operations WHERE seq IN
         (SELECT seq FROM operations WHERE acked = 1
          AND kind NOT IN ('exec_stdin', 'pty_input', 'pty_resize', 'pty_close')
          AND changed < ?1 ORDER BY changed LIMIT ?2)",
    ],
    [
        "SELECT count(*) FROM operations WHERE acked = 1
         AND kind IN ('exec_stdin', 'pty_input', 'pty_resize', 'pty_close')",
        "DELETE FROM operations WHERE seq IN
         (SELECT seq FROM operations WHERE acked = 1
          AND kind IN ('exec_stdin', 'pty_input', 'pty_resize', 'pty_close')
          AND changed < ?1 ORDER BY changed LIMIT ?2)",
    ],
    [
        "SELECT count(*) FROM tombstones",
        "DELETE FROM tombstones WHERE id IN (SELECT id FROM tombstones WHERE at < ?1 ORDER BY at LIMIT ?2)",
    ],
    [
        "SELECT count(*) FROM cancelled_sessions",
        "DELETE FROM cancelled_sessions WHERE session IN
         (SELECT session FROM cancelled_sessions WHERE at < ?1 ORDER BY at LIMIT ?2)",
    ],
];

/// What is not over, and the places of operations that cannot be read.
fn stored(db: &Connection) -> Result<(Stored, Vec<i64>), StoreError> {
    let now = unix_ms();
    let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
    let mut query = db.prepare(columns::LIVING)?;
    let mut found = query.query([])?;
    while let Some(row) = found.next()? {
        match columns::living(row) {
            Ok((row, changed)) => {
                rows.push(Living { row, age: Duration::from_millis(now.saturating_sub(changed)) });
            }
            Err(StoreError::Damaged) => unreadable.push(row.get(columns::SEQ)?),
            Err(error) => return Err(error),
        }
    }
    let mut offsets = Vec::new();
    let mut query = db.prepare("SELECT run, stream, acked FROM offsets")?;
    let mut found = query.query([])?;
    while let Some(row) = found.next()? {
        // One that says nothing is of an operation that does not either.
        if let (Ok(run), Ok(stream)) = (columns::word(row.get(0)?), columns::word(row.get(1)?)) {
            offsets.push((run, stream, row.get(2)?));
        }
    }
    let mut query = db.prepare("SELECT id, generation, configured FROM ledger")?;
    let mut found = query.query([])?;
    let life = found.next()?.ok_or(StoreError::Damaged)?;
    let stored = Stored {
        ledger: columns::word(life.get(0)?)?,
        generation: life.get(1)?,
        config: life.get::<_, Option<_>>(2)?.map(Digest),
        rows,
        offsets,
    };
    Ok((stored, unreadable))
}
