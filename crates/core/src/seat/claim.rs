//! Getting the lock: at once, from a holder that is asked, or when it is free.

use super::io::{Heard, Output, Unusable, Want};
use super::machine::{Seat, State, Timer};
use crate::code::Code;
use crate::limits;
use crate::time::{Due, Now};

/// Somebody wants the seat and this process has not got it yet.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) want: Want,
    pub(super) step: Step,
    /// The holder has our question.
    asking: bool,
    /// The holder has our word that we want it, and lets go whenever it can: this take cannot be withdrawn any more.
    bound: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing is known yet.
    Begun,
    /// The holder was asked.
    Asked,
    /// The holder is awake, and lets go.
    Promised,
    /// The holder lets go for somebody else, or did; only if that one does not come is it our turn.
    After,
    /// The holder's time is over; the lock is tried once more.
    Overdue,
    /// The holder is bound to let go, lives, and does not.
    Frozen,
    /// The holder's process is being ended.
    Ending,
}

/// Why a seat is not claimed.
const HOLDS: &str = "another process holds the seat";

impl Claim {
    fn begun(want: Want) -> Claim {
        Claim { want, step: Step::Begun, asking: false, bound: false }
    }
}

impl Seat {
    pub(super) fn claim(&mut self, now: Now, want: Want) {
        self.tries = 0;
        self.transition(now, State::Claiming(Claim::begun(want)), None);
        self.out.push_back(Output::TryLock);
    }

    /// A person says more while a claim is under way.
    pub(super) fn want_more(&mut self, now: Now, more: Want) {
        let waits_for_disk = self.code.is_some();
        let State::Claiming(claim) = &mut self.state else { return };
        if waits_for_disk {
            self.out.push_back(Output::TryLock);
        }
        if let Want::Take { force } = more {
            let before = matches!(claim.want, Want::Take { force: true });
            claim.want = Want::Take { force: force || before };
            match (claim.step, force) {
                (Step::Frozen, true) => self.kill(now),
                (Step::Frozen, false) => {
                    claim.step = Step::Promised;
                    self.timers.set(Timer::Answer, Due::awake(now, limits::SEAT_ANSWER));
                    self.out.push_back(Output::Changed);
                }
                _ => {}
            }
        }
    }

    pub(super) fn locked(&mut self, now: Now, last: u64) {
        match (&self.state, last.checked_add(1)) {
            (State::Claiming(_) | State::Standby { .. }, Some(generation)) => {
                self.out.push_back(Output::Stamp(generation));
            }
            (State::Claiming(_) | State::Standby { .. }, None) => {
                self.out.push_back(Output::Abandon);
                let why = "the generation on disk cannot grow any more";
                self.broken(now, Unusable::for_good(Code::IntegrityError, why));
            }
            _ => self.out.push_back(Output::Abandon),
        }
    }

    /// The folder, the lock or the record cannot be used. What may pass is tried again, less and less often.
    pub(super) fn broken(&mut self, now: Now, why: Unusable) {
        let again = match &self.state {
            State::Claiming(Claim { want, .. }) => State::Claiming(Claim::begun(*want)),
            State::Standby { waits, .. } => State::Standby { waits: *waits, frozen: false },
            _ => return,
        };
        self.out.push_back(Output::HangUp);
        if why.for_good {
            return self.fail(now, why.reason, Some(why.code));
        }
        let wait = self.back_off();
        self.transition(now, again, Some(why.reason));
        self.code = Some(why.code);
        self.timers.set(Timer::Lock, Due::boot(now, wait));
    }

    /// The disk can be used again.
    pub(super) fn answered(&mut self) {
        if self.code.take().is_some() {
            (self.reason, self.tries) = (None, 0);
            self.out.push_back(Output::Changed);
        }
    }

    pub(super) fn not_locked(&mut self, now: Now, reserved: bool) {
        self.answered();
        let claim = match &mut self.state {
            State::Claiming(claim) => claim,
            State::Standby { waits: true, .. } => return self.stand_by(now, true, HOLDS),
            _ => return,
        };
        let Want::Take { force } = claim.want else {
            let waits = claim.want == Want::Wait;
            return self.stand_by(
                now,
                waits,
                if reserved { "another process is about to take the seat" } else { HOLDS },
            );
        };
        if reserved {
            claim.step = Step::After;
            return self.timers.set(Timer::Lock, Due::boot(now, limits::SEAT_RETRY));
        }
        match claim.step {
            Step::After => return self.stand_by(now, false, "another process took the seat"),
            Step::Begun => {
                claim.step = Step::Asked;
                self.timers.set(Timer::Answer, Due::awake(now, limits::SEAT_ANSWER));
            }
            Step::Overdue if force => return self.kill(now),
            Step::Overdue if claim.bound => {
                claim.step = Step::Frozen;
                self.out.push_back(Output::Changed);
            }
            Step::Overdue if claim.asking => {
                return self.withdraw(now, "the process that holds the seat does not answer");
            }
            Step::Overdue => {
                return self.stand_by(now, false, "another process holds the seat and cannot be asked for it");
            }
            Step::Asked | Step::Promised | Step::Frozen | Step::Ending => {}
        }
        let State::Claiming(claim) = &mut self.state else { return };
        if !std::mem::replace(&mut claim.asking, true) {
            self.out.push_back(Output::Ask);
        }
        // A holder that answers is heard; this is for one that only frees the lock.
        let again = if claim.step == Step::Frozen { limits::SEAT_LOOK } else { limits::SEAT_RETRY };
        self.timers.set(Timer::Lock, Due::boot(now, again));
    }

    fn stand_by(&mut self, now: Now, waits: bool, why: &str) {
        self.out.push_back(Output::HangUp);
        self.transition(now, State::Standby { waits, frozen: false }, Some(why.to_owned()));
        if waits {
            self.timers.set(Timer::Lock, Due::boot(now, limits::SEAT_LOOK));
        }
    }

    /// The holder does not answer, and whoever asked for the seat is told so: what happens later must be no take. The person
    /// may still end the holder.
    fn withdraw(&mut self, now: Now, why: &str) {
        self.transition(now, State::Standby { waits: false, frozen: true }, Some(why.to_owned()));
    }

    /// The person wants a holder ended that does not answer.
    pub(super) fn end_frozen(&mut self, now: Now) {
        let claim = Claim { asking: true, ..Claim::begun(Want::Take { force: true }) };
        self.transition(now, State::Claiming(claim), None);
        self.kill(now);
    }

    pub(super) fn heard(&mut self, now: Now, heard: Heard) {
        let claim = match &mut self.state {
            State::Claiming(claim) => claim,
            // It hears that nobody wants its seat any more, and keeps it.
            State::Standby { frozen: true, .. } => {
                let gone = heard == Heard::Gone;
                return self.stand_by(now, false, if gone { "the process that held the seat is gone" } else { HOLDS });
            }
            _ => return,
        };
        match heard {
            Heard::Ready | Heard::Draining => {
                if heard == Heard::Ready {
                    self.out.push_back(Output::Confirm);
                }
                (claim.step, claim.bound) = (Step::Promised, true);
                self.timers.set(Timer::Answer, Due::awake(now, limits::SEAT_HANDOVER));
                self.out.push_back(Output::Changed);
            }
            Heard::Released => {
                // Somebody who was faster is asked anew.
                *claim = Claim::begun(claim.want);
                self.out.push_back(Output::TryLock);
            }
            Heard::Busy => {
                claim.step = Step::After;
                self.timers.stop(&Timer::Answer);
                self.timers.set(Timer::Lock, Due::boot(now, limits::SEAT_RETRY));
            }
            Heard::Gone => {
                (claim.asking, claim.bound) = (false, false);
                self.timers.set(Timer::Lock, Due::boot(now, limits::SEAT_RETRY));
            }
        }
    }

    /// The holder's time is over. If it is dead, the system has freed the lock.
    pub(super) fn unanswered(&mut self) {
        let State::Claiming(claim) = &mut self.state else { return };
        claim.step = Step::Overdue;
        self.out.push_back(Output::TryLock);
    }

    fn kill(&mut self, now: Now) {
        let State::Claiming(claim) = &mut self.state else { return };
        claim.step = Step::Ending;
        // One that does not end is asked about again.
        claim.want = Want::Take { force: false };
        self.timers.set(Timer::Answer, Due::awake(now, limits::SEAT_ANSWER));
        self.out.push_back(Output::Kill);
        self.out.push_back(Output::Changed);
    }

    pub(super) fn killed(&mut self, now: Now, result: Result<(), String>) {
        let State::Claiming(claim) = &mut self.state else { return };
        let again = match result {
            Ok(()) => limits::SEAT_RETRY,
            Err(why) if !claim.bound && claim.asking => return self.withdraw(now, &why),
            Err(why) if !claim.bound => return self.stand_by(now, false, &why),
            Err(why) => {
                claim.step = Step::Frozen;
                self.timers.stop(&Timer::Answer);
                self.reason = Some(why);
                self.out.push_back(Output::Changed);
                limits::SEAT_LOOK
            }
        };
        self.timers.set(Timer::Lock, Due::boot(now, again));
    }
}
