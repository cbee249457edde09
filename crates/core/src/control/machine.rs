//! The machine as a whole.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngCore as _, SeedableRng as _};

use super::SocketId;
use super::commit::Purpose;
use super::io::{Input, Note, Output, Snapshot, Ticket, View};
use super::life::Living;
use super::record::{Loaded, SessionCancel};
use super::recovery::Phase;
use super::sockets::Line;
use crate::id::{OperationId, RunId};
use crate::time::{Due, Now, TimerTable};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// hello is due.
    Hello,
    /// Recovery has to bring something.
    Step,
    /// We have to write something.
    Beat,
    /// A byte is due.
    Life,
    /// The lease is to be renewed.
    Lease,
    /// The store is asked again.
    Retry,
    /// An operation has waited long enough to be sent.
    Ttl(OperationId),
}

/// The control side of one device. `handle`, drain `poll_output` and `poll_transmit`, wait for `poll_timeout`.
pub struct Control {
    rng: StdRng,
    /// Operations that have not ended.
    pub(super) living: BTreeMap<OperationId, Living>,
    /// Whose output a run's is.
    pub(super) runs: BTreeMap<RunId, OperationId>,
    /// What waits to be sent, in order of admission.
    pub(super) queue: BTreeMap<u64, OperationId>,
    /// The last place in that order.
    pub(super) order: u64,
    /// Runs of which input up to a place was not given, while some of that is on its way to the store.
    pub(super) held_back: BTreeMap<RunId, u64>,
    /// Everything up to this place was cancelled.
    pub(super) cancelled_up_to: u64,
    /// Cancelled sessions that the worker has not confirmed, by session.
    pub(super) sessions: BTreeMap<String, SessionCancel>,
    /// Commits in flight.
    pub(super) commits: BTreeMap<Ticket, Purpose>,
    minted: u64,
    /// Output in memory, in flight to the store included, in bytes.
    pub(super) gathered: usize,
    /// The worker's socket.
    pub(super) line: Option<Line>,
    /// A socket that has not said hello.
    pub(super) candidate: Option<SocketId>,
    pub(super) revoked: bool,
    pub(super) timers: TimerTable<Timer>,
    pub(super) out: VecDeque<Output>,
}

impl Control {
    /// A machine of what the store loaded. The seed must come from the operating system: ids are drawn from it.
    pub fn new(now: Now, seed: [u8; 32], loaded: Loaded) -> Control {
        let mut control = Control {
            rng: StdRng::from_seed(seed),
            living: BTreeMap::new(),
            runs: BTreeMap::new(),
            queue: BTreeMap::new(),
            order: 0,
            held_back: BTreeMap::new(),
            cancelled_up_to: 0,
            sessions: BTreeMap::new(),
            commits: BTreeMap::new(),
            minted: 0,
            gathered: 0,
            line: None,
            candidate: None,
            revoked: false,
            timers: TimerTable::default(),
            out: VecDeque::new(),
        };
        for cancel in loaded.sessions {
            control.sessions.insert(cancel.session.clone(), cancel);
        }
        for (record, left) in loaded.living {
            control.restore(now, record, left);
        }
        control
    }

    /// Takes in what happened. Outputs stand ready afterwards.
    pub fn handle(&mut self, now: Now, input: Input) {
        match input {
            Input::Start { ask, start } => self.start(now, ask, *start),
            Input::Cancel { ask, id } => self.cancel(ask, &id),
            Input::CancelSession { ask, cancel } => self.cancel_session(ask, cancel),
            Input::Connected { socket } => self.connected(now, socket),
            Input::Frame { socket, frame } => self.frame(now, socket, frame),
            Input::Unreadable { socket } => self.unreadable(socket),
            Input::Heard { socket, at } => self.heard(socket, at),
            Input::Closed { socket } => self.closed(socket),
            Input::Committed { ticket, result } => self.committed(now, ticket, result),
            Input::CancelAll => self.cancel_all(),
            Input::Revoke => self.revoke(),
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Now) {
        while let Some(timer) = self.timers.expired(now) {
            match timer {
                Timer::Hello => self.hello_late(),
                Timer::Step => self.step_late(),
                Timer::Beat => self.beat(now),
                Timer::Life => self.life_due(now),
                Timer::Lease => self.renew(now),
                Timer::Retry => self.flush_all(),
                Timer::Ttl(id) => self.waited(&id),
            }
        }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Time until [`Control::handle_timeout`] is due; `None`: nothing runs.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.timers.earliest(now)
    }

    /// A living operation.
    pub fn view(&self, id: &OperationId) -> Option<View> {
        self.living.get(id).map(Living::view)
    }

    /// All living operations, in order of admission.
    pub fn views(&self) -> Vec<View> {
        let mut views: Vec<View> = self.living.values().map(Living::view).collect();
        views.sort_by_key(|view| view.record.order);
        views
    }

    /// Whether the worker is connected and recovered.
    pub fn is_live(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.phase == Phase::Live)
    }

    /// The machine as a whole.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            live: self.is_live(),
            held: self.living.len(),
            queued: self.living.values().filter(|living| !living.sent).count(),
            behind: self.living.values().map(Living::behind).fold(0, u64::saturating_add),
        }
    }

    pub(super) fn random<const N: usize>(&mut self) -> [u8; N] {
        let mut random = [0; N];
        self.rng.fill_bytes(&mut random);
        random
    }

    pub(super) fn ticket(&mut self) -> Ticket {
        self.minted += 1;
        Ticket(self.minted)
    }

    pub(super) fn set(&mut self, now: Now, timer: Timer, after: Duration) {
        self.timers.set(timer, Due::boot(now, after));
    }

    pub(super) fn note(&mut self, note: Note) {
        self.out.push_back(Output::Note(note));
    }

    pub(super) fn changed(&mut self, id: &OperationId) {
        self.out.push_back(Output::Changed { id: id.clone() });
    }
}
