//! How much output the runs of one worker may hold.

use crate::limits;

/// How the spool of a worker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// Bytes this user may still write on the disk; `None` where that cannot be told.
    pub disk: Option<u64>,
    /// What runs that have not ended were promised, and what ended ones still hold, in bytes.
    pub promised: u64,
    /// Runs that have not ended.
    pub runs: usize,
}

impl Budget {
    /// What a run that starts now is promised; `None` when it must wait. As long as the disk has room, every one of
    /// [`limits::WORKER_RUNS_MAX`] runs gets at least [`limits::SPOOL_RUN_MIN`].
    pub fn promise(self) -> Option<u64> {
        let others = limits::WORKER_RUNS_MAX.saturating_sub(self.runs + 1) as u64;
        let free = self.free();
        let most =
            free.saturating_sub(others * limits::SPOOL_RUN_MIN).clamp(limits::SPOOL_RUN_MIN, limits::SPOOL_RUN_MAX);
        (most <= free && self.disk.is_none_or(|disk| disk / 2 >= limits::SPOOL_RUN_MIN)).then_some(self.of_disk(most))
    }

    /// What a run that waits for room and was promised `quota` is promised from now on: never less.
    pub fn raise(self, quota: u64) -> u64 {
        let others = limits::WORKER_RUNS_MAX.saturating_sub(self.runs) as u64;
        let more = self.free().saturating_sub(others * limits::SPOOL_RUN_MIN);
        quota.saturating_add(self.of_disk(more)).min(limits::SPOOL_RUN_MAX).max(quota)
    }

    const fn free(self) -> u64 {
        limits::SPOOL_TOTAL_MAX.saturating_sub(self.promised)
    }

    /// Half of the disk is for everybody else.
    fn of_disk(self, bytes: u64) -> u64 {
        self.disk.map_or(bytes, |disk| bytes.min(disk / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIN: u64 = limits::SPOOL_RUN_MIN;
    const MAX: u64 = limits::SPOOL_RUN_MAX;

    #[test]
    fn the_first_runs_get_all_they_may_and_every_place_for_a_run_keeps_its_least() {
        let mut budget = Budget { disk: Some(u64::MAX), ..Budget::default() };
        let mut promises = Vec::new();
        while budget.runs < limits::WORKER_RUNS_MAX {
            let promise = budget.promise().unwrap();
            promises.push(promise);
            budget = Budget { promised: budget.promised + promise, runs: budget.runs + 1, ..budget };
        }
        assert_eq!(promises[..4], [MAX; 4]);
        assert_eq!(promises[63], MIN);
        assert!(budget.promised <= limits::SPOOL_TOTAL_MAX);
    }

    #[test]
    fn a_run_without_room_for_its_least_waits() {
        let budget = Budget::default();
        assert_eq!(Budget { disk: Some(2 * MIN - 1), ..budget }.promise(), None);
        assert_eq!(Budget { disk: Some(2 * MIN), ..budget }.promise(), Some(MIN));
        assert_eq!(Budget { promised: limits::SPOOL_TOTAL_MAX - MIN + 1, ..budget }.promise(), None);
        assert_eq!(Budget { promised: limits::SPOOL_TOTAL_MAX - MIN, ..budget }.promise(), Some(MIN));
    }

    proptest! {
        #[test]
        fn a_raise_takes_nothing_away_and_stays_within_the_total(
            quota in MIN..=MAX,
            others in 0..limits::SPOOL_TOTAL_MAX - MAX,
            runs in 1..=limits::WORKER_RUNS_MAX,
        ) {
            let budget = Budget { disk: None, promised: others + quota, runs };
            let raised = budget.raise(quota);
            prop_assert!((quota..=MAX).contains(&raised));
            prop_assert!(others + raised <= limits::SPOOL_TOTAL_MAX);
        }
    }
}
