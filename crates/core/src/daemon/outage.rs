//! What people are told about the link: its state, and the few lines of log that an outage is worth.

use std::borrow::Cow;
use std::time::Duration;

use super::Told;
use crate::limits;
use crate::status::LinkState;
use crate::time::{Due, Now, TimerTable};

/// Why the relay will not have this daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The credential is not valid.
    SignIn,
    /// No common link version.
    Incompatible,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Silent,
    Reminder,
}

/// The state of the link as a function of a few facts. Serves any client that dials.
#[derive(Debug)]
pub struct Outage {
    timers: TimerTable<Timer>,
    state: LinkState,
    since: Duration,
    cause: Option<Cow<'static, str>>,
    /// Since when no connection was ready; `None` while one is, or while none is wanted.
    away_since: Option<Duration>,
    was_ready: bool,
    connected: bool,
    refusal: Option<Refusal>,
    /// Lines told in this outage.
    told: u32,
}

impl Outage {
    /// A link nobody wants yet.
    pub fn new() -> Self {
        Outage {
            timers: TimerTable::default(),
            state: LinkState::Stopped,
            since: Duration::ZERO,
            cause: None,
            away_since: None,
            was_ready: false,
            connected: false,
            refusal: None,
            told: 0,
        }
    }

    /// The link is wanted.
    pub fn started(&mut self, now: Now, told: &mut Vec<Told>) {
        if self.state == LinkState::Stopped {
            self.was_ready = false;
            self.begin(now);
        }
        self.settle(now, told);
    }

    /// The link is not wanted any more.
    pub fn stopped(&mut self, now: Now, told: &mut Vec<Told>) {
        *self = Outage { state: self.state, since: self.since, ..Outage::new() };
        self.settle(now, told);
    }

    /// A connection opened and has yet to be proven.
    pub fn connected(&mut self, now: Now, told: &mut Vec<Told>) {
        self.connected = true;
        self.settle(now, told);
    }

    /// A connection is proven ready.
    pub fn ready(&mut self, now: Now, attempts: u32, told: &mut Vec<Told>) {
        let lasted = self.away_since.take().map_or(Duration::ZERO, |since| now.boot.saturating_sub(since));
        if !self.was_ready {
            told.push(Told::FirstReady);
        } else if self.told > 0 {
            told.push(Told::Recovered { lasted, attempts });
        }
        self.was_ready = true;
        self.connected = true;
        self.refusal = None;
        self.told = 0;
        self.timers = TimerTable::default();
        self.settle(now, told);
        self.cause = None;
    }

    /// No connection is open any more, or an attempt failed.
    pub fn lost(&mut self, now: Now, cause: Cow<'static, str>, refusal: Option<Refusal>, told: &mut Vec<Told>) {
        self.connected = false;
        self.cause = Some(cause);
        self.refusal = refusal.or(self.refusal);
        if self.away_since.is_none() {
            self.begin(now);
        }
        self.settle(now, told);
    }

    /// Tells what is due. `attempts` is for the text.
    pub fn handle_timeout(&mut self, now: Now, attempts: u32, told: &mut Vec<Told>) {
        while let Some(timer) = self.timers.expired(now) {
            let Some(since) = self.away_since else { continue };
            let lasting = now.boot.saturating_sub(since);
            if timer == Timer::Silent {
                self.settle(now, told);
            }
            told.push(Told::Outage {
                lasting,
                attempts,
                cause: self.cause.clone().unwrap_or(Cow::Borrowed("connecting")),
                hint: lasting >= limits::OUTAGE_HINT,
            });
            let wait = limits::OUTAGE_REMINDER.saturating_mul(1 << self.told.min(8)).min(limits::OUTAGE_REMINDER_MAX);
            self.told += 1;
            self.timers.set(Timer::Reminder, Due::boot(now, wait));
        }
    }

    /// Time until something is due.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.timers.earliest(now)
    }

    /// The state people see, and since when (boot time).
    pub fn state(&self) -> (LinkState, Duration) {
        (self.state, self.since)
    }

    /// Why it is not healthy.
    pub fn cause(&self) -> Option<&Cow<'static, str>> {
        self.cause.as_ref()
    }

    fn begin(&mut self, now: Now) {
        self.away_since = Some(now.boot);
        self.timers.set(Timer::Silent, Due::boot(now, limits::OUTAGE_SILENT));
    }

    /// The state that the facts say, entered if it is another one.
    fn settle(&mut self, now: Now, told: &mut Vec<Told>) {
        let next = match (self.away_since, self.refusal) {
            (None, _) if self.connected => LinkState::Healthy,
            (None, _) => LinkState::Stopped,
            (_, Some(Refusal::SignIn)) => LinkState::SignInNeeded,
            (_, Some(Refusal::Incompatible)) => LinkState::Incompatible,
            (Some(since), None) if now.boot.saturating_sub(since) < limits::OUTAGE_SILENT => {
                if self.was_ready {
                    LinkState::Blip
                } else {
                    LinkState::Connecting
                }
            }
            _ if self.connected => LinkState::Recovering,
            _ => LinkState::Outage,
        };
        if next != self.state {
            let why = self.cause.clone().unwrap_or(Cow::Borrowed(""));
            told.push(Told::State { from: self.state, to: next, why });
            (self.state, self.since) = (next, now.boot);
        }
    }
}

impl Default for Outage {
    fn default() -> Self {
        Outage::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn lost(outage: &mut Outage, now: Now) -> Vec<Told> {
        let mut told = Vec::new();
        outage.lost(now, "reset".into(), None, &mut told);
        told
    }

    /// Lets time pass in seconds and returns when outages were told.
    fn wait(outage: &mut Outage, now: &mut Now, lasting: u64) -> Vec<(u64, bool)> {
        let mut told = Vec::new();
        let mut at = Vec::new();
        for _ in 0..lasting {
            *now = now.plus(S);
            outage.handle_timeout(*now, 3, &mut told);
            at.extend(told.drain(..).filter_map(|t| match t {
                Told::Outage { lasting, hint, .. } => Some((lasting.as_secs(), hint)),
                _ => None,
            }));
        }
        at
    }

    fn healthy(now: Now) -> Outage {
        let mut outage = Outage::new();
        outage.started(now, &mut Vec::new());
        outage.ready(now, 1, &mut Vec::new());
        outage
    }

    #[test]
    fn a_blip_is_told_nobody() {
        let mut now = Now::at(S * 100);
        let mut outage = healthy(now);
        lost(&mut outage, now);
        assert_eq!(outage.state().0, LinkState::Blip);
        assert_eq!(wait(&mut outage, &mut now, 9), []);
        let mut told = Vec::new();
        outage.ready(now, 2, &mut told);
        assert_eq!(told, [Told::State { from: LinkState::Blip, to: LinkState::Healthy, why: "reset".into() }]);
    }

    #[test]
    fn an_outage_is_told_after_10_s_then_at_doubling_intervals_up_to_15_min_and_its_end_too() {
        let mut now = Now::at(S * 100);
        let mut outage = healthy(now);
        lost(&mut outage, now);
        let at = wait(&mut outage, &mut now, 3600);
        let hints: Vec<(u64, bool)> = [10, 70, 190, 430, 910, 1810, 2710].into_iter().map(|s| (s, s >= 300)).collect();
        assert_eq!(at, hints);
        let mut told = Vec::new();
        outage.ready(now, 9, &mut told);
        assert_eq!(told[0], Told::Recovered { lasted: S * 3600, attempts: 9 });
    }

    #[test]
    fn the_state_follows_the_connection() {
        let mut now = Now::at(S);
        let mut outage = Outage::new();
        let mut told = Vec::new();
        outage.started(now, &mut told);
        assert_eq!(outage.state().0, LinkState::Connecting);
        wait(&mut outage, &mut now, 10);
        assert_eq!(outage.state().0, LinkState::Outage);
        outage.connected(now, &mut told);
        assert_eq!(outage.state().0, LinkState::Recovering);
        outage.lost(now, "401".into(), Some(Refusal::SignIn), &mut told);
        assert_eq!(outage.state().0, LinkState::SignInNeeded);
        lost(&mut outage, now);
        assert_eq!(outage.state().0, LinkState::SignInNeeded, "a later transport error does not hide it");
        told.clear();
        outage.ready(now, 3, &mut told);
        assert_eq!(outage.state().0, LinkState::Healthy);
        assert_eq!(told[0], Told::FirstReady);
        outage.stopped(now, &mut told);
        assert_eq!(outage.state().0, LinkState::Stopped);
    }
}
