//! What goes in and what comes out.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::ledger::{Change, Found, LedgerError, Ticket};
use crate::code::Code;
use crate::daemon::{DialError, SocketId, Told, Traffic};
use crate::id::{OperationId, RunId, RuntimeId};
use crate::operation::{Failure, Kind, OnLeaseExpiry, Operation, State, Stream, Streams};
use crate::run::{Ask, End, Lease};
use crate::status::{LinkState, UnixMs};
use crate::wire::WireError;
use crate::wire::worker::{ControlFrame, HostInfo};

/// What a worker is and says about itself.
#[derive(Debug, Clone)]
pub struct Settings {
    /// This process life.
    pub runtime: RuntimeId,
    /// The machine, for people.
    pub host: HostInfo,
}

/// What happened.
#[derive(Debug)]
pub enum Input<'a> {
    /// The worker is wanted: it dials, and starts what was received. Also *try now*: ends every hold-off.
    Start,
    /// The worker is not wanted any more: nothing starts, the connection is closed, runs go on under their runners. Work
    /// that is no run and must not be cut off may finish for [`crate::limits::STOP_WAIT`]. Answered by [`Output::Stopped`].
    Stop,
    /// The operating system says that the machine woke. A jump between the clocks means the same and needs no input.
    Wake,
    /// The network changed.
    NetworkChanged,
    /// The operating system is about to sleep and waits for [`Output::AllowSleep`]; such a sleep does not consume the lease.
    SleepAnnounced,
    /// The drill: behave as if the network were gone for this long.
    Cut(Duration),
    /// A person at this machine cancels an operation.
    Cancel(OperationId),
    /// A person at this machine cancels everything that has not ended, what is being admitted too.
    CancelAll,
    /// A dialled socket is an open WebSocket.
    Opened(SocketId),
    /// A dialled socket could not be opened.
    Refused(SocketId, DialError),
    /// A frame came, with what the device's policy says of it if it is an operation (`Ok` for any other frame). The verdict
    /// counts only when the operation is new.
    Frame(SocketId, ControlFrame, Result<(), Failure>),
    /// A frame came that could not be read. With a request id ([`ControlFrame::request_id`]) it is a request this build
    /// does not understand: refused, and the socket stays.
    Unreadable(SocketId, WireError, Option<OperationId>),
    /// Bytes went through below the WebSocket layer since the last such input.
    Traffic(SocketId, Traffic),
    /// The socket is closed: with this code and reason, or without a close frame.
    Closed(SocketId, Option<(u16, Cow<'a, str>)>),
    /// A commit is durable, with one [`Found`] for each of its changes in order; or nothing of it is.
    Committed(Ticket, Result<Vec<Found>, LedgerError>),
    /// How the disk stands; told when `full` changes, and at least each [`crate::limits::SPOOL_RETRY`] while
    /// [`super::Worker::has_work`].
    Storage {
        /// Too full to admit anything: the reserve is given up and not yet restored.
        full: bool,
        /// Bytes this user may still write; `None` where that cannot be told.
        free: Option<u64>,
    },
    /// News of a try to run something.
    Run(RunId, u32, RunNews),
    /// Answers [`Output::Read`]: what stands in the spool at that stream and offset.
    Piece(RunId, Stream, u64, Piece),
    /// [`Output::Perform`] ended. After [`Output::Abandon`] with [`Code::Cancelled`] unless its work was done.
    Performed(OperationId, Result<Value, Failure>),
}

/// News of one try to run something. News of a try that is not the last one of its run is ignored.
#[derive(Debug, Clone, PartialEq)]
pub enum RunNews {
    /// Its runner's claim stands and its runner is connected, for the first time or again: what was told before is told again.
    Attached {
        /// Written so far.
        written: Streams,
        /// Since when its program waits for room.
        stalled: Option<UnixMs>,
    },
    /// The connection to its runner is lost, and nothing more is said on it: answered by [`Output::Attach`], and until then
    /// nothing is told. Otherwise what is told next could overtake what the connection took with it.
    Detached,
    /// Its claim is `void`: nothing ran and nothing will. Without a failure it is tried again; with one the operation failed.
    Void(Option<Failure>),
    /// Output has grown; the latest counts.
    Grew(Streams),
    /// Its program waits for room, or does so no longer.
    Stalled(Option<UnixMs>),
    /// An input was given, or could not be: the program's input is closed.
    Done(OperationId, Result<(), String>),
    /// `exit` stands there.
    Ended(End),
    /// A runner's claim stands there, the runner is gone without `exit`, and whatever it left behind is ended.
    Gone {
        /// Output in the spool.
        written: Streams,
        /// What is known all the same: a small object.
        evidence: Value,
    },
}

/// What a read of the spool found.
#[derive(Clone, PartialEq)]
pub enum Piece {
    /// Bytes from that offset, at least one, at most what was asked for.
    Bytes(Bytes),
    /// There are none from that offset up to this one, and never will be: given up by `drop_middle`, or trimmed.
    Gap(u64),
    /// The spool cannot be read now; it is asked again after [`crate::limits::SPOOL_RETRY`].
    Unreadable,
}

/// Output is not printed.
impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Piece::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Piece::Gap(next) => write!(f, "Gap({next})"),
            Piece::Unreadable => f.write_str("Unreadable"),
        }
    }
}

/// Output to read from the spool. One read per stream at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Whose.
    pub run: RunId,
    /// Of which try.
    pub attempt: u32,
    /// Which stream.
    pub stream: Stream,
    /// From here.
    pub offset: u64,
    /// At most this many bytes, at least one; that much is written.
    pub max: usize,
}

/// A run to start.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// What to run; it has a run id.
    pub operation: Operation,
    /// Number of the try, from 1; its folder is `<run>-<attempt>`.
    pub attempt: u32,
    /// Unacknowledged output it may hold, in bytes.
    pub quota: u64,
    /// Of a run that must not go on unsupervised. Its end is on this machine's boot clock, as `now` was given in.
    pub lease: Option<Lease>,
}

/// What the shell has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Open a WebSocket to the relay's [`crate::wire::worker::WORKER_PATH`] under this name; answer `Opened` or `Refused`.
    Dial(SocketId),
    /// Send a close frame, do not wait for its echo, and forget the socket or attempt.
    Close(SocketId, u16, &'static str),
    /// Drop the socket or attempt at once, without a word.
    Drop(SocketId),
    /// Write a WebSocket ping.
    Ping(SocketId),
    /// Make these changes durable, all or none, in the order of tickets; answer `Committed`.
    Commit(Ticket, Vec<Change>),
    /// Make the folder of a try, spawn its runner, and answer [`RunNews`]: `Attached`, `Ended`, `Gone`, or `Void` once a claim
    /// `void` stands because no runner put its own in place within [`crate::limits::RUNNER_START`].
    Launch(Box<Launch>),
    /// Find the runner of a try again; answer `Attached`, `Ended` or `Gone`.
    Attach(RunId, u32),
    /// Settle a try that may or may not have started: put the claim `void` in place unless one stands there. Answer `Void(None)`,
    /// or what [`Output::Attach`] answers if a runner's claim stands there.
    Void(RunId, u32),
    /// Say this to the runner of a try. What cannot be said now is dropped: it is told again with the next `Attached`.
    Tell(RunId, u32, Ask),
    /// Read from a spool; answer `Piece`.
    Read(Read),
    /// Output of a try is acknowledged, durably: its runner gives the room back, or the shell if there is no runner any more.
    Trim(RunId, u32, Stream, u64),
    /// The folder of a try is needed no more. (At start neither is one that no loaded row names by run
    /// and attempt.)
    Remove(RunId, u32),
    /// Do an operation that is no run; answer `Performed`.
    Perform(Box<Operation>),
    /// Stop doing it; `Performed` still answers.
    Abandon(OperationId),
    /// An operation stands in another way, durably; for timeline and notices.
    Step(Step),
    /// A line of the log.
    Told(Told),
    /// [`super::Worker::snapshot`] says something new.
    Changed,
    /// The machine may sleep now; what was told to runners before this is said first.
    AllowSleep,
    /// The connection is closed and nothing is being done; the worker rests until `Start`.
    Stopped,
}

/// A step of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Which.
    pub id: OperationId,
    /// Its kind.
    pub kind: Kind,
    /// How it stands now.
    pub state: State,
    /// Why it failed.
    pub code: Option<Code>,
}

/// The worker at one moment; times are boot time.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The state of the connection people see.
    pub state: LinkState,
    /// Since when.
    pub since: Duration,
    /// Tries since the worker was last live.
    pub attempts: u32,
    /// Why it is not healthy.
    pub cause: Option<Cow<'static, str>>,
    /// When the next try begins.
    pub next_try_at: Option<Duration>,
    /// Whether the lease is renewed now.
    pub live: bool,
    /// When the lease ends, unless it is renewed; `None` while there is none.
    pub lease_ends_at: Option<Duration>,
    /// Whether an announced sleep holds the lease.
    pub lease_held: bool,
    /// The lease's generation.
    pub generation: u64,
    /// Living operations by state, in the order of life; only states that occur.
    pub counts: Vec<(State, usize)>,
    /// Runs whose program waits for room.
    pub stalled: usize,
    /// Output that is not acknowledged, in bytes.
    pub behind: u64,
    /// Ends that are not acknowledged.
    pub results_waiting: usize,
    /// Since when nothing is admitted because the disk is full.
    pub full_since: Option<Duration>,
    /// Living operations in the order of admission, at most [`crate::limits::OPERATIONS_HELD_MAX`].
    pub living: Vec<Shown>,
    /// Acknowledged ones of this process life, the latest first, at most [`crate::limits::WORKER_ENDED_SHOWN`].
    pub ended: Vec<Shown>,
}

/// An operation for people.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// Which.
    pub id: OperationId,
    /// Its kind.
    pub kind: Kind,
    /// What it does, in a few words; cleaned and redacted.
    pub summary: String,
    /// The session it belongs to.
    pub session: Option<String>,
    /// How it stands.
    pub state: State,
    /// Since when it stands so.
    pub since: Duration,
    /// Its exit code, if it ended with one.
    pub exit_code: Option<i32>,
    /// Output that is not acknowledged, in bytes.
    pub behind: u64,
    /// Since when its program waits for room.
    pub stalled: Option<UnixMs>,
    /// What happens when the lease expires.
    pub on_lease_expiry: OnLeaseExpiry,
    /// Why it failed or why nobody knows, in one sentence.
    pub note: Option<String>,
}
