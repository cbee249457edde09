//! Outages of the last day: what the strip in the window and `status --json` show.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{LinkState, UnixMs};
use crate::limits;

/// One time during which the relay was away for longer than a blip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct Outage {
    /// When the link was lost.
    pub started_at: UnixMs,
    /// When it was ready again; `None` while it lasts.
    pub ended_at: Option<UnixMs>,
    /// Why, in plain words.
    pub cause: Option<String>,
    /// Calls that were in flight and came through.
    pub calls_saved: u64,
    /// Calls that were in flight and whose outcome is not known.
    pub calls_lost: u64,
}

/// Counts outages from the states of the link. Keeps [`limits::OUTAGES_KEPT`] of the last
/// [`limits::OUTAGES_KEPT_FOR`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutageLog {
    outages: VecDeque<Outage>,
    #[serde(skip)]
    lost_link: Option<Lost>,
}

/// Calls in numbers at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Calls that run and results that wait.
    pub held: u64,
    /// Results that arrived, since the process started.
    pub delivered: u64,
    /// Calls without a known outcome, since the process started.
    pub lost: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Lost {
    at: UnixMs,
    before: Tally,
    recorded: bool,
}

impl OutageLog {
    /// Takes the link's state, in the order it happened. Returns whether what [`OutageLog::list`] shows has changed.
    pub fn observe(&mut self, now: UnixMs, state: LinkState, since: UnixMs, cause: Option<&str>, calls: Tally) -> bool {
        let away = matches!(
            state,
            LinkState::Blip
                | LinkState::Outage
                | LinkState::Recovering
                | LinkState::SignInNeeded
                | LinkState::Incompatible
        );
        if !away {
            let Some(was) = self.lost_link.take() else { return false };
            let Some(open) = self.outages.back_mut().filter(|_| was.recorded) else { return false };
            open.ended_at = Some(now);
            // Hardly anything new can have come in yet: what is held now came through, and so did what arrived since.
            open.calls_saved = calls.held + calls.delivered.saturating_sub(was.before.delivered);
            open.calls_lost = calls.lost.saturating_sub(was.before.lost);
            return true;
        }
        let was = self.lost_link.get_or_insert(Lost { at: since, before: calls, recorded: false });
        let worth_telling = !matches!(state, LinkState::Blip | LinkState::Recovering);
        if was.recorded || !worth_telling {
            return false;
        }
        was.recorded = true;
        let started_at = was.at;
        self.outages.push_back(Outage {
            started_at,
            ended_at: None,
            cause: cause.map(str::to_owned),
            calls_saved: 0,
            calls_lost: 0,
        });
        self.forget_old(now);
        true
    }

    /// After loading from disk: an outage that was open when the process ended has no known end, so it ends where the
    /// process was last known to run.
    pub fn close_open(&mut self, last_known: UnixMs) {
        for outage in self.outages.iter_mut().filter(|o| o.ended_at.is_none()) {
            outage.ended_at = Some(last_known.max(outage.started_at));
        }
    }

    /// Whether an outage lasts.
    pub fn is_open(&self) -> bool {
        self.outages.back().is_some_and(|o| o.ended_at.is_none())
    }

    /// Those of the last 24 h, oldest first.
    pub fn list(&mut self, now: UnixMs) -> Vec<Outage> {
        self.forget_old(now);
        self.outages.iter().cloned().collect()
    }

    fn forget_old(&mut self, now: UnixMs) {
        let kept_for = u64::try_from(limits::OUTAGES_KEPT_FOR.as_millis()).unwrap_or(u64::MAX);
        let horizon = now.saturating_sub(kept_for);
        while self.outages.len() > limits::OUTAGES_KEPT
            || self.outages.front().is_some_and(|o| o.ended_at.is_some_and(|end| end < horizon))
        {
            self.outages.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(held: u64, delivered: u64, lost: u64) -> Tally {
        Tally { held, delivered, lost }
    }

    #[test]
    fn a_blip_leaves_no_outage() {
        let mut log = OutageLog::default();
        assert!(!log.observe(1_000, LinkState::Healthy, 1_000, None, tally(0, 0, 0)));
        assert!(!log.observe(2_000, LinkState::Blip, 2_000, Some("reset"), tally(0, 0, 0)));
        assert!(!log.observe(2_500, LinkState::Recovering, 2_500, None, tally(0, 0, 0)));
        assert!(!log.observe(3_000, LinkState::Healthy, 3_000, None, tally(1, 0, 0)));
        assert_eq!(log.list(3_000), vec![]);
    }

    #[test]
    fn an_outage_starts_when_the_link_was_lost_and_counts_what_it_saved() {
        let mut log = OutageLog::default();
        log.observe(2_000, LinkState::Blip, 2_000, Some("reset"), tally(3, 0, 1));
        assert!(log.observe(12_000, LinkState::Outage, 12_000, Some("reset"), tally(3, 0, 1)));
        assert!(!log.observe(20_000, LinkState::Recovering, 20_000, None, tally(2, 0, 2)));
        assert!(log.observe(21_000, LinkState::Healthy, 21_000, None, tally(1, 1, 2)), "one result arrived already");
        let expected = Outage {
            started_at: 2_000,
            ended_at: Some(21_000),
            cause: Some("reset".into()),
            calls_saved: 2,
            calls_lost: 1,
        };
        assert_eq!(log.list(21_000), vec![expected]);
        assert_eq!(log.list(21_000 + 24 * 3_600_000 + 1), vec![]);
    }

    #[test]
    fn an_outage_that_was_open_at_a_crash_ends_at_the_last_known_moment() {
        let mut log = OutageLog::default();
        log.observe(5_000, LinkState::Outage, 5_000, None, tally(0, 0, 0));
        let text = serde_json::to_string(&log).unwrap();
        let mut loaded: OutageLog = serde_json::from_str(&text).unwrap();
        loaded.close_open(9_000);
        assert_eq!(loaded.list(9_000)[0].ended_at, Some(9_000));
    }
}
