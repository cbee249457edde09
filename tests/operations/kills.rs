//! kill -9 of worker, relay, both or the runner at random moments, again and again, while a program writes two binary
//! streams: nothing runs twice, what is completed is complete to the byte, and what nobody can know is told so.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use holdfast_testkit::process::{Signal, try_send};
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use crate::desk::{Desk, noise, runner_of};

/// Rounds beside each other: they wait more than they compute.
const LANES: u64 = 4;
const SMALL: usize = 1 << 20;
const BIG: usize = 100 << 20;

fn rounds(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Worker,
    Relay,
    Both,
    Runner,
}

/// A program that writes the two files in pieces, one to each stream in turn, and ends with 7.
fn writer(name: &str, length: usize, piece: usize) -> String {
    let pieces = length.div_ceil(piece);
    format!(
        "echo started {name} >> journal; i=0; while [ $i -lt {pieces} ]; do \
         dd if=out bs={piece} skip=$i count=1 2>/dev/null; \
         dd if=err bs={piece} skip=$i count=1 2>/dev/null | cat >&2; sleep 0.01; \
         i=$((i+1)); done; exit 7"
    )
}

struct Lane {
    desk: Desk,
    rng: SmallRng,
    out: Arc<Vec<u8>>,
    err: Arc<Vec<u8>>,
    piece: usize,
    /// How long a round without a kill takes, at most.
    usual: Duration,
    seen: [usize; 3],
    /// Bytes that were told as not kept.
    gone: usize,
}

impl Lane {
    async fn start(seed: u64, length: usize, piece: usize) -> Lane {
        let (out, err) = (noise(seed, length), noise(!seed, length));
        let desk = Desk::start().await;
        std::fs::write(desk.file("out"), &out).expect("a file");
        std::fs::write(desk.file("err"), &err).expect("a file");
        let rng = SmallRng::seed_from_u64(seed);
        let (out, err) = (Arc::new(out), Arc::new(err));
        let mut lane = Lane { desk, rng, out, err, piece, usual: Duration::ZERO, seen: [0; 3], gone: 0 };
        let began = Instant::now();
        lane.round("unhurt", None).await;
        lane.usual = began.elapsed();
        lane
    }

    async fn round(&mut self, name: &str, victim: Option<Victim>) {
        let id = self.desk.script(&writer(name, self.out.len(), self.piece)).await;
        let (reader, written) = (self.desk.reader(), (Arc::clone(&self.out), Arc::clone(&self.err)));
        let (out, err) = (reader.compare(&id, "stdout", &written.0), reader.compare(&id, "stderr", &written.1));
        let kill = async {
            if let Some(victim) = victim {
                let after = self.usual.mul_f64(self.rng.random::<f64>());
                tokio::time::sleep(after).await;
                self.kill(victim).await;
            }
        };
        let (out, err, ()) = tokio::join!(out, err, kill);
        let view = self.desk.end(&id).await;
        let state = view["state"].as_str().expect("a state").to_owned();
        let what = format!("{name}, {victim:?}: {view}");
        let ran = self.desk.started(name);
        assert!(ran <= 1, "it ran {ran} times: {what}");
        match (state.as_str(), victim) {
            ("completed", _) => {
                assert_eq!((ran, &view["outcome"]["exit"]["code"]), (1, &7.into()), "{what}");
                assert_eq!((out.length, err.length), (self.out.len(), self.err.len()), "{what}");
                self.seen[0] += 1;
            }
            // Only a runner that was killed takes the answer with it; whoever else dies comes back to it.
            ("unknown", Some(Victim::Runner)) => {
                self.seen[1] += 1;
            }
            _ => panic!("{what}\n{}", self.desk.stand.device.log()),
        }
        // The relay keeps the end of a stream; what a slow reader misses of a long one is told.
        assert!(self.out.len() > SMALL || out.gone + err.gone == 0, "{what}");
        self.gone += out.gone + err.gone;
    }

    async fn kill(&mut self, victim: Victim) {
        let pause = Duration::from_millis(self.rng.random_range(0..150));
        let stand = &mut self.desk.stand;
        match victim {
            Victim::Worker => {
                stand.device.kill_9().await;
                tokio::time::sleep(pause).await;
                stand.restart_device().await;
            }
            Victim::Relay => {
                stand.relay.process.kill_9().await;
                tokio::time::sleep(pause).await;
                stand.relay.restart().await;
            }
            Victim::Both => {
                stand.relay.process.kill_9().await;
                stand.device.kill_9().await;
                tokio::time::sleep(pause).await;
                stand.relay.restart().await;
                stand.restart_device().await;
            }
            Victim::Runner => {
                // It may not have begun, or have ended.
                let runners = self.desk.runs();
                let runners = runners.iter().filter_map(|folder| runner_of(folder));
                self.seen[2] += runners.filter(|pid| try_send(*pid, Signal::SIGKILL)).count();
            }
        }
    }
}

async fn kill_again_and_again(rounds: u64, lanes: u64, length: usize, piece: usize) {
    let seed = rand::random::<u64>();
    eprintln!("seed {seed}");
    let lane = async |number: u64| {
        let mut lane = Lane::start(seed ^ number, length, piece).await;
        for round in 0..rounds.div_ceil(lanes) {
            let victim = [Victim::Worker, Victim::Relay, Victim::Both, Victim::Runner][(round % 4) as usize];
            lane.round(&format!("round-{round}"), Some(victim)).await;
        }
        // Nothing is left behind: no folder of a run, no runner.
        assert!(holdfast_testkit::stand::until(|| lane.desk.runs().is_empty()).await, "{:?}", lane.desk.runs());
        (lane.seen, lane.gone)
    };
    let seen = join_all((0..lanes).map(lane)).await;
    let sum = |at: usize| seen.iter().map(|(seen, _)| seen[at]).sum::<usize>();
    let gone: usize = seen.iter().map(|(_, gone)| gone).sum();
    eprintln!("{} completed, {} unknown; {} runners killed; {gone} bytes told as not kept", sum(0), sum(1), sum(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_killed_and_whenever_nothing_runs_twice_and_every_byte_arrives_or_its_loss_is_told() {
    kill_again_and_again(rounds("ROUNDS", 200), LANES, SMALL, 64 << 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_with_two_hundred_megabytes() {
    kill_again_and_again(rounds("BIG_ROUNDS", 3), 1, BIG, 8 << 20).await;
}
