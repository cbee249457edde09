//! The machine as a whole: what it holds, its clock, and what is due after every input.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::admission::Admitting;
use super::commits::{Commits, Doing};
use super::io::*;
use super::lease::Leave;
use super::ledger::Stored;
use super::operations::{Operations, Phase};
use super::recovery::{Session, Stage};
use super::window::Window;
use crate::code::Code;
use crate::daemon::{Dial, Dialer, Outage, SocketId, Told};
use crate::id::{LedgerId, OperationId};
use crate::limits;
use crate::operation::Digest;
use crate::status::LinkState;
use crate::time::{Due, Now, TimerTable};
use crate::wire::worker::WorkerFrame;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Commits that failed are made again; until then nothing is admitted.
    Ledger,
    /// Acknowledged output is made durable.
    Offsets,
    /// Spools that could not be read are read again.
    Unreadable,
    /// Runs that wait for room may be promised more.
    Quota,
    /// The sleep that was announced never came.
    NoSleep,
    /// A stopping worker stops.
    Stop,
}

/// Whether work may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Will {
    /// Not wanted: nothing begins, nothing is dialled.
    Resting,
    /// Wanted.
    Working,
    /// Not wanted any more: what must not be cut off may finish.
    Stopping,
}

/// The worker's side of durable operations.
pub struct Worker {
    pub(super) settings: Settings,
    pub(super) ledger: LedgerId,
    pub(super) dialer: Dialer,
    pub(super) outage: Outage,
    pub(super) session: Option<Session>,
    pub(super) operations: Operations,
    /// Operations whose admission is under way.
    pub(super) admitting: BTreeMap<OperationId, Admitting>,
    pub(super) commits: Commits,
    pub(super) window: Window,
    pub(super) leave: Leave,
    /// Digest of the workspace's configuration.
    pub(super) config: Option<Digest>,
    /// The shell says that the disk is full.
    pub(super) disk_full: bool,
    /// Bytes that may still be written on the disk.
    pub(super) disk_free: Option<u64>,
    /// The code with which new operations are refused while the ledger cannot be written.
    pub(super) ledger_code: Code,
    pub(super) full_since: Option<Duration>,
    pub(super) will: Will,
    /// Operations came on this connection that a stopping worker did not look at.
    pub(super) missed: bool,
    /// Something may begin now that could not before.
    pub(super) due: bool,
    /// The peer makes us keep too much.
    pub(super) flooded: bool,
    pub(super) ended: VecDeque<Shown>,
    pub(super) timers: TimerTable<Timer>,
    pub(super) out: VecDeque<Output>,
    pub(super) told: Vec<Told>,
    pub(super) changed: bool,
    pub(super) last: Now,
}

impl Worker {
    /// A worker at rest that settles at once what its ledger says was starting or running. `seed` is for jitter only.
    pub fn new(now: Now, settings: Settings, stored: Stored, seed: u64) -> Self {
        let newest = stored.rows.iter().map(|living| living.row.generation).max().unwrap_or(0);
        let mut worker = Worker {
            settings,
            ledger: stored.ledger,
            dialer: Dialer::new(seed),
            outage: Outage::new(),
            session: None,
            operations: Operations::default(),
            admitting: BTreeMap::new(),
            commits: Commits::default(),
            window: Window::default(),
            leave: Leave::new(now, stored.generation.max(newest)),
            config: stored.config,
            disk_full: false,
            disk_free: None,
            ledger_code: Code::StorageFull,
            full_since: None,
            will: Will::Resting,
            missed: false,
            due: true,
            flooded: false,
            ended: VecDeque::new(),
            timers: TimerTable::default(),
            out: VecDeque::new(),
            told: Vec::new(),
            changed: true,
            last: now,
        };
        worker.load(now, stored.rows, &stored.offsets);
        worker.settle(now);
        worker
    }

    /// Takes in what happened. Outputs and transmits stand ready afterwards.
    pub fn handle(&mut self, now: Now, input: Input<'_>) {
        self.pass(now);
        match input {
            Input::Start => self.start(now),
            Input::Stop => self.stop(now),
            Input::Wake => self.wake(now),
            Input::NetworkChanged => self.check(now),
            Input::SleepAnnounced => self.sleep_announced(now),
            Input::Cut(lasting) => self.cut(now, lasting),
            Input::Cancel(id) => self.cancel(id),
            Input::CancelAll => self.cancel_all(),
            Input::Opened(socket) => self.opened(now, socket),
            Input::Refused(socket, error) => self.refused(now, socket, error),
            Input::Frame(socket, frame, verdict) => {
                if self.is_current(socket) {
                    self.frame(now, frame, verdict);
                }
            }
            Input::Unreadable(socket, error, id) => {
                if self.is_current(socket) {
                    self.unreadable(now, error, id);
                }
            }
            Input::Traffic(socket, traffic) => {
                if let Some(session) = self.session.as_mut().filter(|session| session.socket == socket) {
                    session.traffic(now, traffic);
                }
            }
            Input::Closed(socket, word) => self.closed(now, socket, word),
            Input::Committed(ticket, result) => self.committed(now, ticket, result),
            Input::Storage { full, free } => {
                self.due |= self.disk_full && !full || self.disk_free != free;
                (self.disk_full, self.disk_free) = (full, free);
            }
            Input::Run(run, attempt, news) => self.run_news(now, &run, attempt, news),
            Input::Piece(run, stream, offset, piece) => {
                self.window.piece(&run, stream, offset, piece);
                if self.window.has_unreadable() && self.timers.get(&Timer::Unreadable).is_none() {
                    self.timers.set(Timer::Unreadable, Due::boot(now, limits::SPOOL_RETRY));
                }
            }
            Input::Performed(id, result) => self.performed(&id, result),
        }
        self.settle(now);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Now) {
        self.pass(now);
        self.session_due(now);
        while let Some(timer) = self.timers.expired(now) {
            match timer {
                Timer::Ledger => self.commit_again(),
                Timer::Offsets => {
                    let acked = self.window.take_dirty();
                    if !acked.is_empty() {
                        self.commit(Doing::Offsets(acked));
                    }
                }
                Timer::Unreadable => self.window.retry(),
                Timer::Quota => self.raise_quotas(now),
                Timer::NoSleep => self.awake(now),
                Timer::Stop => self.stopped(now),
            }
        }
        while let Some(dial) = self.dialer.handle_timeout(now) {
            match dial {
                Dial::Try(socket) => self.out.push_back(Output::Dial(socket)),
                Dial::GiveUp(socket) => {
                    self.out.push_back(Output::Drop(socket));
                    self.note_away(now, "no answer in time".into(), None);
                }
            }
            self.changed = true;
        }
        let attempts = self.dialer.attempts();
        self.outage.handle_timeout(now, attempts, &mut self.told);
        self.settle(now);
    }

    /// The next thing to do, in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        if self.out.is_empty() && std::mem::take(&mut self.changed) {
            return Some(Output::Changed);
        }
        self.out.pop_front()
    }

    /// The next frame to write on a socket, if there is one now: answers first, then ends, then output, then news.
    pub fn poll_transmit(&mut self, now: Now, socket: SocketId) -> Option<String> {
        if !self.is_current(socket) {
            return None;
        }
        let frame = self.next_frame(now)?;
        self.settle(now);
        if let Some(session) = &mut self.session {
            session.wrote();
        }
        Some(frame.encode())
    }

    /// Time until [`Worker::handle_timeout`] is due; `None`: nothing runs.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        [
            self.dialer.poll_timeout(now),
            self.outage.poll_timeout(now),
            self.session.as_ref().and_then(|session| session.poll_timeout(now)),
            self.leave.poll_timeout(now),
            self.timers.earliest(now),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Whether anything is not over.
    pub fn has_work(&self) -> bool {
        !self.operations.is_empty()
    }

    /// The state of the connection people see.
    pub fn state(&self) -> LinkState {
        self.outage.state().0
    }

    /// Time passed. A jump of boot time over awake time means that this machine slept; a lease that ended meanwhile has ended
    /// before anything else happens.
    fn pass(&mut self, now: Now) {
        let boot = now.boot.saturating_sub(self.last.boot);
        let awake = now.awake.saturating_sub(self.last.awake);
        self.last = now;
        let slept = boot.saturating_sub(awake);
        if slept >= limits::SHELL_TURN_MAX {
            self.wake(now);
        }
        if slept >= limits::WORKER_SILENCE {
            // The relay has given the connection up.
            self.dial_now(now);
        }
        if self.leave.expire(now) {
            self.commit(Doing::Generation(self.leave.generation()));
            self.changed = true;
        }
    }

    /// After every input: what may begin, what may be read and said.
    fn settle(&mut self, now: Now) {
        if std::mem::take(&mut self.due) {
            self.begin_due();
        }
        self.settle_replay(now);
        if self.session.as_ref().is_some_and(Session::takes_output) {
            while let Some(read) = self.window.next_read() {
                self.out.push_back(Output::Read(read));
            }
        }
        if self.window.has_dirty() && self.timers.get(&Timer::Offsets).is_none() {
            self.timers.set(Timer::Offsets, Due::boot(now, limits::WORKER_OFFSETS_EVERY));
        }
        if self.full_since.is_some() != self.is_closed() {
            self.full_since = self.is_closed().then_some(now.boot);
            self.changed = true;
        }
        if std::mem::take(&mut self.flooded) || self.commits.len() > limits::WORKER_FRAMES_WAITING {
            self.end_session(now, Some((1008, "too many requests at once")), "too many requests at once");
        }
        if self.will == Will::Stopping && self.is_at_rest() {
            self.stopped(now);
        }
        self.dialer.set_urgent(now, self.has_work());
        for told in self.told.drain(..) {
            self.changed = true;
            self.out.push_back(Output::Told(told));
        }
    }

    /// Begins a commit.
    pub(super) fn commit(&mut self, doing: Doing) {
        let (ticket, changes) = self.commits.issue(doing);
        self.out.push_back(Output::Commit(ticket, changes));
    }

    /// Says something on the connection, if there is one: who is not there asks again.
    pub(super) fn say(&mut self, frame: WorkerFrame) {
        if let Some(session) = &mut self.session {
            self.flooded |= !session.say(frame);
        }
    }

    /// Whether nothing is admitted because it could not be kept.
    pub(super) fn is_closed(&self) -> bool {
        self.disk_full || self.timers.get(&Timer::Ledger).is_some()
    }

    fn is_at_rest(&self) -> bool {
        self.commits.is_idle() && self.operations.iter().all(|entry| entry.phase != Phase::Performing)
    }

    fn start(&mut self, now: Now) {
        self.will = Will::Working;
        self.due = true;
        if std::mem::take(&mut self.missed) {
            // The relay takes them for sent, and asks when it sees another connection.
            self.end_session(now, None, "operations came while it was about to stop");
        }
        self.timers.stop(&Timer::Stop);
        self.outage.started(now, &mut self.told);
        if self.session.is_none() {
            self.dialer.start(now);
        }
    }

    fn stop(&mut self, now: Now) {
        if self.will == Will::Resting {
            return self.out.push_back(Output::Stopped);
        }
        self.will = Will::Stopping;
        let dropped = self.dialer.stop();
        self.out.extend(dropped.into_iter().map(Output::Drop));
        for entry in self.operations.iter() {
            // What comes to the same when it is done again is not waited for.
            if entry.phase == Phase::Performing && entry.row.operation.kind().is_repeatable() {
                self.out.push_back(Output::Abandon(entry.id().clone()));
            }
        }
        self.timers.set(Timer::Stop, Due::awake(now, limits::STOP_WAIT));
    }

    fn stopped(&mut self, now: Now) {
        self.timers.stop(&Timer::Stop);
        (self.will, self.missed) = (Will::Resting, false);
        if let Some(session) = self.session.take() {
            self.out.push_back(Output::Close(session.socket, 1000, "worker stops"));
        }
        self.outage.stopped(now, &mut self.told);
        self.out.push_back(Output::Stopped);
        self.changed = true;
    }

    /// The lease as it stands now, to every runner that enforces it.
    pub(super) fn tell_lease(&mut self) {
        let Some(lease) = self.leave.lease() else { return };
        for entry in self.operations.iter() {
            let renewed = entry.must_stop() && entry.row.generation == lease.generation;
            if let Some(run) = entry.run().filter(|_| entry.phase == Phase::Attached && renewed) {
                let ask = crate::run::Ask::Lease { lease };
                self.out.push_back(Output::Tell(run.clone(), entry.row.attempt, ask));
            }
        }
    }

    /// The relay granted or renewed the lease.
    pub(super) fn grant(&mut self, now: Now, lasting: Duration) {
        self.leave.grant(now, lasting);
        self.due = true;
        self.changed = true;
        self.tell_lease();
    }

    fn sleep_announced(&mut self, now: Now) {
        if self.leave.pause(now) {
            self.tell_lease();
            self.timers.set(Timer::NoSleep, Due::awake(now, limits::WORKER_NO_SLEEP));
            self.changed = true;
        }
        self.out.push_back(Output::AllowSleep);
    }

    /// The sleep is over, or never came.
    fn awake(&mut self, now: Now) {
        self.timers.stop(&Timer::NoSleep);
        if self.leave.resume(now) {
            self.tell_lease();
            self.changed = true;
        }
    }

    fn wake(&mut self, now: Now) {
        self.awake(now);
        self.check(now);
    }

    /// What to write next.
    fn next_frame(&mut self, now: Now) -> Option<WorkerFrame> {
        let session = self.session.as_mut()?;
        if let Some(frame) = session.next_control() {
            return Some(frame);
        }
        while let Some(id) = session.next_result() {
            if let Some(entry) = self.operations.get_mut(&id).filter(|entry| entry.phase == Phase::Ended) {
                entry.offered = Some(now.boot);
                let result = entry.result();
                self.expect();
                return result;
            }
        }
        if session.takes_output()
            && let Some((frame, covered)) = self.window.transmit(now)
        {
            if let Stage::Replaying(recovery, owed) = &session.stage {
                let stage = Stage::Replaying(recovery.clone(), owed.saturating_sub(covered));
                session.enter(now, stage);
            }
            self.expect();
            return Some(frame);
        }
        while let Some(id) = session.next_news() {
            if let Some(entry) = self.operations.get(&id).filter(|entry| !entry.phase.is_over()) {
                return Some(WorkerFrame::OperationState(entry.report(&self.window)));
            }
        }
        None
    }
}
