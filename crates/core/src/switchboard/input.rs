//! What a switchboard is told.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::intake::Arrival;
use crate::code::ToolError;
use crate::id::{CallId, InstanceId, KeptId};
use crate::wire::Authorization;

/// One accepted socket. The shell never uses a number twice, so a late frame of an old socket names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u64);

/// One request that waits for a call. The shell never uses a number twice. Several may wait for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId(pub u64);

/// How a call ended: the tool's result, byte-identical, or an error.
pub type Outcome = Result<Box<RawValue>, ToolError>;

/// A request to run a tool on the device.
#[derive(Clone)]
pub struct OpenCall {
    /// The tool, at most [`crate::limits::TOOL_NAME_MAX`] bytes.
    pub tool: Arc<str>,
    /// A JSON object, passed on untouched.
    pub arguments: Box<RawValue>,
    /// Execution budget; brought within `CALL_TIMEOUT_MIN..=CALL_TIMEOUT_MAX`.
    pub budget: Duration,
    /// Who asks, for the daemon.
    pub authorization: Authorization,
    /// Account and client, opaque: the scope of idempotency keys.
    pub principal: Arc<str>,
    /// Makes retries of this request one call.
    pub key: Option<IdempotencyKey>,
    /// Somebody listens to progress.
    pub wants_progress: bool,
    /// A control tool: may use the reserved places.
    pub control: bool,
    /// When its request takes a handle and leaves the call to the store; `None`: it waits for the end.
    pub outlives: Option<Outlives>,
}

/// When a request stops waiting for its call and takes a handle instead: the call is *promoted*, and from then on a record
/// in the store waits for its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlives {
    /// After this long.
    pub after: Duration,
    /// At once when the device is away.
    pub when_away: bool,
    /// The grant that asks, opaque: the record's, so that revoking the grant finds the call.
    pub grant: Arc<str>,
}

/// A client's idempotency key and what it was first used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// At most [`crate::limits::IDEMPOTENCY_KEY_MAX`] characters.
    pub key: String,
    /// SHA-256 of the canonical arguments.
    pub digest: [u8; 32],
}

/// Something happened.
#[expect(clippy::large_enum_variant, reason = "frames are the rule, and a box for each would cost more than the copy")]
pub enum Input {
    /// A socket whose credential is this device's was accepted.
    Connected {
        /// A new number.
        socket: SocketId,
    },
    /// A frame was read and decoded by the socket's [`super::Intake`].
    Arrived {
        /// Where.
        socket: SocketId,
        /// What.
        arrival: Arrival,
    },
    /// A WebSocket pong came.
    Ponged {
        /// Where.
        socket: SocketId,
        /// The ping's.
        nonce: u64,
    },
    /// Bytes were received below the WebSocket layer. Told at least before every `handle_timeout`.
    Heard {
        /// Where.
        socket: SocketId,
        /// When the last byte came (boot time).
        at: Duration,
        /// A frame has begun and is not complete: no deadline of this socket's calls runs out meanwhile.
        mid_frame: bool,
    },
    /// The socket is gone; no frame of it will follow.
    Closed {
        /// Which.
        socket: SocketId,
        /// The peer's close code and reason, if it sent one.
        word: Option<(u16, String)>,
    },
    /// A request came in. Answered by [`super::Output::Admitted`], later by exactly one [`super::Output::End`].
    Open {
        /// A new number.
        waiter: WaiterId,
        /// What to run.
        call: Box<OpenCall>,
    },
    /// A request waits for a promoted call. Answered as `Open` is.
    Attend {
        /// A new number.
        waiter: WaiterId,
        /// A call that the switchboard [holds](super::Switchboard::holds).
        call: CallId,
    },
    /// A waiter does not wait any more. The call is cancelled when the last one left, unless it was promoted.
    Leave {
        /// Which.
        waiter: WaiterId,
        /// Its call.
        call: CallId,
    },
    /// A waiter cancels the call, for everybody.
    Cancel {
        /// Its call.
        call: CallId,
    },
    /// A waiter's end stands where the client can fetch it, or was handed to the open response.
    Commit {
        /// Its call.
        call: CallId,
    },
    /// The store's answer to [`super::Output::Store`].
    Stored {
        /// The call it was about.
        call: CallId,
        /// The answer.
        answer: StoreAnswer,
    },
    /// Calls with a record that had not ended when the relay went down. Told once, before the first socket.
    Restore {
        /// In order of opening.
        calls: Vec<RestoredCall>,
    },
    /// The relay stops.
    Stop,
    /// The device's credential was revoked: calls end, sockets close.
    Revoke,
}

/// What the store says.
pub enum StoreAnswer {
    /// `Reserve`: the key is new and its record committed. `Assign`, `Finish`: committed.
    Committed,
    /// `Reserve`: the key is known with the same digest, and this was the end.
    Known(Outcome),
    /// `Reserve`: the key is known with the same digest, and nobody knows how it ended.
    Unfinished,
    /// `Reserve`: the key is known with another digest.
    Conflict,
    /// Nothing was committed: the disk is full or broken.
    Refused,
    /// `Reserve`: nothing was committed, because the account has [`crate::limits::IDEMPOTENCY_KEYS_MAX`] records.
    Bound,
    /// `Keep`: the handle is committed.
    Kept,
    /// `Keep`: nothing was committed, because the disk or the account's share of handles is full.
    NotKept,
}

/// A call as the store remembers it after a crash.
#[derive(Debug, Clone)]
pub struct RestoredCall {
    /// Its id on the link.
    pub id: CallId,
    /// Whose it is: account and client.
    pub principal: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// Its idempotency key.
    pub key: Option<IdempotencyKey>,
    /// Its handle, if it was promoted.
    pub handle: Option<KeptId>,
    /// The instance it was (about to be) sent to; `None`: it was never sent.
    pub instance: Option<InstanceId>,
    /// Its execution budget.
    pub budget: Duration,
    /// A control tool.
    pub control: bool,
    /// What is left of an announced sleep's hold, if one was announced.
    pub hold_left: Option<Duration>,
}
