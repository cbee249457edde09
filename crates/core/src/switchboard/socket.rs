//! One accepted socket and its role.

use std::sync::Arc;
use std::time::Duration;

use rand::RngCore as _;

use super::{Catalogue, Loss, Note, Output, SocketId, Switchboard, Timer};
use crate::id::{CallId, InstanceId, ProbeId};
use crate::limits;
use crate::time::{Due, Now};
use crate::wire::close::Close;
use crate::wire::{ErrorFrame, Feature, Features, RelayFrame, ToolCall, ToolResultAck};

/// What a socket is to the device. It only moves down this list; a socket that is gone is not in the table any more.
#[derive(Debug)]
pub(super) enum Role {
    /// Accepted; its hello is due.
    Candidate,
    /// Another instance than the one that is ready; the incumbent was asked whether it lives.
    Challenging { nonce: u64 },
    /// Asked to prove that its executor works.
    Probing { probe: ProbeId },
    /// Proven, and asked what it knows of the named calls. Nothing is dispatched meanwhile.
    Resuming {
        named: Vec<CallId>,
        /// Named calls that ended since: to be cancelled right after `ready_ack`.
        cancel: Vec<CallId>,
    },
    /// In service.
    Ready { since: Duration },
}

/// What a hello said.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) instance: InstanceId,
    /// Agreed; none on the base wire.
    pub(super) features: Features,
    pub(super) window: Window,
    pub(super) catalogue: Arc<Catalogue>,
}

/// How many calls may be sent and not ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) max: usize,
    /// Of them, for control tools alone.
    pub(super) reserve: usize,
}

#[derive(Debug)]
pub(super) struct Socket {
    pub(super) id: SocketId,
    pub(super) role: Role,
    pub(super) peer: Option<Peer>,
    pub(super) heard: Duration,
    pub(super) mid_frame: bool,
    /// Number of the last frame written.
    written: u64,
    /// Number of the last frame read.
    pub(super) read: u64,
    /// Acknowledgements that wait for a frame to travel with.
    acks: Vec<ToolResultAck>,
}

impl Socket {
    pub(super) fn new(id: SocketId, now: Now) -> Self {
        Socket {
            id,
            role: Role::Candidate,
            peer: None,
            heard: now.boot,
            mid_frame: false,
            written: 0,
            read: 0,
            acks: Vec::new(),
        }
    }

    pub(super) fn has(&self, feature: Feature) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.features.has(feature))
    }

    pub(super) fn instance(&self) -> Option<&InstanceId> {
        self.peer.as_ref().map(|peer| &peer.instance)
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self.role, Role::Ready { .. })
    }
}

impl Switchboard {
    pub(super) fn socket(&mut self, id: SocketId) -> Option<&mut Socket> {
        self.sockets.iter_mut().find(|socket| socket.id == id)
    }

    /// The socket in service.
    pub(super) fn ready_socket(&self) -> Option<&Socket> {
        self.sockets.iter().find(|socket| socket.is_ready())
    }

    /// The only place that changes a role.
    pub(super) fn enter(&mut self, id: SocketId, role: Role) {
        for timer in [Timer::Hello(id), Timer::Challenge(id), Timer::Ready(id), Timer::Report(id)] {
            self.timers.stop(&timer);
        }
        if let Some(socket) = self.socket(id) {
            socket.role = role;
        }
    }

    /// The number of the next frame: before hello if numbering is offered, afterwards if it was agreed.
    fn number(&mut self, id: SocketId) -> Option<u64> {
        let offered = self.identity.features.has(Feature::Seq);
        let socket = self.socket(id)?;
        let numbered = if socket.peer.is_some() { socket.has(Feature::Seq) } else { offered };
        socket.written += 1;
        numbered.then_some(socket.written)
    }

    pub(super) fn transmit(&mut self, id: SocketId, frame: &RelayFrame) {
        self.flush_acks(id);
        self.write(id, |n| frame.encode(n));
    }

    pub(super) fn transmit_call(&mut self, id: SocketId, call: &ToolCall) {
        self.flush_acks(id);
        self.write(id, |n| call.encode(n));
    }

    fn write(&mut self, id: SocketId, encode: impl FnOnce(Option<u64>) -> String) {
        let n = self.number(id);
        self.out.push_back(Output::Transmit { socket: id, text: encode(n) });
    }

    /// Tells the daemon that it may forget a result: with the next frame, or soon.
    pub(super) fn acknowledge(&mut self, now: Now, id: SocketId, call: CallId, matched: bool) {
        let Some(socket) = self.socket(id) else { return };
        if !socket.has(Feature::Ack) {
            return;
        }
        socket.acks.push(ToolResultAck { id: call, matched });
        if socket.acks.len() == 1 {
            self.timers.set(Timer::Acks(id), Due::boot(now, limits::ACK_DELAY));
        }
    }

    pub(super) fn flush_acks(&mut self, id: SocketId) {
        let Some(socket) = self.socket(id) else { return };
        if socket.acks.is_empty() {
            return;
        }
        let acks = std::mem::take(&mut socket.acks);
        // The timer may run on: finding nothing costs less than stopping and starting it for every call.
        for ack in acks {
            let frame = RelayFrame::ToolResultAck(ack);
            self.write(id, |n| frame.encode(n));
        }
    }

    pub(super) fn ping(&mut self, id: SocketId) -> u64 {
        let nonce = self.rng.next_u64();
        self.out.push_back(Output::Ping { socket: id, nonce });
        nonce
    }

    /// Closes a socket after one of the two errors that a base daemon takes as a reason to try again. Any other code would
    /// make it give up for good, so violations are answered by the close alone.
    pub(super) fn close_with_error(&mut self, now: Now, id: SocketId, code: &str, close: Close) {
        self.transmit(id, &RelayFrame::Error(ErrorFrame { error: code.into() }));
        self.close(now, id, close, Loss::Late);
    }

    /// Closes a socket; everything that hung on it is looked after as when it is lost.
    pub(super) fn close(&mut self, now: Now, id: SocketId, close: Close, why: Loss) {
        if self.socket(id).is_none() {
            return;
        }
        self.flush_acks(id);
        self.out.push_back(Output::Close { socket: id, close });
        self.lose(now, id, why);
    }

    /// Takes a socket out of the table. Nothing happens the second time.
    pub(super) fn lose(&mut self, now: Now, id: SocketId, why: Loss) {
        let Some(at) = self.sockets.iter().position(|socket| socket.id == id) else { return };
        let socket = self.sockets.remove(at);
        for timer in [
            Timer::Hello(id),
            Timer::Challenge(id),
            Timer::Ready(id),
            Timer::Report(id),
            Timer::Beat(id),
            Timer::Life(id),
            Timer::Acks(id),
            Timer::Chunks(id),
        ] {
            self.timers.stop(&timer);
        }
        let ready = socket.is_ready();
        self.note(Note::Lost { socket: id, ready, why });
        if ready {
            self.last_heard = Some(socket.heard);
            self.link_lost(now, &socket);
            self.incumbent_gone(now);
        } else if matches!(socket.role, Role::Resuming { .. }) {
            // The pause is over; whoever is in service goes on.
            self.dispatch(now);
        }
    }
}
