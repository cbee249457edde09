//! Promotion: a record in the store takes the place of a request that has waited long enough.
//!
//! The handle is told only when the record is committed. From then on the call lives although nobody waits, may wait longer
//! to be sent, and its end goes to the record before the daemon may forget the result.

use std::sync::Arc;
use std::time::Duration;

use rand::RngCore as _;

use super::calls::{Call, Stage, Waiting};
use super::keys::{Handle, Record};
use super::{Outlives, Output, StoreAnswer, StoreRequest, Switchboard, Timer, WaiterId};
use crate::id::{CallId, KeptId};
use crate::limits;
use crate::time::{Due, Now};

/// How long a request waits for more than a handle.
#[derive(Debug)]
pub(super) struct Patience {
    /// Boot time.
    until: Duration,
    when_away: bool,
    grant: Arc<str>,
}

impl Patience {
    pub(super) fn from(now: Now, outlives: &Outlives) -> Patience {
        Patience {
            until: now.boot.saturating_add(outlives.after),
            when_away: outlives.when_away,
            grant: outlives.grant.clone(),
        }
    }
}

impl Switchboard {
    /// A request has just begun to wait.
    pub(super) fn mind_patience(&mut self, now: Now, id: &CallId) {
        let Some(call) = self.calls.get(id) else { return };
        let Some(until) = call.waiters.iter().filter_map(|w| w.patience.as_ref()).map(|p| p.until).min() else {
            return;
        };
        if self.timers.get(&Timer::Patience).is_none_or(|due| due.left(now) > until.saturating_sub(now.boot)) {
            self.timers.set(Timer::Patience, Due::Boot(until));
        }
        if self.is_away() {
            self.hurry(now, id);
        }
        self.promote(now, id);
    }

    /// The device is not there: requests that need not wait for it take a handle.
    pub(super) fn device_away(&mut self, now: Now) {
        let waits = |call: &&Call| call.waiters.iter().any(|waiting| waiting.patience.is_some());
        let ids: Vec<_> = self.calls.values().filter(waits).map(|call| call.request.id.clone()).collect();
        for id in ids {
            self.hurry(now, &id);
            self.promote(now, &id);
        }
    }

    pub(super) fn patience_over(&mut self, now: Now) {
        let ids: Vec<_> =
            self.calls.values().filter(|call| call.is_due(now)).map(|call| call.request.id.clone()).collect();
        for id in ids {
            self.promote(now, &id);
        }
        self.watch_patience(now);
    }

    /// One timer for all: a call that ends in time costs nothing here.
    fn watch_patience(&mut self, now: Now) {
        let untils = self.calls.values().flat_map(|call| &call.waiters).filter_map(|waiting| waiting.patience.as_ref());
        // Those that are due already wait for the store's answer.
        if let Some(next) = untils.map(|patience| patience.until).filter(|until| *until > now.boot).min() {
            self.timers.set(Timer::Patience, Due::Boot(next));
        }
    }

    fn is_away(&self) -> bool {
        self.ready_socket().is_none() || self.home.as_ref().is_some_and(|home| home.hold.is_some())
    }

    fn hurry(&mut self, now: Now, id: &CallId) {
        let Some(call) = self.calls.get_mut(id) else { return };
        for patience in call.waiters.iter_mut().filter_map(|waiting| waiting.patience.as_mut()) {
            if patience.when_away {
                patience.until = patience.until.min(now.boot);
            }
        }
    }

    /// Gives the waiters of a call that are due its handle, or has one made.
    pub(super) fn promote(&mut self, now: Now, id: &CallId) {
        if !self.calls.get(id).is_some_and(|call| call.is_due(now)) {
            return;
        }
        let full = self.promoted_waiting() >= limits::PROMOTED_WAITING_MAX;
        let Some(call) = self.calls.get_mut(id) else { return };
        // A key's record comes first, and an end that is here is better than a handle.
        if !(call.is_out() || call.is_unsent()) || matches!(call.stage, Stage::Reserving) {
            return;
        }
        match call.record.as_ref().and_then(|record| record.handle.as_ref()) {
            Some(Handle { told: false, .. }) => {}
            Some(Handle { id: handle, told: true }) => {
                let handle = handle.clone();
                for waiter in call.take_due(now) {
                    self.out.push_back(Output::Kept { waiter, handle: handle.clone() });
                }
            }
            None if full && call.is_unsent() => self.promote_later(now, id),
            None => self.keep(now, id),
        }
    }

    /// Calls that have or get a handle and were not sent.
    fn promoted_waiting(&self) -> usize {
        let has_handle = |call: &&Call| call.record.as_ref().is_some_and(|record| record.handle.is_some());
        self.calls.values().filter(has_handle).filter(|call| call.is_unsent()).count()
    }

    /// Has the record made.
    fn keep(&mut self, now: Now, id: &CallId) {
        let mut random = [0; KeptId::RANDOM_BYTES];
        self.rng.fill_bytes(&mut random);
        let handle = KeptId::mint(random);
        let Some(call) = self.calls.get_mut(id) else { return };
        let Some(grant) = call.due(now).map(|patience| patience.grant.clone()).next() else { return };
        let instance = call.instance().cloned();
        let new = call.new_record(instance.clone());
        let record = call.record.get_or_insert(Record { key: None, handle: None, assigned: instance });
        record.handle = Some(Handle { id: handle.clone(), told: false });
        self.out.push_back(Output::Store(StoreRequest::Keep { call: id.clone(), handle, grant, record: new }));
    }

    /// The store answered [`StoreRequest::Keep`]. A call that ended meanwhile was answered by its end.
    pub(super) fn kept(&mut self, now: Now, id: &CallId, answer: &StoreAnswer) {
        let hold = self.home.as_ref().and_then(|home| home.hold).map(|hold| hold.until.saturating_sub(now.boot));
        let Some(call) = self.calls.get_mut(id).filter(|call| call.is_out() || call.is_unsent()) else { return };
        let Some(record) = &mut call.record else { return };
        if !matches!(answer, StoreAnswer::Kept) {
            record.handle = None;
            if record.key.is_none() {
                call.record = None;
            }
            return self.promote_later(now, id);
        }
        if let Some(handle) = &mut record.handle {
            handle.told = true;
        }
        if call.is_unsent() {
            let until = call.queue_until(now);
            self.timers.set(Timer::Wait(id.clone()), until);
        } else if hold.is_some() {
            self.out.push_back(Output::Store(StoreRequest::Hold { call: id.clone(), hold }));
        }
        self.promote(now, id);
    }

    fn promote_later(&mut self, now: Now, id: &CallId) {
        let Some(call) = self.calls.get_mut(id) else { return };
        for patience in call.waiters.iter_mut().filter_map(|waiting| waiting.patience.as_mut()) {
            patience.until = patience.until.max(now.boot + limits::PROMOTE_AGAIN);
        }
        self.watch_patience(now);
    }

    pub(super) fn attend(&mut self, waiter: WaiterId, id: &CallId) {
        self.join(id, Waiting { id: waiter, progress: false, patience: None }, None);
    }
}

impl Call {
    fn due(&self, now: Now) -> impl Iterator<Item = &Patience> {
        self.waiters.iter().filter_map(|waiting| waiting.patience.as_ref()).filter(move |p| p.until <= now.boot)
    }

    /// How long it may wait to be sent.
    pub(super) fn queue_until(&self, now: Now) -> Due {
        let wait = Due::boot(now, limits::QUEUE_WAIT);
        let promoted = now.boot.max(self.opened + limits::QUEUE_TTL);
        if self.is_promoted() { Due::Boot(promoted) } else { wait }
    }

    fn is_due(&self, now: Now) -> bool {
        self.due(now).next().is_some()
    }

    fn take_due(&mut self, now: Now) -> Vec<WaiterId> {
        let due = |waiting: &mut Waiting| waiting.patience.as_ref().is_some_and(|patience| patience.until <= now.boot);
        self.waiters.extract_if(.., due).map(|waiting| waiting.id).collect()
    }
}
