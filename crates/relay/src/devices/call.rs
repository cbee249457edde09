//! A call as the request that waits for it holds it.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use holdfast_core::id::{CallId, KeptId};
use holdfast_core::limits;
use holdfast_core::switchboard::{Input, Outcome, WaiterId};
use parking_lot::Mutex;

use super::room::DeviceRoom;

/// One waiting request. Dropping it before its end means leaving: the call is cancelled when the last waiter left.
#[derive(Debug)]
pub struct CallHandle {
    room: Arc<DeviceRoom>,
    slot: Arc<Slot>,
    waiter: WaiterId,
    id: CallId,
    ended: bool,
}

/// What a waiting request hears.
pub enum CallEvent {
    /// Any number of times.
    Progress(CallProgress),
    /// Once, last: the call was promoted and goes on without this request. Only where [`OpenCall::outlives`](super::OpenCall::outlives) allows it.
    Kept(KeptId),
    /// Once, last.
    End(CallEnd),
}

/// Progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallProgress {
    /// Grows.
    pub progress: f64,
    /// The end of `progress`, if known.
    pub total: Option<f64>,
    /// A line for people.
    pub message: Option<String>,
}

/// The end of a call.
pub struct CallEnd {
    /// The result, byte-identical, or an error.
    pub outcome: Outcome,
    /// To be called when the answer is safe.
    pub commit: Commit,
}

/// The answer's receipt. [`Commit::done`] once it stands in the session's buffer or was handed to the open response: only
/// then is the daemon told that it may forget the result. Dropping it says that nobody got the answer.
#[derive(Debug)]
pub struct Commit(Option<(Arc<DeviceRoom>, WaiterId, CallId)>);

// Neither results nor what progress says is ever printed.
impl fmt::Debug for CallEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallEvent::Progress(progress) => write!(f, "Progress({})", progress.progress),
            CallEvent::Kept(_) => f.write_str("Kept"),
            CallEvent::End(end) => end.fmt(f),
        }
    }
}

impl fmt::Debug for CallEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "End({:?})", self.outcome.as_ref().map(|_| "done").map_err(|error| error.code))
    }
}

impl Commit {
    /// The answer is safe.
    pub fn done(mut self) {
        if let Some((room, _, call)) = self.0.take() {
            room.tell(Input::Commit { call });
        }
    }
}

impl Drop for Commit {
    fn drop(&mut self) {
        if let Some((room, waiter, call)) = self.0.take() {
            room.tell(Input::Leave { waiter, call });
        }
    }
}

impl CallHandle {
    pub(super) fn new(room: Arc<DeviceRoom>, slot: Arc<Slot>, waiter: WaiterId, id: CallId) -> Self {
        CallHandle { room, slot, waiter, id, ended: false }
    }

    /// The call. A request that joined a running call has that call's id.
    pub fn id(&self) -> &CallId {
        &self.id
    }

    /// The next event. Cancel-safe. Never ready again after the end.
    pub async fn next(&mut self) -> CallEvent {
        let event = poll_fn(|cx| {
            let mut slot = self.slot.0.lock();
            if let Some(progress) = slot.progress.pop_front() {
                return Poll::Ready(Ok(progress));
            }
            if let Some(last) = slot.last.take() {
                return Poll::Ready(Err(last));
            }
            if !slot.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                slot.waker = Some(cx.waker().clone());
            }
            Poll::Pending
        });
        match event.await {
            Ok(progress) => CallEvent::Progress(progress),
            Err(Last::Kept(handle)) => {
                self.ended = true;
                CallEvent::Kept(handle)
            }
            Err(Last::End(outcome)) => {
                self.ended = true;
                let commit = Commit(Some((Arc::clone(&self.room), self.waiter, self.id.clone())));
                CallEvent::End(CallEnd { outcome, commit })
            }
        }
    }

    /// Waits for the end of a call that does not outlive this request, ignoring progress.
    pub async fn end(&mut self) -> CallEnd {
        loop {
            if let CallEvent::End(end) = self.next().await {
                return end;
            }
        }
    }

    /// Cancels the call for everybody who waits; the end arrives as usual. One that ended stays ended, one that was promoted
    /// is cancelled too.
    pub fn cancel(&self) {
        self.room.tell(Input::Cancel { call: self.id.clone() });
    }
}

impl Drop for CallHandle {
    fn drop(&mut self) {
        // After the end the commit speaks for this waiter.
        if !self.ended {
            self.room.leave(self.waiter, &self.id);
        }
    }
}

/// Where the room puts what one waiter shall hear.
#[derive(Default)]
pub(super) struct Slot(Mutex<SlotState>);

#[derive(Default)]
struct SlotState {
    progress: VecDeque<CallProgress>,
    last: Option<Last>,
    waker: Option<Waker>,
}

/// The last word to a waiter.
enum Last {
    Kept(KeptId),
    End(Outcome),
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Slot")
    }
}

impl Slot {
    pub(super) fn progress(&self, progress: CallProgress) {
        self.put(|slot| {
            if slot.progress.len() == limits::CALL_PROGRESS_BEHIND {
                slot.progress.pop_front();
            }
            slot.progress.push_back(progress);
        });
    }

    pub(super) fn kept(&self, handle: KeptId) {
        self.put(|slot| slot.last = Some(Last::Kept(handle)));
    }

    pub(super) fn end(&self, outcome: Outcome) {
        self.put(|slot| slot.last = Some(Last::End(outcome)));
    }

    fn put(&self, change: impl FnOnce(&mut SlotState)) {
        let waker = {
            let mut slot = self.0.lock();
            change(&mut slot);
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
