//! How values stand in columns. What cannot be read back is damage.

use std::time::Duration;

use holdfast_core::chat::inbox::{self, Adapter};
use holdfast_core::chat::outbox::{Key, Record, Standing};
use holdfast_core::chat::{ChannelId, MessageId};
use holdfast_core::status::UnixMs;
use holdfast_store::StoreError;
use rusqlite::Row;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// As text.
pub(super) fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|e| StoreError::Sqlite(e.to_string()))
}

pub(super) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|_| StoreError::Damaged)
}

pub(super) fn channel(text: &str) -> Result<ChannelId, StoreError> {
    ChannelId::parse(text).map_err(|_| StoreError::Damaged)
}

pub(super) fn message(text: &str) -> Result<MessageId, StoreError> {
    MessageId::parse(text).map_err(|_| StoreError::Damaged)
}

/// How long ago a date was. One that lies ahead, because the calendar was set back, is now.
pub(super) fn age(now: UnixMs, date: UnixMs) -> Duration {
    Duration::from_millis(now.saturating_sub(date))
}

/// The date of something that is that old.
pub(super) fn date(now: UnixMs, age: Duration) -> UnixMs {
    now.saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
}

/// The columns of [`record`].
pub(super) const RECORD: &str = "source, first, after, chunk, channel, seq, text, reply_to, buttons, written, skips,
    generation, standing, detail, entries";

/// A message of the outbox and how it stands; none, if it was left out.
pub(super) fn record(now: UnixMs, row: &Row<'_>) -> Result<Option<(Record, Standing)>, StoreError> {
    let detail = || row.get::<_, Option<String>>(13).map(Option::unwrap_or_default);
    let standing = match row.get_ref(12)?.as_str().map_err(|_| StoreError::Damaged)? {
        "prepared" => Standing::Prepared,
        "sent" => Standing::Sent(message(&detail()?)?),
        "parked" => Standing::Parked(detail()?),
        "unknown" => Standing::Unknown(detail()?),
        "skipped" => return Ok(None),
        _ => return Err(StoreError::Damaged),
    };
    let record = Record {
        key: Key { source: row.get::<_, String>(0)?.into(), start: row.get(1)?, end: row.get(2)?, chunk: row.get(3)? },
        channel: channel(&row.get::<_, String>(4)?)?,
        seq: row.get(5)?,
        text: row.get(6)?,
        reply_to: row.get::<_, Option<String>>(7)?.as_deref().map(message).transpose()?,
        buttons: from_json(&row.get::<_, String>(8)?)?,
        age: age(now, row.get(9)?),
        skips: row.get(10)?,
        entries: row.get(14)?,
        generation: row.get(11)?,
    };
    Ok(Some((record, standing)))
}

/// The word of a standing, and what is said beside it.
pub(super) fn standing(standing: &Standing) -> (&'static str, Option<&str>) {
    match standing {
        Standing::Prepared => ("prepared", None),
        Standing::Sent(message) => ("sent", Some(message.as_str())),
        Standing::Parked(why) => ("parked", Some(why)),
        Standing::Unknown(why) => ("unknown", Some(why)),
    }
}

/// The columns of [`taken`].
pub(super) const TAKEN: &str = "seq, binding, incoming, standing";

/// A message of the inbox. How old it is shows the service's calendar, which is not known here.
pub(super) fn taken(row: &Row<'_>) -> Result<inbox::Message, StoreError> {
    let incoming = from_json(&row.get::<_, String>(2)?)?;
    let standing = match row.get_ref(3)?.as_str().map_err(|_| StoreError::Damaged)? {
        "stored" => inbox::Standing::Stored,
        // Written before it was kept how: as by one that cannot tell what it has.
        "delivering" | "delivering command" => inbox::Standing::Delivering(Adapter::Command),
        "delivering tmux" => inbox::Standing::Delivering(Adapter::Tmux),
        "delivering mcp" => inbox::Standing::Delivering(Adapter::Mcp),
        "delivering inbox" => inbox::Standing::Delivering(Adapter::Inbox),
        "perhaps" => inbox::Standing::Perhaps,
        "done" => inbox::Standing::Done,
        _ => return Err(StoreError::Damaged),
    };
    Ok(inbox::Message { seq: row.get(0)?, incoming, binding: row.get::<_, String>(1)?.into(), standing })
}

/// The word of a standing.
pub(super) fn inbox_standing(standing: inbox::Standing) -> &'static str {
    match standing {
        inbox::Standing::Stored => "stored",
        inbox::Standing::Delivering(Adapter::Command | Adapter::Mirror) => "delivering command",
        inbox::Standing::Delivering(Adapter::Tmux) => "delivering tmux",
        inbox::Standing::Delivering(Adapter::Mcp) => "delivering mcp",
        inbox::Standing::Delivering(Adapter::Inbox) => "delivering inbox",
        inbox::Standing::Perhaps => "perhaps",
        inbox::Standing::Done => "done",
    }
}
