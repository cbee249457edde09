//! From an accepted socket to a proven one; and what happens when another instance comes.

use std::sync::Arc;
use std::time::Duration;

use rand::RngCore as _;

use super::socket::{Peer, Role, Socket, Window};
use super::{Catalogue, Loss, Note, SocketId, Switchboard, Timer};
use crate::id::ProbeId;
use crate::limits;
use crate::time::{Due, Now};
use crate::wire::{Feature, Features, Hello, HelloAck, RelayFrame, RelayProbe, Welcome, close};

impl Switchboard {
    pub(super) fn connected(&mut self, now: Now, id: SocketId) {
        // As on the base wire: a daemon dials one socket at a time, so an unproven older one is abandoned.
        while let Some(older) = self.sockets.iter().find(|socket| !socket.is_ready()).map(|socket| socket.id) {
            self.close(now, older, close::NEWER_CANDIDATE, Loss::Replaced);
        }
        self.sockets.push(Socket::new(id, now));
        if self.revoked {
            return self.close(now, id, close::REVOKED, Loss::Ours);
        }
        if self.stop.refuses() {
            return self.close(now, id, close::RELAY_STOPS, Loss::Ours);
        }
        self.timers.set(Timer::Hello(id), Due::boot(now, limits::HANDSHAKE_TIMEOUT));
        let offers = self.identity.link.is_some();
        let welcome = Welcome {
            server: self.identity.server.to_string(),
            version: self.identity.version.to_string(),
            link: self.identity.link,
            features: offers.then_some(self.identity.features),
        };
        self.transmit(id, &RelayFrame::Welcome(welcome));
    }

    pub(super) fn hello(&mut self, now: Now, id: SocketId, n: Option<u64>, hello: Hello) {
        let features = match (self.identity.link, hello.link) {
            (Some(ours), Some(theirs)) if !ours.overlaps(theirs) => {
                return self.close(now, id, close::INCOMPATIBLE, Loss::Protocol);
            }
            (Some(_), Some(_)) => self.identity.features.and(hello.features.unwrap_or(Features::NONE)),
            _ => Features::NONE,
        };
        let peer = Peer {
            window: window(&hello),
            features,
            catalogue: Arc::new(Catalogue::read(&hello.tools, &hello.policy)),
            instance: hello.instance_id,
        };
        let other_in_service =
            self.ready_socket().filter(|ready| ready.instance() != Some(&peer.instance)).map(|ready| ready.id);
        let other_away = self.home.as_ref().is_some_and(|home| home.instance != peer.instance);
        let refused_before = self.refused.contains(&peer.instance);
        let Some(socket) = self.socket(id) else { return };
        socket.read = n.unwrap_or(0);
        socket.peer = Some(peer);
        match other_in_service {
            Some(incumbent) => {
                let nonce = self.ping(incumbent);
                self.enter(id, Role::Challenging { nonce });
                self.timers.set(Timer::Challenge(id), Due::boot(now, limits::INCUMBENT_PING));
            }
            None if other_away && refused_before => self.refuse(now, id),
            None => self.probe(now, id),
        }
    }

    /// A pong. The right one proves that the incumbent lives, and the newcomer that asked for it is refused: a clone or a
    /// stolen token must not evict the real device.
    pub(super) fn ponged(&mut self, now: Now, id: SocketId, nonce: u64) {
        let Some(socket) = self.socket(id) else { return };
        socket.heard = now.boot;
        let ready = socket.is_ready();
        self.arrived_before(now, nonce);
        let asked = |socket: &&Socket| matches!(socket.role, Role::Challenging { nonce: asked } if asked == nonce);
        if let Some(newcomer) = self.sockets.iter().find(asked).filter(|_| ready).map(|socket| socket.id) {
            self.refuse(now, newcomer);
        }
    }

    fn refuse(&mut self, now: Now, id: SocketId) {
        let instance = self.socket(id).and_then(|socket| socket.instance().cloned());
        if let Some(instance) = instance.filter(|instance| !self.refused.contains(instance)) {
            if self.refused.len() == limits::IN_USE_REMEMBERED {
                self.refused.pop_front();
            }
            self.refused.push_back(instance);
        }
        self.in_use_at = Some(now.boot);
        self.note(Note::InUse);
        self.close(now, id, close::IN_USE, Loss::InUse);
    }

    /// The incumbent did not answer: the newcomer is a restart, unless it was refused while the incumbent lived.
    pub(super) fn incumbent_silent(&mut self, now: Now, id: SocketId) {
        let refused = self.socket(id).and_then(|socket| socket.instance().cloned());
        if refused.is_some_and(|instance| self.refused.contains(&instance)) {
            self.refuse(now, id);
        } else {
            self.probe(now, id);
        }
    }

    /// The incumbent's socket is gone: whoever waited for its answer need not wait longer.
    pub(super) fn incumbent_gone(&mut self, now: Now) {
        let waits = |socket: &&Socket| matches!(socket.role, Role::Challenging { .. });
        if let Some(newcomer) = self.sockets.iter().find(waits).map(|socket| socket.id) {
            self.incumbent_silent(now, newcomer);
        }
    }

    fn probe(&mut self, now: Now, id: SocketId) {
        let mut random = [0; ProbeId::RANDOM_BYTES];
        self.rng.fill_bytes(&mut random);
        let probe = ProbeId::mint(random);
        self.enter(id, Role::Probing { probe: probe.clone() });
        self.timers.set(Timer::Ready(id), Due::boot(now, limits::READINESS_TIMEOUT));
        let Some(socket) = self.socket(id) else { return };
        let (grace, live) = (socket.has(Feature::Grace), socket.has(Feature::Live));
        if live {
            self.timers.set(Timer::Beat(id), Due::boot(now, limits::HEARTBEAT));
        }
        let ack = HelloAck {
            server: self.identity.server.to_string(),
            version: self.identity.version.to_string(),
            link: self.identity.link,
            grace_ms: grace.then_some(millis(limits::GRACE)),
        };
        self.transmit(id, &RelayFrame::HelloAck(ack));
        self.transmit(id, &RelayFrame::RelayProbe(RelayProbe { id: probe }));
    }

    pub(super) fn hello_late(&mut self, now: Now, id: SocketId) {
        self.close_with_error(now, id, "daemon_hello_timeout", close::HELLO_TIMEOUT);
    }

    pub(super) fn ready_late(&mut self, now: Now, id: SocketId) {
        self.close_with_error(now, id, "daemon_ready_timeout", close::READY_TIMEOUT);
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// How many calls this daemon takes at once. A base daemon does not say it.
fn window(hello: &Hello) -> Window {
    match hello.max_calls {
        Some(max) => {
            let max = usize::try_from(max).unwrap_or(usize::MAX).clamp(1, limits::DAEMON_CALLS_MAX);
            Window { max, reserve: limits::CONTROL_RESERVE.min(max - 1) }
        }
        None => Window { max: limits::BASE_CALLS_MAX, reserve: limits::BASE_CONTROL_RESERVE },
    }
}
