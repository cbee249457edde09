//! The timeline: what happened to calls, step by step, and to the channel, in a ring that forgets.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::UnixMs;
use crate::code::Code;
use crate::id::CallId;
use crate::limits;

/// One step of one call, or a notice of the channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct TimelineEntry {
    /// Grows by one with every entry of this process.
    pub seq: u64,
    /// When it happened.
    pub at: UnixMs,
    /// The call; the same id through all its steps. `None` for what is of no call.
    pub call: Option<CallId>,
    /// The tool's name; `channel` for a notice of the channel.
    pub tool: Arc<str>,
    /// What happened.
    pub step: Step,
    /// For [`Step::Finished`]: the error's code; `None` means it went well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Who asked, as the relay names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Arc<str>>,
    /// One line on what ran, such as `npm test`. Lives in memory only: never written to disk or log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Arc<str>>,
    /// For [`Step::Noticed`]: what happened to the channel; the summary says more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<ChannelNotice>,
}

/// What happened to the channel; each is said once, when it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ChannelNotice {
    /// This process speaks for the bot.
    Acquired,
    /// Another process has the seat that this one held.
    Superseded,
    /// This process gave the seat up.
    Failed,
    /// Nothing is posted in a channel until a person lets it be tried again.
    Parked,
    /// The service refuses a message.
    Refused,
    /// Whether a message was posted is unknown.
    Unknown,
    /// Entries of a transcript are not posted: they are too old or too many.
    Skipped,
}

/// A step of a call as this device sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The call came from the relay and was accepted.
    Received,
    /// The link was lost while it ran.
    Detached,
    /// It belongs to a proven link again.
    Rebound,
    /// The tool ended; its result waits.
    Finished,
    /// The result was sent to the relay.
    Sent,
    /// The relay confirmed the result.
    Delivered,
    /// It was stopped: by the caller, or because the grace ended.
    Cancelled,
    /// Nobody waited for its answer any more: it was stopped, or its result dropped.
    Lost,
    /// Something happened to the channel; of no call.
    Noticed,
}

impl Step {
    /// The step in a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Step::Received => "received",
            Step::Detached => "detached",
            Step::Rebound => "rebound",
            Step::Finished => "finished",
            Step::Sent => "sent",
            Step::Delivered => "delivered",
            Step::Cancelled => "cancelled",
            Step::Lost => "lost",
            Step::Noticed => "noticed",
        }
    }
}

/// The last [`limits::TIMELINE_ENTRIES`] steps.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    next: u64,
    entries: VecDeque<TimelineEntry>,
}

impl Timeline {
    /// Adds a step; its number is given here. The oldest is forgotten when the ring is full.
    pub fn push(&mut self, mut entry: TimelineEntry) -> TimelineEntry {
        entry.seq = self.next;
        self.next += 1;
        if self.entries.len() == limits::TIMELINE_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(entry.clone());
        entry
    }

    /// Steps numbered `from` and later, oldest first.
    pub fn since(&self, from: u64) -> Vec<TimelineEntry> {
        self.entries.iter().filter(|e| e.seq >= from).cloned().collect()
    }
}

/// One call, folded from its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct CallRow {
    /// The call.
    pub call: CallId,
    /// The tool's name.
    pub tool: Arc<str>,
    /// Where it stands.
    pub state: CallState,
    /// Time of its first step that is still known.
    pub at: UnixMs,
    /// From the first step to the end of the call, in milliseconds.
    pub took_ms: Option<u64>,
    /// The error's code, if it ended with one.
    pub code: Option<Code>,
    /// Who asked.
    pub client: Option<Arc<str>>,
    /// One line on what ran.
    pub summary: Option<Arc<str>>,
    /// The steps, oldest first, with their times.
    pub steps: Vec<(Step, UnixMs)>,
}

/// Where a call stands, in the words of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// It runs.
    Running,
    /// It runs and its link is gone.
    Detached,
    /// It finished and the result waits for the relay.
    Held,
    /// The relay has the result.
    Delivered,
    /// It was stopped.
    Cancelled,
    /// Nobody waited for its answer any more.
    Lost,
}

impl CallState {
    /// The state in a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            CallState::Running => "running",
            CallState::Detached => "detached",
            CallState::Held => "held",
            CallState::Delivered => "delivered",
            CallState::Cancelled => "cancelled",
            CallState::Lost => "lost",
        }
    }
}

/// Folds steps into calls, newest call first.
pub fn call_rows(entries: &[TimelineEntry]) -> Vec<CallRow> {
    let mut at: BTreeMap<&CallId, usize> = BTreeMap::new();
    let mut rows: Vec<CallRow> = Vec::new();
    for entry in entries {
        let Some(call) = &entry.call else { continue };
        let index = *at.entry(call).or_insert_with(|| {
            rows.push(CallRow {
                call: call.clone(),
                tool: entry.tool.clone(),
                state: CallState::Running,
                at: entry.at,
                took_ms: None,
                code: None,
                client: None,
                summary: None,
                steps: Vec::new(),
            });
            rows.len() - 1
        });
        rows[index].take(entry);
    }
    rows.reverse();
    rows
}

impl CallRow {
    fn take(&mut self, entry: &TimelineEntry) {
        self.steps.push((entry.step, entry.at));
        self.client = self.client.take().or_else(|| entry.client.clone());
        self.summary = self.summary.take().or_else(|| entry.summary.clone());
        self.code = self.code.or(entry.code);
        let ended =
            matches!(self.state, CallState::Held | CallState::Delivered | CallState::Cancelled | CallState::Lost);
        self.state = match entry.step {
            Step::Received | Step::Rebound if !ended => CallState::Running,
            Step::Detached if !ended => CallState::Detached,
            Step::Finished | Step::Sent if self.state != CallState::Delivered => CallState::Held,
            Step::Delivered => CallState::Delivered,
            Step::Cancelled => CallState::Cancelled,
            Step::Lost => CallState::Lost,
            _ => self.state,
        };
        if matches!(entry.step, Step::Finished | Step::Cancelled | Step::Lost) {
            self.took_ms.get_or_insert(entry.at.saturating_sub(self.at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_and_a_state_read_the_same_in_json_and_as_words() {
        for step in [Step::Received, Step::Detached, Step::Rebound, Step::Finished, Step::Sent, Step::Delivered] {
            assert_eq!(serde_json::to_value(step).unwrap(), step.as_str());
        }
        for step in [Step::Cancelled, Step::Lost, Step::Noticed] {
            assert_eq!(serde_json::to_value(step).unwrap(), step.as_str());
        }
        for state in [CallState::Running, CallState::Detached, CallState::Held, CallState::Delivered] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        for state in [CallState::Cancelled, CallState::Lost] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
    }

    #[test]
    fn a_call_that_nobody_waited_for_is_over_and_took_as_long_as_it_ran() {
        let entries = [
            step("call_aaaaaaaa", 10, Step::Received),
            step("call_bbbbbbbb", 10, Step::Received),
            step("call_aaaaaaaa", 30, Step::Finished),
            step("call_aaaaaaaa", 90, Step::Lost),
            step("call_bbbbbbbb", 90, Step::Lost),
            step("call_bbbbbbbb", 91, Step::Rebound),
        ];
        let rows: Vec<_> = call_rows(&entries).iter().map(|row| (row.state, row.took_ms)).collect();
        assert_eq!(rows, [(CallState::Lost, Some(80)), (CallState::Lost, Some(20))]);
    }

    fn step(call: &str, at: UnixMs, step: Step) -> TimelineEntry {
        TimelineEntry {
            seq: 0,
            at,
            call: Some(CallId::parse(call).unwrap()),
            tool: "run_process".into(),
            step,
            code: None,
            client: None,
            summary: None,
            notice: None,
        }
    }

    #[test]
    fn what_happens_to_the_channel_is_no_call() {
        let noticed = TimelineEntry {
            call: None,
            step: Step::Noticed,
            notice: Some(ChannelNotice::Acquired),
            ..step("call_aaaaaaaa", 20, Step::Received)
        };
        let rows = call_rows(&[step("call_aaaaaaaa", 10, Step::Received), noticed]);
        assert_eq!(rows.iter().map(|row| row.steps.len()).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn the_ring_forgets_the_oldest_step_and_numbers_go_on() {
        let mut timeline = Timeline::default();
        for at in 0..=limits::TIMELINE_ENTRIES as u64 {
            timeline.push(step("call_aaaaaaaa", at, Step::Received));
        }
        let all = timeline.since(0);
        assert_eq!(all.len(), limits::TIMELINE_ENTRIES);
        assert_eq!((all[0].seq, all[0].at), (1, 1));
        assert_eq!(timeline.since(limits::TIMELINE_ENTRIES as u64).len(), 1);
    }

    #[test]
    fn a_call_across_a_cut_is_one_row_with_all_its_steps() {
        let entries = [
            step("call_aaaaaaaa", 10, Step::Received),
            step("call_bbbbbbbb", 11, Step::Received),
            step("call_aaaaaaaa", 20, Step::Detached),
            step("call_aaaaaaaa", 30, Step::Finished),
            step("call_aaaaaaaa", 40, Step::Rebound),
            step("call_aaaaaaaa", 41, Step::Sent),
            step("call_aaaaaaaa", 42, Step::Delivered),
        ];
        let rows = call_rows(&entries);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].call.as_str(), "call_bbbbbbbb");
        assert_eq!(rows[1].state, CallState::Delivered);
        assert_eq!(rows[1].took_ms, Some(20));
        assert_eq!(rows[1].steps.len(), 6);
        assert_eq!(call_rows(&entries[..3])[1].state, CallState::Detached);
        assert_eq!(call_rows(&entries[..5])[1].state, CallState::Held);
    }
}
