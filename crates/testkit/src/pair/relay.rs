//! The relay's process: the switchboard, the clients in front of it, and a store that survives it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::id::{AccountId, CallId, KeptId};
use holdfast_core::policy::Role;
use holdfast_core::switchboard::{
    EndKind, IdempotencyKey, Identity, Input, Intake, NewRecord, Note, OpenCall, Outcome, Output, RestoredCall,
    SocketId, StoreAnswer, StoreRequest, Switchboard, WaiterId,
};
use holdfast_core::wire::Authorization;
use serde_json::value::RawValue;

use super::Wire;
use super::clock::Clock;
use super::machine::Task;
use super::net::{Conn, Item, Net, Side, What};
use super::truth::Truth;

/// One request of a client, numbered over the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiter(pub u64);

/// What a client asks for.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// How long the tool runs.
    pub lasts: Duration,
    /// How many bytes it answers with.
    pub bytes: usize,
    /// Its execution budget; a generous one if zero.
    pub budget: Duration,
    /// An idempotency key.
    pub key: Option<u32>,
    /// A control tool.
    pub control: bool,
}

/// A call's record in the store.
#[derive(Debug, Clone)]
struct Record {
    key: Option<IdempotencyKey>,
    handle: Option<KeptId>,
    new: NewRecord,
    end: Option<Outcome>,
}

pub(super) struct RelaySide {
    /// `None` while the process is down.
    pub(super) board: Option<Switchboard>,
    pub(super) clock: Clock,
    back_at: Option<(Duration, Wire, u64)>,
    intakes: BTreeMap<Conn, Intake>,
    /// Partial bytes since the last whole frame, by connection.
    waiting: BTreeMap<Waiter, Option<CallId>>,
    next: u64,
    store: BTreeMap<CallId, Record>,
    hangups: Vec<Conn>,
}

fn board(wire: Wire, seed: u64) -> Switchboard {
    let identity = if wire == Wire::Base { Identity::base() } else { Identity::holdfast("0.1.0") };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    Switchboard::new(Arc::new(identity), bytes)
}

impl RelaySide {
    pub(super) fn new(wire: Wire, seed: u64) -> RelaySide {
        RelaySide {
            board: Some(board(wire, seed)),
            clock: Clock::new(Duration::from_secs(1000)),
            back_at: None,
            intakes: BTreeMap::new(),
            waiting: BTreeMap::new(),
            next: 0,
            store: BTreeMap::new(),
            hangups: Vec::new(),
        }
    }

    /// The process dies: whoever waited has an error, and what the store knows is all that is left.
    pub(super) fn crash(&mut self, back: Duration, wire: Wire, seed: u64, truth: &mut Truth) {
        self.board = None;
        self.back_at = Some((back, wire, seed));
        self.intakes.clear();
        for waiter in std::mem::take(&mut self.waiting).into_keys() {
            truth.cut_off(waiter);
        }
    }

    pub(super) fn ask(&mut self, t: Duration, ask: Ask, truth: &mut Truth) -> Waiter {
        self.next += 1;
        let waiter = Waiter(self.next);
        // The scope of a key holds the tool.
        truth.asked(waiter, ask.key.map(|key| (key, ask.control)));
        let Some(board) = &mut self.board else {
            truth.cut_off(waiter);
            return waiter;
        };
        let task = Task { millis: u64::try_from(ask.lasts.as_millis()).unwrap_or(u64::MAX), bytes: ask.bytes };
        let budget = if ask.budget.is_zero() { ask.lasts * 2 + Duration::from_secs(300) } else { ask.budget };
        let call = OpenCall {
            tool: if ask.control { "kill_process" } else { "run_process" }.into(),
            arguments: serde_json::value::to_raw_value(&task).expect("a task"),
            budget,
            authorization: Authorization {
                account_id: AccountId::mint([2; 18]),
                account_version: 1,
                role: Role::Owner,
                client: None,
                client_name: None,
            },
            principal: "account".into(),
            key: ask.key.map(|key| IdempotencyKey { key: key.to_string(), digest: [7; 32] }),
            wants_progress: false,
            control: ask.control,
            outlives: None,
        };
        self.waiting.insert(waiter, None);
        board.handle(self.clock.turn(t), Input::Open { waiter: WaiterId(waiter.0), call: Box::new(call) });
        waiter
    }

    pub(super) fn leave(&mut self, t: Duration, waiter: Waiter, truth: &mut Truth) {
        let Some(call) = self.waiting.remove(&waiter) else { return };
        truth.left(waiter);
        if let (Some(board), Some(call)) = (&mut self.board, call) {
            board.handle(self.clock.turn(t), Input::Leave { waiter: WaiterId(waiter.0), call });
        }
    }

    pub(super) fn is_quiet(&self, t: Duration) -> bool {
        self.board.as_ref().is_some_and(|board| board.snapshot(self.clock.peek(t)).pending.active == 0)
            && self.waiting.is_empty()
    }

    pub(super) fn next(&self, t: Duration) -> Option<Duration> {
        if let Some((back, ..)) = self.back_at {
            return Some(back);
        }
        let board = self.board.as_ref().filter(|_| !self.clock.is_frozen())?;
        board.poll_timeout(self.clock.peek(t)).map(|wait| t + wait)
    }

    pub(super) fn receive(&mut self, t: Duration, conn: Conn, what: What, net: &mut Net) {
        let now = self.clock.turn(t);
        let Some(board) = &mut self.board else { return };
        let socket = SocketId(conn);
        match what {
            What::Open(_) => {
                self.intakes.insert(conn, Intake::default());
                board.handle(now, Input::Connected { socket });
            }
            What::Item(item, _) => {
                let mid_frame = matches!(item, Item::Part);
                board.handle(now, Input::Heard { socket, at: t, mid_frame });
                match item {
                    Item::Text(text) => {
                        let Some(intake) = self.intakes.get_mut(&conn) else { return };
                        board.handle(now, Input::Arrived { socket, arrival: intake.read(&text) });
                    }
                    Item::Ping(nonce) => net.send(t, conn, Side::Relay, Item::Pong(nonce)),
                    Item::Pong(nonce) => board.handle(now, Input::Ponged { socket, nonce }),
                    Item::Close(code, reason) => {
                        self.hangups.push(conn);
                        board.handle(now, Input::Closed { socket, word: Some((code, reason)) });
                    }
                    Item::End => {
                        self.hangups.push(conn);
                        board.handle(now, Input::Closed { socket, word: None });
                    }
                    Item::Part => {}
                }
            }
            What::Taken(..) | What::Refused(_) => {}
        }
    }

    pub(super) fn turn(&mut self, t: Duration, net: &mut Net, truth: &mut Truth) -> bool {
        if let Some((_, wire, seed)) = self.back_at.filter(|(back, ..)| *back <= t) {
            self.back_at = None;
            let mut fresh = board(wire, seed);
            fresh.handle(self.clock.turn(t), Input::Restore { calls: self.restored() });
            self.board = Some(fresh);
        }
        if self.clock.is_frozen() {
            return false;
        }
        let now = self.clock.turn(t);
        for conn in std::mem::take(&mut self.hangups) {
            self.intakes.remove(&conn);
            net.close(t, conn, Side::Relay);
        }
        let Some(board) = &mut self.board else { return false };
        let mut moved = false;
        if board.poll_timeout(now).is_some_and(|wait| wait.is_zero()) {
            moved = true;
            board.handle_timeout(now);
        }
        while let Some(output) = board.poll_output() {
            moved = true;
            match output {
                Output::Transmit { socket, text } => net.send(t, socket.0, Side::Relay, Item::Text(text)),
                Output::Ping { socket, nonce } => net.send(t, socket.0, Side::Relay, Item::Ping(nonce)),
                Output::Close { socket, close: (code, reason) } => {
                    net.send(t, socket.0, Side::Relay, Item::Close(code, reason.to_owned()));
                    net.close(t, socket.0, Side::Relay);
                    self.intakes.remove(&socket.0);
                }
                Output::Admitted { waiter, call } => {
                    truth.admitted(Waiter(waiter.0), &call);
                    if let Some(known) = self.waiting.get_mut(&Waiter(waiter.0)) {
                        *known = Some(call);
                    }
                }
                Output::End { waiter, outcome } => {
                    let waiter = Waiter(waiter.0);
                    let call = self.waiting.remove(&waiter).flatten();
                    truth.ended(waiter, t, &outcome);
                    if let Some(call) = call {
                        board.handle(now, Input::Commit { call });
                    }
                }
                Output::Store(request) => {
                    if let Some((call, answer)) = keep(&mut self.store, request) {
                        board.handle(now, Input::Stored { call, answer });
                    }
                }
                Output::Note(Note::Ended { call, kind, .. }) => truth.call_ended(&call, kind),
                Output::Progress { .. }
                | Output::Kept { .. }
                | Output::Catalogue(_)
                | Output::Note(_)
                | Output::Stopped => {}
            }
        }
        moved
    }

    /// Calls without an end, as a fresh process finds them.
    fn restored(&self) -> Vec<RestoredCall> {
        let open = self.store.iter().filter(|(_, record)| record.end.is_none());
        open.map(|(id, Record { key, handle, new, .. })| RestoredCall {
            id: id.clone(),
            principal: new.principal.clone(),
            tool: new.tool.clone(),
            key: key.clone(),
            handle: handle.clone(),
            instance: new.instance.clone(),
            budget: new.budget,
            control: new.control,
            hold_left: None,
        })
        .collect()
    }
}

/// The store, which answers at once and never fails.
fn keep(store: &mut BTreeMap<CallId, Record>, request: StoreRequest) -> Option<(CallId, StoreAnswer)> {
    let call = request.call().clone();
    let answer = match request {
        StoreRequest::Reserve { key, record: new, .. } => {
            let same = |known: &&Record| {
                let scope = (&known.new.principal, &known.new.tool, known.key.as_ref().map(|known| &known.key));
                scope == (&new.principal, &new.tool, Some(&key.key))
            };
            if let Some(known) = store.values().find(same) {
                let known = known.end.clone().map_or(StoreAnswer::Unfinished, StoreAnswer::Known);
                return Some((call, known));
            }
            store.insert(call.clone(), Record { key: Some(key), handle: None, new, end: None });
            StoreAnswer::Committed
        }
        StoreRequest::Keep { handle, record: new, .. } => {
            let record = store.entry(call.clone()).or_insert(Record { key: None, handle: None, new, end: None });
            record.handle = Some(handle);
            StoreAnswer::Kept
        }
        StoreRequest::Assign { instance, .. } => {
            store.get_mut(&call)?.new.instance = Some(instance);
            StoreAnswer::Committed
        }
        StoreRequest::Finish { outcome, frees_key, .. } => {
            let record = store.get_mut(&call)?;
            record.end = Some(outcome);
            record.key.take_if(|_| frees_key);
            StoreAnswer::Committed
        }
        StoreRequest::Forget { .. } => {
            store.remove(&call);
            return None;
        }
        StoreRequest::Hold { .. } => return None,
    };
    Some((call, answer))
}

/// The kinds of end after which the tool must never have run.
pub(super) fn means_not_run(kind: EndKind) -> bool {
    kind == EndKind::Expired
}

/// The bytes of a result.
pub(super) fn text(outcome: &Outcome) -> Option<&RawValue> {
    outcome.as_ref().ok().map(|raw| &**raw)
}
