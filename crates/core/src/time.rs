//! The two clocks of a machine and its table of timers.
//!
//! *Boot* time counts suspend: leases, tokens, link liveness, the relay's grace. *Awake* time does not: execution
//! deadlines and the daemon's grace, because a frozen process is not late. Shells read both and pass them in.

use std::collections::BTreeMap;
use std::time::Duration;

/// The time at which an input happened, on both clocks. Origins are arbitrary but fixed for one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// Time since the origin, counting suspend.
    pub boot: Duration,
    /// Time since the origin, not counting suspend or a frozen process.
    pub awake: Duration,
}

impl Now {
    /// Both clocks at the same reading: what a test starts from.
    pub const fn at(both: Duration) -> Self {
        Now { boot: both, awake: both }
    }

    /// This moment plus `by` on both clocks: ordinary time passing.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Now { boot: self.boot + by, awake: self.awake + by }
    }

    /// This moment after a sleep of `by`: only boot time passed.
    #[must_use]
    pub fn slept(self, by: Duration) -> Self {
        Now { boot: self.boot + by, awake: self.awake }
    }
}

/// When a timer is due, and on which clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Due at this boot time.
    Boot(Duration),
    /// Due at this awake time.
    Awake(Duration),
}

impl Due {
    /// Due `after` from `now`, counting suspend.
    pub fn boot(now: Now, after: Duration) -> Self {
        Due::Boot(now.boot.saturating_add(after))
    }

    /// Due `after` from `now`, not counting suspend.
    pub fn awake(now: Now, after: Duration) -> Self {
        Due::Awake(now.awake.saturating_add(after))
    }

    /// How long from `now` until it is due; zero when overdue.
    pub fn left(self, now: Now) -> Duration {
        match self {
            Due::Boot(at) => at.saturating_sub(now.boot),
            Due::Awake(at) => at.saturating_sub(now.awake),
        }
    }
}

/// The timers of one machine, by name. Setting a name again replaces it; there is never a second timer of one name.
#[derive(Debug, Clone)]
pub struct TimerTable<K>(BTreeMap<K, Due>);

impl<K> Default for TimerTable<K> {
    fn default() -> Self {
        TimerTable(BTreeMap::new())
    }
}

impl<K: Ord + Clone> TimerTable<K> {
    /// Sets or replaces a timer.
    pub fn set(&mut self, name: K, due: Due) {
        self.0.insert(name, due);
    }

    /// Stops a timer; nothing happens if it does not run.
    pub fn stop(&mut self, name: &K) {
        self.0.remove(name);
    }

    /// The due time of a running timer.
    pub fn get(&self, name: &K) -> Option<Due> {
        self.0.get(name).copied()
    }

    /// Takes one overdue timer out, the longest overdue of its clock first.
    pub fn expired(&mut self, now: Now) -> Option<K> {
        let name = self
            .0
            .iter()
            .filter(|(_, due)| due.left(now).is_zero())
            .min_by_key(|(_, due)| match due {
                Due::Boot(at) | Due::Awake(at) => *at,
            })
            .map(|(name, _)| name.clone())?;
        self.0.remove(&name);
        Some(name)
    }

    /// Time until the earliest timer on either clock; `None` when none runs.
    pub fn earliest(&self, now: Now) -> Option<Duration> {
        self.0.values().map(|due| due.left(now)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn sleep_makes_a_boot_timer_due_and_leaves_an_awake_timer_alone() {
        let start = Now::at(S * 100);
        let mut timers = TimerTable::default();
        timers.set("lease", Due::boot(start, S * 10));
        timers.set("deadline", Due::awake(start, S * 10));
        let woke = start.slept(S * 3600);
        assert_eq!(timers.expired(woke), Some("lease"));
        assert_eq!(timers.expired(woke), None);
        assert_eq!(timers.earliest(woke), Some(S * 10));
    }

    #[test]
    fn setting_a_timer_again_replaces_it() {
        let start = Now::default();
        let mut timers = TimerTable::default();
        timers.set("probe", Due::boot(start, S));
        timers.set("probe", Due::boot(start, S * 5));
        assert_eq!(timers.expired(start.plus(S * 2)), None);
        assert_eq!(timers.expired(start.plus(S * 5)), Some("probe"));
        assert_eq!(timers.earliest(start), None);
    }
}
