//! Who may speak for the bot: one seat holder per user of a machine and bot.

use serde::{Deserialize, Serialize};

use super::UnixMs;
use crate::code::Code;

/// The seat as this process sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct SeatStatus {
    /// What this process does about it.
    pub state: SeatState,
    /// Since when.
    pub since: UnixMs,
    /// The chat service.
    pub backend: String,
    /// The bot, by id.
    pub bot: String,
    /// Who holds the seat, this process or another; `None` when nobody does or nobody can tell.
    pub holder: Option<SeatHolder>,
    /// Grows by one with each holder.
    pub generation: u64,
    /// The channel, as people call it.
    pub channel: Option<String>,
    /// The transcript that is followed.
    pub transcript: Option<String>,
    /// Messages that wait to be sent.
    pub waiting: usize,
    /// When a message was last sent.
    pub last_sent: Option<UnixMs>,
    /// Why it is off, failed or waits, in plain words.
    pub reason: Option<String>,
    /// The reason's code, where it is what is kept on disk: `storage_full` while the disk is full.
    #[serde(default)]
    pub code: Option<Code>,
    /// When the next try to connect, or to use the disk, begins.
    pub next_try_at: Option<UnixMs>,
    /// A question to the person: the holder lives and does not answer. Only `SeatTake` with `force` ends its process. In
    /// `standby` the take is withdrawn, and a holder that wakes keeps the seat; in `claiming` the holder had begun to let go,
    /// and the seat is taken when it goes on.
    pub frozen: bool,
    /// The seat is taken as soon as nobody holds it.
    #[serde(default)]
    pub waits: bool,
}

/// What this process does about the seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum SeatState {
    /// Nothing.
    Off,
    /// It tries to get the lock, or asks the holder for it.
    Claiming,
    /// It holds the lock and connects to the chat service.
    Connecting,
    /// It speaks for the bot.
    Serving,
    /// It finishes what is under way and lets go.
    Draining,
    /// It waits until the seat is free.
    Standby,
    /// It gave up; the reason says why.
    Failed,
}

/// Who holds the seat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct SeatHolder {
    /// Whether it is this process.
    pub this: bool,
    /// Its random id.
    pub instance: String,
    /// Its process.
    pub pid: u32,
    /// Its machine's name.
    pub host: String,
    /// Since when.
    pub since: UnixMs,
}
