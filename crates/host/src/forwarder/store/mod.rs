//! What a seat keeps: messages in custody, how far transcripts were read, what people wrote, prompts, and which transcript
//! is whose; in `channel.sqlite` beside the lock. Only the holder opens it, and every commit is made only while no later
//! holder has opened it.

mod changes;
mod columns;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use holdfast_core::chat::outbox::Key;
use holdfast_core::chat::{ChannelId, CommitError, Incoming, MessageId, asks, inbox, outbox};
use holdfast_core::limits;
use holdfast_core::status::UnixMs;
use holdfast_core::transcript::Bookmark;
use holdfast_store::{Layout, PAGE, Store, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::files;
use crate::status_hub::unix_ms;

const LAYOUT: Layout =
    Layout { file: "channel.sqlite", steps: schema::STEPS, reserve: Some(files::free_space), page: PAGE };

/// See the module. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct SeatStore {
    store: Store,
    generation: u64,
}

/// What a holder begins with.
#[derive(Debug)]
pub(super) struct Opened {
    pub store: SeatStore,
    pub outbox: outbox::Stored,
    pub inbox: inbox::Stored,
    pub asks: Vec<asks::Row>,
    pub bookmarks: Vec<Bookmark>,
    pub bound: BTreeMap<Arc<str>, Bound>,
    /// Where a damaged one was set aside; this one is new then.
    pub set_aside: Option<PathBuf>,
}

/// Which transcript a binding follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    pub transcript: Arc<str>,
    /// Its agent said so; otherwise it was found.
    pub named: bool,
    /// There was no file yet: all of it is new.
    pub awaited: bool,
    /// Up to when, by the calendar, it is known that nothing else was meant. None: it never was looked.
    pub looked: Option<UnixMs>,
}

/// Why a store was not opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error("the seat belongs to a later holder")]
    Superseded(u64),
    #[error("the seat's store cannot be used: {0}")]
    Store(#[from] StoreError),
}

/// Why a commit was not made.
enum Refused {
    Store(StoreError),
    Superseded(u64),
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Refused {
        Refused::Store(error)
    }
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Refused {
        Refused::Store(error.into())
    }
}

impl From<Refused> for CommitError {
    fn from(refused: Refused) -> CommitError {
        match refused {
            Refused::Superseded(generation) => CommitError::Superseded(generation),
            Refused::Store(StoreError::Full) => CommitError::Full,
            Refused::Store(error) => {
                tracing::error!("the seat's store was not written: {error}");
                CommitError::Failed
            }
        }
    }
}

impl SeatStore {
    /// Opens or makes the store of a seat's folder for the holder of this generation. A damaged one is set aside. Blocks.
    pub(super) fn open(folder: &Path, generation: u64) -> Result<Opened, OpenError> {
        let (store, mut set_aside) = Store::open_or_set_aside(folder, &LAYOUT)?;
        let store = SeatStore { store, generation };
        let opened = match store.begin(set_aside.clone()) {
            Err(OpenError::Store(StoreError::Damaged)) if set_aside.is_none() => {
                store.close();
                set_aside = Some(Store::set_aside(folder, &LAYOUT)?);
                SeatStore { store: Store::open(folder, &LAYOUT)?, generation }.begin(set_aside)
            }
            other => other,
        };
        if opened.is_err() {
            store.close();
        }
        opened
    }

    fn begin(&self, set_aside: Option<PathBuf>) -> Result<Opened, OpenError> {
        let (tell, told) = mpsc::channel();
        let ours = self.generation;
        let claim = move |db: &Connection| {
            let generation =
                |db: &Connection| db.query_row("SELECT generation FROM seat", [], |row| row.get::<_, u64>(0));
            let last = generation(db)?;
            changes::execute(db, "UPDATE seat SET generation = max(generation, ?1)", params![ours])?;
            Ok::<_, StoreError>((last, generation(db)?))
        };
        // It waits for the answer below.
        self.store.submit_final(claim, move |outcome| _ = tell.send(outcome));
        let (last, generation) = told.recv().unwrap_or(Err(StoreError::Closed))?;
        if generation > ours {
            return Err(OpenError::Superseded(generation));
        }
        let store = self.clone();
        Ok(self.store.read_now(move |db| load(db, store, last, set_aside))?)
    }

    /// Makes changes of the outbox durable, all or none, in the order in which they are handed in. Never blocks; `done` runs on
    /// the thread that writes. What ends something that was begun passes while the disk is too full for more.
    pub(super) fn outbox(
        &self,
        changes: Vec<outbox::Change>,
        done: impl FnOnce(Result<Vec<Key>, CommitError>) + Send + 'static,
    ) {
        let begins = changes.iter().any(|change| matches!(change, outbox::Change::Prepare(_)));
        let ours = self.generation;
        self.commit(begins, move |db, at| each(&changes, |change| changes::outbox(db, at, ours, change)), done);
    }

    /// The same for the inbox.
    pub(super) fn inbox(
        &self,
        changes: Vec<inbox::Change>,
        done: impl FnOnce(Result<Vec<u64>, CommitError>) + Send + 'static,
    ) {
        let begins = changes.iter().any(|change| matches!(change, inbox::Change::Take(_)));
        self.commit(begins, move |db, at| each(&changes, |change| changes::inbox(db, at, change)), done);
    }

    /// The same for prompts.
    pub(super) fn asks(&self, changes: Vec<asks::Change>, done: impl FnOnce(Result<(), CommitError>) + Send + 'static) {
        let work = move |db: &Connection, at| changes.iter().try_for_each(|change| changes::asks(db, at, change));
        self.commit(true, work, done);
    }

    /// A binding follows this from now on.
    pub(super) fn bind(&self, binding: &str, bound: &Bound) {
        let (binding, Bound { transcript, named, awaited, looked }) = (binding.to_owned(), bound.clone());
        let work = move |db: &Connection, _| {
            let sql = "INSERT INTO bound VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (binding) DO UPDATE
                SET transcript = excluded.transcript, named = excluded.named, awaited = excluded.awaited,
                looked = excluded.looked";
            let looked = looked.unwrap_or_default();
            changes::execute(db, sql, params![binding, &*transcript, named, awaited, looked]).map(|_| ())
        };
        // Without it the next holder finds the transcript as this one did.
        self.commit(false, work, |_| {});
    }

    /// What a binding followed counts no longer.
    pub(super) fn unbind(&self, binding: &str) {
        let binding = binding.to_owned();
        let sql = "DELETE FROM bound WHERE binding = ?1";
        self.commit(false, move |db, _| changes::execute(db, sql, params![binding]).map(|_| ()), |_| {});
    }

    fn commit<T: Send + 'static>(
        &self,
        begins: bool,
        mut work: impl FnMut(&Connection, u64) -> Result<T, StoreError> + Send + 'static,
        done: impl FnOnce(Result<T, CommitError>) + Send + 'static,
    ) {
        let (at, ours) = (unix_ms(), self.generation);
        let mut checked = move |db: &Connection| {
            let now = db.prepare_cached("SELECT generation FROM seat")?.query_row([], |row| row.get::<_, u64>(0))?;
            if now != ours { Err(Refused::Superseded(now)) } else { Ok(work(db, at)?) }
        };
        match begins {
            true => self.store.submit(move |db| checked(db), move |made| done(made.map_err(CommitError::from))),
            false => {
                // What is refused for its generation changed nothing.
                let work = move |db: &Connection| match checked(db) {
                    Ok(made) => Ok(Ok(made)),
                    Err(Refused::Superseded(generation)) => Ok(Err(CommitError::Superseded(generation))),
                    Err(Refused::Store(error)) => Err(error),
                };
                let done = move |made: Result<_, StoreError>| {
                    done(made.unwrap_or_else(|error| Err(Refused::Store(error).into())));
                };
                self.store.submit_final(work, done);
            }
        }
    }

    /// For which channel the outbox has a message of this origin, however it stands.
    pub(super) async fn knows(&self, source: Arc<str>) -> Result<Option<ChannelId>, StoreError> {
        let sql = "SELECT channel FROM outbox WHERE source = ?1 LIMIT 1";
        let query = move |db: &Connection| {
            let channel =
                db.prepare_cached(sql)?.query_row(params![&*source], |row| row.get::<_, String>(0)).optional()?;
            channel.map(|channel| columns::channel(&channel)).transpose()
        };
        self.store.read(query).await
    }

    /// A message that was taken for a binding, by its id or as `<channel>/<id>`; the last of those that have it.
    pub(super) async fn taken(&self, binding: Arc<str>, named: MessageId) -> Result<Option<Incoming>, StoreError> {
        let query = move |db: &Connection| {
            let (channel, id) = match named.as_str().rsplit_once('/') {
                Some((channel, id)) => (Some(channel), id),
                None => (None, named.as_str()),
            };
            let sql = format!(
                "SELECT {} FROM inbox WHERE binding = ?1 AND id = ?2 AND channel = COALESCE(?3, channel)
                    ORDER BY seq DESC LIMIT 1",
                columns::TAKEN
            );
            let mut statement = db.prepare_cached(&sql)?;
            let mut rows = statement.query(params![&*binding, id, channel])?;
            rows.next()?.map(|row| Ok(columns::taken(row)?.incoming)).transpose()
        };
        self.store.read(query).await
    }

    /// Whether this seat posted that message, in whichever holder's life.
    pub(super) async fn sent(&self, channel: ChannelId, message: MessageId) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM outbox WHERE standing = 'sent' AND channel = ?1 AND detail = ?2";
        let query = move |db: &Connection| {
            Ok::<_, StoreError>(db.prepare_cached(sql)?.exists(params![channel.as_str(), message.as_str()])?)
        };
        self.store.read(query).await
    }

    /// The last messages that were taken for a binding, oldest first.
    pub(super) async fn last(&self, binding: Arc<str>, limit: usize) -> Result<Vec<Incoming>, StoreError> {
        let query = move |db: &Connection| {
            let sql = format!("SELECT {} FROM inbox WHERE binding = ?1 ORDER BY seq DESC LIMIT ?2", columns::TAKEN);
            let mut statement = db.prepare_cached(&sql)?;
            let mut rows = statement.query(params![&*binding, limit.min(limits::FORWARDER_FETCHED)])?;
            let mut last = Vec::new();
            while let Some(row) = rows.next()? {
                last.push(columns::taken(row)?.incoming);
            }
            last.reverse();
            Ok::<_, StoreError>(last)
        };
        self.store.read(query).await
    }

    /// Waits for the commits handed in so far. Blocks.
    pub(super) fn close(&self) {
        self.store.close();
    }
}

fn each<C, T>(changes: &[C], carry_out: impl Fn(&C) -> Result<Option<T>, StoreError>) -> Result<Vec<T>, StoreError> {
    changes.iter().filter_map(|change| carry_out(change).transpose()).collect()
}

fn load(db: &Connection, store: SeatStore, last: u64, set_aside: Option<PathBuf>) -> Result<Opened, StoreError> {
    let now = unix_ms();
    let (outbox_seq, inbox_seq) =
        db.query_row("SELECT outbox_seq, inbox_seq FROM seat", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let prepared = records(db, now, "WHERE standing = 'prepared' ORDER BY seq", usize::MAX)?;
    let mut troubles = records(
        db,
        now,
        "WHERE standing IN ('parked', 'unknown') ORDER BY changed DESC, seq DESC",
        limits::OUTBOX_TROUBLES,
    )?;
    troubles.reverse();
    let lanes = all(db, "SELECT channel, last, parked FROM lanes ORDER BY used", |row| {
        let last: Option<String> = row.get(1)?;
        let last = last.as_deref().map(columns::message).transpose()?;
        Ok(outbox::LaneRow { channel: columns::channel(&row.get::<_, String>(0)?)?, last, parked: row.get(2)? })
    })?;
    let prepared = prepared.into_iter().map(|(record, _)| record).collect();
    // Only of the holder before: one in between may have begun what this one left.
    let left = format!("SELECT channel FROM lanes WHERE settled = {last} AND settled < {}", store.generation);
    let settled = all(db, &left, |row| columns::channel(&row.get::<_, String>(0)?))?;
    let settled = settled.into_iter().collect::<BTreeSet<_>>();
    let outbox = outbox::Stored { prepared, troubles, lanes, settled, seq: outbox_seq };
    let open = format!("SELECT {} FROM inbox WHERE standing <> 'done' ORDER BY seq", columns::TAKEN);
    let messages = all(db, &open, columns::taken)?;
    let seen = all(db, "SELECT channel, message FROM seen", |row| {
        Ok((columns::channel(&row.get::<_, String>(0)?)?, columns::message(&row.get::<_, String>(1)?)?))
    })?;
    // A holder that died between two commits knew the message of a prompt only as the outbox's.
    let posted = "SELECT detail FROM outbox WHERE source = 'ask:' || request AND standing = 'sent'";
    let open = format!("SELECT ask, asked, COALESCE(message, ({posted})), ended, shown FROM asks ORDER BY seq");
    let asks = all(db, &open, |row| {
        Ok(asks::Row {
            ask: columns::from_json(&row.get::<_, String>(0)?)?,
            age: columns::age(now, row.get(1)?),
            message: row.get::<_, Option<String>>(2)?.as_deref().map(columns::message).transpose()?,
            end: row.get::<_, Option<String>>(3)?.as_deref().map(columns::from_json).transpose()?,
            shown: row.get(4)?,
        })
    })?;
    let bookmarks = all(db, "SELECT state FROM cursors", |row| {
        Bookmark::read(&row.get::<_, String>(0)?).ok_or(StoreError::Damaged)
    })?;
    // Whoever said what was read then had looked not long before.
    let looked = "max(looked, COALESCE((SELECT max(at) FROM cursors WHERE cursors.transcript = bound.transcript), 0))";
    let bound = all(db, &format!("SELECT binding, transcript, named, awaited, {looked} FROM bound"), |row| {
        let looked = Some(row.get::<_, UnixMs>(4)?).filter(|looked| *looked > 0);
        let transcript = row.get::<_, String>(1)?.into();
        let bound = Bound { transcript, named: row.get(2)?, awaited: row.get(3)?, looked };
        Ok((Arc::<str>::from(row.get::<_, String>(0)?), bound))
    })?;
    Ok(Opened {
        store,
        outbox,
        inbox: inbox::Stored { messages, seen, seq: inbox_seq },
        asks,
        bookmarks,
        bound: bound.into_iter().collect(),
        set_aside,
    })
}

fn records(
    db: &Connection,
    now: u64,
    which: &str,
    limit: usize,
) -> Result<Vec<(outbox::Record, outbox::Standing)>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = format!("SELECT {} FROM outbox {which} LIMIT {limit}", columns::RECORD);
    Ok(all(db, &sql, |row| columns::record(now, row))?.into_iter().flatten().collect())
}

fn all<T>(
    db: &Connection,
    sql: &str,
    read: impl Fn(&rusqlite::Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(read(row)?);
    }
    Ok(all)
}
