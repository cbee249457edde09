use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use super::*;

const LINES: u64 = 20_000;
const FILES: u64 = 5;

/// Writes numbered lines in pieces as fast as it can, and renames its file away at times; never twice before the reader came
/// to know of the last file, because of one that came and went nobody can know. Tells how many lines there are before it
/// writes the last.
fn write(path: &Path, known: &AtomicU64, lines: &AtomicU64, mut random: SmallRng) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    let (mut generation, mut since) = (1, 0);
    let mut pending = Vec::new();
    for number in 0.. {
        pending.extend(line(&format!("{number} {}", "x".repeat(random.random_range(0..300)))));
        if number >= LINES && generation >= FILES {
            lines.store(number + 1, Ordering::Release);
            file.write_all(&pending).unwrap();
            return;
        }
        if random.random_ratio(1, 5) {
            let at = random.random_range(0..=pending.len());
            file.write_all(&pending[..at]).unwrap();
            pending.drain(..at);
        }
        since += 1;
        if since > 500 && random.random_ratio(1, 100) && known.load(Ordering::Acquire) == generation {
            file.write_all(&std::mem::take(&mut pending)).unwrap();
            fs::rename(path, path.with_extension(format!("jsonl.{generation}"))).unwrap();
            file = File::create(path).unwrap();
            (generation, since) = (generation + 1, 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_fast_writer_that_rotates_and_a_follower_that_dies_every_entry_is_kept_once_and_in_order() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let mut world = World::new();
    world.append(b"");
    world.bind(Start::Beginning);
    world.hear().await;
    let (known, lines) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicU64::new(u64::MAX)));
    let writer = {
        let (path, known, lines) = (world.path.clone(), known.clone(), lines.clone());
        let random = SmallRng::seed_from_u64(seed ^ 1);
        std::thread::spawn(move || write(&path, &known, &lines, random))
    };
    let mut next = 0;
    while next < lines.load(Ordering::Acquire) {
        world.hear().await;
        let Some(cursor) = &world.cursor else { continue };
        known.store(cursor.generation, Ordering::Release);
        for said in world.said.drain(..) {
            assert_eq!(said.split(' ').next(), Some(next.to_string().as_str()), "seed {seed}");
            next += 1;
        }
        if random.random_ratio(1, 50) {
            world.restart();
        }
    }
    writer.join().unwrap();
    world.finish().await;
    assert_eq!(world.said, Vec::<String>::new());
}
