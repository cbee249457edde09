//! Records of calls. A keyed call's stands before it is sent, a promoted one's before its handle is told; the end of both
//! stands before the daemon forgets it.

use std::sync::Arc;

use super::calls::{Call, Stage, no_arguments};
use super::{
    EndKind, IdempotencyKey, NewRecord, OpenCall, Outcome, Output, RestoredCall, StoreAnswer, StoreRequest,
    Switchboard, Timer,
};
use crate::code::{Code, ToolError};
use crate::id::{AccountId, CallId, InstanceId, KeptId};
use crate::limits;
use crate::policy::Role;
use crate::time::{Due, Now};
use crate::wire::{Authorization, ToolCall};

/// What the store knows, or is being told, of a call.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) key: Option<Keyed>,
    pub(super) handle: Option<Handle>,
    /// Where it says that the call may have been sent.
    pub(super) assigned: Option<InstanceId>,
}

/// The key of a call.
#[derive(Debug)]
pub(super) struct Keyed {
    pub(super) scope: KeyScope,
    pub(super) digest: [u8; 32],
}

/// The scope of an idempotency key on one device: same scope, same call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct KeyScope {
    principal: Arc<str>,
    tool: Arc<str>,
    key: Arc<str>,
}

/// The handle of a call.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) id: KeptId,
    /// It is committed, so clients may know it.
    pub(super) told: bool,
}

impl Record {
    /// A client may know its handle.
    pub(super) fn is_told(&self) -> bool {
        self.handle.as_ref().is_some_and(|handle| handle.told)
    }
}

impl Keyed {
    pub(super) fn of(open: &OpenCall, key: &IdempotencyKey) -> Keyed {
        Keyed::new(&open.principal, &open.tool, key)
    }

    fn new(principal: &Arc<str>, tool: &Arc<str>, key: &IdempotencyKey) -> Keyed {
        let scope = KeyScope { principal: principal.clone(), tool: tool.clone(), key: key.key.as_str().into() };
        Keyed { scope, digest: key.digest }
    }
}

impl Call {
    pub(super) fn new_record(&self, instance: Option<InstanceId>) -> NewRecord {
        NewRecord {
            account: self.request.authorization.account_id.clone(),
            principal: self.principal.clone(),
            tool: self.tool.clone(),
            instance,
            budget: self.budget,
            control: self.control,
        }
    }
}

impl Switchboard {
    pub(super) fn reserve(&mut self, id: &CallId) {
        // Where it will most likely go, which saves a second write before it is sent.
        let instance = self.ready_socket().and_then(|socket| socket.instance().cloned());
        let Some(call) = self.calls.get_mut(id) else { return };
        let new = call.new_record(instance.clone());
        let Some(record) = &mut call.record else { return };
        let Some(Keyed { scope, digest }) = &record.key else { return };
        call.stage = Stage::Reserving;
        record.assigned = instance;
        let key = IdempotencyKey { key: scope.key.to_string(), digest: *digest };
        self.by_key.insert(scope.clone(), id.clone());
        self.out.push_back(Output::Store(StoreRequest::Reserve { call: id.clone(), key, record: new }));
    }

    /// Whether the record of a call does not yet say that it goes to this instance.
    pub(super) fn needs_assigning(&self, id: &CallId, instance: &InstanceId) -> bool {
        let record = self.calls.get(id).and_then(|call| call.record.as_ref());
        record.is_some_and(|record| record.assigned.as_ref() != Some(instance))
    }

    pub(super) fn assign(&mut self, id: &CallId, instance: &InstanceId) {
        let Some(call) = self.calls.get_mut(id) else { return };
        call.stage = Stage::Assigning { instance: instance.clone() };
        let (call, instance) = (id.clone(), instance.clone());
        self.out.push_back(Output::Store(StoreRequest::Assign { call, instance }));
    }

    /// A promoted call that the store could not assign has its turn again.
    pub(super) fn assign_again(&mut self, now: Now, id: &CallId) {
        let waits = self.calls.get(id).is_some_and(|call| matches!(call.stage, Stage::Queued));
        if waits && !self.queue.contains(id) {
            self.queue.push_front(id.clone());
            self.dispatch(now);
        }
    }

    /// The store answered. A call that ended meanwhile needs no answer.
    pub(super) fn stored(&mut self, now: Now, id: &CallId, answer: StoreAnswer) {
        if matches!(answer, StoreAnswer::Kept | StoreAnswer::NotKept) {
            return self.kept(now, id, &answer);
        }
        let Some(call) = self.calls.get_mut(id) else { return };
        match &mut call.stage {
            Stage::Reserving => match answer {
                StoreAnswer::Committed => {
                    self.enqueue(now, id);
                    self.promote(now, id);
                }
                other => self.answer_by_record(now, id, other),
            },
            Stage::Assigning { instance } => {
                // Without a record any more, the promotion was refused: the call is a plain one.
                if matches!(answer, StoreAnswer::Committed) || call.record.is_none() {
                    if let Some(record) = &mut call.record {
                        record.assigned = Some(instance.clone());
                    }
                    call.stage = Stage::Queued;
                    // It has waited its turn already.
                    self.queue.push_front(id.clone());
                    self.dispatch(now);
                    self.wait(now, id);
                } else if call.is_promoted() {
                    // Its client was told that it may wait.
                    call.stage = Stage::Queued;
                    self.timers.set(Timer::Assign(id.clone()), Due::boot(now, limits::PROMOTE_AGAIN));
                } else {
                    self.end(now, id, Err(storage_full()), EndKind::Expired);
                }
            }
            Stage::Storing { instance, outcome, told } => {
                let (instance, outcome, first) = (instance.clone(), outcome.clone(), !std::mem::replace(told, true));
                let waiters = std::mem::take(&mut call.waiters);
                if matches!(answer, StoreAnswer::Committed) {
                    self.drop_record(id);
                    self.forget_result(now, id, &instance, true);
                } else if !self.will_be_sent_again(&instance) {
                    self.drop_record(id);
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
            StoreAnswer::Refused | StoreAnswer::Committed | StoreAnswer::Kept | StoreAnswer::NotKept => {
                (Err(storage_full()), EndKind::Expired)
            }
        };
        // The record, if there is one, is another call's: this one leaves it as it is.
        self.drop_record(id);
        self.end(now, id, outcome, kind);
    }

    /// The end of a call goes to its record. A record that nobody can ask for goes: its key is free because nothing was done,
    /// or its handle was told to nobody.
    pub(super) fn keep_end(&mut self, call: &Call, outcome: &Outcome, kind: EndKind) {
        let Some(record) = &call.record else { return };
        let id = call.request.id.clone();
        let frees_key = kind == EndKind::Expired || kind == EndKind::Cancelled && call.is_unsent();
        let asked_for = record.is_told() || record.key.is_some() && !frees_key;
        self.out.push_back(Output::Store(if asked_for {
            StoreRequest::Finish { call: id, outcome: record.kept(outcome), frees_key }
        } else {
            StoreRequest::Forget { call: id }
        }));
    }

    /// The daemon sent a result again whose end the store refused before.
    pub(super) fn store_again(&mut self, id: &CallId) {
        let Some(Call { record: Some(record), stage: Stage::Storing { outcome, .. }, .. }) = self.calls.get(id) else {
            return;
        };
        let outcome = record.kept(outcome);
        self.out.push_back(Output::Store(StoreRequest::Finish { call: id.clone(), outcome, frees_key: false }));
    }

    fn will_be_sent_again(&self, instance: &InstanceId) -> bool {
        self.home.as_ref().is_some_and(|home| home.instance == *instance && home.acknowledges)
    }

    /// The call no longer answers for its record.
    pub(super) fn drop_record(&mut self, id: &CallId) {
        if let Some(record) = self.calls.get_mut(id).and_then(|call| call.record.take())
            && let Some(key) = record.key
        {
            self.by_key.remove(&key.scope);
        }
    }

    /// After a crash: calls with a record are detached with a fresh grace, or with what is left of an announced sleep.
    pub(super) fn restore(&mut self, now: Now, calls: Vec<RestoredCall>) {
        let mut longest = limits::GRACE;
        for restored in calls {
            let Some(instance) = restored.instance else { continue };
            longest = longest.max(restored.hold_left.unwrap_or_default());
            self.order += 1;
            let id = restored.id;
            let key = restored.key.map(|key| Keyed::new(&restored.principal, &restored.tool, &key));
            if let Some(key) = &key {
                self.by_key.insert(key.scope.clone(), id.clone());
            }
            let call = Call {
                request: ToolCall {
                    id: id.clone(),
                    tool: restored.tool.to_string(),
                    arguments: no_arguments(),
                    timeout_ms: 0,
                    authorization: nobody(),
                    progress: false,
                },
                tool: restored.tool,
                principal: restored.principal,
                order: self.order,
                opened: now.boot,
                control: restored.control,
                record: Some(Record {
                    key,
                    handle: restored.handle.map(|id| Handle { id, told: true }),
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
            self.calls.insert(id, call);
        }
        self.timers.set(Timer::Grace, Due::boot(now, longest));
    }
}

impl Record {
    /// The form of an end that is kept. Without a handle a result above the bound is replaced by the word that the tool ran.
    fn kept(&self, outcome: &Outcome) -> Outcome {
        match outcome {
            Ok(result) if result.get().len() > limits::KEPT_RESULT_MAX && !self.is_told() => {
                Err(ToolError::new(Code::ResultTooLarge, "the tool ran; its result was too large to be kept"))
            }
            other => other.clone(),
        }
    }
}

fn storage_full() -> ToolError {
    ToolError::nothing_done(Code::StorageFull, "the call's record cannot be stored")
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
