//! O1 to O4 of `docs/PROMISES.md`, both ends in virtual time.
//!
//! Random histories run over many seeds. A failure names its seed; `PAIR_SEED=<seed> cargo test -p holdfast-testkit --test
//! operations <name>` lives through that one again.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use std::time::Duration;

use holdfast_core::code::Code;
use holdfast_core::operation::Outcome;
use holdfast_core::worker::Input;
use holdfast_testkit::pair::operations::{Pair, Weather, Wish};
use holdfast_testkit::pair::{Fault, Sky};

const S: Duration = Duration::from_secs(1);

type Tally = BTreeMap<String, u64>;

/// Lives through one history per seed, on every core, and tells how operations ended.
fn histories(weather: Weather, seeds: u64) {
    if let Some(seed) = std::env::var("PAIR_SEED").ok().and_then(|seed| seed.parse().ok()) {
        println!("{:?}", weather.run(seed).judge());
        return;
    }
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get() as u64);
    let live = |thread: u64| {
        let mut total = Tally::new();
        for seed in (thread..seeds).step_by(threads as usize) {
            let lived = catch_unwind(AssertUnwindSafe(|| weather.run(seed).judge()));
            let Ok(tally) = lived else { panic!("a promise was broken with PAIR_SEED={seed}") };
            tally.into_iter().for_each(|(kind, count)| *total.entry(kind).or_default() += count);
        }
        total
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || live(thread))).collect();
        let mut total = Tally::new();
        for lived in threads {
            let tally = lived.join().unwrap_or_else(|broken| std::panic::resume_unwind(broken));
            tally.into_iter().for_each(|(kind, count)| *total.entry(kind).or_default() += count);
        }
        println!("{weather:?}: {total:?}");
        assert!(total["completed"] > seeds, "histories in which nothing gets done prove nothing");
        assert!(total["runner lost"] > seeds / 4, "connections to runners break too");
    });
}

#[test]
fn on_a_bad_network_everything_runs_once_and_arrives() {
    histories(Weather::default(), 400);
}

#[test]
fn processes_of_either_side_may_die_at_any_moment() {
    histories(Weather { deaths: true, ..Weather::default() }, 600);
}

#[test]
fn disks_may_run_full() {
    histories(Weather { deaths: true, disks: true, ..Weather::default() }, 400);
}

#[test]
fn machines_may_sleep_for_longer_than_the_lease() {
    histories(Weather { deaths: true, sleep: true, ..Weather::default() }, 400);
}

#[test]
fn the_power_may_go_and_a_ledger_with_it() {
    histories(Weather { deaths: true, power: true, ledgers: true, disks: true, sleep: true }, 400);
}

/// A program that runs for so many seconds and writes so many bytes.
fn program(key: u32, lasts: u64, bytes: u64, on_lease_expiry: &str) -> Wish {
    let request = serde_json::json!({
        "type": "exec",
        "command": {"argv": ["work", (lasts * 1000).to_string(), bytes.to_string()]},
        "onLeaseExpiry": on_lease_expiry,
    });
    let request = serde_json::from_value(request).unwrap_or_else(|bad| panic!("{bad}"));
    Wish::Start { key, request, input_for: None, session: None, ttl: None }
}

fn is_completed(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, Some(Outcome::Completed { .. }))
}

#[test]
fn a_sleep_past_the_lease_kills_what_must_not_run_unsupervised_unless_it_was_announced() {
    for seed in 0..20 {
        for announced in [true, false] {
            let mut pair = Pair::new(seed);
            pair.wish(program(1, 60, 1000, "stop"));
            pair.wish(program(2, 60, 1000, "continue"));
            pair.pass(S * 10);
            if announced {
                pair.tell(Input::SleepAnnounced);
                pair.pass(S / 10);
            }
            pair.freeze(false);
            pair.pass(S * 3600);
            pair.thaw(false);
            assert!(pair.until(S * 120, Pair::is_quiet), "{}", pair.waiting());
            pair.judge();
            assert!(is_completed(pair.outcome(2)));
            match pair.outcome(1) {
                Some(Outcome::Failed { error, started: true, .. }) if !announced => {
                    assert_eq!(error.code, Code::LeaseExpired, "{seed}");
                }
                outcome => assert!(announced && is_completed(outcome), "{seed} {outcome:?}"),
            }
        }
    }
}

#[test]
fn a_run_that_a_log_out_cut_off_is_failed_and_neither_completed_nor_started_again() {
    for seed in 0..6 {
        let mut pair = Pair::new(seed);
        pair.wish(program(1, 60, 1000, "continue"));
        pair.wish(program(2, 1, 1000, "continue"));
        pair.pass(S * 10);
        pair.log_out(S * 30);
        assert!(pair.until(S * 120, Pair::is_quiet), "{}", pair.waiting());
        pair.judge();
        assert!(is_completed(pair.outcome(2)));
        match pair.outcome(1) {
            Some(Outcome::Failed { error, started: true, .. }) => assert_eq!(error.code, Code::ExecutionFailed),
            outcome => panic!("{seed} {outcome:?}"),
        }
    }
}

#[test]
fn a_run_outlives_its_worker_its_relay_and_the_network_and_its_whole_output_arrives() {
    for seed in 0..6 {
        let mut pair = Pair::new(seed);
        pair.wish(program(1, 200, 5_000_000, "continue"));
        pair.pass(S * 20);
        pair.net.set_sky(pair.t, Sky::BlackHole);
        pair.net.strike(pair.t, Fault::Reset);
        pair.kill_worker(S * 30);
        pair.pass(S * 60);
        pair.net.set_sky(pair.t, Sky::Clear);
        pair.pass(S * 20);
        pair.kill_relay(S * 5);
        pair.pass(S * 20);
        pair.kill_worker(S * 200);
        assert!(pair.until(S * 400, Pair::is_quiet), "{}", pair.waiting());
        pair.judge();
        assert!(is_completed(pair.outcome(1)), "{seed} {:?}", pair.outcome(1));
        assert_eq!(pair.truth.written.values().sum::<u64>(), 5_000_000);
    }
}
