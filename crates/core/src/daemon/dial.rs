//! When to dial: back-off, urgency, hold-offs. Knows nothing of what is dialled, so that any client that dials can use it.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use super::SocketId;
use crate::limits;
use crate::time::{Due, Now, TimerTable};

/// How a connection or attempt ended, as far as the next try depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// A proven connection was lost: try at once.
    Loss,
    /// The peer said that it restarts: try within [`limits::RESTART_JITTER`], so that not everybody comes at once.
    Restart,
    /// An attempt or a handshake failed: back off.
    Failure,
    /// Trying soon is of no use: every [`limits::IN_USE_RETRY`] until something changes.
    Refusal,
}

/// What the dialler wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dial {
    /// Start this attempt.
    Try(SocketId),
    /// Give this attempt up: it took too long.
    GiveUp(SocketId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Next,
    Attempt(SocketId),
}

/// Decides when to dial. While something waits (*urgent*) a second attempt races the first one, because an attempt that
/// began before the network came back may be the last to notice.
#[derive(Debug)]
pub struct Dialer {
    timers: TimerTable<Timer>,
    rng: SmallRng,
    minted: u64,
    wanted: bool,
    /// Attempts in flight, the patient one first; at most [`limits::DIALS_IN_FLIGHT`].
    pending: Vec<SocketId>,
    attempts: u32,
    /// Exponent of the idle back-off.
    step: u32,
    urgent_since: Option<Duration>,
    refused: bool,
    last_try: Option<Duration>,
    ready_since: Option<Duration>,
    blocked_until: Option<Duration>,
}

impl Dialer {
    /// A dialler at rest. The seed is for jitter only.
    pub fn new(seed: u64) -> Self {
        Dialer {
            timers: TimerTable::default(),
            rng: SmallRng::seed_from_u64(seed),
            minted: 0,
            wanted: false,
            pending: Vec::new(),
            attempts: 0,
            step: 0,
            urgent_since: None,
            refused: false,
            last_try: None,
            ready_since: None,
            blocked_until: None,
        }
    }

    /// A connection is wanted; try at once, whatever was before.
    pub fn start(&mut self, now: Now) {
        self.wanted = true;
        self.refused = false;
        self.step = 0;
        self.schedule(now, Duration::ZERO);
    }

    /// No connection is wanted. Returns the attempts to drop.
    pub fn stop(&mut self) -> Vec<SocketId> {
        self.wanted = false;
        self.ready_since = None;
        self.attempts = 0;
        self.blocked_until = None;
        self.timers = TimerTable::default();
        std::mem::take(&mut self.pending)
    }

    /// Something changed (wake, network): try at once. Attempts in flight began before the change and are dropped.
    pub fn nudge(&mut self, now: Now) -> Vec<SocketId> {
        self.step = 0;
        self.schedule(now, Duration::ZERO);
        self.drop_pending()
    }

    /// No attempt before this much time has passed, then one at once. Returns the attempts to drop.
    pub fn block(&mut self, now: Now, lasting: Duration) -> Vec<SocketId> {
        self.blocked_until = Some(now.boot + lasting);
        self.schedule(now, Duration::ZERO);
        self.drop_pending()
    }

    /// Whether something waits for the connection.
    pub fn set_urgent(&mut self, now: Now, urgent: bool) {
        match (urgent, self.urgent_since) {
            (true, None) => self.urgent_since = Some(now.boot),
            (false, Some(_)) => self.urgent_since = None,
            _ => {}
        }
    }

    /// An attempt opened. Returns the attempts that lost the race, or nothing if this one was given up before.
    pub fn opened(&mut self, socket: SocketId) -> Option<Vec<SocketId>> {
        let at = self.pending.iter().position(|s| *s == socket)?;
        self.pending.remove(at);
        self.timers = TimerTable::default();
        Some(std::mem::take(&mut self.pending))
    }

    /// An attempt failed. Returns `false` if it was given up before.
    pub fn failed(&mut self, now: Now, socket: SocketId, after: After) -> bool {
        let Some(at) = self.pending.iter().position(|s| *s == socket) else { return false };
        self.pending.remove(at);
        self.timers.stop(&Timer::Attempt(socket));
        if self.pending.is_empty() || after == After::Refusal {
            self.ended(now, after);
        }
        true
    }

    /// The connection was proven.
    pub fn ready(&mut self, now: Now) {
        self.ready_since = Some(now.boot);
        self.attempts = 0;
        self.refused = false;
    }

    /// A connection ended; the next try is planned, unless none is wanted.
    pub fn ended(&mut self, now: Now, after: After) {
        let ready_for = self.ready_since.take().map(|since| now.boot.saturating_sub(since));
        if ready_for.is_some_and(|lasted| lasted >= limits::BACKOFF_RESET) {
            self.step = 0;
        }
        if after == After::Refusal {
            self.refused = true;
        } else if !self.pending.is_empty() {
            // A try is under way; how the last connection ended says nothing about it.
            return;
        }
        let wait = match after {
            _ if self.refused => limits::IN_USE_RETRY,
            // A connection that breaks as soon as it is proven is no better than one that never was.
            After::Loss if ready_for.is_none_or(|lasted| lasted >= limits::RECONNECT_STEADY) => Duration::ZERO,
            After::Restart => self.jitter(limits::RESTART_JITTER),
            _ => match self.pace(now) {
                Some(pace) => self.last_try.map_or(Duration::ZERO, |at| (at + pace).saturating_sub(now.boot)),
                None => self.back_off(),
            },
        };
        // A try that is planned already is not put off, unless trying is of no use.
        let planned = self.timers.get(&Timer::Next).map(|due| due.left(now)).filter(|_| !self.refused);
        self.schedule(now, planned.map_or(wait, |planned| planned.min(wait)));
    }

    /// Tries since the connection was last proven.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Boot time of the next try, if one is planned.
    pub fn next_try_at(&self, now: Now) -> Option<Duration> {
        self.timers.get(&Timer::Next).map(|due| now.boot + due.left(now))
    }

    /// One thing that is due, if any.
    pub fn handle_timeout(&mut self, now: Now) -> Option<Dial> {
        match self.timers.expired(now)? {
            Timer::Next => Some(self.dial(now)),
            Timer::Attempt(socket) => {
                self.failed(now, socket, After::Failure);
                Some(Dial::GiveUp(socket))
            }
        }
    }

    /// Time until something is due.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.timers.earliest(now)
    }

    fn dial(&mut self, now: Now) -> Dial {
        if self.pending.len() == limits::DIALS_IN_FLIGHT {
            // The younger one makes room; this timer comes right back for the new attempt.
            self.schedule(now, Duration::ZERO);
            let young = self.pending.remove(limits::DIALS_IN_FLIGHT - 1);
            self.timers.stop(&Timer::Attempt(young));
            return Dial::GiveUp(young);
        }
        self.blocked_until = None;
        self.minted += 1;
        let socket = SocketId(self.minted);
        self.pending.push(socket);
        self.attempts = self.attempts.saturating_add(1);
        self.last_try = Some(now.boot);
        self.timers.set(Timer::Attempt(socket), Due::boot(now, limits::DIAL_TIMEOUT));
        if let Some(pace) = self.pace(now).filter(|_| !self.refused) {
            self.schedule(now, pace);
        }
        Dial::Try(socket)
    }

    /// The interval of tries while something waits.
    fn pace(&self, now: Now) -> Option<Duration> {
        let since = self.urgent_since?;
        let fast = now.boot.saturating_sub(since) < limits::RECONNECT_FAST_FOR;
        Some(if fast { limits::RECONNECT_FAST } else { limits::RECONNECT_STEADY })
    }

    fn back_off(&mut self) -> Duration {
        let cap = limits::BACKOFF_BASE.saturating_mul(1 << self.step.min(16)).min(limits::BACKOFF_MAX);
        self.step = self.step.saturating_add(1);
        self.jitter(cap)
    }

    fn jitter(&mut self, cap: Duration) -> Duration {
        cap.mul_f64(self.rng.random::<f64>())
    }

    fn schedule(&mut self, now: Now, wait: Duration) {
        if self.wanted {
            let blocked = self.blocked_until.map_or(Duration::ZERO, |until| until.saturating_sub(now.boot));
            self.timers.set(Timer::Next, Due::boot(now, wait.max(blocked)));
        }
    }

    fn drop_pending(&mut self) -> Vec<SocketId> {
        for socket in &self.pending {
            self.timers.stop(&Timer::Attempt(*socket));
        }
        std::mem::take(&mut self.pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Runs the dialler for `lasting`, every attempt refused at once; returns when each try began, in ms.
    fn tries(dialer: &mut Dialer, now: &mut Now, lasting: Duration) -> Vec<u64> {
        let end = now.boot + lasting;
        let mut began = Vec::new();
        loop {
            while let Some(dial) = dialer.handle_timeout(*now) {
                if let Dial::Try(socket) = dial {
                    began.push(now.boot.as_millis() as u64);
                    dialer.failed(*now, socket, After::Failure);
                }
            }
            let Some(wait) = dialer.poll_timeout(*now).filter(|wait| now.boot + *wait <= end) else { break };
            *now = now.plus(wait);
        }
        began
    }

    #[test]
    fn while_something_waits_it_tries_every_250_ms_for_5_s_and_then_every_second() {
        let mut now = Now::default();
        let mut dialer = Dialer::new(1);
        dialer.start(now);
        dialer.set_urgent(now, true);
        let began = tries(&mut dialer, &mut now, Duration::from_secs(8));
        let wanted: Vec<u64> = (0..=20).map(|i| i * 250).chain([6000, 7000, 8000]).collect();
        assert_eq!(began, wanted);
    }

    #[test]
    fn idle_tries_come_further_apart_but_never_more_than_15_s() {
        let mut now = Now::default();
        let mut dialer = Dialer::new(7);
        dialer.start(now);
        let began = tries(&mut dialer, &mut now, Duration::from_secs(600));
        assert_eq!(began[0], 0);
        assert!(began.windows(2).all(|w| w[1] - w[0] <= 15_000), "{began:?}");
        assert!(began.len() > 40 && began.len() < 200, "{}", began.len());
    }

    #[test]
    fn a_lost_connection_is_dialled_at_once_and_a_restarting_peer_within_5_s() {
        let mut now = Now::default();
        let mut dialer = Dialer::new(3);
        dialer.start(now);
        let Some(Dial::Try(socket)) = dialer.handle_timeout(now) else { panic!() };
        assert_eq!(dialer.opened(socket), Some(vec![]));
        dialer.ready(now);
        now = now.plus(Duration::from_secs(5));
        dialer.ended(now, After::Loss);
        assert_eq!(dialer.poll_timeout(now), Some(Duration::ZERO));
        let Some(Dial::Try(socket)) = dialer.handle_timeout(now) else { panic!() };
        dialer.opened(socket);
        dialer.ready(now);
        dialer.ended(now, After::Restart);
        let wait = dialer.poll_timeout(now).unwrap();
        assert!(wait > Duration::ZERO && wait <= limits::RESTART_JITTER, "{wait:?}");
    }

    #[test]
    fn a_late_word_of_the_old_connection_does_not_put_off_a_try_that_is_due() {
        let now = Now::default();
        let mut dialer = Dialer::new(3);
        dialer.start(now);
        dialer.ended(now, After::Restart);
        assert_eq!(dialer.poll_timeout(now), Some(Duration::ZERO));
    }

    #[test]
    fn a_refused_daemon_tries_every_five_minutes_and_at_once_when_something_changes() {
        let mut now = Now::default();
        let mut dialer = Dialer::new(3);
        dialer.start(now);
        dialer.set_urgent(now, true);
        let Some(Dial::Try(socket)) = dialer.handle_timeout(now) else { panic!() };
        dialer.failed(now, socket, After::Refusal);
        assert_eq!(dialer.poll_timeout(now), Some(limits::IN_USE_RETRY));
        now = now.plus(MS * 10);
        assert_eq!(dialer.nudge(now), vec![]);
        let Some(Dial::Try(socket)) = dialer.handle_timeout(now) else { panic!() };
        dialer.failed(now, socket, After::Failure);
        assert_eq!(dialer.poll_timeout(now), Some(limits::IN_USE_RETRY));
    }

    #[test]
    fn a_black_hole_leaves_one_patient_attempt_and_one_fresh_one() {
        let mut now = Now::default();
        let mut dialer = Dialer::new(3);
        dialer.start(now);
        dialer.set_urgent(now, true);
        let mut log = Vec::new();
        while now.boot < Duration::from_millis(600) {
            while let Some(dial) = dialer.handle_timeout(now) {
                log.push((now.boot.as_millis(), dial));
            }
            now = now.plus(MS * 50);
        }
        assert_eq!(
            log,
            [
                (0, Dial::Try(SocketId(1))),
                (250, Dial::Try(SocketId(2))),
                (500, Dial::GiveUp(SocketId(2))),
                (500, Dial::Try(SocketId(3))),
            ]
        );
        assert_eq!(dialer.opened(SocketId(3)), Some(vec![SocketId(1)]));
        assert_eq!(dialer.poll_timeout(now), None);
    }
}
