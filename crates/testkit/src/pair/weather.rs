//! Random histories: clients that ask and leave, and whatever networks, laptops and processes do meanwhile.

use std::time::Duration;

use holdfast_core::daemon::Input;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};

use super::{Ask, Fault, Pair, Sky, Waiter, Wire};

/// What a random history may contain besides calls, resets and dark networks.
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    /// The wire of both ends.
    pub wire: Wire,
    /// A proxy swallows this many frames of a thousand.
    pub swallow: u32,
    /// Processes of either side die and come back.
    pub deaths: bool,
    /// Either side is frozen for a while, announced or not.
    pub sleep: bool,
    /// Another process shows the same credential.
    pub clones: bool,
}

/// How long a history lasts before it is left to settle.
const STORM: Duration = Duration::from_secs(40);
/// How long it may take to settle: longer than every grace and hold-off that can run.
const SETTLE: Duration = Duration::from_secs(900);

#[derive(Debug, Clone)]
enum Event {
    Ask(Ask),
    Leave,
    Strike(Fault),
    Sky(Sky),
    Rate(u64),
    NetworkChanged,
    Drill(Duration),
    KillDaemon,
    KillRelay(Duration),
    Freeze(bool),
    Thaw(bool),
    AnnounceSleep,
    Clone,
    KillClone,
}

impl Weather {
    /// Lives through the history of one seed and lets it settle. Panics when a promise is broken.
    pub fn run(&self, seed: u64) -> Pair {
        let mut rng = SmallRng::seed_from_u64(seed);
        let plan = self.plan(&mut rng);
        let mut pair = Pair::new(self.wire, rng.random());
        pair.net.latency = Duration::from_millis(rng.random_range(1..150));
        pair.net.swallow = self.swallow;
        let began = pair.t;
        let mut daemon = 0;
        let mut clone = None;
        let mut asked: Vec<Waiter> = Vec::new();
        for (at, event) in plan {
            pair.pass((began + at).saturating_sub(pair.t));
            match event {
                Event::Ask(ask) => asked.push(pair.ask(ask)),
                Event::Leave => {
                    if let Some(waiter) = asked.choose(&mut rng) {
                        pair.leave(*waiter);
                    }
                }
                Event::Strike(fault) => pair.net.strike(pair.t, fault),
                Event::Sky(sky) => pair.net.set_sky(pair.t, sky),
                Event::Rate(rate) => pair.net.rate = rate,
                Event::NetworkChanged => pair.tell(daemon, Input::NetworkChanged),
                Event::Drill(lasting) => pair.tell(daemon, Input::Cut(lasting)),
                Event::KillDaemon => {
                    pair.kill_machine(daemon);
                    daemon = pair.boot_machine();
                }
                Event::KillRelay(away) => pair.restart_relay(away),
                Event::Freeze(relay) => pair.freeze((!relay).then_some(daemon)),
                Event::Thaw(relay) => pair.thaw((!relay).then_some(daemon)),
                Event::AnnounceSleep => pair.tell(daemon, Input::SleepAnnounced),
                Event::Clone => clone = Some(pair.boot_machine()),
                Event::KillClone => {
                    if let Some(clone) = clone.take() {
                        pair.kill_machine(clone);
                    }
                }
            }
        }
        pair.pass((began + STORM).saturating_sub(pair.t));
        pair.net.set_sky(pair.t, Sky::Clear);
        pair.net.swallow = 0;
        pair.net.rate = 1 << 30;
        let quiet = pair.until(SETTLE, Pair::is_quiet);
        assert!(pair.truth.open().is_empty(), "without an end: {:?}", pair.truth.open());
        assert!(quiet, "something still waits");
        pair
    }

    fn plan(&self, rng: &mut SmallRng) -> Vec<(Duration, Event)> {
        let mut plan = Vec::new();
        let storm = STORM.as_millis() as u64;
        let any = |rng: &mut SmallRng| Duration::from_millis(rng.random_range(0..storm));
        for _ in 0..rng.random_range(1..8) {
            let ask = Ask {
                lasts: Duration::from_millis(*[1, 100, 1000, 5000, 20_000].choose(rng).expect("one")),
                bytes: *[0, 0, 0, 1000, 70_000, 300_000].choose(rng).expect("one"),
                budget: Duration::from_secs(*[0, 0, 3].choose(rng).expect("one")),
                key: rng.random_bool(0.2).then(|| rng.random_range(0..2)),
                control: rng.random_bool(0.1),
            };
            plan.push((any(rng), Event::Ask(ask)));
        }
        for _ in 0..rng.random_range(0..3) {
            plan.push((any(rng), Event::Leave));
        }
        for _ in 0..rng.random_range(1..5) {
            let at = any(rng);
            let lasting = Duration::from_millis(*[100, 1000, 4000, 15_000].choose(rng).expect("one"));
            match rng.random_range(0..12) {
                0..=3 => {
                    let faults = [
                        Fault::Reset,
                        Fault::Reset,
                        Fault::ResetAtRelay,
                        Fault::ResetAtDaemon,
                        Fault::DeafRelay,
                        Fault::DeafDaemon,
                    ];
                    plan.push((at, Event::Strike(*faults.choose(rng).expect("one"))));
                }
                4..=5 => {
                    let sky = if rng.random() { Sky::Refusing } else { Sky::BlackHole };
                    plan.push((at, Event::Strike(Fault::Reset)));
                    plan.push((at, Event::Sky(sky)));
                    plan.push((at + lasting, Event::Sky(Sky::Clear)));
                }
                6 => {
                    plan.push((at, Event::Sky(Sky::BlackHole)));
                    plan.push((at + lasting, Event::Sky(Sky::Clear)));
                }
                7 => {
                    plan.push((at, Event::Rate(*[5_000, 64 * 1024].choose(rng).expect("one"))));
                    plan.push((at + lasting, Event::Rate(1 << 30)));
                }
                8 => plan.push((at, Event::NetworkChanged)),
                9 => plan.push((at, Event::Drill(lasting))),
                10 if self.deaths && rng.random() => plan.push((at, Event::KillDaemon)),
                10 if self.deaths => plan.push((at, Event::KillRelay(lasting))),
                11 if self.clones => {
                    plan.push((at, Event::Clone));
                    plan.push((at + lasting, Event::KillClone));
                }
                _ if self.sleep => {
                    let relay = rng.random_bool(0.3);
                    if rng.random() && !relay {
                        plan.push((at, Event::AnnounceSleep));
                    }
                    plan.push((at + Duration::from_secs(1), Event::Freeze(relay)));
                    plan.push((at + Duration::from_secs(1) + lasting, Event::Thaw(relay)));
                }
                _ => plan.push((at, Event::Strike(Fault::Reset))),
            }
        }
        // What began before the end of the storm ends in it too, so that nothing stays frozen or cloned.
        plan.iter_mut().for_each(|(at, _)| *at = (*at).min(STORM));
        plan.sort_by_key(|(at, _)| *at);
        plan
    }
}
