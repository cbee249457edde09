//! The leave to execute: granted by the relay, counted on boot time, fenced by a generation.

use std::time::Duration;

use crate::limits;
use crate::run::Lease;
use crate::time::Now;

/// The worker's lease. It only decides whether work that must not run unsupervised may *start*; a run that has started is
/// ended by its own runner, which was told generation and end and so needs no worker for it.
#[derive(Debug)]
pub(super) struct Leave {
    generation: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No grant in this process life; one of an earlier life can be in force at most until then.
    Inherited {
        until: Duration,
    },
    Held {
        until: Duration,
    },
    /// An announced sleep holds it.
    Paused {
        left: Duration,
    },
    Expired,
}

impl Leave {
    /// After a start: whether the last life's lease is still in force is not known, so its generation stays until it cannot be.
    pub fn new(now: Now, generation: u64) -> Leave {
        Leave { generation, state: State::Inherited { until: now.boot + limits::WORKER_LEASE } }
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// What a runner is told; `None`: there is no lease.
    pub fn lease(&self) -> Option<Lease> {
        let until = match self.state {
            State::Held { until } => Some(until),
            State::Paused { .. } => None,
            State::Inherited { .. } | State::Expired => return None,
        };
        Some(Lease { generation: self.generation, until })
    }

    /// Whether work that needs a lease may start now.
    pub fn may_start(&self) -> bool {
        matches!(self.state, State::Held { .. })
    }

    pub fn is_paused(&self) -> bool {
        matches!(self.state, State::Paused { .. })
    }

    /// Boot time at which it ends unless it is renewed.
    pub fn ends_at(&self, now: Now) -> Option<Duration> {
        match self.state {
            State::Held { until } => Some(until),
            State::Paused { left } => Some(now.boot + left),
            State::Inherited { .. } | State::Expired => None,
        }
    }

    /// Granted or renewed: never shorter than it was, never longer than [`limits::WORKER_LEASE`] from now.
    pub fn grant(&mut self, now: Now, lasting: Duration) {
        let lasting = lasting.min(limits::WORKER_LEASE);
        self.state = match self.state {
            State::Paused { left } => State::Paused { left: left.max(lasting) },
            State::Held { until } => State::Held { until: until.max(now.boot + lasting) },
            State::Inherited { .. } | State::Expired => State::Held { until: now.boot + lasting },
        };
    }

    /// A sleep was announced. Returns whether there is a lease to hold.
    pub fn pause(&mut self, now: Now) -> bool {
        if let State::Held { until } = self.state {
            self.state = State::Paused { left: until.saturating_sub(now.boot) };
        }
        self.is_paused()
    }

    /// The sleep is over, or never came. Returns whether a lease was held.
    pub fn resume(&mut self, now: Now) -> bool {
        let State::Paused { left } = self.state else { return false };
        self.state = State::Held { until: now.boot + left };
        true
    }

    /// Ends it if it is due. Returns whether it did; the generation has grown then.
    pub fn expire(&mut self, now: Now) -> bool {
        let due = matches!(self.state, State::Inherited { until } | State::Held { until } if until <= now.boot);
        if due {
            self.state = State::Expired;
            self.generation += 1;
        }
        due
    }

    /// Time until it expires.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        match self.state {
            State::Inherited { until } | State::Held { until } => Some(until.saturating_sub(now.boot)),
            State::Paused { .. } | State::Expired => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn the_generation_grows_when_a_lease_expires_and_never_by_renewing_it() {
        let mut now = Now::at(S * 1000);
        let mut leave = Leave::new(now, 7);
        assert_eq!((leave.may_start(), leave.lease()), (false, None));
        leave.grant(now, S * 120);
        for _ in 0..10 {
            now = now.plus(S * 100);
            assert!(!leave.expire(now));
            leave.grant(now, S * 120);
        }
        assert_eq!(leave.lease(), Some(Lease { generation: 7, until: Some(now.boot + S * 120) }));
        now = now.plus(S * 120);
        assert!(leave.expire(now) && !leave.expire(now));
        assert_eq!((leave.generation(), leave.lease(), leave.poll_timeout(now)), (8, None, None));
        leave.grant(now, S * 3600);
        assert_eq!(leave.lease(), Some(Lease { generation: 8, until: Some(now.boot + S * 120) }), "never a longer one");
    }

    #[test]
    fn an_announced_sleep_does_not_consume_it_and_an_unannounced_one_does() {
        let mut now = Now::at(S * 1000);
        let mut leave = Leave::new(now, 1);
        leave.grant(now, S * 120);
        now = now.plus(S * 20);
        assert!(leave.pause(now));
        now = now.slept(S * 3600);
        assert!(!leave.expire(now) && !leave.may_start());
        assert!(leave.resume(now));
        assert_eq!(leave.lease(), Some(Lease { generation: 1, until: Some(now.boot + S * 100) }));
        now = now.slept(S * 101);
        assert!(leave.expire(now));
    }

    #[test]
    fn a_new_process_life_keeps_the_generation_until_the_last_lease_must_be_over() {
        let now = Now::at(S * 1000);
        let mut leave = Leave::new(now, 3);
        assert!(!leave.expire(now.plus(S * 119)));
        assert!(leave.expire(now.plus(S * 120)));
        assert_eq!(leave.generation(), 4);
    }
}
