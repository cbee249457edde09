//! After a cut: what the relay still waits for, what this instance knows of it, and the way back to ready.

use std::collections::BTreeSet;

use super::calls::{Fate, Label};
use super::io::*;
use super::machine::{Daemon, Timer};
use super::work::outcome_unknown;
use crate::code::{Code, ToolError};
use crate::id::CallId;
use crate::limits;
use crate::status::Step;
use crate::time::Now;
use crate::wire::{DaemonFrame, Feature, ResumeReport};

impl Daemon {
    /// `resume_calls` on the connection being proven.
    pub(super) fn resume(&mut self, now: Now, ids: &[CallId]) {
        let named: BTreeSet<&CallId> = ids.iter().collect();
        let omitted = |id: &&CallId| !named.contains(*id);
        let running: Vec<CallId> = self.calls.wanted().map(|(id, _)| id).filter(omitted).cloned().collect();
        let held: Vec<CallId> = self.outbox.ids().filter(omitted).cloned().collect();
        let base = self.settings.compat == Compat::Base;
        if base && self.unclean && !self.second_look && !(running.is_empty() && held.is_empty()) {
            return self.look_again(now);
        }
        // From here on the older connection is closed to us: what it still says was said before this list.
        self.deaf = self.serving.is_some();
        for id in &running {
            self.cancel(now, id, CancelReason::CallerNoLongerWaiting);
        }
        let mut dropped = 0;
        for id in &held {
            let arrived = self.outbox.has_arrived(id, self.serving.is_some());
            let Some(label) = self.outbox.remove(id) else { continue };
            if arrived {
                self.arrived(id, &label);
            } else {
                dropped += 1;
                self.step(id, &label, Step::Lost, None);
            }
        }
        // Whether who asked had left or the relay forgot it is not said here; either way nobody will have the answer.
        self.lost += (running.len() + dropped) as u64;
        let settled: Vec<CallId> = self.calls.seen().map(|(id, _)| id).filter(omitted).cloned().collect();
        for id in &settled {
            self.calls.forget(id);
        }
        let report = self.report(ids);
        let told = Told::Resumed {
            running: report.running.len(),
            replayed: report.done.len(),
            stopped: running.len(),
            dropped,
            unknown: report.unknown.len(),
            lost: report.lost.len(),
        };
        if !ids.is_empty() || !running.is_empty() || !held.is_empty() {
            self.told.push(told);
        }
        self.lost += report.lost.len() as u64;
        let Some(candidate) = &mut self.candidate else { return };
        if candidate.features.has(Feature::Report) {
            candidate.queue(DaemonFrame::ResumeReport(report));
            return;
        }
        // Without a report the same is said by results, after `ready_ack`.
        for id in report.lost {
            self.answer(&id, Label::default(), outcome_unknown("this call was given up before"));
        }
        for id in report.unknown {
            let never_seen = ToolError::nothing_done(Code::Unavailable, "this call never reached the device");
            self.answer(&id, Label::default(), never_seen);
        }
    }

    fn report(&self, ids: &[CallId]) -> ResumeReport {
        let mut report = ResumeReport::default();
        for id in ids {
            let list = match self.calls.fate(id) {
                Some(Fate::Running) => &mut report.running,
                Some(Fate::Held) => &mut report.done,
                Some(Fate::Lost) => &mut report.lost,
                None => &mut report.unknown,
            };
            list.push(id.clone());
        }
        report
    }

    /// A base relay that had not noticed the end of the last connection names only calls that it had detached.
    /// This connection replaces that one; the next list is the true one.
    fn look_again(&mut self, now: Now) {
        self.second_look = true;
        if let Some(candidate) = self.candidate.take() {
            self.out.push_back(Output::Close(candidate.socket, 1000, "stale daemon connection"));
        }
        let dropped = self.dialer.nudge(now);
        self.out.extend(dropped.into_iter().map(Output::Drop));
    }

    /// `ready_ack`: the candidate serves from now on.
    pub(super) fn proven(&mut self, now: Now) {
        let Some(session) = self.candidate.take() else { return };
        self.grace = match session.grace {
            Some(grace) => grace + limits::DAEMON_GRACE_EXTRA,
            None => limits::BASE_GRACE,
        };
        if let Some(old) = self.serving.replace(session) {
            self.out.push_back(Output::Close(old.socket, 1000, "stale daemon connection"));
        }
        self.deaf = false;
        self.unclean = false;
        self.second_look = false;
        self.timers.stop(&Timer::Grace);
        self.timers.stop(&Timer::Check);
        self.outage.ready(now, self.dialer.attempts(), &mut self.told);
        self.dialer.ready(now);
        self.warnings_over();
        self.outbox.replay();
        if self.generation > 0 {
            let running: Vec<_> = self.calls.wanted().map(|(id, label)| (id.clone(), label.clone())).collect();
            for (id, label) in running {
                self.step(&id, &label, Step::Rebound, None);
            }
        }
        self.generation += 1;
        self.mark_changed();
    }
}
