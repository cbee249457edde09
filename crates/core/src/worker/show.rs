//! What a new life finds in its ledger, and what people are told.

use std::collections::BTreeMap;

use super::io::*;
use super::ledger::Living;
use super::machine::Worker;
use super::operations::{Entry, Phase};
use super::recovery::Session;
use crate::id::RunId;
use crate::operation::{Outcome, State, Stream, Streams};
use crate::time::Now;

impl Worker {
    /// Takes over what the last life left: ended ones are offered again, runs are settled or found again, and what was being
    /// done is done again if that comes to the same.
    pub(super) fn load(&mut self, now: Now, rows: Vec<Living>, offsets: &[(RunId, Stream, u64)]) {
        let mut lost = Vec::new();
        for Living { row, age } in rows {
            let kind = row.operation.kind();
            let run = row.operation.run_id.clone().filter(|_| kind.is_run());
            let phase = match (row.state, &run) {
                (state, _) if state.is_final() => Phase::Ended,
                (State::Starting | State::Running, Some(_)) => Phase::Asked,
                (State::Running, None) if kind.is_input() => Phase::Ready,
                (State::Starting | State::Running, None) if !kind.is_repeatable() => {
                    lost.push(row.operation.request_id.clone());
                    Phase::Waiting
                }
                _ => Phase::Waiting,
            };
            if let Some(run) = &run {
                for (_, stream, offset) in offsets.iter().filter(|(of, _, _)| of == run) {
                    self.window.restore(run, row.attempt, *stream, *offset);
                }
                self.window.track(run, row.attempt, &row.written);
                match (phase, row.state) {
                    (Phase::Asked, State::Starting) => self.out.push_back(Output::Void(run.clone(), row.attempt)),
                    (Phase::Asked, _) => self.out.push_back(Output::Attach(run.clone(), row.attempt)),
                    _ => {}
                }
                if phase == Phase::Asked && row.cancelled {
                    self.out.push_back(Output::Tell(run.clone(), row.attempt, crate::run::Ask::Kill {}));
                }
                // The last life may have died between making it durable and saying so: a run that waits for room would wait on.
                for (_, stream, offset) in offsets.iter().filter(|(of, _, _)| of == run) {
                    self.out.push_back(Output::Trim(run.clone(), row.attempt, *stream, *offset));
                }
            }
            let (since, told) = (now.boot.saturating_sub(age), phase == Phase::Ready);
            self.operations.insert(Entry { since, told, ..Entry::new(now, row, phase) });
        }
        for id in lost {
            let reason = "the worker ended while it was being done".into();
            self.end(&id, Outcome::Unknown { reason, evidence: None }, Streams::new());
        }
        let inputs: Vec<RunId> = self.operations.iter().filter_map(|entry| entry.input_for().cloned()).collect();
        for run in inputs {
            self.orphan(&run);
        }
    }

    /// What people are told.
    pub fn snapshot(&self, now: Now) -> Snapshot {
        let (state, since) = self.outage.state();
        let mut counts = BTreeMap::new();
        for entry in self.operations.iter() {
            *counts.entry(entry.row.state).or_insert(0) += 1;
        }
        Snapshot {
            state,
            since,
            attempts: self.dialer.attempts(),
            cause: self.outage.cause().cloned(),
            next_try_at: self.dialer.next_try_at(now),
            live: self.session.as_ref().is_some_and(Session::is_live),
            lease_ends_at: self.leave.ends_at(now),
            lease_held: self.leave.is_paused(),
            generation: self.leave.generation(),
            counts: counts.into_iter().collect(),
            stalled: self.operations.iter().filter(|entry| entry.stalled.is_some()).count(),
            behind: self.window.behind_in_all(),
            results_waiting: self.operations.iter().filter(|entry| entry.phase == Phase::Ended).count(),
            full_since: self.full_since,
            living: self.operations.iter().map(|entry| self.shown(entry)).collect(),
            ended: self.ended.iter().cloned().collect(),
        }
    }

    /// An operation for people.
    pub(super) fn shown(&self, entry: &Entry) -> Shown {
        let operation = &entry.row.operation;
        let outcome = entry.row.outcome.as_ref();
        Shown {
            id: entry.id().clone(),
            kind: operation.kind(),
            summary: entry.summary.clone(),
            session: operation.session_id.clone(),
            state: entry.row.state,
            since: entry.since,
            exit_code: outcome.and_then(Outcome::exit).and_then(|exit| exit.code),
            behind: entry.run().map_or(0, |run| self.window.behind(run)),
            stalled: entry.stalled,
            on_lease_expiry: operation.request.on_lease_expiry(),
            note: match outcome {
                Some(Outcome::Failed { error, .. }) => Some(error.message.clone()),
                Some(unknown @ Outcome::Unknown { reason, .. }) => {
                    Some(std::iter::once(reason.clone()).chain(unknown.known()).collect::<Vec<_>>().join("; "))
                }
                _ => None,
            },
        }
    }

    /// Whether nothing of any run is kept any more.
    #[cfg(test)]
    pub(super) fn window_is_empty(&self) -> bool {
        self.window.is_empty()
    }
}
