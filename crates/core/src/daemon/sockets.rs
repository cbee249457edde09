//! What becomes of connections: opened, refused, ended by us, closed by others.

use std::borrow::Cow;

use super::dial::After;
use super::io::*;
use super::machine::{Daemon, Timer};
use super::outage::Refusal;
use super::session::{End, Heard, Session, Why};
use crate::limits;
use crate::status::{LinkState, Step};
use crate::time::{Due, Now};
use crate::wire::close::{self, Close};

impl Daemon {
    pub(super) fn opened(&mut self, now: Now, socket: SocketId) {
        let Some(dropped) = self.dialer.opened(socket) else {
            self.out.push_back(Output::Drop(socket));
            return;
        };
        self.out.extend(dropped.into_iter().map(Output::Drop));
        self.drop_candidate();
        self.candidate = Some(Session::new(now, socket, &self.settings));
        if self.serving.is_none() {
            self.outage.connected(now, &mut self.told);
        }
        self.changed = true;
    }

    pub(super) fn refused(&mut self, now: Now, socket: SocketId, error: DialError) {
        let (after, cause, refusal) = match error {
            DialError::SignIn(SignIn::Revoked) => (After::Refusal, "device_revoked".into(), Some(Refusal::SignIn)),
            DialError::SignIn(SignIn::Unknown) => (After::Refusal, "device_unknown".into(), Some(Refusal::SignIn)),
            DialError::Transport(cause) => (After::Failure, cause, None),
        };
        if self.dialer.failed(now, socket, after) {
            self.note_away(now, cause, refusal);
        }
    }

    pub(super) fn frame(&mut self, now: Now, socket: SocketId, text: &str) {
        if self.serving.as_ref().is_some_and(|session| session.socket == socket) {
            if self.deaf {
                return;
            }
            let Some(session) = self.serving.as_mut() else { return };
            match session.frame(now, text, &self.settings) {
                Ok(Heard::Call(_) | Heard::BadCall(_)) if self.flooded() => {
                    self.end(now, socket, End::protocol("results are not acknowledged"));
                }
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
            Why::Incompatible => (After::Refusal, close::INCOMPATIBLE.1.into(), Some(Refusal::Incompatible)),
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
    pub(super) fn closed(&mut self, now: Now, socket: SocketId, word: Option<(u16, Cow<'_, str>)>) {
        if self.dialer.failed(now, socket, After::Failure) {
            return self.note_away(now, "closed while dialling".into(), None);
        }
        let clean = word.is_some();
        let mut refusal = None;
        let is = |c: Close| word.as_ref().is_some_and(|(code, reason)| *code == c.0 && reason == c.1);
        let code = word.as_ref().map_or(1006, |(code, _)| *code);
        let (after, cause): (After, Cow<'static, str>) = if is(close::IN_USE) || is(close::REPLACED) {
            if self.session(socket).is_some() {
                self.told_in_use(now, true);
            }
            (After::Refusal, "device_in_use".into())
        } else if is(close::INCOMPATIBLE) {
            refusal = Some(Refusal::Incompatible);
            (After::Refusal, close::INCOMPATIBLE.1.into())
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
        self.gone(now, socket, after, cause, refusal, clean);
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
                self.dialer.set_urgent(now, self.is_urgent());
                self.dialer.ended(now, after);
            }
        } else {
            return;
        }
        self.note_away(now, cause, refusal);
    }

    /// A resume that failed leaves its older connection closed: what was read on it in the meantime is gone.
    pub(super) fn undeafen(&mut self) {
        if std::mem::take(&mut self.deaf)
            && let Some(serving) = self.serving.take()
        {
            self.unclean = true;
            self.out.push_back(Output::Close(serving.socket, 1000, "stale daemon connection"));
            self.detached(self.last);
            self.note_away(self.last, "the connection was lost while it was resumed".into(), None);
        }
    }

    /// Tells the world that no connection serves, if none does.
    pub(super) fn note_away(&mut self, now: Now, cause: Cow<'static, str>, refusal: Option<Refusal>) {
        if self.serving.is_none() && self.state() != LinkState::Stopped {
            self.outage.lost(now, cause, refusal, &mut self.told);
            if self.candidate.is_some() {
                self.outage.connected(now, &mut self.told);
            }
        }
        self.changed = true;
    }

    /// The serving connection is gone: what runs goes on without it, for the grace.
    pub(super) fn detached(&mut self, now: Now) {
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
}
