//! The machine as a whole: which connection serves, which one is being proven, and what time does to them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use super::calls::Calls;
use super::dial::{After, Dial, Dialer};
use super::io::*;
use super::outage::{Outage, Refusal};
use super::outbox::{Disk, Outbox};
use super::session::{self, End, Heard, Session, Why};
use crate::limits;
use crate::status::{LinkState, Step};
use crate::time::{Due, Now, TimerTable};
use crate::wire::Feature;
use crate::wire::close::{self, Close};

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
    device_in_use: Option<Duration>,
    protocol_errors: VecDeque<Duration>,
    protocol_warned: Option<Duration>,
    check_from: Duration,
    last: Now,
    changed: bool,
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

    fn session(&mut self, socket: SocketId) -> Option<&mut Session> {
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
        let urgent = self.timers.get(&Timer::Grace).is_some();
        self.dialer.set_urgent(now, urgent);
        for told in self.told.drain(..) {
            self.changed = true;
            self.out.push_back(Output::Told(told));
        }
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
        if self.outage.state().0 == LinkState::Stopped {
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
    /// so there the old one is closed first, for it to hear of the end (T1).
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
        } else if self.outage.state().0 != LinkState::Stopped {
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
        if self.outage.state().0 != LinkState::Stopped {
            self.note_away(now, "drill".into(), None);
        }
    }

    fn dial_now(&mut self, now: Now) {
        let dropped = self.dialer.nudge(now);
        self.out.extend(dropped.into_iter().map(Output::Drop));
    }

    fn drop_candidate(&mut self) {
        if let Some(candidate) = self.candidate.take() {
            self.out.push_back(Output::Drop(candidate.socket));
            self.undeafen();
        }
    }

    fn opened(&mut self, now: Now, socket: SocketId) {
        let Some(dropped) = self.dialer.opened(socket) else {
            self.out.push_back(Output::Drop(socket));
            return;
        };
        self.out.extend(dropped.into_iter().map(Output::Drop));
        self.candidate = Some(Session::new(now, socket, &self.settings));
        if self.serving.is_none() {
            self.outage.connected(now, &mut self.told);
        }
        self.changed = true;
    }

    fn refused(&mut self, now: Now, socket: SocketId, error: DialError) {
        let (after, cause, refusal) = match error {
            DialError::SignIn(SignIn::Revoked) => (After::Refusal, "device_revoked".into(), Some(Refusal::SignIn)),
            DialError::SignIn(SignIn::Unknown) => (After::Refusal, "device_unknown".into(), Some(Refusal::SignIn)),
            DialError::Transport(cause) => (After::Failure, cause, None),
        };
        if self.dialer.failed(now, socket, after) {
            self.note_away(now, cause, refusal);
        }
    }

    fn frame(&mut self, now: Now, socket: SocketId, text: &str) {
        if self.serving.as_ref().is_some_and(|session| session.socket == socket) {
            if self.deaf {
                return;
            }
            let Some(session) = self.serving.as_mut() else { return };
            match session.frame(now, text, &self.settings) {
                Ok(heard) => self.heard(now, heard),
                Err(end) => self.end(now, socket, end),
            }
        } else if let Some(session) = self.candidate.as_mut().filter(|session| session.socket == socket) {
            match session.frame(now, text, &self.settings) {
                Ok(Heard::Probe) => self.out.push_back(Output::Probe(socket)),
                Ok(Heard::Resume(ids)) => self.resume(now, &ids),
                Ok(Heard::Ready) => self.proven(now),
                Ok(_) => {}
                Err(end) => self.end(now, socket, end),
            }
        }
    }

    /// The machine ends a connection.
    pub(super) fn end(&mut self, now: Now, socket: SocketId, end: End) {
        self.out.push_back(match end.close {
            Some((code, reason)) => Output::Close(socket, code, reason),
            None => Output::Drop(socket),
        });
        let (after, cause, refusal) = match end.why {
            Why::Protocol(what) => {
                self.protocol_error(now);
                (After::Failure, what.into(), None)
            }
            Why::Incompatible => (After::Refusal, "no common link version".into(), Some(Refusal::Incompatible)),
            Why::Gap => (After::Loss, "a frame is missing".into(), None),
            Why::Dead(what) => (After::Loss, what.into(), None),
            Why::Relay(code) => {
                let expected = ["daemon_hello_timeout", "daemon_ready_timeout", "daemon_liveness_timeout"];
                if !expected.contains(&&*code) {
                    self.protocol_error(now);
                }
                (After::Failure, code, None)
            }
        };
        self.gone(now, socket, after, cause, refusal, false);
    }

    /// The socket is closed, by the relay or by the network.
    fn closed(&mut self, now: Now, socket: SocketId, word: Option<(u16, Cow<'_, str>)>) {
        if self.dialer.failed(now, socket, After::Failure) {
            return self.note_away(now, "closed while dialling".into(), None);
        }
        let clean = word.is_some();
        let is = |c: Close| word.as_ref().is_some_and(|(code, reason)| *code == c.0 && reason == c.1);
        let code = word.as_ref().map_or(1006, |(code, _)| *code);
        let (after, cause): (After, Cow<'static, str>) = if is(close::IN_USE) || is(close::REPLACED) {
            if self.session(socket).is_some() && self.device_in_use.is_none() {
                self.device_in_use = Some(now.boot);
                self.told.push(Told::DeviceInUse);
            }
            (After::Refusal, "device_in_use".into())
        } else if is(close::NEWER_CANDIDATE) {
            // Two of our own attempts raced; waiting for a restart would be waiting for ourselves.
            (After::Failure, "a newer attempt replaced this one".into())
        } else if is(close::FRAME_GAP) || is(close::MOVED) {
            (After::Loss, "the relay closed the connection".into())
        } else {
            match code {
                1001 | 1012 | 1013 => (After::Restart, "the relay restarts or is unavailable".into()),
                1006 => (After::Loss, "connection interrupted".into()),
                1000 => (After::Loss, "the relay closed the connection".into()),
                1002 | 1007 | 1009 => {
                    if self.session(socket).is_some() {
                        self.protocol_error(now);
                    }
                    (After::Failure, "the relay found a protocol error".into())
                }
                _ => (After::Failure, format!("the relay closed the connection ({code})").into()),
            }
        };
        self.gone(now, socket, after, cause, None, clean);
    }

    /// Bookkeeping of a connection that ended, whoever ended it.
    fn gone(
        &mut self,
        now: Now,
        socket: SocketId,
        after: After,
        cause: Cow<'static, str>,
        refusal: Option<Refusal>,
        clean: bool,
    ) {
        if self.candidate.as_ref().is_some_and(|session| session.socket == socket) {
            self.candidate = None;
            self.undeafen();
            // A handshake that did not end well is a failed attempt, whatever its end looked like.
            let after = if after == After::Loss { After::Failure } else { after };
            self.dialer.ended(now, after);
        } else if self.serving.as_ref().is_some_and(|session| session.socket == socket) {
            self.serving = None;
            self.deaf = false;
            self.unclean = !clean;
            self.detached(now);
            if self.candidate.is_none() {
                // Urgency has to be known before the next try is planned.
                self.dialer.set_urgent(now, self.timers.get(&Timer::Grace).is_some());
                self.dialer.ended(now, after);
            }
        } else {
            return;
        }
        self.note_away(now, cause, refusal);
    }

    /// A resume that failed leaves its older connection closed: what was read on it in the meantime is gone.
    fn undeafen(&mut self) {
        if std::mem::take(&mut self.deaf)
            && let Some(serving) = self.serving.take()
        {
            self.unclean = true;
            self.out.push_back(Output::Close(serving.socket, 1000, "stale daemon connection"));
            self.detached(self.last);
        }
    }

    /// Tells the world that no connection serves, if none does.
    fn note_away(&mut self, now: Now, cause: Cow<'static, str>, refusal: Option<Refusal>) {
        if self.serving.is_none() && self.candidate.is_none() && self.outage.state().0 != LinkState::Stopped {
            self.outage.lost(now, cause, refusal, &mut self.told);
        }
        self.changed = true;
    }

    /// The serving connection is gone: what runs goes on without it, for the grace.
    fn detached(&mut self, now: Now) {
        self.timers.stop(&Timer::Check);
        if self.timers.get(&Timer::AllowSleep).is_some() {
            self.allow_sleep(now);
        }
        let waiting: Vec<_> = self.calls.wanted().map(|(id, label)| (id.clone(), label.clone())).collect();
        if (!waiting.is_empty() || !self.outbox.is_empty()) && self.timers.get(&Timer::Grace).is_none() {
            self.timers.set(Timer::Grace, Due::awake(now, self.grace));
        }
        for (id, label) in waiting {
            self.step(&id, &label, Step::Detached, None);
        }
    }

    fn protocol_error(&mut self, now: Now) {
        let quiet = self.protocol_errors.back().is_none_or(|last| now.boot - *last > limits::PROTOCOL_ERRORS_WINDOW);
        if quiet {
            self.protocol_warned = None;
        }
        self.protocol_errors.push_back(now.boot);
        while self.protocol_errors.len() > limits::PROTOCOL_ERRORS_WARN {
            self.protocol_errors.pop_front();
        }
        let recent =
            self.protocol_errors.front().is_some_and(|first| now.boot - *first <= limits::PROTOCOL_ERRORS_WINDOW);
        if self.protocol_errors.len() == limits::PROTOCOL_ERRORS_WARN && recent && self.protocol_warned.is_none() {
            self.protocol_warned = Some(now.boot);
            self.told.push(Told::ProtocolErrors);
        }
    }

    pub(super) fn warnings_over(&mut self) {
        self.device_in_use = None;
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
