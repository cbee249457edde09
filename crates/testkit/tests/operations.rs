//! worker.md §7.1–4, both ends in virtual time.
//!
//! Random histories run over many seeds. A failure names its seed; `PAIR_SEED=<seed> cargo test -p holdfast-testkit --test
//! operations <name>` lives through that one again.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use holdfast_testkit::pair::operations::Weather;

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
