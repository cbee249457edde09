//! The machine as a whole: which connection serves, which one is being proven, and what time does to them.

use std::collections::VecDeque;
use std::time::Duration;

use super::calls::Calls;
use super::dial::{Dial, Dialer};
use super::io::*;
use super::outage::Outage;
use super::outbox::{Disk, Outbox};
use super::session::{self, End, Session, Why};
use crate::limits;
use crate::status::LinkState;
use crate::time::{Due, Now, TimerTable};
use crate::wire::Feature;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Running calls are given up (awake time).
    Grace,
    /// A connection that should have shown life after a network change.
    Check,
    /// The operating system waits for us to let it sleep.
    AllowSleep,
    /// The sleep that was announced never came.
    NoSleep,
    /// A stopping daemon goes on to its next stage.
    Stop,
}

/// How far a stop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopping {
    /// Running calls may finish.
    Draining,
    /// Results wait for their acknowledgement.
    Settling,
}

/// The daemon's side of the link.
pub struct Daemon {
    pub(super) settings: Settings,
    pub(super) dialer: Dialer,
    pub(super) outage: Outage,
    pub(super) calls: Calls,
    pub(super) outbox: Outbox,
    /// The proven connection.
    pub(super) serving: Option<Session>,
    /// The serving connection is read and written no more: its successor is being resumed.
    pub(super) deaf: bool,
    /// An open connection that is not proven yet.
    pub(super) candidate: Option<Session>,
    pub(super) timers: TimerTable<Timer>,
    pub(super) out: VecDeque<Output>,
    pub(super) told: Vec<Told>,
    pub(super) stopping: Option<Stopping>,
    /// The last proven connection ended without a word from the relay.
    pub(super) unclean: bool,
    /// Base wire: one more reconnect was spent on an unclean end.
    pub(super) second_look: bool,
    /// The daemon's own grace, as the last proven connection agreed it.
    pub(super) grace: Duration,
    pub(super) generation: u64,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) device_in_use: Option<Duration>,
    pub(super) protocol_errors: VecDeque<Duration>,
    pub(super) protocol_warned: Option<Duration>,
    pub(super) check_from: Duration,
    pub(super) last: Now,
    pub(super) changed: bool,
}

impl Daemon {
    /// A daemon at rest. `seed` is for jitter only.
    pub fn new(now: Now, settings: Settings, seed: u64) -> Self {
        let outbox = Outbox::new(settings.compat);
        Daemon {
            settings,
            dialer: Dialer::new(seed),
            outage: Outage::new(),
            calls: Calls::default(),
            outbox,
            serving: None,
            deaf: false,
            candidate: None,
            timers: TimerTable::default(),
            out: VecDeque::new(),
            told: Vec::new(),
            stopping: None,
            unclean: false,
            second_look: false,
            grace: limits::BASE_GRACE,
            generation: 0,
            delivered: 0,
            lost: 0,
            device_in_use: None,
            protocol_errors: VecDeque::new(),
            protocol_warned: None,
            check_from: Duration::ZERO,
            last: now,
            changed: false,
        }
    }

    /// Takes in what happened. Outputs and transmits stand ready afterwards.
    pub fn handle(&mut self, now: Now, input: Input<'_>) {
        self.pass(now);
        match input {
            Input::Start => self.start(now),
            Input::Stop { patient } => self.stop(now, patient),
            Input::Wake => self.wake(now),
            Input::NetworkChanged => self.network_changed(now),
            Input::SleepAnnounced => self.sleep_announced(now),
            Input::Cut(lasting) => self.cut(now, lasting),
            Input::Advertise(advertised) => self.advertise(now, advertised),
            Input::Opened(socket) => self.opened(now, socket),
            Input::Refused(socket, error) => self.refused(now, socket, error),
            Input::Frame(socket, text) => self.frame(now, socket, text),
            Input::Unreadable(socket, error) => self.end(now, socket, session::unreadable(error)),
            Input::Control(socket) => {
                if let Some(session) = self.session(socket) {
                    session.message(now);
                }
            }
            Input::Traffic(socket, traffic) => {
                if let Some(session) = self.session(socket) {
                    session.traffic(now, traffic);
                }
            }
            Input::Closed(socket, word) => self.closed(now, socket, word),
            Input::Probed(socket) => {
                if let Some(candidate) = self.candidate.as_mut().filter(|c| c.socket == socket) {
                    candidate.probed();
                }
            }
            Input::Finished(id, outcome) => self.finished(now, &id, outcome),
            Input::Progress(id, progress) => self.progress(&id, progress),
            Input::Stored(id, ok) => self.outbox.stored(&id, ok),
            Input::Loaded(id, text) => self.loaded(&id, text),
        }
        self.settle(now);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Now) {
        self.pass(now);
        for socket in self.sockets() {
            let end = self.session(socket).and_then(|session| session.handle_timeout(now));
            if let Some(end) = end {
                self.end(now, socket, end);
            }
        }
        self.calls_due(now);
        self.outbox.handle_timeout(now);
        while let Some(timer) = self.timers.expired(now) {
            match timer {
                Timer::Grace => self.grace_expired(now),
                Timer::Check => self.check_due(now),
                Timer::AllowSleep => self.allow_sleep(now),
                Timer::NoSleep => self.awake_again(now),
                Timer::Stop => self.stop_stage_over(now),
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
        if self.out.is_empty() {
            if let Some(disk) = self.outbox.poll_disk() {
                return Some(match disk {
                    Disk::Store(id, text) => Output::Store(id, text),
                    Disk::Load(id) => Output::Load(id),
                    Disk::Remove(id) => Output::Remove(id),
                });
            }
            if std::mem::take(&mut self.changed) {
                return Some(Output::Changed);
            }
        }
        self.out.pop_front()
    }

    /// Time until [`Daemon::handle_timeout`] is due; `None`: nothing runs.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        let sessions = self.serving.iter().chain(&self.candidate).filter_map(|s| s.poll_timeout(now));
        [
            self.dialer.poll_timeout(now),
            self.outage.poll_timeout(now),
            self.calls.poll_timeout(now),
            self.outbox.poll_timeout(now),
            self.timers.earliest(now),
        ]
        .into_iter()
        .flatten()
        .chain(sessions)
        .min()
    }

    /// The state people see.
    pub fn state(&self) -> LinkState {
        self.outage.state().0
    }

    /// What people are told.
    pub fn snapshot(&self, now: Now) -> Snapshot {
        let (state, since) = self.outage.state();
        let ready = self.ready();
        Snapshot {
            state,
            since,
            attempts: self.dialer.attempts(),
            cause: self.outage.cause().cloned(),
            next_try_at: self.dialer.next_try_at(now),
            grace_ends_at: self.timers.get(&Timer::Grace).map(|due| now.boot + due.left(now)),
            features: ready.map(|session| session.features),
            generation: self.generation,
            calls: self.calls.counts(now, ready.is_some(), self.outbox.len()),
            delivered: self.delivered,
            lost: self.lost,
            device_in_use: self.device_in_use,
            protocol_errors: self.protocol_warned.filter(|_| {
                self.protocol_errors.back().is_some_and(|last| now.boot - *last <= limits::PROTOCOL_ERRORS_WINDOW)
            }),
        }
    }

    /// The connection over which calls and results may go now.
    pub(super) fn ready(&self) -> Option<&Session> {
        self.serving.as_ref().filter(|_| !self.deaf)
    }

    pub(super) fn ready_mut(&mut self) -> Option<&mut Session> {
        self.serving.as_mut().filter(|_| !self.deaf)
    }

    pub(super) fn session(&mut self, socket: SocketId) -> Option<&mut Session> {
        self.serving.iter_mut().chain(&mut self.candidate).find(|session| session.socket == socket)
    }

    fn sockets(&self) -> Vec<SocketId> {
        self.serving.iter().chain(&self.candidate).map(|session| session.socket).collect()
    }

    /// Time passed. A jump of boot time over awake time means that this process slept.
    fn pass(&mut self, now: Now) {
        let boot = now.boot.saturating_sub(self.last.boot);
        let awake = now.awake.saturating_sub(self.last.awake);
        self.last = now;
        if boot.saturating_sub(awake) >= limits::SHELL_TURN_MAX {
            self.wake(now);
        }
    }

    /// After every input: urgency, texts, and stages that are over.
    fn settle(&mut self, now: Now) {
        self.stop_progress(now);
        self.dialer.set_urgent(now, self.is_urgent());
        for told in self.told.drain(..) {
            self.changed = true;
            self.out.push_back(Output::Told(told));
        }
    }

    /// Whether calls or results wait for a connection. A base relay waits for no result longer than its grace.
    pub(super) fn is_urgent(&self) -> bool {
        let waits = self.settings.compat == Compat::Holdfast && self.serving.is_none() && !self.outbox.is_empty();
        waits || self.timers.get(&Timer::Grace).is_some()
    }

    pub(super) fn mark_changed(&mut self) {
        self.changed = true;
    }

    fn start(&mut self, now: Now) {
        self.stopping = None;
        self.timers.stop(&Timer::Stop);
        self.device_in_use = None;
        self.outage.started(now, &mut self.told);
        if self.serving.is_none() && self.candidate.is_none() {
            self.dialer.start(now);
        }
    }

    fn wake(&mut self, now: Now) {
        self.awake_again(now);
        if self.state() == LinkState::Stopped {
            return;
        }
        self.renew(now, "woke");
        if let Some(serving) = &mut self.serving {
            serving.excuse_silence(now);
        }
        if let Some(due) = self.timers.get(&Timer::Grace) {
            self.timers.set(Timer::Grace, Due::awake(now, due.left(now).max(limits::WAKE_GRACE)));
        }
    }

    /// Makes a new connection beside the serving one. A base relay moves no call away from a socket that it holds open,
    /// so there the old one is closed first, for it to hear of the end.
    fn renew(&mut self, now: Now, why: &'static str) {
        self.drop_candidate();
        if let (Compat::Base, Some(serving)) = (self.settings.compat, &self.serving) {
            let socket = serving.socket;
            self.end(now, socket, End { close: Some((1000, "stale daemon connection")), why: Why::Dead(why) });
        }
        self.dial_now(now);
    }

    fn network_changed(&mut self, now: Now) {
        if let Some(session) = self.ready_mut() {
            session.beat(now);
            self.check_from = now.boot;
            self.timers.set(Timer::Check, Due::boot(now, limits::CHECK_TIMEOUT));
        } else if self.state() != LinkState::Stopped {
            self.renew(now, "the network changed");
        }
    }

    /// The connection showed no life since the network changed: a new one is made beside it.
    fn check_due(&mut self, now: Now) {
        let silent = self.ready().is_some_and(|session| session.last_read() <= self.check_from);
        if silent && self.candidate.is_none() {
            self.renew(now, "no life after the network changed");
        }
    }

    fn advertise(&mut self, now: Now, advertised: Advertised) {
        if self.settings.advertised == advertised {
            return;
        }
        self.settings.advertised = advertised;
        // Only a hello can say it; the handover to a new connection loses nothing.
        if self.serving.is_some() || self.candidate.is_some() {
            self.renew(now, "tools or policy changed");
        }
    }

    fn cut(&mut self, now: Now, lasting: Duration) {
        let serving = self.serving.take().map(|session| session.socket);
        let candidate = self.candidate.take().map(|session| session.socket);
        let dropped = self.dialer.block(now, lasting);
        self.out.extend(serving.into_iter().chain(candidate).chain(dropped).map(Output::Drop));
        if serving.is_some() {
            self.unclean = true;
            self.detached(now);
        }
        if self.state() != LinkState::Stopped {
            self.note_away(now, "drill".into(), None);
        }
    }

    fn dial_now(&mut self, now: Now) {
        let dropped = self.dialer.nudge(now);
        self.out.extend(dropped.into_iter().map(Output::Drop));
    }

    pub(super) fn drop_candidate(&mut self) {
        if let Some(candidate) = self.candidate.take() {
            self.out.push_back(Output::Drop(candidate.socket));
            self.undeafen();
        }
    }

    pub(super) fn warnings_over(&mut self) {
        self.device_in_use = None;
    }

    /// Whether another instance uses this device's credential, as the relay says or as it showed.
    pub(super) fn told_in_use(&mut self, now: Now, in_use: bool) {
        if in_use && self.device_in_use.is_none() {
            self.told.push(Told::DeviceInUse);
        }
        self.device_in_use = in_use.then(|| self.device_in_use.unwrap_or(now.boot));
    }

    fn sleep_announced(&mut self, now: Now) {
        let Some(session) = self.ready_mut().filter(|session| session.features.has(Feature::Suspend)) else {
            self.out.push_back(Output::AllowSleep);
            return;
        };
        session.hush();
        self.timers.set(Timer::AllowSleep, Due::awake(now, limits::SUSPEND_ACK_WAIT));
    }

    pub(super) fn allow_sleep(&mut self, now: Now) {
        self.timers.stop(&Timer::AllowSleep);
        self.out.push_back(Output::AllowSleep);
        self.timers.set(Timer::NoSleep, Due::awake(now, limits::SUSPEND_ACK_WAIT));
    }

    fn awake_again(&mut self, now: Now) {
        self.timers.stop(&Timer::NoSleep);
        if self.timers.get(&Timer::AllowSleep).is_some() {
            self.timers.stop(&Timer::AllowSleep);
            self.out.push_back(Output::AllowSleep);
        }
        if let Some(session) = &mut self.serving {
            session.unhush(now);
        }
    }
}
