//! Counting failures and blocking who has too many.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use holdfast_core::limits;

/// How many failures in which time, and what follows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// Failures within the window that are still tried.
    pub(crate) tries: usize,
    /// Counted from the first failure.
    pub(crate) window: Duration,
    /// How long a block lasts from the last allowed try.
    pub(crate) block: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    tries: usize,
    since: Duration,
    last: Duration,
}

/// Tries by key. Time is boot time: a sleeping relay does not prolong a block.
#[derive(Debug)]
pub(crate) struct Throttle<K> {
    rule: Rule,
    entries: HashMap<K, Entry>,
}

impl<K: Hash + Eq + Clone> Throttle<K> {
    pub(crate) fn new(rule: Rule) -> Self {
        Throttle { rule, entries: HashMap::new() }
    }

    /// Time left of a block; zero when there is none.
    pub(crate) fn blocked(&self, now: Duration, key: &K) -> Duration {
        match self.entries.get(key) {
            Some(entry) if entry.tries >= self.rule.tries => (entry.last + self.rule.block).saturating_sub(now),
            _ => Duration::ZERO,
        }
    }

    /// Counts a try before it is known how it ends, so that tries made at once cannot pass together.
    pub(crate) fn count(&mut self, now: Duration, key: K) {
        if self.entries.len() >= limits::THROTTLE_KEYS && !self.entries.contains_key(&key) {
            self.make_room(now);
        }
        let entry = self.entries.entry(key).or_insert(Entry { tries: 0, since: now, last: now });
        let over = entry.tries >= self.rule.tries && now >= entry.last + self.rule.block;
        if over || (entry.tries < self.rule.tries && now >= entry.since + self.rule.window) {
            *entry = Entry { tries: 0, since: now, last: now };
        }
        entry.tries += 1;
        entry.last = now;
    }

    /// The try succeeded: everything before it is forgotten.
    pub(crate) fn forgive(&mut self, key: &K) {
        self.entries.remove(key);
    }

    fn make_room(&mut self, now: Duration) {
        let rule = self.rule;
        self.entries.retain(|_, entry| now < entry.last + rule.block.max(rule.window));
        // Blocks are forgotten last: whoever floods with new keys must not free a blocked one.
        while self.entries.len() >= limits::THROTTLE_KEYS {
            let oldest =
                self.entries.iter().min_by_key(|(_, e)| (e.tries >= rule.tries, e.last)).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { return };
            self.entries.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);
    const RULE: Rule = Rule { tries: 3, window: Duration::from_secs(600), block: Duration::from_secs(900) };

    #[test]
    fn the_last_allowed_try_starts_the_block_and_it_ends_by_itself() {
        let mut throttle = Throttle::new(RULE);
        for second in 1..=3 {
            assert_eq!(throttle.blocked(S * second, &"a"), Duration::ZERO);
            throttle.count(S * second, "a");
        }
        assert_eq!(throttle.blocked(S * 4, &"a"), S * 899);
        assert_eq!(throttle.blocked(S * 4, &"b"), Duration::ZERO);
        assert_eq!(throttle.blocked(S * 903, &"a"), Duration::ZERO);
        throttle.count(S * 903, "a");
        assert_eq!(throttle.blocked(S * 904, &"a"), Duration::ZERO);
    }

    #[test]
    fn tries_spread_over_more_than_the_window_do_not_block() {
        let mut throttle = Throttle::new(RULE);
        for n in 0..10 {
            throttle.count(S * 301 * n, "a");
            assert_eq!(throttle.blocked(S * 301 * n, &"a"), Duration::ZERO);
        }
    }

    #[test]
    fn a_success_forgives() {
        let mut throttle = Throttle::new(RULE);
        for _ in 0..2 {
            throttle.count(S, "a");
        }
        throttle.forgive(&"a");
        throttle.count(S, "a");
        assert_eq!(throttle.blocked(S, &"a"), Duration::ZERO);
    }

    #[test]
    fn a_flood_of_keys_stays_bounded_and_does_not_free_a_blocked_one() {
        let mut throttle = Throttle::new(RULE);
        for _ in 0..3 {
            throttle.count(S, usize::MAX);
        }
        for key in 0..limits::THROTTLE_KEYS + 10 {
            throttle.count(S * 2, key);
        }
        assert_eq!(throttle.entries.len(), limits::THROTTLE_KEYS);
        assert!(throttle.blocked(S * 2, &usize::MAX) > Duration::ZERO);
    }
}
