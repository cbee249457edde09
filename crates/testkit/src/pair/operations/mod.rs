//! Both ends of durable operations in virtual time: the real [`Control`](holdfast_core::control::Control) and the real
//! [`Worker`](holdfast_core::worker::Worker), each with a store that survives it, joined by the network of the link's pair.
//!
//! Everything random comes from one seed, so a failure is its seed. What must hold (`docs/PROMISES.md`, O1 to O4) is checked while it happens
//! by [`Truth`] and the stores, and at the end by [`Pair::judge`].

mod machine;
mod relay;
mod runs;
mod truth;
mod weather;

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_core::control::fake::Segment;
use holdfast_core::id::OperationId;
use holdfast_core::operation::{Kind, OnLeaseExpiry, Outcome};
use holdfast_core::worker::Input;
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

pub use relay::Wish;
pub use truth::Truth;
pub use weather::Weather;

use super::net::{Net, Side};
use machine::Machine;
use relay::Relay;
use truth::byte;

/// A relay, a machine, and the network between them.
pub struct Pair {
    /// Virtual time since the beginning.
    pub t: Duration,
    /// What really happened.
    pub truth: Truth,
    /// The network.
    pub net: Net,
    relay: Relay,
    machine: Machine,
}

impl Pair {
    /// A relay that listens and one worker that dials.
    pub fn new(seed: u64) -> Pair {
        let mut rng = SmallRng::seed_from_u64(seed);
        let t = Duration::from_secs(1000);
        let net = Net::new(rng.random());
        let (relay, machine) = (Relay::new(t, rng.random()), Machine::new(t, rng.random()));
        let mut pair = Pair { t, truth: Truth::default(), net, relay, machine };
        pair.settle();
        pair
    }

    /// A client wants something, and asks until it has an answer.
    pub fn wish(&mut self, wish: Wish) {
        self.relay.wish(wish);
        self.settle();
    }

    /// Kills the relay's process; it is back after `away`.
    pub fn kill_relay(&mut self, away: Duration) {
        self.truth.strike("relay killed");
        self.net.relay_down(self.t, away);
        self.relay.kill(self.t, away);
    }

    /// Kills the worker's process; what it runs goes on.
    pub fn kill_worker(&mut self, away: Duration) {
        self.truth.strike("worker killed");
        self.machine.kill(self.t, away);
        self.net.kill(0, self.t);
    }

    /// The machine's user is logged out, which ends what runs; its worker is back after `away`.
    pub fn log_out(&mut self, away: Duration) {
        self.truth.strike("logged out");
        self.machine.log_out(self.t, away);
        self.settle();
    }

    /// The machine loses its power.
    pub fn power_off(&mut self, away: Duration) {
        self.truth.strike("power lost");
        self.machine.power_off(self.t, away, &mut self.truth);
        self.net.kill(0, self.t);
    }

    /// The worker's process dies and finds its ledger damaged.
    pub fn lose_ledger(&mut self, away: Duration) {
        self.truth.strike("ledger lost");
        self.machine.lose_ledger(self.t, away);
        self.net.kill(0, self.t);
    }

    /// A disk is full from now on, or no more: the machine's, or the relay's.
    pub fn fill_disk(&mut self, of_relay: bool, full: bool) {
        if of_relay {
            self.relay.full = full;
        } else {
            self.machine.full = full;
        }
    }

    /// From now on runners sometimes do not start, and connections to them break.
    pub fn make_flaky(&mut self) {
        self.machine.runs.flaky = true;
    }

    /// Puts the machine to sleep, or freezes the relay's.
    pub fn freeze(&mut self, relay: bool) {
        self.truth.strike("slept");
        if relay { self.relay.clock.freeze(self.t) } else { self.machine.clock.freeze(self.t) }
    }

    /// Wakes what was frozen.
    pub fn thaw(&mut self, relay: bool) {
        if relay {
            self.relay.clock.thaw(self.t)
        } else {
            self.machine.clock.thaw(self.t)
        }
        self.settle();
    }

    /// Gives the worker an input of its operating system.
    pub fn tell(&mut self, input: Input<'static>) {
        self.machine.input(input);
        self.settle();
    }

    /// Whether nothing is on its way any more.
    pub fn is_quiet(&self) -> bool {
        self.relay.is_quiet() && self.machine.is_quiet(self.t)
    }

    /// What still waits, for a test that failed.
    pub fn waiting(&self) -> String {
        format!("{}\n{}", self.relay.waiting(), self.machine.waiting(self.t))
    }

    /// How the operation of this key ended, by the relay's store.
    pub fn outcome(&self, key: u32) -> Option<&Outcome> {
        self.relay.store.rows.get(self.relay.accepted.get(&key)?)?.record.outcome.as_ref()
    }

    /// Lets time pass.
    pub fn pass(&mut self, lasting: Duration) {
        let end = self.t + lasting;
        self.until_time(end, |_| false);
        self.t = end;
        self.settle();
    }

    /// Lets time pass until something holds; whether it did in time.
    pub fn until(&mut self, at_most: Duration, holds: impl Fn(&Pair) -> bool) -> bool {
        let end = self.t + at_most;
        self.until_time(end, &holds) || holds(self)
    }

    fn until_time(&mut self, end: Duration, holds: impl Fn(&Pair) -> bool) -> bool {
        loop {
            if holds(self) {
                return true;
            }
            let listens = listening(&self.relay, &self.machine);
            let due = [self.net.next(listens), self.relay.next(self.t), self.machine.next(self.t)];
            match due.into_iter().flatten().min() {
                Some(due) if due <= end => self.t = self.t.max(due),
                _ => {
                    self.t = end;
                    return false;
                }
            }
            self.settle();
        }
    }

    /// Does everything that is due now, until nothing is.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            while let Some(delivery) = self.net.deliver(self.t, listening(&self.relay, &self.machine)) {
                moved = true;
                match delivery.to {
                    Side::Relay => self.relay.receive(self.t, delivery.conn, delivery.what),
                    Side::Daemon(_) => self.machine.receive(self.t, delivery.conn, delivery.what),
                }
            }
            moved |= self.relay.turn(self.t, &mut self.net);
            moved |= self.machine.turn(self.t, &mut self.net, &mut self.truth);
            if !moved {
                return;
            }
        }
    }

    /// Holds what the relay's store says against what really happened, and counts ends by state. To be asked when all is quiet.
    pub fn judge(&self) -> BTreeMap<String, u64> {
        let mut tally = BTreeMap::new();
        for id in self.relay.accepted.values() {
            assert!(self.relay.store.rows.contains_key(id), "{id} was accepted and is lost");
        }
        for (id, row) in &self.relay.store.rows {
            let operation = &row.record.operation;
            let outcome = row.record.outcome.as_ref().unwrap_or_else(|| panic!("{id} has no end"));
            assert_eq!(row.ends, 1, "{id} ended {} times", row.ends);
            *tally.entry(outcome.state().as_str().to_owned()).or_default() += 1;
            self.judge_end(id, operation, outcome);
            if let Some(run) = operation.run_id.as_ref().filter(|_| operation.kind().is_run()) {
                self.judge_output(run, row, outcome);
            }
        }
        self.judge_inputs();
        tally.extend(self.truth.struck.iter().map(|(what, times)| ((*what).to_owned(), *times)));
        tally
    }

    /// Input that was not given has nothing behind it that was accepted before that was known, and given.
    fn judge_inputs(&self) {
        let given = |id: &OperationId| self.truth.given.contains_key(id);
        let inputs = || self.relay.store.rows.iter().filter(|(_, row)| row.record.operation.kind().is_input());
        for (hole, row) in inputs().filter(|(id, _)| !given(id)) {
            let untaken =
                matches!(row.record.outcome, Some(Outcome::Expired {} | Outcome::Failed { started: false, .. }));
            let Some(known) = self.relay.ended_at.get(hole).filter(|_| untaken) else { continue };
            let behind = inputs().filter(|(id, later)| {
                later.record.operation.run_id == row.record.operation.run_id
                    && later.record.order > row.record.order
                    && self.relay.accepted_at.get(id).is_some_and(|at| at < known)
            });
            for (id, _) in behind {
                assert!(!given(id), "{id} was given, and {hole} before it was not");
            }
        }
    }

    fn judge_end(&self, id: &OperationId, operation: &holdfast_core::operation::Operation, outcome: &Outcome) {
        let (kind, truth) = (operation.kind(), &self.truth);
        let begun = truth.begun.get(id).copied().unwrap_or(0) + truth.given.get(id).copied().unwrap_or(0);
        match outcome {
            Outcome::Completed { exit, .. } => {
                assert!(begun >= 1 || kind == Kind::WorkspaceConfig, "{id} is said to be done");
                if kind.is_run() {
                    let end = truth.ends.get(id).expect("a program that ended");
                    assert!(!end.killed, "{id} was killed and is said to be done");
                    assert_eq!(end.exit, *exit, "{id} has another program's exit");
                    let stop = operation.request.on_lease_expiry() == OnLeaseExpiry::Stop;
                    assert!(!(stop && end.lease_expired.is_some()), "{id} was killed by its lease");
                }
            }
            Outcome::Cancelled { started: false, .. }
            | Outcome::Expired {}
            | Outcome::Failed { started: false, .. } => {
                assert_eq!(begun, 0, "{id} is said not to have started: {outcome:?}");
                let may_be_repeated = !matches!(outcome, Outcome::Failed { error, .. } if !error.retryable);
                assert!(may_be_repeated || !kind.is_run(), "{id} was never begun, and is given up: {outcome:?}");
            }
            Outcome::Cancelled { started: true, .. } | Outcome::Failed { started: true, .. } => {
                assert!(begun >= 1, "{id} is said to have started: {outcome:?}");
            }
            Outcome::Unknown { .. } => {
                let lost = truth.struck.contains_key("ledger lost");
                assert!(begun >= 1 || lost || !kind.is_run(), "{id} never started and is said to be unknown");
                let struck = ["power lost", "ledger lost"].iter().any(|what| truth.struck.contains_key(what));
                assert!(struck || !kind.is_run(), "{id} need not be unknown: {outcome:?}");
            }
        }
    }

    fn judge_output(&self, run: &holdfast_core::id::RunId, row: &holdfast_core::control::fake::Row, outcome: &Outcome) {
        let mut at = 0;
        for segment in row.streams.values().flatten() {
            match segment {
                Segment::Bytes(bytes) => {
                    assert!(
                        bytes.iter().enumerate().all(|(n, b)| *b == byte(run, at + n as u64)),
                        "{run} has other bytes"
                    );
                    at += bytes.len() as u64;
                }
                Segment::Gap(from, to) => panic!("{run} has a gap from {from} to {to}"),
            }
        }
        let ledger_lost = self.truth.struck.contains_key("ledger lost");
        if !(ledger_lost && matches!(outcome, Outcome::Unknown { .. })) {
            let written = self.truth.written.get(run).copied().unwrap_or(0);
            assert!(at >= written, "{run} lost output: {at} of {written}");
        }
    }
}

/// Which ends take what the network brings; the others' kernels keep it for them.
fn listening<'a>(relay: &'a Relay, machine: &'a Machine) -> impl Fn(Side) -> bool + 'a {
    |side| match side {
        Side::Relay => !relay.clock.is_frozen(),
        Side::Daemon(_) => !machine.clock.is_frozen(),
    }
}
