//! What goes in and what comes out.

use std::sync::Arc;
use std::time::Duration;

use super::SocketId;
use super::record::{Change, Found, Record, SessionCancel};
use crate::code::Code;
use crate::id::{OperationId, RunId};
use crate::operation::{Failure, Request, State, Streams};
use crate::policy::Role;
use crate::status::UnixMs;
use crate::wire::close::Close;
use crate::wire::worker::WorkerFrame;

/// One request of a client. The shell never uses a number twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// One commit. The machine never uses a number twice in one life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Why a commit did not happen. Nothing of it stands in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The disk is full.
    Full,
    /// Too many writes wait, or the store is broken or closed.
    Unavailable,
}

impl Refused {
    /// The code a client sees.
    pub const fn code(self) -> Code {
        match self {
            Refused::Full => Code::StorageFull,
            Refused::Unavailable => Code::Unavailable,
        }
    }
}

/// A client wants an operation, or gives input to one.
#[derive(Debug, Clone)]
pub struct Start {
    /// Whose it will be.
    pub principal: Arc<str>,
    /// Makes a repetition of this request the same operation; at most [`crate::limits::OPERATION_KEY_MAX`] characters.
    pub key: Option<Arc<str>>,
    /// The session it belongs to; one principal's, see [`SessionCancel`].
    pub session_id: Option<String>,
    /// Of input: the run it is for. Otherwise `None`; the machine names the run.
    pub run_id: Option<RunId>,
    /// The role of the account that asks.
    pub role: Role,
    /// The client that asks, for the device's owner to read.
    pub client: Option<String>,
    /// What it asks.
    pub request: Request,
    /// How long it may wait to be sent; [`crate::limits::OPERATIONS_QUEUE_TTL`] unless shorter.
    pub ttl: Option<Duration>,
    /// The wall clock, for people.
    pub at: UnixMs,
}

/// Something happened.
pub enum Input {
    /// A client asks for an operation; answered by [`Output::Answer`] when it is committed or refused.
    Start {
        /// Who asks.
        ask: AskId,
        /// What.
        start: Box<Start>,
    },
    /// A client cancels an operation, which the shell knows to exist and to be this client's. Answered when that is
    /// committed; an ended one is left as it is.
    Cancel {
        /// Who asks.
        ask: AskId,
        /// Which.
        id: OperationId,
    },
    /// A client cancels what a session has and will have. Answered when that is committed.
    CancelSession {
        /// Who asks.
        ask: AskId,
        /// Which, under which name.
        cancel: SessionCancel,
    },
    /// A socket whose credential is this device's was accepted.
    Connected {
        /// A new number.
        socket: SocketId,
    },
    /// A frame came.
    Frame {
        /// Where.
        socket: SocketId,
        /// What.
        frame: WorkerFrame,
    },
    /// Something came that is no frame.
    Unreadable {
        /// Where.
        socket: SocketId,
    },
    /// Bytes were received below the WebSocket layer. Told at least before every `handle_timeout`.
    Heard {
        /// Where.
        socket: SocketId,
        /// When the last byte came (boot time).
        at: Duration,
    },
    /// The socket is gone; no frame of it will follow.
    Closed {
        /// Which.
        socket: SocketId,
    },
    /// The store's answer to [`Output::Commit`].
    Committed {
        /// Which.
        ticket: Ticket,
        /// What stood there, or why nothing was written.
        result: Result<Found, Refused>,
    },
    /// Everything that has not ended is cancelled, what is being admitted too.
    CancelAll,
    /// The device's credential was revoked: its worker will not come back. Sockets close; operations that were not sent are
    /// cancelled, the others become unknown; nothing is admitted any more.
    Revoke,
}

/// What a client's request came to, when it is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// Of `Start`: the new operation, or the one its key stands for, living or ended. Of `Cancel`: the one it named.
    Operation(OperationId),
    /// The session is cancelled.
    Session,
}

/// Something to do, in this order.
#[derive(Debug, PartialEq)]
pub enum Output {
    /// Commit these changes as one; answered by [`Input::Committed`].
    Commit {
        /// Names it.
        ticket: Ticket,
        /// At most an operation's bytes in flight ([`crate::limits::WORKER_WINDOW`]) and a few facts.
        changes: Vec<Change>,
    },
    /// Answer a client. The codes of a refusal: `invalid_request`, `conflict`, `cancelled` (its session is), `limit_exceeded`,
    /// `busy` (input for a run that lets enough wait), `storage_full`, `unavailable`, `not_found` (input for a run that is
    /// over), `outcome_unknown` (of a cancel that is under way and not stored).
    Answer {
        /// Who asked.
        ask: AskId,
        /// What to say.
        answer: Result<Accepted, Failure>,
    },
    /// What [`super::Control::view`] says of this operation, or of one that has just ended what the store says, has changed.
    /// Wakes whoever reads or watches it.
    Changed {
        /// Which.
        id: OperationId,
    },
    /// Write a WebSocket ping: this side has written nothing for [`crate::limits::WORKER_ALIVE`].
    Ping {
        /// Where.
        socket: SocketId,
    },
    /// Write what was given before, then close. To the machine the socket is gone already.
    Close {
        /// Which.
        socket: SocketId,
        /// Code and reason.
        close: Close,
    },
    /// For the log, the timeline and counters.
    Note(Note),
}

/// Why a worker's socket was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The peer closed it or the transport failed.
    Peer,
    /// Not one byte for [`crate::limits::WORKER_SILENCE`].
    Silence,
    /// A rule of the protocol was broken.
    Protocol,
    /// A step of the handshake brought nothing for [`crate::limits::WORKER_HANDSHAKE`].
    Late,
    /// A newer socket took its place.
    Replaced,
    /// The device was revoked.
    Revoked,
}

/// Something worth a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The worker is recovered and live.
    Live {
        /// Where.
        socket: SocketId,
    },
    /// The worker's socket is lost.
    Away {
        /// Which.
        socket: SocketId,
        /// Why.
        why: Loss,
    },
    /// A worker with another ledger was refused while this one is connected.
    InUse,
    /// The worker came with another ledger than operations were sent to: these became unknown.
    LedgerReplaced {
        /// How many.
        unknown: usize,
    },
    /// An operation stands in the store.
    Admitted {
        /// Which.
        id: OperationId,
    },
    /// An operation that the store had lost was taken back from the worker.
    Adopted {
        /// Which.
        id: OperationId,
    },
    /// An operation was handed to the socket, for the first time or again.
    Sent {
        /// Which.
        id: OperationId,
    },
    /// The end of an operation is committed.
    Ended {
        /// Which.
        id: OperationId,
        /// How.
        state: State,
    },
}

/// A living operation as readers see it: what is committed, and the latest word of the worker.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// Committed, but `state` is the worker's latest word and `cancelled` may be about to be committed. Cheap to clone.
    pub record: Record,
    /// The latest word on how much output there is, in bytes per stream.
    pub written: Streams,
    /// Since when its program waits for room in the worker's spool.
    pub output_stalled: Option<UnixMs>,
    /// It is over by the worker's word, and the rest of its output is on its way.
    pub ending: bool,
}

/// The machine as a whole, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// The worker is connected and recovered.
    pub live: bool,
    /// Operations that have not ended; at most [`crate::limits::OPERATIONS_HELD_MAX`].
    pub held: usize,
    /// Of them never sent.
    pub queued: usize,
    /// Output that the worker is known to have written and that is not committed here, in bytes.
    pub behind: u64,
}
