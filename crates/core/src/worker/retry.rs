//! When a step that failed on the network is tried again, and when it is given up.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use crate::limits;

/// The tries of one download or git step. It counts awake time, as its user measured it: a lid that was closed for a night uses
/// up nothing.
#[derive(Debug)]
pub struct Retry {
    rng: SmallRng,
    /// Failures since the last progress.
    failures: u32,
    /// What failing has taken since the last progress, waits included.
    spent: Duration,
}

impl Retry {
    /// Nothing has failed yet. The seed is for jitter only.
    pub fn new(seed: u64) -> Retry {
        Retry { rng: SmallRng::seed_from_u64(seed), failures: 0, spent: Duration::ZERO }
    }

    /// A try failed after `took`. How long to wait before the next one; nothing when it has kept failing for
    /// [`limits::SYNC_RETRY_FOR`]. Half of each wait is chance.
    pub fn failed(&mut self, took: Duration) -> Option<Duration> {
        self.spent = self.spent.saturating_add(took);
        let left = limits::SYNC_RETRY_FOR.checked_sub(self.spent).filter(|left| !left.is_zero())?;
        let wait = limits::SYNC_RETRY_BASE.saturating_mul(1 << self.failures.min(16)).min(limits::SYNC_RETRY_MAX);
        self.failures += 1;
        // The last try is made at the very end.
        let wait = (wait / 2 + (wait / 2).mul_f64(self.rng.random::<f64>())).min(left);
        self.spent += wait;
        Some(wait)
    }

    /// A try brought something: whatever fails from now on fails anew.
    pub fn progressed(&mut self) {
        (self.failures, self.spent) = (0, Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOK: Duration = Duration::from_secs(2);

    #[test]
    fn waits_grow_to_their_bound_and_at_least_half_of_each_is_waited() {
        let mut retry = Retry::new(7);
        for step in 0..10 {
            let full = (limits::SYNC_RETRY_BASE * 2u32.pow(step)).min(limits::SYNC_RETRY_MAX);
            let wait = retry.failed(TOOK).unwrap();
            assert!(wait >= full / 2 && wait <= full, "{step}: {wait:?} of {full:?}");
        }
    }

    #[test]
    fn what_keeps_failing_is_given_up_after_its_time_and_not_before() {
        for seed in 0..50 {
            let (mut retry, mut now) = (Retry::new(seed), Duration::ZERO);
            loop {
                now += TOOK;
                let Some(wait) = retry.failed(TOOK) else { break };
                now += wait;
                assert!(now <= limits::SYNC_RETRY_FOR, "{now:?}");
            }
            assert!(now >= limits::SYNC_RETRY_FOR && now <= limits::SYNC_RETRY_FOR + TOOK, "{now:?}");
            assert_eq!(retry.failed(TOOK), None);
        }
    }

    #[test]
    fn progress_begins_it_anew() {
        let mut retry = Retry::new(1);
        while retry.failed(Duration::from_secs(60)).is_some() {}
        retry.progressed();
        assert!(retry.failed(TOOK).unwrap() <= limits::SYNC_RETRY_BASE);
    }
}
