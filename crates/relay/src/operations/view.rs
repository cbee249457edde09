//! Operations as readers see them.

use holdfast_core::control::View;
use holdfast_core::id::{DeviceId, OperationId, RunId};
use holdfast_core::limits;
use holdfast_core::operation::{Kind, Outcome, State, Stream, Streams};
use holdfast_core::status::UnixMs;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::de::IntoDeserializer;
use serde::{Deserialize, Serialize};

use super::{output, party};
use crate::store::StoreError;

/// An operation as its owner sees it. Never what it asked: that may hold secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationView {
    /// Its identity.
    pub id: OperationId,
    /// What kind of operation.
    pub kind: Kind,
    /// What it is, in a few redacted words.
    pub summary: String,
    /// The session it belongs to, as its client named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// How it stands.
    pub state: State,
    /// Whether its worker is connected and recovered; if not, what is said here may be old.
    pub worker_live: bool,
    /// Somebody cancelled it; while `state` is not final, the worker has not said so yet.
    pub cancelled: bool,
    /// It is over by the worker's word, and the rest of its output is on its way.
    pub ending: bool,
    /// Its end, if `state` is final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Output that can be read here, in bytes per stream, what was given up included.
    pub received: Streams,
    /// Output there is by the worker's latest word, in bytes per stream.
    pub written: Streams,
    /// Output that will never come, in bytes of the streams that lack some: given up by `drop_middle`, or lost on the device.
    #[serde(default, skip_serializing_if = "Streams::is_empty")]
    pub missing: Streams,
    /// Since when its program waits because the device has no room for its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_stalled: Option<UnixMs>,
    /// When it was admitted, in milliseconds since 1970 by the relay's calendar, as all times here.
    pub created: UnixMs,
    /// When it expires, as long as it was certainly not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<UnixMs>,
    /// When its end was committed here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<UnixMs>,
    /// Its row.
    #[serde(skip)]
    pub(super) row: i64,
    /// Whose it is.
    #[serde(skip)]
    pub(super) account: String,
    /// The run it started.
    #[serde(skip)]
    pub(super) run: Option<RunId>,
}

impl OperationView {
    /// The streams it has: none if it is no run.
    pub fn streams(&self) -> &'static [Stream] {
        match self.kind {
            Kind::Exec => &[Stream::Stdout, Stream::Stderr],
            Kind::PtyOpen => &[Stream::Pty],
            Kind::PortForwardConnect => &[Stream::Stdout],
            _ => &[],
        }
    }

    /// Its session as the worker and the store know it, whoever asks.
    pub(super) fn session_id(&self) -> Option<String> {
        self.session.as_ref().map(|session| party::session_of(&self.account, session))
    }

    /// What the machine knows and the store does not.
    pub(super) fn enliven(&mut self, view: View) {
        // The row may have been read after the end that the machine had not yet heard of.
        if self.state.is_final() {
            return;
        }
        let View { record, written, output_stalled, ending } = view;
        self.state = record.state;
        self.expires = self.expires.filter(|_| record.sent_to.is_none());
        self.cancelled = record.cancelled;
        self.ending = ending;
        self.written = written;
        self.output_stalled = output_stalled;
    }
}

const COLUMNS: &str = "n, id, account, kind, summary, run, session, state, cancelled, outcome, written, created, ended,
     iif(sent_to IS NULL AND ended IS NULL, created + ttl, NULL)";

/// `None`: not written by us.
fn read(db: &Connection, row: &Row<'_>) -> Result<Option<OperationView>, StoreError> {
    let n: i64 = row.get(0)?;
    let id = OperationId::parse(&row.get::<_, String>(1)?);
    let state = State::parse(&row.get::<_, String>(7)?);
    let kind =
        Kind::deserialize(IntoDeserializer::<serde::de::value::Error>::into_deserializer(row.get::<_, String>(3)?));
    let (Ok(id), Some(state), Ok(kind)) = (id, state, kind) else { return Ok(None) };
    let json = |column: usize| row.get::<_, Option<String>>(column);
    let account: String = row.get(2)?;
    let session = row.get::<_, Option<String>>(6)?;
    let received = output::received_all(db, n)?;
    Ok(Some(OperationView {
        id,
        kind,
        summary: row.get(4)?,
        session: session.map(|session| session.strip_prefix(&format!("{account}/")).unwrap_or(&session).to_owned()),
        state,
        worker_live: false,
        cancelled: row.get(8)?,
        ending: false,
        outcome: json(9)?.and_then(|text| serde_json::from_str(&text).ok()),
        written: json(10)?.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_else(|| received.clone()),
        received,
        missing: output::missing_all(db, n)?,
        output_stalled: None,
        created: row.get(11)?,
        expires: row.get(13)?,
        ended: row.get(12)?,
        row: n,
        run: row.get::<_, Option<String>>(5)?.and_then(|text| RunId::parse(&text).ok()),
        account,
    }))
}

/// An operation of a device.
pub(super) fn one(db: &Connection, device: &DeviceId, id: &OperationId) -> Result<Option<OperationView>, StoreError> {
    let mut query = db.prepare_cached(&format!("SELECT {COLUMNS} FROM operations WHERE id = ?1 AND device = ?2"))?;
    let found = query.query_row(params![id.as_str(), device.as_str()], |row| Ok(read(db, row)));
    found.optional()?.transpose().map(Option::flatten)
}

/// Which operations a list holds.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Only those that have not ended.
    pub living: bool,
    /// Only those admitted before this one.
    pub before: Option<OperationId>,
    /// At most so many; [`holdfast_core::limits::CONTROL_LIST_MAX`] whatever it says.
    pub limit: Option<usize>,
}

/// The newest operations of a device, of one account or of all, without values and evidence; inputs are not listed. `None`: there is no `page.before`.
pub(super) fn list(
    db: &Connection,
    device: &DeviceId,
    account: Option<&str>,
    page: &Page,
) -> Result<Option<Vec<OperationView>>, StoreError> {
    let before = match &page.before {
        None => i64::MAX,
        Some(id) => match one(db, device, id)?.filter(|found| account.is_none_or(|own| own == found.account)) {
            None => return Ok(None),
            Some(operation) => operation.row,
        },
    };
    let limit = page.limit.unwrap_or(usize::MAX).min(limits::CONTROL_LIST_MAX);
    let mut query = db.prepare_cached(&list_query(page.living))?;
    let mut rows = query.query(params![device.as_str(), account, before, limit])?;
    let mut operations = Vec::new();
    while let Some(row) = rows.next()? {
        let found = read(db, row)?;
        operations.extend(found.map(|mut found| {
            found.outcome = found.outcome.map(Outcome::brief);
            found
        }));
    }
    Ok(Some(operations))
}

fn list_query(living: bool) -> String {
    // By name: SQLite would rather go through all that a device ever did than through what has not ended.
    let (index, living) = match living {
        true => ("operations_living", "AND ended IS NULL"),
        false => ("operations_listed", ""),
    };
    format!(
        "SELECT {COLUMNS} FROM operations INDEXED BY {index} WHERE device = ?1 AND input = 0 {living} AND n < ?3
         AND (?2 IS NULL OR account = ?2) ORDER BY n DESC LIMIT ?4"
    )
}
