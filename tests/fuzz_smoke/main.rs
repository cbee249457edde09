//! The fuzz targets without a fuzzer: every seed, and a fixed number of spoiled copies of it, on every run of the tests.
//! `make fuzz` is the long way.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

#[path = "../../fuzz/src/lib.rs"]
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};

/// Spoiled copies of each seed.
const COPIES: u64 = 400;

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a seed").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a seed")).collect()
}

/// A copy with up to four changes: a bit, a cut, a repeat, a byte that means something, a piece of another seed.
fn spoil(rng: &mut SmallRng, bytes: &[u8], all: &[Vec<u8>]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..rng.random_range(1..=4) {
        let at = rng.random_range(0..=out.len());
        let until = rng.random_range(at..=out.len());
        match rng.random_range(0..5) {
            0 if at < out.len() => out[at] ^= 1 << rng.random_range(0..8),
            1 => drop(out.drain(at..until)),
            2 => {
                let piece = out[at..until].to_vec();
                out.splice(at..at, piece);
            }
            3 => out.insert(at, *b"\0\"{}[],:\\\n%&=+-9.\xff".choose(rng).expect("some")),
            _ => {
                let other = all.choose(rng).expect("a seed");
                let from = rng.random_range(0..=other.len());
                out.splice(at..at, other[from..].iter().copied());
            }
        }
        out.truncate(1 << 16);
    }
    out
}

#[test]
fn no_target_is_shaken_by_its_seeds_or_by_spoiled_copies_of_them() {
    for (target, _) in targets::ALL {
        let all = seeds(target);
        assert!(!all.is_empty(), "{target} has no seeds");
        for (number, seed) in all.iter().enumerate() {
            let mut rng = SmallRng::seed_from_u64(number as u64);
            for copy in 0..=COPIES {
                let bytes = if copy == 0 { seed.clone() } else { spoil(&mut rng, seed, &all) };
                let fine = catch_unwind(AssertUnwindSafe(|| targets::run(target, &bytes))).is_ok();
                assert!(fine, "{target}, seed {number}, copy {copy}: \"{}\"", bytes.escape_ascii());
            }
        }
    }
}
