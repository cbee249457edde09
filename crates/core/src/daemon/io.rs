//! What goes in and what comes out.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::code::{Code, ToolError};
use crate::id::{CallId, InstanceId};
use crate::status::{CallCounts, LinkState, Step};
use crate::tools::{self, Place};
use crate::wire::{Authorization, Features, WireError};

/// One connection or attempt of this process; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u64);

/// Which wire is spoken. A setting, never a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compat {
    /// A Holdfast relay with an overlapping link range.
    #[default]
    Holdfast,
    /// Exactly `machine-bridge-mcp@1.2.10`: that name and version, no feature.
    Base,
}

/// What a daemon is and says about itself.
#[derive(Debug, Clone)]
pub struct Settings {
    /// This process life.
    pub instance: InstanceId,
    /// Which wire is spoken.
    pub compat: Compat,
    /// Features offered; all of this build unless a test takes some away.
    pub features: Features,
    /// Version of the software, for people.
    pub version: String,
    /// What `hello` advertises.
    pub advertised: Advertised,
}

/// The part of `hello` that can change while the process lives.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Advertised {
    /// Names of tools, without `server_info`.
    pub tools: Vec<String>,
    /// The device's policy as the wire writes it.
    pub policy: serde_json::Value,
}

impl Advertised {
    /// The names for this relay. One that speaks the base wire has no durable operations, and so no tools for them.
    pub(super) fn tools_for(&self, holdfast: bool) -> Vec<String> {
        let fits = |name: &&String| holdfast || tools::find(name).is_none_or(|tool| tool.place != Place::Worker);
        self.tools.iter().filter(fits).cloned().collect()
    }
}

/// Why an attempt to connect failed, as far as anything depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialError {
    /// 401 with one of our codes over a verified connection (or the base relay's text): the credential is not valid.
    SignIn(SignIn),
    /// Anything else: no route, a proxy's page, a status, a redirect. Retried. The text is for people and holds no secret.
    Transport(Cow<'static, str>),
}

/// Why the relay does not know this device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignIn {
    /// It was revoked.
    Revoked,
    /// It was never enrolled there, or the token is wrong.
    Unknown,
}

/// What happened.
pub enum Input<'a> {
    /// The link is wanted. Also *try now*: ends every hold-off.
    Start,
    /// The link is not wanted any more. `patient` waits [`crate::limits::STOP_WAIT`] for running calls; a second, impatient
    /// one ends that wait.
    Stop {
        /// Whether running calls may finish.
        patient: bool,
    },
    /// The operating system says that the machine woke. A jump between the clocks means the same and needs no input.
    Wake,
    /// The network changed.
    NetworkChanged,
    /// The operating system is about to sleep and waits for [`Output::AllowSleep`].
    SleepAnnounced,
    /// The drill: behave as if the network were gone for this long.
    Cut(Duration),
    /// `hello` must say something else from now on.
    Advertise(Advertised),
    /// A dialled socket is an open WebSocket.
    Opened(SocketId),
    /// A dialled socket could not be opened.
    Refused(SocketId, DialError),
    /// A whole text frame came (binary ones as UTF-8).
    Frame(SocketId, &'a str),
    /// A message came that the shell could not even hand over: no UTF-8, or too large.
    Unreadable(SocketId, WireError),
    /// A WebSocket control message came.
    Control(SocketId),
    /// Bytes went through below the WebSocket layer since the last such input.
    Traffic(SocketId, Traffic),
    /// The socket is closed: with this code and reason, or without a close frame.
    Closed(SocketId, Option<(u16, Cow<'a, str>)>),
    /// The executor answered a probe.
    Probed(SocketId),
    /// A call ended.
    Finished(CallId, Result<Box<RawValue>, ToolError>),
    /// A call made progress.
    Progress(CallId, Progress),
    /// [`Output::Store`] ended: the result is on disk, or it could not be written.
    Stored(CallId, bool),
    /// [`Output::Load`] ended: the text as it was stored, or nothing if it could not be read.
    Loaded(CallId, Option<Arc<str>>),
}

/// Bytes counted below the WebSocket layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Read from the network.
    pub read: u64,
    /// Taken by the network.
    pub written: u64,
    /// Everything given to the socket so far was taken.
    pub drained: bool,
}

/// One report of a running call.
#[derive(Clone, PartialEq)]
pub struct Progress {
    /// Grows.
    pub progress: f64,
    /// The end of `progress`, if known.
    pub total: Option<f64>,
    /// A line for people.
    pub message: Option<String>,
}

/// A call to run.
#[derive(Clone)]
pub struct Run {
    /// Its id.
    pub id: CallId,
    /// The tool.
    pub tool: String,
    /// A JSON object, untouched.
    pub arguments: Box<RawValue>,
    /// Execution budget on awake time; the machine cancels when it is over.
    pub budget: Duration,
    /// Who asks.
    pub authorization: Authorization,
    /// Whether somebody listens to progress.
    pub progress: bool,
}

/// Why a call is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CancelReason {
    /// The relay said so.
    Caller,
    /// After a reconnect the relay no longer names it.
    CallerNoLongerWaiting,
    /// Its budget is over; the executor's word is `timeout`.
    Timeout,
    /// The relay stayed away for the whole grace.
    GraceExpired,
    /// The daemon stops.
    Shutdown,
}

/// What the shell has to do.
pub enum Output {
    /// Open a WebSocket to the relay under this name; answer `Opened` or `Refused`.
    Dial(SocketId),
    /// Send a close frame, do not wait for its echo, and forget the socket or attempt.
    Close(SocketId, u16, &'static str),
    /// Drop the socket or attempt at once, without a word.
    Drop(SocketId),
    /// Pass a probe through the executor's dispatcher in the reserved place; answer `Probed`, or nothing if it is stuck.
    Probe(SocketId),
    /// Start a call.
    Run(Run),
    /// Stop a call and kill its process tree; `Finished` may follow and is used only after [`CancelReason::Timeout`].
    Cancel(CallId, CancelReason),
    /// Write a result to the outbox folder; answer `Stored`.
    Store(CallId, Arc<str>),
    /// Read a stored result; answer `Loaded`.
    Load(CallId),
    /// Delete a stored result.
    Remove(CallId),
    /// A step of a call, for the timeline.
    Step(CallStep),
    /// A line of the log.
    Told(Told),
    /// [`crate::daemon::Daemon::snapshot`] says something new.
    Changed,
    /// The machine may sleep now.
    AllowSleep,
    /// Everything is closed; the link rests until `Start`.
    Stopped,
}

/// A step of a call.
#[derive(Debug, Clone)]
pub struct CallStep {
    /// The call.
    pub id: CallId,
    /// Its tool.
    pub tool: Arc<str>,
    /// What happened.
    pub step: Step,
    /// Code of an error.
    pub code: Option<Code>,
    /// Who asked.
    pub client: Option<Arc<str>>,
    /// With [`Step::Received`]: one line on what runs, for memory only.
    pub summary: Option<Arc<str>>,
}

/// Something for the log, told once when it happens. Times are the machine's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The first readiness since the start.
    FirstReady,
    /// The relay is away: after 10 s, then reminders.
    Outage {
        /// For how long.
        lasting: Duration,
        /// Tries so far.
        attempts: u32,
        /// Why.
        cause: Cow<'static, str>,
        /// Long enough that a person should check the network.
        hint: bool,
    },
    /// It is back, told only when the outage was.
    Recovered {
        /// How long it was away.
        lasted: Duration,
        /// Tries it took.
        attempts: u32,
    },
    /// The state changed.
    State {
        /// Before.
        from: LinkState,
        /// Now.
        to: LinkState,
        /// Why.
        why: Cow<'static, str>,
    },
    /// The grace ended without the relay.
    GraceExpired {
        /// Running calls that were stopped.
        stopped: usize,
        /// Finished results that still wait.
        held: usize,
    },
    /// A stop cut calls off, or results that nobody acknowledged in time: their outcome is not known to who asked.
    CutOff {
        /// How many.
        calls: usize,
    },
    /// Three protocol errors in ten minutes.
    ProtocolErrors,
    /// Another instance uses this device's credential.
    DeviceInUse,
    /// A reconnect settled what both sides know.
    Resumed {
        /// Running, and wanted.
        running: usize,
        /// Finished, and sent now.
        replayed: usize,
        /// Stopped, because nobody waits.
        stopped: usize,
        /// Finished, and nobody waits.
        dropped: usize,
        /// Named, but never seen here.
        unknown: usize,
        /// Named, seen, and without a result.
        lost: usize,
    },
}

/// The state of the link at one moment; times are boot time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The state people see.
    pub state: LinkState,
    /// Since when.
    pub since: Duration,
    /// Tries since the link was last ready.
    pub attempts: u32,
    /// Why it is not healthy.
    pub cause: Option<Cow<'static, str>>,
    /// When the next try begins.
    pub next_try_at: Option<Duration>,
    /// When running calls will be given up.
    pub grace_ends_at: Option<Duration>,
    /// Features agreed on the ready connection.
    pub features: Option<Features>,
    /// Connections that were proven ready since the process began.
    pub generation: u64,
    /// Calls and results.
    pub calls: CallCounts,
    /// Calls that ended with their result delivered, since the process began.
    pub delivered: u64,
    /// Calls whose outcome the relay will not learn, since the process began.
    pub lost: u64,
    /// Since when another instance is known to use this credential.
    pub device_in_use: Option<Duration>,
    /// Since when the peer is known to break the protocol repeatedly.
    pub protocol_errors: Option<Duration>,
}
