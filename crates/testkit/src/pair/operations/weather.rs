//! Random histories: clients that ask and cancel, and whatever networks, disks, laptops and processes do meanwhile.

use std::time::Duration;

use holdfast_core::operation::Request;
use holdfast_core::worker::Input;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::json;

use super::super::net::{Fault, Sky};
use super::{Pair, Wish};

/// What a random history may contain besides operations, cancels, resets and dark networks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weather {
    /// Processes of either side die and come back.
    pub deaths: bool,
    /// The power goes, or whoever is logged in.
    pub power: bool,
    /// A ledger is lost.
    pub ledgers: bool,
    /// Disks run full.
    pub disks: bool,
    /// Either side is frozen for a while, announced or not.
    pub sleep: bool,
}

/// How long a history lasts before it is left to settle.
const STORM: Duration = Duration::from_secs(40);
/// How long it may take to settle.
const SETTLE: Duration = Duration::from_secs(900);

#[derive(Debug, Clone)]
enum Event {
    Wish(Wish),
    Strike(Fault),
    Sky(Sky),
    Rate(u64),
    NetworkChanged,
    Drill(Duration),
    KillWorker(Duration),
    KillRelay(Duration),
    PowerOff(Duration),
    LogOut(Duration),
    LoseLedger(Duration),
    Disk { relay: bool, full: bool },
    AnnounceSleep,
    Freeze(bool),
    Thaw(bool),
}

impl Weather {
    /// Lives through the history of one seed, lets it settle and judges it. Panics when a promise is broken.
    pub fn run(&self, seed: u64) -> Pair {
        let mut rng = SmallRng::seed_from_u64(seed);
        let plan = self.plan(&mut rng);
        let mut pair = Pair::new(rng.random());
        pair.make_flaky();
        pair.net.latency = Duration::from_millis(rng.random_range(1..150));
        let began = pair.t;
        for (at, event) in plan {
            pair.pass((began + at).saturating_sub(pair.t));
            match event {
                Event::Wish(wish) => pair.wish(wish),
                Event::Strike(fault) => pair.net.strike(pair.t, fault),
                Event::Sky(sky) => pair.net.set_sky(pair.t, sky),
                Event::Rate(rate) => pair.net.rate = rate,
                Event::NetworkChanged => pair.tell(Input::NetworkChanged),
                Event::Drill(lasting) => pair.tell(Input::Cut(lasting)),
                Event::KillWorker(away) => pair.kill_worker(away),
                Event::KillRelay(away) => pair.kill_relay(away),
                Event::PowerOff(away) => pair.power_off(away),
                Event::LogOut(away) => pair.log_out(away),
                Event::LoseLedger(away) => pair.lose_ledger(away),
                Event::Disk { relay, full } => pair.fill_disk(relay, full),
                Event::AnnounceSleep => pair.tell(Input::SleepAnnounced),
                Event::Freeze(relay) => pair.freeze(relay),
                Event::Thaw(relay) => pair.thaw(relay),
            }
        }
        pair.pass((began + STORM).saturating_sub(pair.t));
        pair.net.set_sky(pair.t, Sky::Clear);
        pair.net.rate = 1 << 30;
        pair.fill_disk(true, false);
        pair.fill_disk(false, false);
        assert!(pair.until(SETTLE, Pair::is_quiet), "something still waits: {}", pair.waiting());
        pair.judge();
        pair
    }

    fn plan(&self, rng: &mut SmallRng) -> Vec<(Duration, Event)> {
        let mut plan = Vec::new();
        let moments = wishes(rng, &mut plan);
        for _ in 0..rng.random_range(2..9) {
            // Most of what happens does so while something begins or ends.
            let moment = *moments.choose(rng).expect("one") + Duration::from_millis(rng.random_range(0..600));
            let at = if rng.random_bool(0.7) { moment } else { any(rng) };
            let lasting = Duration::from_millis(*[100, 1000, 4000, 15_000].choose(rng).expect("one"));
            match rng.random_range(0..15) {
                0..=2 => {
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
                3 => {
                    let sky = if rng.random() { Sky::Refusing } else { Sky::BlackHole };
                    plan.push((at, Event::Strike(Fault::Reset)));
                    plan.push((at, Event::Sky(sky)));
                    plan.push((at + lasting, Event::Sky(Sky::Clear)));
                }
                4 => {
                    plan.push((at, Event::Rate(*[20_000, 200 * 1024].choose(rng).expect("one"))));
                    plan.push((at + lasting, Event::Rate(1 << 30)));
                }
                5 if rng.random() => plan.push((at, Event::NetworkChanged)),
                5 => plan.push((at, Event::Drill(lasting))),
                6..=8 if self.deaths => {
                    plan.push((at, Event::KillWorker(lasting / 4)));
                    if rng.random() {
                        // And again while it recovers.
                        let again = lasting / 4 + Duration::from_millis(rng.random_range(0..400));
                        plan.push((at + again, Event::KillWorker(Duration::from_millis(50))));
                    }
                }
                9 if self.deaths => plan.push((at, Event::KillRelay(lasting))),
                10 if self.ledgers && rng.random() => plan.push((at, Event::LoseLedger(lasting))),
                10 if self.power && rng.random() => plan.push((at, Event::LogOut(lasting))),
                10 if self.power => plan.push((at, Event::PowerOff(lasting))),
                11..=12 if self.disks => {
                    let relay = rng.random();
                    plan.push((at, Event::Disk { relay, full: true }));
                    plan.push((at + lasting, Event::Disk { relay, full: false }));
                }
                13..=14 if self.sleep => {
                    let relay = rng.random_bool(0.3);
                    // Half of them longer than the lease.
                    let lasting =
                        *[lasting, Duration::from_secs(60), Duration::from_secs(150), Duration::from_secs(400)]
                            .choose(rng)
                            .expect("one");
                    if rng.random() && !relay {
                        plan.push((at, Event::AnnounceSleep));
                    }
                    plan.push((at + Duration::from_millis(500), Event::Freeze(relay)));
                    plan.push((at + Duration::from_millis(500) + lasting, Event::Thaw(relay)));
                }
                _ => plan.push((at, Event::Strike(Fault::Reset))),
            }
        }
        plan.sort_by_key(|(at, _)| *at);
        plan
    }
}

/// What clients want. Returns when something begins or ends by it.
fn wishes(rng: &mut SmallRng, plan: &mut Vec<(Duration, Event)>) -> Vec<Duration> {
    let mut moments = Vec::new();
    let count = rng.random_range(2..9);
    for key in 0..count {
        let at = any(rng);
        let session = rng.random_bool(0.4).then(|| format!("s{}", rng.random_range(0..2)));
        let lasts = *[1, 200, 200, 3000, 3000, 20_000, 160_000].choose(rng).expect("one");
        let bytes = *[0, 0, 10, 1000, 1000, 5000, 5000, 20_000, 150_000].choose(rng).expect("one");
        let stop = if rng.random_bool(0.3) { "stop" } else { "continue" };
        let request = match rng.random_range(0..10) {
            0 => json!({"type": "file_sync", "target": "t", "manifestUrl": "u"}),
            1 => json!({"type": "create_project_branch", "path": "p", "branch": "b"}),
            _ => json!({
                "type": "exec",
                "command": {"argv": ["work", lasts.to_string(), bytes.to_string()]},
                "stdin": true,
                "onLeaseExpiry": stop,
            }),
        };
        let ttl = rng.random_bool(0.1).then(|| Duration::from_secs(5));
        moments.extend([at, at + Duration::from_millis(lasts)]);
        let is_run = request["type"] == "exec";
        let wish = Wish::Start { key, request: read(request), input_for: None, session, ttl };
        plan.push((at, Event::Wish(wish)));
        if is_run && rng.random_bool(0.4) {
            for n in 0..rng.random_range(1..4) {
                let request = read(json!({"type": "exec_stdin", "data": "YWI=", "close": false}));
                let (key, input_for) = (1000 + key * 10 + n, Some(key));
                let wish = Wish::Start { key, request, input_for, session: None, ttl: None };
                plan.push((at + Duration::from_millis(rng.random_range(20..3000)), Event::Wish(wish)));
            }
        }
        if rng.random_bool(0.2) {
            let wait = Duration::from_millis(*[1, 30, 500, 5000].choose(rng).expect("one"));
            plan.push((at + wait, Event::Wish(Wish::Cancel(key))));
        }
    }
    if rng.random_bool(0.2) {
        let session = format!("s{}", rng.random_range(0..2));
        plan.push((any(rng), Event::Wish(Wish::CancelSession(session, 0))));
    }
    moments
}

fn read(request: serde_json::Value) -> Request {
    serde_json::from_value(request).expect("a request")
}

fn any(rng: &mut SmallRng) -> Duration {
    Duration::from_millis(rng.random_range(0..STORM.as_millis() as u64))
}
