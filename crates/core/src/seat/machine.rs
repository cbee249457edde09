//! Decides when to lock, connect, finish and let go.

use std::collections::VecDeque;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use super::claim::{Claim, Step};
use super::io::{ConnId, Failed, Input, LockTry, Look, Output, PeerId, SeatView, Told, Unusable, Want};
use super::peer::{Answer, Taker};
use crate::code::Code;
use crate::limits;
use crate::status::SeatState;
use crate::time::{Due, Now, TimerTable};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Try the lock again.
    Lock,
    /// The holder's time is over.
    Answer,
    /// Try to connect again.
    Connect,
    /// Look whether the seat is still ours.
    Look,
    /// The same for a new connection, once more.
    Confirm,
    /// What is under way had its time.
    Leave,
    /// The connection has stood for long enough to forget what was before.
    Settled,
}

#[derive(Debug)]
pub(super) enum State {
    Off,
    Claiming(Claim),
    Connecting(Holding, Attempt),
    Serving(Holding, ConnId),
    Draining(Holding, Leaving),
    Standby {
        /// For the seat to be free.
        waits: bool,
        /// A take was withdrawn because the holder did not answer. The question stays open: its answer tells that it is awake.
        frozen: bool,
    },
    Failed,
}

/// The lock is ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holding {
    generation: u64,
    /// Whether people know that this generation speaks.
    told: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// Waits for its turn.
    Later,
    /// What the seat keeps is being opened.
    Opening(ConnId),
    /// Under way.
    Trying(ConnId),
}

#[derive(Debug)]
pub(super) struct Leaving {
    conn: ConnId,
    /// For whom the seat is let go.
    taker: Option<(PeerId, Taker)>,
    /// It goes to the taker because the taker asked, not because a person here let go before.
    superseded: bool,
    /// What is wanted afterwards.
    then: Option<Want>,
}

/// See the module. `handle`, drain `poll_output`, wait for `poll_timeout`.
#[derive(Debug)]
pub struct Seat {
    pub(super) state: State,
    pub(super) timers: TimerTable<Timer>,
    pub(super) out: VecDeque<Output>,
    pub(super) reason: Option<String>,
    /// Goes with the reason.
    pub(super) code: Option<Code>,
    rng: SmallRng,
    minted: u64,
    since: Duration,
    used_elsewhere: bool,
    /// Exponent of the back-off.
    pub(super) tries: u32,
}

impl Seat {
    /// A seat nobody wants yet. The seed is for jitter only.
    pub fn new(now: Now, seed: u64) -> Seat {
        Seat {
            state: State::Off,
            timers: TimerTable::default(),
            out: VecDeque::new(),
            reason: None,
            code: None,
            rng: SmallRng::seed_from_u64(seed),
            minted: 0,
            since: now.boot,
            used_elsewhere: false,
            tries: 0,
        }
    }

    /// Something happened.
    pub fn handle(&mut self, now: Now, input: Input) {
        match input {
            Input::Want(want) => self.want(now, want),
            Input::Release => self.release(now),
            Input::Lock(LockTry::Ours { last }) => self.locked(now, last),
            Input::Lock(LockTry::Broken(why)) => self.broken(now, why),
            Input::Lock(LockTry::Reserved) => self.not_locked(now, true),
            Input::Lock(LockTry::Held) => self.not_locked(now, false),
            Input::Stamped(Ok(generation)) => self.stamped(now, generation),
            Input::Stamped(Err(why)) => {
                self.out.push_back(Output::Abandon);
                self.broken(now, why);
            }
            Input::Looked(look) => self.looked(now, look),
            Input::Opened(conn, opened) => self.opened(now, conn, opened),
            Input::Connected(conn) => {
                // Confirmed before it counts: the seat may have gone meanwhile.
                if matches!(self.state, State::Connecting(_, Attempt::Trying(c)) if c == conn) {
                    self.out.push_back(Output::Look(Some(conn)));
                }
            }
            Input::Lost(conn, why) => self.lost(now, conn, why),
            Input::Left(conn) => self.left(now, conn),
            Input::Heard(heard) => self.heard(now, heard),
            Input::Killed(result) => self.killed(now, result),
            Input::TakeAsked(peer, taker) => self.take_asked(now, peer, taker),
        }
    }

    /// Time passed.
    pub fn handle_timeout(&mut self, now: Now) {
        while let Some(timer) = self.timers.expired(now) {
            match timer {
                Timer::Lock => self.out.push_back(Output::TryLock),
                Timer::Answer => self.unanswered(),
                Timer::Connect => self.connect(now),
                Timer::Look => {
                    self.timers.set(Timer::Look, Due::boot(now, limits::SEAT_LOOK));
                    self.out.push_back(Output::Look(None));
                }
                Timer::Confirm => {
                    if let State::Connecting(_, Attempt::Trying(conn)) = self.state {
                        self.out.push_back(Output::Look(Some(conn)));
                    }
                }
                Timer::Leave => {
                    if let State::Draining(_, Leaving { conn, .. }) = self.state {
                        self.out.push_back(Output::Cut(conn));
                        self.left(now, conn);
                    }
                }
                Timer::Settled => {
                    self.tries = 0;
                    self.used_elsewhere = false;
                    self.out.push_back(Output::Changed);
                }
            }
        }
    }

    /// What to do next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Time until [`Seat::handle_timeout`] has something to do.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.timers.earliest(now)
    }

    /// What this process does about the seat.
    pub fn state(&self) -> SeatState {
        match self.state {
            State::Off => SeatState::Off,
            State::Claiming(_) => SeatState::Claiming,
            State::Connecting(..) => SeatState::Connecting,
            State::Serving(..) => SeatState::Serving,
            State::Draining(..) => SeatState::Draining,
            State::Standby { .. } => SeatState::Standby,
            State::Failed => SeatState::Failed,
        }
    }

    /// Everything about it.
    pub fn snapshot(&self, now: Now) -> SeatView {
        let claims = matches!(self.state, State::Claiming(_) | State::Standby { .. });
        let waits_for = if claims && self.code.is_some() { Timer::Lock } else { Timer::Connect };
        SeatView {
            state: self.state(),
            since: self.since,
            generation: self.holding().map(|h| h.generation),
            reason: self.reason.clone(),
            code: self.code,
            next_try: self.timers.get(&waits_for).map(|due| now.boot + due.left(now)),
            frozen: matches!(
                self.state,
                State::Claiming(Claim { step: Step::Frozen, .. }) | State::Standby { frozen: true, .. }
            ),
            waits: matches!(
                self.state,
                State::Claiming(Claim { want: Want::Wait, .. }) | State::Standby { waits: true, .. }
            ),
            used_elsewhere: self.used_elsewhere,
        }
    }

    fn holding(&self) -> Option<Holding> {
        match self.state {
            State::Connecting(h, _) | State::Serving(h, _) | State::Draining(h, _) => Some(h),
            _ => None,
        }
    }

    /// The only place where the state changes. Timers belong to the state that set them.
    pub(super) fn transition(&mut self, now: Now, next: State, reason: Option<String>) {
        let before = self.state();
        self.state = next;
        (self.reason, self.code) = (reason, None);
        self.timers = TimerTable::default();
        if self.state() != before {
            self.since = now.boot;
        }
        if self.holding().is_some() {
            self.timers.set(Timer::Look, Due::boot(now, limits::SEAT_LOOK));
        }
        self.out.push_back(Output::Changed);
    }

    pub(super) fn fail(&mut self, now: Now, reason: String, code: Option<Code>) {
        self.transition(now, State::Failed, Some(reason.clone()));
        self.code = code;
        self.out.push_back(Output::Told(Told::Failed { reason }));
    }

    fn want(&mut self, now: Now, want: Want) {
        match &mut self.state {
            State::Standby { frozen: true, .. } if want == (Want::Take { force: true }) => self.end_frozen(now),
            State::Off | State::Failed | State::Standby { .. } => self.claim(now, want),
            State::Claiming(_) => self.want_more(now, want),
            State::Connecting(_, Attempt::Later) => self.connect(now),
            State::Connecting(..) | State::Serving(..) => {}
            State::Draining(_, leaving) => leaving.then = Some(want),
        }
    }

    fn release(&mut self, now: Now) {
        match &mut self.state {
            State::Off => {}
            State::Failed => self.transition(now, State::Off, None),
            State::Claiming(_) | State::Standby { .. } => {
                self.out.push_back(Output::HangUp);
                self.transition(now, State::Off, None);
            }
            State::Connecting(..) | State::Serving(..) => self.leave(now, None),
            State::Draining(_, leaving) => leaving.then = None,
        }
    }

    /// The generation is on disk: the seat is ours, and only now the chat service is spoken to.
    fn stamped(&mut self, now: Now, generation: u64) {
        self.tries = 0;
        self.out.push_back(Output::HangUp);
        self.transition(now, State::Connecting(Holding { generation, told: false }, Attempt::Later), None);
        self.connect(now);
    }

    fn connect(&mut self, now: Now) {
        let State::Connecting(holding, Attempt::Later) = self.state else { return };
        self.minted += 1;
        let conn = ConnId(self.minted);
        self.attempt(now, holding, Attempt::Opening(conn));
        self.out.push_back(Output::Open(conn, holding.generation));
    }

    /// Another step towards a connection; why there is none yet is still true.
    fn attempt(&mut self, now: Now, holding: Holding, attempt: Attempt) {
        let (why, code) = (self.reason.take(), self.code);
        self.transition(now, State::Connecting(holding, attempt), why);
        self.code = code;
    }

    fn opened(&mut self, now: Now, conn: ConnId, opened: Result<(), Unusable>) {
        match self.state {
            State::Connecting(holding, Attempt::Opening(c)) if c == conn => match opened {
                Ok(()) => {
                    self.answered();
                    self.attempt(now, holding, Attempt::Trying(conn));
                    self.out.push_back(Output::Connect(conn));
                }
                Err(why) if why.for_good => {
                    self.out.push_back(Output::Unlock(None));
                    self.fail(now, why.reason, Some(why.code));
                }
                Err(why) => {
                    let wait = self.back_off();
                    self.transition(now, State::Connecting(holding, Attempt::Later), Some(why.reason));
                    self.code = Some(why.code);
                    self.timers.set(Timer::Connect, Due::boot(now, wait));
                }
            },
            // There is nothing to finish.
            State::Draining(..) if opened.is_err() => self.left(now, conn),
            _ => {}
        }
    }

    fn looked(&mut self, now: Now, look: Look) {
        let Some(holding) = self.holding() else { return };
        match look {
            Look::Intact { generation, connected } if generation <= holding.generation => {
                if let (State::Connecting(h, Attempt::Trying(conn)), Some(connected)) = (&self.state, connected)
                    && *conn == connected
                {
                    let serving = Holding { told: true, ..*h };
                    let first = !h.told;
                    self.transition(now, State::Serving(serving, connected), None);
                    self.timers.set(Timer::Settled, Due::boot(now, limits::SEAT_SETTLED));
                    self.out.push_back(Output::Serve(connected, serving.generation));
                    if first {
                        self.out.push_back(Output::Told(Told::Acquired { generation: serving.generation }));
                    }
                }
            }
            Look::Unknown { connected: Some(_) } => self.timers.set(Timer::Confirm, Due::boot(now, limits::SEAT_LOOK)),
            Look::Unknown { connected: None } => {}
            Look::Intact { .. } | Look::Replaced => {
                if let Some(conn) = self.conn() {
                    self.out.push_back(Output::Cut(conn));
                }
                self.out.push_back(Output::Abandon);
                let peer = match &self.state {
                    State::Draining(_, Leaving { taker: Some((peer, _)), .. }) => Some(*peer),
                    _ => None,
                };
                if let Some(peer) = peer {
                    self.out.push_back(Output::Answer(peer, Answer::NotHolder {}));
                }
                self.transition(now, State::Off, Some("the seat is another process's now".into()));
                self.out.push_back(Output::Told(Told::Superseded { generation: holding.generation }));
            }
        }
    }

    fn conn(&self) -> Option<ConnId> {
        match &self.state {
            State::Connecting(_, Attempt::Opening(conn) | Attempt::Trying(conn)) | State::Serving(_, conn) => {
                Some(*conn)
            }
            State::Draining(_, leaving) => Some(leaving.conn),
            _ => None,
        }
    }

    fn lost(&mut self, now: Now, conn: ConnId, why: Failed) {
        if self.conn() != Some(conn) {
            return;
        }
        let Some(holding) = self.holding() else { return };
        if matches!(self.state, State::Draining(..)) {
            return self.left(now, conn);
        }
        let (reason, after) = match why {
            Failed::ForGood(reason) => {
                self.out.push_back(Output::Unlock(None));
                return self.fail(now, reason, None);
            }
            Failed::ForNow { reason, after } => (reason, after.unwrap_or_default()),
            Failed::UsedElsewhere(reason) => {
                self.used_elsewhere = true;
                (reason, Duration::ZERO)
            }
        };
        let wait = self.back_off().max(after.min(limits::CHANNEL_AFTER_MAX));
        self.transition(now, State::Connecting(holding, Attempt::Later), Some(reason));
        self.timers.set(Timer::Connect, Due::boot(now, wait));
    }

    pub(super) fn back_off(&mut self) -> Duration {
        let base = limits::SEAT_BACKOFF_MIN.saturating_mul(1 << self.tries.min(8));
        self.tries = self.tries.saturating_add(1);
        (base + base.mul_f64(self.rng.random::<f64>())).min(limits::SEAT_BACKOFF_MAX)
    }

    fn take_asked(&mut self, now: Now, peer: PeerId, taker: Taker) {
        match &mut self.state {
            State::Connecting(..) | State::Serving(..) => {
                self.out.push_back(Output::Answer(peer, Answer::Draining {}));
                self.leave(now, Some((peer, taker)));
            }
            State::Draining(_, leaving) => {
                let answer = if leaving.taker.is_none() { Answer::Draining {} } else { Answer::Busy {} };
                leaving.taker.get_or_insert((peer, taker));
                self.out.push_back(Output::Answer(peer, answer));
            }
            _ => self.out.push_back(Output::Answer(peer, Answer::NotHolder {})),
        }
    }

    /// Finishes what is under way, if there is a connection, and then lets go.
    fn leave(&mut self, now: Now, taker: Option<(PeerId, Taker)>) {
        let Some(holding) = self.holding() else { return };
        let superseded = taker.is_some();
        match self.conn() {
            Some(conn) => {
                let leaving = Leaving { conn, taker, superseded, then: None };
                self.transition(now, State::Draining(holding, leaving), None);
                self.timers.set(Timer::Leave, Due::awake(now, limits::SEAT_DRAIN));
                self.out.push_back(Output::Leave(conn));
            }
            None => self.let_go(now, holding, taker, superseded),
        }
    }

    fn left(&mut self, now: Now, conn: ConnId) {
        let State::Draining(holding, leaving) = &mut self.state else { return };
        if leaving.conn != conn {
            return;
        }
        let (holding, taker, superseded, then) = (*holding, leaving.taker.take(), leaving.superseded, leaving.then);
        self.let_go(now, holding, taker, superseded);
        if let Some(want) = then {
            self.claim(now, want);
        }
    }

    /// The lock goes last.
    fn let_go(&mut self, now: Now, holding: Holding, taker: Option<(PeerId, Taker)>, superseded: bool) {
        self.out.push_back(Output::Unlock(taker.as_ref().map(|(_, taker)| taker.clone())));
        let reason = taker.as_ref().filter(|_| superseded).map(|(_, t)| format!("process {} took the seat", t.pid));
        if let Some((peer, _)) = taker {
            self.out.push_back(Output::Answer(peer, Answer::Released {}));
        }
        self.transition(now, State::Off, reason);
        if superseded {
            self.out.push_back(Output::Told(Told::Superseded { generation: holding.generation }));
        }
    }
}
