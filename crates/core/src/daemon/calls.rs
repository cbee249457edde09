//! The calls of this instance: what runs, until when, and every id that was ever accepted and may still be asked for.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::CancelReason;
use crate::id::CallId;
use crate::limits;
use crate::status::CallCounts;
use crate::time::{Due, Now, TimerTable};
use crate::tools;

/// What became of an id. It is remembered until its result was acknowledged, or the relay no longer names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It runs, or is being stopped with its result still wanted.
    Running,
    /// Its result is in the outbox.
    Held,
    /// No result will come.
    Lost,
}

/// What the timeline says of a call besides its id.
#[derive(Debug, Clone, Default)]
pub(super) struct Label {
    /// Empty for an id that was answered without ever being taken in.
    pub tool: Arc<str>,
    pub client: Option<Arc<str>>,
}

#[derive(Debug)]
struct Running {
    label: Label,
    since: Duration,
    control: bool,
    progress: bool,
    stopping: Option<CancelReason>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Deadline(CallId),
    /// The executor should have ended it by now.
    Killed(CallId),
}

/// What is due.
#[derive(Debug)]
pub(super) enum CallDue {
    /// The budget is over: stop it; the executor's word is the result.
    Deadline(CallId),
    /// The executor did not end a call that ran out of its budget: its outcome is not known.
    Stuck(CallId),
}

/// The call table and the seen set.
#[derive(Debug, Default)]
pub(super) struct Calls {
    running: BTreeMap<CallId, Running>,
    seen: BTreeMap<CallId, Fate>,
    /// Ids in the order they came, for the bound on `seen`.
    order: VecDeque<CallId>,
    timers: TimerTable<Timer>,
}

impl Calls {
    /// What became of an id; `None`: never seen, or settled.
    pub fn fate(&self, id: &CallId) -> Option<Fate> {
        self.seen.get(id).copied()
    }

    /// Whether a place is free for this tool among `most` places, `reserve` of them for control tools.
    pub fn has_place(&self, tool: &str, most: usize, reserve: usize) -> bool {
        let control = tools::find(tool).is_some_and(|tool| tool.control);
        let ordinary = self.running.values().filter(|call| !call.control).count();
        self.running.len() < most && (control || ordinary < most - reserve)
    }

    /// Takes a call in. Its id must be new.
    pub fn begin(&mut self, now: Now, id: &CallId, label: Label, budget: Duration, progress: bool) {
        let control = tools::find(&label.tool).is_some_and(|tool| tool.control);
        self.running.insert(id.clone(), Running { label, since: now.boot, control, progress, stopping: None });
        self.timers.set(Timer::Deadline(id.clone()), Due::awake(now, budget));
        self.remember(id, Fate::Running);
    }

    /// Sets what is known of an id.
    pub fn remember(&mut self, id: &CallId, fate: Fate) {
        if self.seen.insert(id.clone(), fate).is_none() {
            self.order.push_back(id.clone());
        }
        // Each id is looked at once: where all of them must stay, looking again finds nothing else.
        for _ in 0..self.order.len() {
            if self.seen.len() <= limits::SEEN_IDS_MAX && self.order.len() <= 2 * limits::SEEN_IDS_MAX {
                break;
            }
            let Some(oldest) = self.order.pop_front() else { break };
            match self.seen.get(&oldest) {
                // Calls that run and results that wait are bounded by their own limits and must not be forgotten.
                Some(Fate::Running | Fate::Held) => self.order.push_back(oldest),
                Some(Fate::Lost) => drop(self.seen.remove(&oldest)),
                None => {}
            }
        }
    }

    /// An id is settled: it will not be asked for again.
    pub fn forget(&mut self, id: &CallId) {
        self.seen.remove(id);
    }

    /// Starts to stop a call. Returns its label, unless it is already being stopped without a result.
    pub fn stop(&mut self, now: Now, id: &CallId, why: CancelReason) -> Option<Label> {
        let call = self.running.get_mut(id)?;
        if call.stopping.is_some_and(|earlier| earlier != CancelReason::Timeout) {
            return None;
        }
        call.stopping = Some(why);
        let label = call.label.clone();
        self.timers.stop(&Timer::Deadline(id.clone()));
        self.timers.set(Timer::Killed(id.clone()), Due::awake(now, limits::KILL_SETTLE));
        if why != CancelReason::Timeout {
            self.seen.insert(id.clone(), Fate::Lost);
        }
        Some(label)
    }

    /// The executor ended a call. Returns its label if its result is wanted.
    pub fn finish(&mut self, id: &CallId) -> Option<Label> {
        let call = self.running.remove(id)?;
        self.timers.stop(&Timer::Deadline(id.clone()));
        self.timers.stop(&Timer::Killed(id.clone()));
        call.stopping.is_none_or(|why| why == CancelReason::Timeout).then_some(call.label)
    }

    /// Whether progress of this call is wanted.
    pub fn wants_progress(&self, id: &CallId) -> bool {
        self.running.get(id).is_some_and(|call| call.progress && call.stopping.is_none())
    }

    /// Ids and labels of the calls whose result is wanted.
    pub fn wanted(&self) -> impl Iterator<Item = (&CallId, &Label)> {
        self.running
            .iter()
            .filter(|(_, call)| call.stopping.is_none_or(|why| why == CancelReason::Timeout))
            .map(|(id, call)| (id, &call.label))
    }

    /// Every id that is remembered.
    pub fn seen(&self) -> impl Iterator<Item = (&CallId, Fate)> {
        self.seen.iter().map(|(id, fate)| (id, *fate))
    }

    /// One thing that is due.
    pub fn handle_timeout(&mut self, now: Now) -> Option<CallDue> {
        loop {
            match self.timers.expired(now)? {
                Timer::Deadline(id) => return Some(CallDue::Deadline(id)),
                Timer::Killed(id) => {
                    // A call that will not die keeps its place no longer; nobody waits for it, or the outcome is unknown.
                    let wanted = self.running.get(&id).is_some_and(|c| c.stopping == Some(CancelReason::Timeout));
                    if wanted {
                        return Some(CallDue::Stuck(id));
                    }
                    self.running.remove(&id);
                }
            }
        }
    }

    /// Time until something is due.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.timers.earliest(now)
    }

    /// The counts people see.
    pub fn counts(&self, now: Now, connected: bool, queued_results: usize) -> CallCounts {
        let mut by_tool = BTreeMap::new();
        // A call that is being stopped without a result is over for people.
        let wanted =
            || self.running.values().filter(|call| call.stopping.is_none_or(|why| why == CancelReason::Timeout));
        for call in wanted() {
            *by_tool.entry(call.label.tool.to_string()).or_insert(0) += 1;
        }
        let oldest = wanted().map(|call| now.boot.saturating_sub(call.since)).max();
        let pending = wanted().count();
        CallCounts {
            pending,
            detached: if connected { 0 } else { pending },
            queued_results,
            oldest_ms: oldest.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
            by_tool,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: usize) -> CallId {
        CallId::parse(&format!("call_{n:08}")).unwrap()
    }

    fn label(tool: &str) -> Label {
        Label { tool: tool.into(), client: None }
    }

    #[test]
    fn ordinary_calls_leave_the_reserve_to_control_tools() {
        let mut calls = Calls::default();
        for n in 0..60 {
            assert!(calls.has_place("run_process", 64, 4));
            calls.begin(Now::default(), &id(n), label("run_process"), Duration::from_secs(60), false);
        }
        assert!(!calls.has_place("run_process", 64, 4));
        for n in 60..64 {
            assert!(calls.has_place("kill_process", 64, 4));
            calls.begin(Now::default(), &id(n), label("kill_process"), Duration::from_secs(60), false);
        }
        assert!(!calls.has_place("kill_process", 64, 4));
    }

    #[test]
    fn a_deadline_counts_awake_time_only() {
        let start = Now::default();
        let mut calls = Calls::default();
        calls.begin(start, &id(1), label("x"), Duration::from_secs(60), false);
        assert!(calls.handle_timeout(start.slept(Duration::from_secs(3600))).is_none());
        let later = start.slept(Duration::from_secs(3600)).plus(Duration::from_secs(60));
        assert!(matches!(calls.handle_timeout(later), Some(CallDue::Deadline(due)) if due == id(1)));
    }

    #[test]
    fn the_seen_set_is_bounded_and_forgets_only_what_is_lost() {
        let mut calls = Calls::default();
        calls.begin(Now::default(), &id(0), label("x"), Duration::from_secs(60), false);
        for n in 1..2 * limits::SEEN_IDS_MAX {
            calls.remember(&id(n), Fate::Lost);
        }
        assert_eq!(calls.seen.len(), limits::SEEN_IDS_MAX);
        assert_eq!(calls.fate(&id(0)), Some(Fate::Running));
        assert_eq!(calls.fate(&id(1)), None);
    }

    #[test]
    fn results_that_wait_are_remembered_however_many_they_are() {
        let mut calls = Calls::default();
        for n in 0..=limits::SEEN_IDS_MAX {
            calls.remember(&id(n), Fate::Held);
        }
        assert_eq!(calls.seen.len(), limits::SEEN_IDS_MAX + 1);
        calls.remember(&id(0), Fate::Lost);
        calls.remember(&id(limits::SEEN_IDS_MAX + 1), Fate::Held);
        assert_eq!(calls.fate(&id(0)), None, "what may be forgotten still is");
    }

    #[test]
    fn a_stopped_call_has_no_result_and_frees_its_place_even_if_it_will_not_die() {
        let mut now = Now::default();
        let mut calls = Calls::default();
        calls.begin(now, &id(1), label("x"), Duration::from_secs(60), false);
        assert!(calls.stop(now, &id(1), CancelReason::Caller).is_some());
        assert!(calls.stop(now, &id(1), CancelReason::GraceExpired).is_none());
        assert_eq!(calls.fate(&id(1)), Some(Fate::Lost));
        now = now.plus(limits::KILL_SETTLE);
        assert!(calls.handle_timeout(now).is_none());
        assert!(calls.finish(&id(1)).is_none());
        assert_eq!(calls.counts(now, true, 0).pending, 0);
    }
}
