//! From a line that an agent appends to whoever hears of it.

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use holdfast_core::transcript::{Binding, Start};
use holdfast_host::transcript::{Followed, Follower, follow, real_path};
use rand::Rng as _;
use tokio::sync::mpsc;

use super::stage::Stage;
use super::{Tail, line, number, open};
use crate::table::{Goals, Wanted, micros, quantile, short};

/// Lines of one round.
const LINES: u64 = 60;

/// The same lines, heard by all at once.
pub async fn run(rounds: usize, goals: &mut Goals) -> Result<()> {
    let stage = Stage::start().await?;
    let mut ours = Ours::start(&stage).await?;
    let mut tail = Tail::start(&stage.transcript).await?;
    let mut file = open(&stage.transcript)?;
    // Until holdfast follows too.
    loop {
        file.write_all(line(1, 0).as_bytes())?;
        if tokio::time::timeout(Duration::from_millis(200), stage.asked("[1]")).await.is_ok() {
            break;
        }
    }
    let (mut asked, mut heard, mut told) = (Vec::new(), Vec::new(), Vec::new());
    for n in 2..2 + rounds as u64 * LINES {
        // An agent writes when it likes.
        let pause = rand::rng().random_range(5..60);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let bytes = line(n, 200);
        let text = format!("[{n}]");
        let began = Instant::now();
        file.write_all(bytes.as_bytes())?;
        let (at_service, by_follower, by_tail) = tokio::join!(stage.asked(&text), ours.hears(n), tells(&mut tail, n));
        asked.push(micros(at_service - began));
        heard.push(micros(by_follower? - began));
        told.push(micros(by_tail? - began));
    }
    println!("\n{:<66} {:>8} {:>8}", "a line is appended; ms", "p50", "p99");
    let rows = [
        ("→ a line of `tail -F`", &told),
        ("→ the follower's entry", &heard),
        ("→ holdfast serve → the request to post it is at the service", &asked),
    ];
    for (name, times) in rows {
        let at = |share| short(quantile(times.clone(), share) / 1000.0);
        println!("{name:<66} {:>8} {:>8}", at(0.5), at(0.99));
    }
    let p99 = |times: Vec<f64>| quantile(times, 0.99) / 1000.0;
    // What else runs on the machine delays both.
    let beyond = p99(heard) - p99(told);
    goals.add("append → the follower's entry, p99 beyond `tail -F`", Wanted::AtMost(10.0), beyond, " ms");
    goals.add("append → request to post it, p99", Wanted::AtMost(50.0), p99(asked), " ms");
    Ok(())
}

/// When `tail -F` told of this number.
async fn tells(tail: &mut Tail, wanted: u64) -> Result<Instant> {
    while number(&tail.line().await?) != Some(wanted) {}
    Ok(Instant::now())
}

/// The follower by itself.
struct Ours {
    follower: Follower,
    told: mpsc::Receiver<Followed>,
}

impl Ours {
    async fn start(stage: &Stage) -> Result<Ours> {
        let (tell, told) = mpsc::channel(1);
        let follower = follow(tell)?;
        let transcript = real_path(&stage.transcript).map_err(anyhow::Error::msg)?;
        follower.bind(Binding { transcript, start: Start::End, generation: 1 });
        Ok(Ours { follower, told })
    }

    /// When it gave out the entry of this number.
    async fn hears(&mut self, wanted: u64) -> Result<Instant> {
        let wanted = format!("[{wanted}]");
        loop {
            if let Followed::Entries { entries, .. } = self.told.recv().await.context("it ended")? {
                let at = Instant::now();
                self.follower.taken();
                if entries.iter().any(|entry| format!("{:?}", entry.parts).contains(&wanted)) {
                    return Ok(at);
                }
            }
        }
    }
}
