//! What the engines say about themselves: one snapshot with the latest values, one lossy timeline.
//!
//! The status hub in `holdfast-host` is the only writer. Tray, window, command line and loopback API read the same
//! types. State is latest-value and is never derived from the timeline, which may drop.

mod attention;
mod channels;
mod outages;
mod seat;
mod timeline;
mod warning;
mod worker;

pub use attention::{Consent, Question};
pub use channels::{BindingStatus, ForwarderStatus, PersonRow, TranscriptRow, TroubleRow};
pub use outages::{Outage, OutageLog, Tally};
pub use seat::{SeatHolder, SeatState, SeatStatus};
pub use timeline::{CallRow, CallState, ChannelNotice, Step, Timeline, TimelineEntry, call_rows};
pub use warning::{Action, Severity, Warning, WarningCode};
pub use worker::{LeaseStatus, OperationRow, WorkerCounts, WorkerStatus};

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::command::Engine;

/// Milliseconds since the Unix epoch: for people and logs, never for deadlines.
pub type UnixMs = u64;

/// Everything a reader needs to draw the product, taken at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct StatusSnapshot {
    /// Grows by one with every snapshot; a gap in a stream means: fetch a whole snapshot.
    pub seq: u64,
    /// When it was taken.
    pub taken_at: UnixMs,
    /// The process.
    pub app: AppStatus,
    /// The link to the relay.
    pub relay: RelayStatus,
    /// Calls as this device sees them.
    pub calls: CallCounts,
    /// Durable operations; `None` where no worker is hosted.
    pub worker: Option<WorkerStatus>,
    /// The seat at the chat service; `None` while no channel is set up.
    pub seat: Option<SeatStatus>,
    /// What passes between agents and channels; `None` while no channel is set up.
    #[serde(default)]
    pub channels: Option<Arc<ForwarderStatus>>,
    /// Clients that wait to be let in, oldest first.
    pub consents: Vec<Consent>,
    /// Calls that ask before they run, oldest first.
    pub questions: Vec<Question>,
    /// Outages of the last 24 h, oldest first.
    pub outages: Vec<Outage>,
    /// What is wrong, worst first.
    pub health: Vec<Warning>,
}

impl StatusSnapshot {
    /// What a reader sees when no engine runs.
    pub fn stopped(taken_at: UnixMs, app: AppStatus) -> Self {
        StatusSnapshot {
            seq: 0,
            taken_at,
            app,
            relay: RelayStatus::stopped(taken_at),
            calls: CallCounts::default(),
            worker: None,
            seat: None,
            channels: None,
            consents: Vec::new(),
            questions: Vec::new(),
            outages: Vec::new(),
            health: Vec::new(),
        }
    }
}

/// The process that hosts the engines.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct AppStatus {
    /// Version of this build.
    pub version: String,
    /// Process id; 0 when nothing runs.
    pub pid: u32,
    /// When the process started.
    pub started_at: UnixMs,
    /// Address an MCP client on this machine (or of the configured relay) uses.
    pub mcp: Option<String>,
    /// Name of the policy's profile.
    pub policy: Option<String>,
    /// The folder file tools work in.
    pub workspace: Option<String>,
    /// Whether the tray application starts at login, as the system has it; `None` where there is none to start.
    pub autostart: Option<bool>,
    /// The engines that exist in this process, and whether each runs.
    pub engines: BTreeMap<Engine, EngineState>,
}

/// Whether an engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum EngineState {
    /// It runs.
    Running,
    /// It finishes its work and will be stopped.
    Stopping,
    /// It does not run.
    Stopped,
    /// It could not start or ended by itself; a warning says why.
    Failed,
}

/// Whether this machine can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// Not wanted.
    Stopped,
    /// First connection since the start.
    Connecting,
    /// Proven ready.
    Healthy,
    /// Away for less than [`crate::limits::OUTAGE_SILENT`]; told nobody.
    Blip,
    /// Away for longer.
    Outage,
    /// Connected again, not yet proven ready.
    Recovering,
    /// The relay does not know this device, or revoked it.
    SignInNeeded,
    /// The relay speaks no link version that this build speaks.
    Incompatible,
}

impl LinkState {
    /// The state in plain words.
    pub const fn words(self) -> &'static str {
        match self {
            LinkState::Stopped => "stopped",
            LinkState::Connecting => "connecting",
            LinkState::Healthy => "healthy",
            LinkState::Blip => "away for a moment",
            LinkState::Outage => "away",
            LinkState::Recovering => "connecting again",
            LinkState::SignInNeeded => "not enrolled",
            LinkState::Incompatible => "another version",
        }
    }
}

/// The link to the relay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct RelayStatus {
    /// Its state.
    pub state: LinkState,
    /// Since when.
    pub since: UnixMs,
    /// Tries to connect since the link was last ready.
    pub attempts: u32,
    /// Why it is not healthy, in plain words.
    pub cause: Option<String>,
    /// When the next try begins.
    pub next_try_at: Option<UnixMs>,
    /// How the relay is reached: `direct`, or the proxy without its credentials.
    pub route: Option<String>,
    /// The relay's address, without credentials.
    pub url: Option<String>,
    /// When detached calls will be given up, if any wait.
    pub grace_ends_at: Option<UnixMs>,
}

impl RelayStatus {
    /// A link nobody asked for.
    pub fn stopped(since: UnixMs) -> Self {
        RelayStatus {
            state: LinkState::Stopped,
            since,
            attempts: 0,
            cause: None,
            next_try_at: None,
            route: None,
            url: None,
            grace_ends_at: None,
        }
    }
}

/// Calls as this device sees them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct CallCounts {
    /// Received and not yet finished, detached ones included.
    pub pending: usize,
    /// Of the pending: those whose link is gone.
    pub detached: usize,
    /// Finished, and the relay has not yet confirmed the result.
    pub queued_results: usize,
    /// Age of the oldest pending call, in milliseconds.
    pub oldest_ms: Option<u64>,
    /// Pending calls by tool.
    pub by_tool: BTreeMap<String, usize>,
}
