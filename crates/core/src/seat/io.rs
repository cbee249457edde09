//! What goes into the machine, and what comes out.

use std::time::Duration;

use super::peer::Taker;
use crate::code::Code;
use crate::status::SeatState;

/// One connection to the chat service, or one attempt at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// Another process that is connected to this one and asks for the seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

/// How the seat is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// Only if nobody holds it now.
    IfVacant,
    /// As soon as nobody holds it.
    Wait,
    /// From its holder, if there is one. Somebody said so.
    Take {
        /// A holder that lives and does not answer is ended without a question.
        force: bool,
    },
}

/// What came of trying the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockTry {
    /// It is ours. The generation is that of the last holder, 0 if there never was one.
    Ours {
        /// See above.
        last: u64,
    },
    /// The last holder let go for another process, which still has time to come.
    Reserved,
    /// Another process has it.
    Held,
    /// The folder or a file in it cannot be used.
    Broken(Unusable),
}

/// Why what a seat keeps on disk cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// For programs.
    pub code: Code,
    /// In plain words.
    pub reason: String,
    /// Trying again is of no use: a person has to mend it. Otherwise it may pass, as a full disk does.
    pub for_good: bool,
}

impl Unusable {
    /// It may pass by itself.
    pub fn for_now(code: Code, reason: impl Into<String>) -> Unusable {
        Unusable { code, reason: reason.into(), for_good: false }
    }

    /// A person has to mend it.
    pub fn for_good(code: Code, reason: impl Into<String>) -> Unusable {
        Unusable { code, reason: reason.into(), for_good: true }
    }
}

/// What a holder saw when it looked at its own seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The lock file is the one that is locked.
    Intact {
        /// The generation on disk.
        generation: u64,
        /// The connection that [`Output::Look`] was to confirm.
        connected: Option<ConnId>,
    },
    /// The lock file is another one now, or gone.
    Replaced,
    /// The disk does not answer. The lock is what counts, and it goes only with its process.
    Unknown {
        /// The connection that is not confirmed yet.
        connected: Option<ConnId>,
    },
}

/// What the holder answered to a take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// It holds the seat, and does nothing before our word that we still want it.
    Ready,
    /// It finishes what is under way and then lets go, for us.
    Draining,
    /// It let go.
    Released,
    /// It lets go for somebody else.
    Busy,
    /// Nobody listens, it does not hold the seat, or the connection ended.
    Gone,
}

/// Why the chat service cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// Trying again is of no use: bad token, wrong bot.
    ForGood(String),
    /// It may work later; the service may say when at the earliest.
    ForNow {
        /// In plain words.
        reason: String,
        /// What the service asked for.
        after: Option<Duration>,
    },
    /// Somebody outside this seat uses the bot.
    UsedElsewhere(String),
}

/// Everything that happens to a seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A person, or the configuration, wants it.
    Want(Want),
    /// A person does not want it any more.
    Release,
    /// Answers [`Output::TryLock`].
    Lock(LockTry),
    /// Answers [`Output::Stamp`]: the generation that is on disk now.
    Stamped(Result<u64, Unusable>),
    /// Answers [`Output::Look`].
    Looked(Look),
    /// Answers [`Output::Open`].
    Opened(ConnId, Result<(), Unusable>),
    /// Answers [`Output::Connect`]: the bot can speak.
    Connected(ConnId),
    /// A connection or an attempt ended by itself.
    Lost(ConnId, Failed),
    /// Answers [`Output::Leave`]: everything under way is finished and the connection closed.
    Left(ConnId),
    /// Follows [`Output::Ask`], possibly several times.
    Heard(Heard),
    /// Answers [`Output::Kill`].
    Killed(Result<(), String>),
    /// Another process asks for the seat.
    TakeAsked(PeerId, Taker),
}

/// What the shell does. Files are written before the next output is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Try the lock, without waiting; answered at once.
    TryLock,
    /// Put this generation on disk, listen for other processes, and advertise; answered at once.
    Stamp(u64),
    /// Look whether the lock is still ours, before a new connection counts and now and then; answered at once.
    Look(Option<ConnId>),
    /// Open what the seat keeps, for the holder of this generation and before anybody is connected to: without it, nothing could
    /// be said or heard.
    Open(ConnId, u64),
    /// Connect to the chat service.
    Connect(ConnId),
    /// The connection counts: it may speak with this generation.
    Serve(ConnId, u64),
    /// Stop listening to people, finish what is under way, close the connection.
    Leave(ConnId),
    /// Close the connection, whatever is under way.
    Cut(ConnId),
    /// Let go of the lock, and keep the seat for this process for [`crate::limits::SEAT_RESERVED`].
    Unlock(Option<Taker>),
    /// Let go of what once was the lock and write nothing: the seat is somebody else's.
    Abandon,
    /// Ask the holder for the seat.
    Ask,
    /// Tell the holder that the seat is still wanted: from here on it lets go whenever it can, and no take is withdrawn.
    Confirm,
    /// Stop asking.
    HangUp,
    /// End the holder's process.
    Kill,
    /// Answer another process.
    Answer(PeerId, super::peer::Answer),
    /// For the log and for people.
    Told(Told),
    /// [`super::Seat::snapshot`] differs.
    Changed,
}

/// What is told exactly once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// This process speaks for the bot. Once for each generation.
    Acquired {
        /// Which.
        generation: u64,
    },
    /// Another process has the seat that this one held.
    Superseded {
        /// The generation that ended.
        generation: u64,
    },
    /// This process gave up.
    Failed {
        /// In plain words.
        reason: String,
    },
}

/// The seat as this process sees it, without what only the shell knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeatView {
    /// What this process does.
    pub state: SeatState,
    /// Boot time since when.
    pub since: Duration,
    /// The generation this process holds.
    pub generation: Option<u64>,
    /// Why it is off, failed or waits.
    pub reason: Option<String>,
    /// The same for programs, where what is kept on disk is the reason.
    pub code: Option<Code>,
    /// Boot time of the next try to connect, or to use the disk.
    pub next_try: Option<Duration>,
    /// The holder lives and does not answer; a person is asked.
    pub frozen: bool,
    /// The seat is claimed as soon as nobody holds it.
    pub waits: bool,
    /// Somebody outside this seat used the bot lately.
    pub used_elsewhere: bool,
}
