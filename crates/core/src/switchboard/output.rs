//! What a switchboard wants done.

use std::sync::Arc;
use std::time::Duration;

use super::catalogue::Catalogue;
use super::input::{IdempotencyKey, Outcome, SocketId, WaiterId};
use crate::code::Code;
use crate::id::{AccountId, CallId, InstanceId, KeptId};
use crate::wire::close::Close;

/// Something to do, in this order.
pub enum Output {
    /// Write a text frame.
    Transmit {
        /// Where.
        socket: SocketId,
        /// The encoded frame, numbered if `seq` was agreed.
        text: String,
    },
    /// Write a WebSocket ping with this payload (8 bytes, big endian).
    Ping {
        /// Where.
        socket: SocketId,
        /// Comes back in [`super::Input::Ponged`].
        nonce: u64,
    },
    /// Write what was transmitted before, then close. To the switchboard the socket is gone already.
    Close {
        /// Which.
        socket: SocketId,
        /// Code and reason.
        close: Close,
    },
    /// The call an `Open` became or joined. Always the first word to a waiter.
    Admitted {
        /// Who asked.
        waiter: WaiterId,
        /// The call; also of a request refused right after.
        call: CallId,
    },
    /// Progress of a call, to a waiter that wants it.
    Progress {
        /// Who waits.
        waiter: WaiterId,
        /// Grows.
        progress: f64,
        /// The end of `progress`, if known.
        total: Option<f64>,
        /// A line for people.
        message: Option<String>,
    },
    /// The call was promoted. The last word to a waiter that [outlives](super::OpenCall::outlives).
    Kept {
        /// Who waited.
        waiter: WaiterId,
        /// What reads the call from now on; committed.
        handle: KeptId,
    },
    /// The end of the call. Always the last word to any other waiter that has not left.
    End {
        /// Who waits.
        waiter: WaiterId,
        /// How it ended.
        outcome: Outcome,
    },
    /// Change the records of calls; answered by [`super::Input::Stored`] unless it says otherwise.
    Store(StoreRequest),
    /// The device's tools or policy, as its newest hello says. To be kept over restarts.
    Catalogue(Arc<Catalogue>),
    /// For the timeline and the counters.
    Note(Note),
    /// After `Stop`: every call has ended and every socket is closed.
    Stopped,
}

/// A change of the records of calls.
pub enum StoreRequest {
    /// Look the key up and, if it is new, make its record.
    Reserve {
        /// The call that would own the record.
        call: CallId,
        /// Its key.
        key: IdempotencyKey,
        /// What else the record says.
        record: NewRecord,
    },
    /// The call is promoted: make its record, or add the handle to the one it has.
    Keep {
        /// The call.
        call: CallId,
        /// What its client reads it by.
        handle: KeptId,
        /// The grant it was made with.
        grant: Arc<str>,
        /// What else a new record says.
        record: NewRecord,
    },
    /// From now on this call may have been sent to this instance.
    Assign {
        /// The call.
        call: CallId,
        /// The instance.
        instance: InstanceId,
    },
    /// The call ended.
    Finish {
        /// The call.
        call: CallId,
        /// How, in the form that is kept: without a handle at most [`crate::limits::KEPT_RESULT_MAX`] bytes.
        outcome: Outcome,
        /// Nothing was done: the key may be tried again.
        frees_key: bool,
    },
    /// The record goes: nothing was done, or nobody was told its handle. Not answered.
    Forget {
        /// The call.
        call: CallId,
    },
    /// The device sleeps, and this call is kept that long from now. Not answered.
    Hold {
        /// The call.
        call: CallId,
        /// How long; `None` ends the hold.
        hold: Option<Duration>,
    },
}

/// What a record says of a call from the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// Whose records are counted.
    pub account: AccountId,
    /// Account and client: whose call it is.
    pub principal: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// The instance it was, or will probably be, sent to.
    pub instance: Option<InstanceId>,
    /// Its execution budget.
    pub budget: Duration,
    /// A control tool.
    pub control: bool,
}

/// The kinds of end a call can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndKind {
    /// A result.
    Done,
    /// The tool failed, by the daemon's word.
    Failed,
    /// Somebody stopped it.
    Cancelled,
    /// Never sent.
    Expired,
    /// Sent, and no word will come.
    Unknown,
}

/// Why a socket of the device was lost or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The peer closed it or the transport failed.
    Peer,
    /// The daemon said that it stops.
    Shutdown,
    /// No life.
    Silence,
    /// A frame is missing.
    Gap,
    /// A rule of the protocol was broken.
    Protocol,
    /// A deadline of the handshake passed.
    Late,
    /// A newer socket took its place.
    Replaced,
    /// Another instance holds the device.
    InUse,
    /// The relay stops, or the device was revoked.
    Ours,
}

/// One entry for the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A call was admitted and waits.
    Queued {
        /// The call.
        call: CallId,
    },
    /// A call was sent.
    Sent {
        /// The call.
        call: CallId,
    },
    /// The link is down under a call.
    Detached {
        /// The call.
        call: CallId,
    },
    /// A detached call is bound to a proven socket again.
    Rebound {
        /// The call.
        call: CallId,
    },
    /// A call ended.
    Ended {
        /// The call.
        call: CallId,
        /// How.
        kind: EndKind,
        /// The error's code.
        code: Option<Code>,
        /// From opening to end.
        took: Duration,
    },
    /// A result came and nobody waited for it.
    Unmatched,
    /// A result was handed over and the last waiter left without taking it.
    Undelivered {
        /// The call.
        call: CallId,
    },
    /// The device is ready on this socket.
    Ready {
        /// Which.
        socket: SocketId,
        /// Calls bound again.
        rebound: usize,
    },
    /// A socket is gone.
    Lost {
        /// Which.
        socket: SocketId,
        /// It had been ready.
        ready: bool,
        /// Why.
        why: Loss,
    },
    /// Another instance was refused; the owner is told (`device_in_use`).
    InUse,
    /// The device announced its sleep.
    Suspending,
    /// The grace or hold ran out.
    GraceOver,
}

impl StoreRequest {
    /// The call it is about.
    pub fn call(&self) -> &CallId {
        match self {
            StoreRequest::Reserve { call, .. }
            | StoreRequest::Keep { call, .. }
            | StoreRequest::Assign { call, .. }
            | StoreRequest::Finish { call, .. }
            | StoreRequest::Forget { call }
            | StoreRequest::Hold { call, .. } => call,
        }
    }

    /// Whether [`super::Input::Stored`] answers it.
    pub fn is_answered(&self) -> bool {
        !matches!(self, StoreRequest::Forget { .. } | StoreRequest::Hold { .. })
    }
}
