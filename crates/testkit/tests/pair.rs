//! L1 to L6 and L8 of `docs/PROMISES.md`, both ends in virtual time.
//!
//! Random histories run over many seeds. A failure names its seed; `PAIR_SEED=<seed> cargo test -p holdfast-testkit --test pair
//! <name>` lives through that one again.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use holdfast_core::code::Code;
use holdfast_core::daemon::{CancelReason, Input};
use holdfast_testkit::pair::{Ask, Ended, Fault, Pair, Sky, Weather, Wire};

type Tally = BTreeMap<String, u64>;

const S: Duration = Duration::from_secs(1);
const WIRES: [Wire; 2] = [Wire::Feature, Wire::Base];

/// Lives through one history per seed, on every core, and tells how requests ended.
fn histories(weather: Weather, seeds: u64) {
    if let Some(seed) = std::env::var("PAIR_SEED").ok().and_then(|seed| seed.parse().ok()) {
        println!("{:?}", weather.run(seed).truth.tally());
        return;
    }
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get() as u64);
    let live = |thread: u64| {
        let mut total = Tally::new();
        for seed in (thread..seeds).step_by(threads as usize) {
            let lived = catch_unwind(AssertUnwindSafe(|| weather.run(seed).truth.tally()));
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
        assert!(total["done"] > seeds, "histories in which nothing gets through prove nothing");
    });
}

fn weather(wire: Wire) -> Weather {
    Weather { wire, swallow: 0, deaths: false, sleep: false, clones: false }
}

fn lasting(seconds: u64) -> Ask {
    Ask { lasts: Duration::from_secs(seconds), ..Ask::default() }
}

#[test]
fn every_call_ends_once_and_runs_at_most_once_whatever_the_network_does() {
    histories(weather(Wire::Feature), 2500);
}

#[test]
fn every_call_ends_once_and_runs_at_most_once_on_the_base_wire() {
    histories(weather(Wire::Base), 3000);
}

#[test]
fn every_call_ends_once_though_processes_die_sleep_and_are_cloned() {
    histories(Weather { deaths: true, sleep: true, clones: true, ..weather(Wire::Feature) }, 2500);
}

#[test]
fn every_call_ends_once_though_processes_die_sleep_and_are_cloned_on_the_base_wire() {
    histories(Weather { deaths: true, sleep: true, clones: true, ..weather(Wire::Base) }, 2000);
}

#[test]
fn frames_swallowed_one_in_a_hundred_are_no_silent_loss() {
    histories(Weather { swallow: 10, ..weather(Wire::Feature) }, 1000);
    histories(Weather { swallow: 10, sleep: true, deaths: true, ..weather(Wire::Feature) }, 500);
}

#[test]
fn on_the_base_wire_a_swallowed_frame_may_cost_the_outcome_but_never_a_second_run_or_a_lie() {
    histories(Weather { swallow: 10, ..weather(Wire::Base) }, 500);
}

/// Nothing but swallowed frames happens, so there is no excuse.
#[test]
fn with_numbered_frames_a_proxy_that_swallows_costs_no_outcome() {
    let mut swallowed = 0;
    for seed in 0..100 {
        let mut pair = Pair::ready(Wire::Feature, seed);
        pair.net.swallow = 10;
        let waiters: Vec<_> = (0..40)
            .map(|_| {
                pair.pass(S / 2);
                pair.ask(lasting(2))
            })
            .collect();
        assert!(pair.until(S * 120, |pair| pair.truth.open().is_empty()), "{seed}");
        for waiter in waiters {
            // A call that was not sent because handshakes were swallowed too is told so.
            let unsent =
                pair.truth.end_of(waiter) == Some(&Ended::Failed(Code::Unavailable)) && !pair.truth.ran(waiter);
            assert!(unsent || pair.truth.end_of(waiter) == Some(&Ended::Done), "{seed}");
        }
        swallowed += pair.net.swallowed;
    }
    assert!(swallowed > 100, "{swallowed}");
}

/// A reset one second into a 5 s call, whose path comes back after `dark`.
fn cut(wire: Wire, seed: u64, dark: Duration) -> Ended {
    let mut pair = Pair::ready(wire, seed);
    let waiter = pair.ask(lasting(5));
    pair.pass(S);
    pair.net.set_sky(pair.t, Sky::Refusing);
    pair.net.strike(pair.t, Fault::Reset);
    pair.pass(dark);
    pair.net.set_sky(pair.t, Sky::Clear);
    assert!(pair.until(S * 200, Pair::is_quiet), "{wire:?} {dark:?}");
    assert_eq!(pair.truth.executions(), 1);
    pair.truth.end_of(waiter).unwrap_or_else(|| panic!("no end")).clone()
}

#[test]
fn a_five_second_call_survives_resets_shorter_than_the_grace() {
    for wire in WIRES {
        let grace = if wire == Wire::Base { 30 } else { 120 };
        for seed in 0..20 {
            for dark in [S / 10, S, S * 10, S * (grace - 5)] {
                assert_eq!(cut(wire, seed, dark), Ended::Done, "{wire:?} {dark:?} {seed}");
            }
        }
    }
}

#[test]
fn a_reset_longer_than_the_grace_is_reported_and_anything_between_is_one_of_both() {
    for wire in WIRES {
        let grace = if wire == Wire::Base { 30 } else { 120 };
        for seed in 0..20 {
            assert_eq!(cut(wire, seed, S * (grace + 20)), Ended::Failed(Code::OutcomeUnknown), "{wire:?} {seed}");
            let between = cut(wire, seed, S * grace - S / 10 * u32::try_from(seed).expect("few"));
            assert!(matches!(between, Ended::Done | Ended::Failed(Code::OutcomeUnknown)), "{between:?}");
        }
    }
}

#[test]
fn with_every_slot_held_by_60_s_calls_a_healed_link_is_ready_within_a_second() {
    for (wire, slots) in [(Wire::Feature, 60), (Wire::Base, 14)] {
        for sky in [Sky::Refusing, Sky::BlackHole] {
            // Within the first five seconds it tries four times a second, later once.
            for (dark, soon) in [(3, S), (8, S * 5 / 4)] {
                let mut pair = Pair::ready(wire, u64::from(dark));
                let waiters: Vec<_> = (0..slots).map(|_| pair.ask(lasting(60))).collect();
                pair.pass(S);
                pair.net.strike(pair.t, Fault::Reset);
                pair.pass(S / 100);
                pair.net.set_sky(pair.t, sky);
                pair.net.strike(pair.t, Fault::Reset);
                pair.pass(S * dark);
                assert_eq!(pair.running(0), slots);
                pair.net.set_sky(pair.t, Sky::Clear);
                assert!(pair.until(soon, Pair::is_ready), "{wire:?} {sky:?} {dark}");
                // On the base wire a result is kept until the pong to a later heartbeat.
                assert!(pair.until(S * 100, Pair::is_quiet));
                for waiter in waiters {
                    assert_eq!(pair.truth.end_of(waiter), Some(&Ended::Done));
                }
            }
        }
    }
}

#[test]
fn a_client_that_left_while_the_link_was_down_is_not_revived_by_a_fast_reconnect() {
    for wire in WIRES {
        for seed in 0..50 {
            let mut pair = Pair::ready(wire, seed);
            let gone = pair.ask(lasting(20));
            let stays = pair.ask(lasting(20));
            pair.pass(S);
            pair.net.set_sky(pair.t, Sky::Refusing);
            pair.net.strike(pair.t, Fault::Reset);
            pair.pass(S / 10);
            pair.leave(gone);
            pair.net.set_sky(pair.t, Sky::Clear);
            assert!(pair.until(S * 5, Pair::is_ready));
            pair.pass(S);
            assert_eq!(pair.truth.cancel_of(gone), Some(CancelReason::CallerNoLongerWaiting), "{wire:?} {seed}");
            assert!(pair.until(S * 60, Pair::is_quiet));
            assert_eq!(pair.truth.end_of(gone), Some(&Ended::Left));
            assert_eq!(pair.truth.end_of(stays), Some(&Ended::Done));
        }
    }
}

#[test]
fn a_result_made_while_the_link_was_down_is_delivered_once_and_byte_identical() {
    for wire in WIRES {
        for bytes in [0, 70_000, 300_000] {
            let mut pair = Pair::ready(wire, 7);
            let waiter = pair.ask(Ask { lasts: S * 2, bytes, ..Ask::default() });
            pair.pass(S);
            pair.net.set_sky(pair.t, Sky::Refusing);
            pair.net.strike(pair.t, Fault::Reset);
            pair.pass(S * 10);
            assert_eq!(pair.running(0), 0);
            pair.net.set_sky(pair.t, Sky::Clear);
            assert!(pair.until(S * 60, Pair::is_quiet));
            assert_eq!(pair.truth.end_of(waiter), Some(&Ended::Done), "{wire:?} {bytes}");
        }
    }
}

#[test]
fn another_instance_neither_evicts_a_device_that_answers_nor_gets_its_calls() {
    let mut pair = Pair::ready(Wire::Feature, 3);
    let waiter = pair.ask(lasting(10));
    pair.pass(S);
    let clone = pair.boot_machine();
    pair.pass(S * 6);
    assert!(pair.device_in_use());
    let later = pair.ask(lasting(1));
    assert!(pair.until(S * 10, |pair| pair.truth.open().is_empty()));
    assert_eq!(pair.truth.end_of(waiter), Some(&Ended::Done));
    assert_eq!(pair.truth.end_of(later), Some(&Ended::Done));
    assert_eq!(pair.running(clone), 0);
    // Refused once, it stays refused through an outage of the other.
    pair.net.strike(pair.t, Fault::Reset);
    assert!(pair.until(S * 5, Pair::is_ready));
    let last = pair.ask(lasting(1));
    assert!(pair.until(S * 10, |pair| pair.truth.open().is_empty()));
    assert_eq!(pair.truth.end_of(last), Some(&Ended::Done));
}

#[test]
fn a_daemon_killed_in_the_middle_of_a_call_is_told_as_unknown_as_soon_as_it_is_back() {
    for wire in WIRES {
        let mut pair = Pair::ready(wire, 5);
        let waiter = pair.ask(lasting(60));
        pair.pass(S);
        pair.kill_machine(0);
        pair.pass(S);
        pair.boot_machine();
        assert!(pair.until(S * 2, |pair| pair.truth.open().is_empty()), "{wire:?}");
        assert_eq!(pair.truth.end_of(waiter), Some(&Ended::Failed(Code::OutcomeUnknown)));
    }
}

#[test]
fn a_relay_killed_in_the_middle_of_a_call_leaves_no_orphan_and_a_keyed_call_comes_back() {
    let mut pair = Pair::ready(Wire::Feature, 5);
    let plain = pair.ask(lasting(30));
    let keyed = pair.ask(Ask { key: Some(1), ..lasting(5) });
    pair.pass(S);
    pair.restart_relay(S * 2);
    assert_eq!(pair.truth.end_of(plain), Some(&Ended::CutOff));
    assert!(pair.until(S * 10, Pair::is_ready));
    let again = pair.ask(Ask { key: Some(1), ..lasting(5) });
    assert!(pair.until(S * 10, |pair| pair.truth.open().is_empty()));
    assert_eq!(pair.truth.end_of(keyed), Some(&Ended::CutOff));
    assert_eq!(pair.truth.end_of(again), Some(&Ended::Done));
    assert_eq!(pair.truth.cancel_of(plain), Some(CancelReason::CallerNoLongerWaiting));
    assert!(pair.until(S * 10, Pair::is_quiet));
    assert_eq!(pair.truth.executions(), 2);
}

#[test]
fn an_announced_sleep_of_hours_and_an_unannounced_one_within_the_grace_both_complete() {
    for (announced, hours) in [(true, 11), (false, 0)] {
        for seed in 0..20 {
            let mut pair = Pair::ready(Wire::Feature, seed);
            let waiter = pair.ask(lasting(30));
            pair.pass(S * 5);
            if announced {
                pair.tell(0, Input::SleepAnnounced);
                assert!(pair.until(S * 4, |pair| pair.may_sleep(0)));
            }
            pair.freeze(Some(0));
            pair.pass(S * 100 + S * 3600 * hours);
            assert_eq!(pair.truth.end_of(waiter), None);
            pair.thaw(Some(0));
            assert!(pair.until(S * 2, Pair::is_ready), "proven within 2 s of wake");
            assert!(pair.until(S * 40, Pair::is_quiet));
            assert_eq!(pair.truth.end_of(waiter), Some(&Ended::Done), "{announced} {seed}");
        }
    }
}

#[test]
fn a_call_survives_a_relay_that_was_frozen_for_a_minute() {
    let mut pair = Pair::ready(Wire::Feature, 11);
    let waiter = pair.ask(lasting(30));
    pair.pass(S * 5);
    pair.freeze(None);
    pair.pass(S * 60);
    pair.thaw(None);
    assert!(pair.until(S * 30, Pair::is_quiet));
    assert_eq!(pair.truth.end_of(waiter), Some(&Ended::Done));
}

#[test]
fn a_half_open_link_is_noticed_and_nothing_is_lost() {
    for wire in WIRES {
        for fault in [Fault::ResetAtRelay, Fault::ResetAtDaemon, Fault::DeafRelay, Fault::DeafDaemon] {
            let mut pair = Pair::ready(wire, 13);
            let waiter = pair.ask(lasting(5));
            pair.pass(S);
            pair.net.strike(pair.t, fault);
            let patience = if wire == Wire::Base { S * 200 } else { S * 25 };
            assert!(pair.until(patience, |pair| pair.truth.open().is_empty()), "{wire:?} {fault:?}");
            let end = pair.truth.end_of(waiter).expect("an end");
            // A base daemon finds out after 75 s of silence, when a relay that already knows has ended its grace of 30 s.
            let too_late = wire == Wire::Base && fault == Fault::ResetAtRelay;
            let wanted = if too_late { Ended::Failed(Code::OutcomeUnknown) } else { Ended::Done };
            assert_eq!(end, &wanted, "{wire:?} {fault:?}");
        }
    }
}

#[test]
fn eight_mebibytes_at_64_kib_per_second_arrive() {
    let mut pair = Pair::ready(Wire::Feature, 17);
    pair.net.rate = 64 * 1024;
    let waiter = pair.ask(Ask { lasts: S, bytes: (8 << 20) - (128 << 10), ..Ask::default() });
    pair.pass(S * 20);
    let small = pair.ask(lasting(1));
    assert!(pair.until(S * 10, |pair| pair.truth.end_of(small).is_some()), "it passes the big one");
    assert!(pair.until(S * 240, Pair::is_quiet));
    assert_eq!(pair.truth.end_of(waiter), Some(&Ended::Done));
}
