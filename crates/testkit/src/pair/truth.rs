//! What really happened, and that it fits what was promised.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use holdfast_core::code::Code;
use holdfast_core::daemon::CancelReason;
use holdfast_core::id::CallId;
use holdfast_core::switchboard::{EndKind, Outcome};

use super::Waiter;
use super::relay::{means_not_run, text};

/// How a request ended for its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// With the tool's result, byte-identical.
    Done,
    /// With an error of this code.
    Failed(Code),
    /// The relay's process died, and the connection with it.
    CutOff,
    /// The client left before the end.
    Left,
}

/// An idempotency key and whether its tool is a control tool.
type Key = (u32, bool);

#[derive(Debug, Default)]
struct CallTruth {
    /// The process that ran it; at most one ever.
    ran_in: Option<usize>,
    result: Option<String>,
    cancelled: Option<CancelReason>,
    stopped: bool,
    ended: Option<EndKind>,
    waiters: Vec<Waiter>,
}

/// Everything that happened to calls and requests. Panics as soon as a promise is broken.
#[derive(Debug, Default)]
pub struct Truth {
    calls: BTreeMap<CallId, CallTruth>,
    call_of: BTreeMap<Waiter, CallId>,
    ends: BTreeMap<Waiter, (Ended, Duration)>,
    asked: BTreeSet<Waiter>,
    key_of: BTreeMap<Waiter, Key>,
    key_runs: BTreeMap<Key, CallId>,
}

impl Truth {
    /// How a request ended, if it did.
    pub fn end_of(&self, waiter: Waiter) -> Option<&Ended> {
        self.ends.get(&waiter).map(|(end, _)| end)
    }

    /// When a request ended.
    pub fn ended_at(&self, waiter: Waiter) -> Option<Duration> {
        self.ends.get(&waiter).map(|(_, at)| *at)
    }

    /// Requests without an end.
    pub fn open(&self) -> Vec<Waiter> {
        self.asked.iter().filter(|waiter| !self.ends.contains_key(waiter)).copied().collect()
    }

    /// How requests ended, counted by kind.
    pub fn tally(&self) -> BTreeMap<String, u64> {
        let mut tally = BTreeMap::new();
        for (end, _) in self.ends.values() {
            let kind = match end {
                Ended::Done => "done",
                Ended::Failed(code) => code.as_str(),
                Ended::CutOff => "cut off",
                Ended::Left => "left",
            };
            *tally.entry(kind.to_owned()).or_default() += 1;
        }
        tally
    }

    /// Whether the call of a request was ever started.
    pub fn ran(&self, waiter: Waiter) -> bool {
        self.call(waiter).is_some_and(|call| call.ran_in.is_some())
    }

    /// Why the call of a request was stopped at the daemon, if it was.
    pub fn cancel_of(&self, waiter: Waiter) -> Option<CancelReason> {
        self.call(waiter).and_then(|call| call.cancelled)
    }

    /// Calls that ran.
    pub fn executions(&self) -> usize {
        self.calls.values().filter(|call| call.ran_in.is_some()).count()
    }

    fn call(&self, waiter: Waiter) -> Option<&CallTruth> {
        self.calls.get(self.call_of.get(&waiter)?)
    }

    pub(super) fn asked(&mut self, waiter: Waiter, key: Option<Key>) {
        self.asked.insert(waiter);
        if let Some(key) = key {
            self.key_of.insert(waiter, key);
        }
    }

    pub(super) fn admitted(&mut self, waiter: Waiter, call: &CallId) {
        self.call_of.insert(waiter, call.clone());
        self.calls.entry(call.clone()).or_default().waiters.push(waiter);
    }

    pub(super) fn started(&mut self, id: &CallId, machine: usize) {
        let call = self.calls.entry(id.clone()).or_default();
        assert_eq!(call.ran_in, None, "{id} ran twice");
        assert!(!call.ended.is_some_and(means_not_run), "{id} ran after it was said that it did not");
        call.ran_in = Some(machine);
        for key in call.waiters.iter().filter_map(|waiter| self.key_of.get(waiter)) {
            let earlier = self.key_runs.insert(*key, id.clone());
            assert!(
                earlier.as_ref().is_none_or(|earlier| earlier == id),
                "key {key:?} ran twice: {earlier:?} and {id}"
            );
        }
    }

    pub(super) fn finished(&mut self, id: &CallId, outcome: &Outcome) {
        self.calls.entry(id.clone()).or_default().result = text(outcome).map(|raw| raw.get().to_owned());
    }

    pub(super) fn cancelled(&mut self, id: &CallId, why: CancelReason) {
        self.calls.entry(id.clone()).or_default().cancelled = Some(why);
    }

    pub(super) fn stopped(&mut self, id: &CallId) {
        self.calls.entry(id.clone()).or_default().stopped = true;
    }

    pub(super) fn call_ended(&mut self, id: &CallId, kind: EndKind) {
        let call = self.calls.entry(id.clone()).or_default();
        assert_eq!(call.ended.replace(kind), None, "{id} ended twice");
        assert!(!(means_not_run(kind) && call.ran_in.is_some()), "{id} ran, and was said not to have");
    }

    pub(super) fn ended(&mut self, waiter: Waiter, at: Duration, outcome: &Outcome) {
        let call = self.call(waiter);
        let end = match outcome {
            Ok(raw) => {
                let result = call.and_then(|call| call.result.as_deref());
                // A keyed request that came later is answered with the end of the first one's call.
                let known = self.key_of.contains_key(&waiter) || result == Some(raw.get());
                assert!(known, "{waiter:?} got other bytes than its call made");
                Ended::Done
            }
            Err(error) => {
                let ran = call.is_some_and(|call| call.ran_in.is_some());
                assert!(!(error.retryable && ran), "{waiter:?}: {error} is retryable, and its call ran");
                Ended::Failed(error.code)
            }
        };
        self.end(waiter, at, end);
    }

    pub(super) fn cut_off(&mut self, waiter: Waiter) {
        self.end(waiter, Duration::ZERO, Ended::CutOff);
    }

    pub(super) fn left(&mut self, waiter: Waiter) {
        self.end(waiter, Duration::ZERO, Ended::Left);
    }

    fn end(&mut self, waiter: Waiter, at: Duration, end: Ended) {
        let earlier = self.ends.insert(waiter, (end.clone(), at));
        assert_eq!(earlier, None, "{waiter:?} ended again with {end:?}");
    }
}
