//! Idempotency keys: the record stands before the call is sent, and its end stands before the daemon forgets it.

use super::calls::{Call, Keyed, Stage, no_arguments};
use super::{EndKind, Outcome, Output, RestoredCall, StoreAnswer, StoreRequest, Switchboard, Timer};
use crate::code::{Code, ToolError};
use crate::id::{AccountId, CallId, InstanceId};
use crate::limits;
use crate::policy::Role;
use crate::time::{Due, Now};
use crate::wire::{Authorization, ToolCall};

impl Switchboard {
    pub(super) fn reserve(&mut self, id: &CallId) {
        // Where it will most likely go, which saves a second write before it is sent.
        let instance = self.ready_socket().and_then(|socket| socket.instance().cloned());
        let Some(call) = self.calls.get_mut(id) else { return };
        let Some(key) = &mut call.key else { return };
        call.stage = Stage::Reserving;
        key.assigned = instance.clone();
        self.by_key.insert(key.scope.clone(), id.clone());
        self.out.push_back(Output::Store(StoreRequest::Reserve {
            call: id.clone(),
            scope: key.scope.clone(),
            digest: key.digest,
            account: call.request.authorization.account_id.clone(),
            instance,
            budget: call.budget,
            control: call.control,
        }));
    }

    /// Whether the record of a keyed call does not yet say that it goes to this instance.
    pub(super) fn needs_assigning(&self, id: &CallId, instance: &InstanceId) -> bool {
        let key = self.calls.get(id).and_then(|call| call.key.as_ref());
        key.is_some_and(|key| key.assigned.as_ref() != Some(instance))
    }

    pub(super) fn assign(&mut self, id: &CallId, instance: &InstanceId) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let Some(key) = &call.key else { return };
        call.stage = Stage::Assigning { instance: instance.clone() };
        let (call, scope, instance) = (id.clone(), key.scope.clone(), instance.clone());
        self.out.push_back(Output::Store(StoreRequest::Assign { call, scope, instance }));
    }

    /// The store answered. A call that ended meanwhile needs no answer.
    pub(super) fn stored(&mut self, now: Now, id: &CallId, answer: StoreAnswer) {
        let Some(call) = self.calls.get_mut(id) else { return };
        match &mut call.stage {
            Stage::Reserving => match answer {
                StoreAnswer::Committed => self.enqueue(now, id),
                other => self.answer_by_record(now, id, other),
            },
            Stage::Assigning { instance } => {
                if let (StoreAnswer::Committed, Some(key)) = (&answer, &mut call.key) {
                    key.assigned = Some(instance.clone());
                    call.stage = Stage::Queued;
                    // It has waited its turn already.
                    self.queue.push_front(id.clone());
                    self.dispatch(now);
                    self.wait(now, id);
                } else {
                    self.end(now, id, Err(storage_full()), EndKind::Expired);
                }
            }
            Stage::Storing { instance, outcome, told } => {
                let (instance, outcome, first) = (instance.clone(), outcome.clone(), !std::mem::replace(told, true));
                let waiters = std::mem::take(&mut call.waiters);
                if matches!(answer, StoreAnswer::Committed) {
                    self.drop_key(id);
                    self.forget_result(now, id, &instance, true);
                } else if !self.will_be_sent_again(&instance) {
                    self.drop_key(id);
                    self.calls.remove(id);
                    self.stop_progress(now);
                }
                // Otherwise no acknowledgement: the daemon keeps the result and sends it again.
                if first {
                    self.tell(waiters, outcome);
                }
            }
            Stage::Queued | Stage::Sent { .. } | Stage::Detached { .. } | Stage::Handed { .. } => {}
        }
    }

    /// The key stood in the store already, or could not be put there: the call is not sent.
    fn answer_by_record(&mut self, now: Now, id: &CallId, answer: StoreAnswer) {
        let (outcome, kind) = match answer {
            StoreAnswer::Known(outcome) => {
                let kind = if outcome.is_ok() { EndKind::Done } else { EndKind::Failed };
                (outcome, kind)
            }
            StoreAnswer::Unfinished => {
                let text = "the call with this key was sent before, and no word of its outcome will come";
                (Err(ToolError::new(Code::OutcomeUnknown, text)), EndKind::Unknown)
            }
            StoreAnswer::Conflict => {
                let text = "the idempotency key was used with other arguments";
                (Err(ToolError::new(Code::Conflict, text)), EndKind::Failed)
            }
            StoreAnswer::Bound => {
                let text = "too many idempotency keys of this account are remembered";
                (Err(ToolError::nothing_done(Code::LimitExceeded, text)), EndKind::Expired)
            }
            StoreAnswer::Refused | StoreAnswer::Committed => (Err(storage_full()), EndKind::Expired),
        };
        // The record, if there is one, is another call's: this one leaves it as it is.
        self.drop_key(id);
        self.end(now, id, outcome, kind);
    }

    /// The end of a keyed call goes to its record; one that means nothing was done deletes it.
    pub(super) fn keep_end(&mut self, call: &Call, outcome: &Outcome, kind: EndKind) {
        let Some(Keyed { scope, .. }) = &call.key else { return };
        let (id, scope) = (call.request.id.clone(), scope.clone());
        let nothing_done = kind == EndKind::Expired || kind == EndKind::Cancelled && call.is_unsent();
        self.out.push_back(Output::Store(if nothing_done {
            StoreRequest::Forget { call: id, scope }
        } else {
            StoreRequest::Finish { call: id, scope, outcome: kept(outcome) }
        }));
    }

    /// The daemon sent a result again whose end the store refused before.
    pub(super) fn store_again(&mut self, id: &CallId) {
        let Some(Call { key: Some(key), stage: Stage::Storing { outcome, .. }, .. }) = self.calls.get(id) else {
            return;
        };
        let (call, scope, outcome) = (id.clone(), key.scope.clone(), kept(outcome));
        self.out.push_back(Output::Store(StoreRequest::Finish { call, scope, outcome }));
    }

    fn will_be_sent_again(&self, instance: &InstanceId) -> bool {
        self.home.as_ref().is_some_and(|home| home.instance == *instance && home.acknowledges)
    }

    /// The call no longer answers for its key.
    pub(super) fn drop_key(&mut self, id: &CallId) {
        if let Some(key) = self.calls.get_mut(id).and_then(|call| call.key.take()) {
            self.by_key.remove(&key.scope);
        }
    }

    /// After a crash: keyed calls are detached with a fresh grace, or with what is left of an announced sleep.
    pub(super) fn restore(&mut self, now: Now, calls: Vec<RestoredCall>) {
        let mut longest = limits::GRACE;
        for restored in calls {
            let Some(instance) = restored.instance else { continue };
            longest = longest.max(restored.hold_left.unwrap_or_default());
            self.order += 1;
            let id = restored.id;
            let call = Call {
                tool: restored.scope.tool.clone(),
                request: ToolCall {
                    id: id.clone(),
                    tool: restored.scope.tool.to_string(),
                    arguments: no_arguments(),
                    timeout_ms: 0,
                    authorization: nobody(),
                    progress: false,
                },
                order: self.order,
                opened: now.boot,
                control: restored.control,
                key: Some(Keyed {
                    scope: restored.scope.clone(),
                    digest: restored.digest,
                    assigned: Some(instance.clone()),
                }),
                waiters: Vec::new(),
                restored: true,
                budget: restored.budget,
                left: restored.budget + limits::SETTLEMENT,
                arriving: None,
                bad_transfers: 0,
                stage: Stage::Detached { instance },
            };
            self.by_key.insert(restored.scope, id.clone());
            self.calls.insert(id, call);
        }
        self.timers.set(Timer::Grace, Due::boot(now, longest));
    }
}

/// The form of an end that is kept. A result above the bound is replaced by the word that the tool ran.
fn kept(outcome: &Outcome) -> Outcome {
    match outcome {
        Ok(result) if result.get().len() > limits::KEPT_RESULT_MAX => {
            Err(ToolError::new(Code::ResultTooLarge, "the tool ran; its result was too large to be kept"))
        }
        other => other.clone(),
    }
}

fn storage_full() -> ToolError {
    ToolError::nothing_done(Code::StorageFull, "the call's idempotency key cannot be stored")
}

/// A restored call is never sent, so nobody's rights are used.
fn nobody() -> Authorization {
    Authorization {
        account_id: AccountId::mint([0; AccountId::RANDOM_BYTES]),
        account_version: 1,
        role: Role::Reviewer,
        client: None,
        client_name: None,
    }
}
