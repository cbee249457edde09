//! Both ends of the link in virtual time: the real [`Switchboard`](holdfast_core::switchboard::Switchboard) and the real
//! [`Daemon`](holdfast_core::daemon::Daemon), joined by a network that does what networks do.
//!
//! Everything random comes from one seed, so a failure is its seed. A stream keeps its order; connections do not keep theirs
//! among each other. What must hold is checked while it happens, by [`Truth`].

mod clock;
mod machine;
mod net;
pub mod operations;
mod relay;
mod truth;
mod weather;

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

pub use net::{Fault, Sky};
pub use relay::{Ask, Waiter};
pub use truth::{Ended, Truth};
pub use weather::Weather;

use machine::Machine;
use net::{Delivery, Net, Side};
use relay::RelaySide;

/// Which wire both ends speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Every feature.
    Feature,
    /// That of `machine-bridge-mcp` 1.2.10, spoken by both.
    Base,
}

/// A relay, one or more processes of one device, and the network between them.
pub struct Pair {
    /// Virtual time since the beginning.
    pub t: Duration,
    /// What really happened.
    pub truth: Truth,
    /// The network.
    pub net: Net,
    rng: SmallRng,
    wire: Wire,
    relay: RelaySide,
    /// Processes that ever lived, by number; number 0 is the first one of the real device.
    machines: Vec<Machine>,
}

impl Pair {
    /// A relay that listens and one daemon that dials.
    pub fn new(wire: Wire, seed: u64) -> Pair {
        let mut rng = SmallRng::seed_from_u64(seed);
        let net = Net::new(rng.random());
        let relay = RelaySide::new(wire, rng.random());
        let mut pair =
            Pair { t: Duration::from_secs(1000), truth: Truth::default(), net, rng, wire, relay, machines: Vec::new() };
        pair.boot_machine();
        pair
    }

    /// A pair whose daemon is ready.
    pub fn ready(wire: Wire, seed: u64) -> Pair {
        let mut pair = Pair::new(wire, seed);
        pair.until(Duration::from_secs(5), Pair::is_ready);
        pair
    }

    /// Starts one more process with the device's credential; returns its number.
    pub fn boot_machine(&mut self) -> usize {
        let number = self.machines.len();
        self.machines.push(Machine::new(number, self.wire, self.t, self.rng.random()));
        self.settle();
        number
    }

    /// Kills a process and everything it ran, without a word.
    pub fn kill_machine(&mut self, number: usize) {
        self.machines[number].kill(&mut self.truth);
        self.net.kill(number, self.t);
        self.settle();
    }

    /// Kills the relay. It listens again after `away`, with what its store kept.
    pub fn restart_relay(&mut self, away: Duration) {
        self.net.relay_down(self.t, away);
        self.relay.crash(self.t + away, self.wire, self.rng.random(), &mut self.truth);
        self.settle();
    }

    /// Puts a process to sleep, or freezes the relay's (`None`).
    pub fn freeze(&mut self, who: Option<usize>) {
        match who {
            Some(number) => self.machines[number].clock.freeze(self.t),
            None => self.relay.clock.freeze(self.t),
        }
    }

    /// Wakes what was frozen.
    pub fn thaw(&mut self, who: Option<usize>) {
        match who {
            Some(number) => self.machines[number].clock.thaw(self.t),
            None => self.relay.clock.thaw(self.t),
        }
        self.settle();
    }

    /// Gives the current daemon an input of its operating system.
    pub fn tell(&mut self, number: usize, input: holdfast_core::daemon::Input<'static>) {
        self.machines[number].input(input);
        self.settle();
    }

    /// Whether a process of this number said that the machine may sleep.
    pub fn may_sleep(&self, number: usize) -> bool {
        self.machines[number].may_sleep
    }

    /// A client asks for a call.
    pub fn ask(&mut self, ask: Ask) -> Waiter {
        let waiter = self.relay.ask(self.t, ask, &mut self.truth);
        self.settle();
        waiter
    }

    /// A client does not wait any more.
    pub fn leave(&mut self, waiter: Waiter) {
        self.relay.leave(self.t, waiter, &mut self.truth);
        self.settle();
    }

    /// Whether both ends say that the link is ready.
    pub fn is_ready(&self) -> bool {
        let daemon = self.machines.iter().any(|machine| machine.is_ready(self.t));
        daemon && self.relay.board.as_ref().is_some_and(holdfast_core::switchboard::Switchboard::is_ready)
    }

    /// Whether nothing is on its way: no call at the relay, none running, no result waiting.
    pub fn is_quiet(&self) -> bool {
        self.relay.is_quiet(self.t) && self.machines.iter().all(|machine| machine.is_quiet(self.t))
    }

    /// Calls that run in a process.
    pub fn running(&self, number: usize) -> usize {
        self.machines[number].running()
    }

    /// Whether the relay refused another instance.
    pub fn device_in_use(&self) -> bool {
        self.relay.board.as_ref().is_some_and(|board| board.snapshot(self.relay.clock.peek(self.t)).in_use_at.is_some())
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
            let due =
                [self.net.next(listening(&self.relay, &self.machines)), self.relay.next(self.t)].into_iter().flatten();
            let due = due.chain(self.machines.iter().filter_map(|machine| machine.next(self.t))).min();
            match due {
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
            loop {
                let delivery = self.net.deliver(self.t, listening(&self.relay, &self.machines));
                let Some(delivery) = delivery else { break };
                moved = true;
                self.deliver(delivery);
            }
            moved |= self.relay.turn(self.t, &mut self.net, &mut self.truth);
            for machine in &mut self.machines {
                moved |= machine.turn(self.t, &mut self.net, &mut self.truth);
            }
            if !moved {
                return;
            }
        }
    }

    fn deliver(&mut self, delivery: Delivery) {
        match delivery.to {
            Side::Relay => self.relay.receive(self.t, delivery.conn, delivery.what, &mut self.net),
            Side::Daemon(number) => self.machines[number].receive(self.t, delivery.conn, delivery.what),
        }
    }
}

/// Which ends take what the network brings; the others' kernels keep it for them.
fn listening<'a>(relay: &'a RelaySide, machines: &'a [Machine]) -> impl Fn(Side) -> bool + 'a {
    |side| match side {
        Side::Relay => !relay.clock.is_frozen(),
        Side::Daemon(number) => !machines[number].clock.is_frozen(),
    }
}
