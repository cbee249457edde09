//! How soon a call is whole again after the link broke, and how soon a dead peer is noticed.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use holdfast_core::status::LinkState;
use holdfast_testkit::fault::Path;
use nix::sys::signal::Signal;

use crate::load::{Connection, Era, Target};
use crate::ours::Ours;
use crate::roles::daemon::{Changed, clock};
use crate::roles::relay::Presence;
use crate::table::{Goals, Wanted, median, quantile, short};

const RESETS: usize = 50;
const OUTAGE: Duration = Duration::from_secs(3);
/// How long the call's work takes, and how far it is when the link breaks.
const WORK: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(20));
/// Between two breaks, so that each finds a settled link: a dialler that just tried waits RECONNECT_FAST.
const PAUSE: Duration = Duration::from_millis(300);

/// A call whose work takes this long, on its way.
fn begin(target: &Target, work: Duration) -> tokio::task::JoinHandle<Result<Instant>> {
    let target = target.clone();
    tokio::spawn(async move {
        let arguments = format!(r#"{{"text":"whole","delay_ms":{}}}"#, work.as_millis());
        Connection::open(&target).await?.call(&target, &arguments, "whole").await?;
        Ok(Instant::now())
    })
}

fn line(name: &str, times: &[f64]) {
    let at = |share| short(quantile(times.to_vec(), share));
    println!("{name:<58} {} times: p50 {} ms, p99 {} ms, worst {} ms", times.len(), at(0.5), at(0.99), at(1.0));
}

/// Resets with the path open, outages, and a daemon that was frozen.
pub async fn breaks(outages: usize, goals: &mut Goals) -> Result<()> {
    let ours = Ours::start(true).await?;
    let proxy = ours.proxy.as_ref().context("no proxy")?;
    let target = ours.target(Era::Stateless);
    println!();

    let mut times = Vec::new();
    for _ in 0..RESETS {
        tokio::time::sleep(PAUSE).await;
        let call = begin(&target, WORK.0);
        tokio::time::sleep(WORK.1).await;
        let broken = Instant::now();
        proxy.reset();
        times.push(millis(call.await?.context("a reset lost a call")? - broken));
    }
    line("reset, path open → the same call answered", &times);
    goals.add("reset → same call completed, p50", Wanted::AtMost(50.0), quantile(times.clone(), 0.5), " ms");
    goals.add("reset → same call completed, p99", Wanted::AtMost(300.0), quantile(times, 0.99), " ms");

    let mut times = Vec::new();
    for _ in 0..outages {
        tokio::time::sleep(PAUSE).await;
        let call = begin(&target, WORK.0);
        tokio::time::sleep(WORK.1).await;
        proxy.cut();
        tokio::time::sleep(OUTAGE).await;
        let healed = Instant::now();
        proxy.heal();
        times.push(millis(call.await?.context("an outage lost a call")? - healed));
    }
    line("outage of 3 s, from heal → the same call answered", &times);
    goals.add("outage of 3 s → call completed after heal, worst", Wanted::AtMost(700.0), quantile(times, 1.0), " ms");

    let mut times = Vec::new();
    for _ in 0..2 {
        tokio::time::sleep(PAUSE).await;
        ours.daemon.signal(Signal::SIGSTOP)?;
        tokio::time::sleep(Duration::from_secs(13)).await;
        let call = begin(&target, Duration::ZERO);
        let woken = Instant::now();
        ours.daemon.signal(Signal::SIGCONT)?;
        times.push(millis(call.await?.context("a frozen daemon lost a call")? - woken));
    }
    line("daemon frozen for 13 s, from thaw → a call answered", &times);
    goals.add("wake → link proven and a call answered", Wanted::AtMost(2000.0), quantile(times, 1.0), " ms");
    Ok(())
}

/// A path that swallows everything while both sockets stay open.
pub async fn dead_peer(rounds: usize, goals: &mut Goals) -> Result<()> {
    let mut ours = Ours::start(true).await?;
    let target = ours.target(Era::Stateless);
    let (mut daemons, mut relays, mut back) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        if ours.daemon.hear::<Changed>().await?.state == LinkState::Healthy {
            break;
        }
    }
    while !ours.relay.hear::<Presence>().await?.ready {}
    for _ in 0..rounds {
        let proxy = ours.proxy.as_ref().context("no proxy")?;
        let dead = clock();
        proxy.set(|faults| faults.path = Path::BlackHole);
        let (daemon, relay) = tokio::join!(ours.daemon.hear::<Changed>(), ours.relay.hear::<Presence>());
        daemons.push(daemon?.at.saturating_sub(dead) as f64 / 1000.0);
        relays.push(relay?.at.saturating_sub(dead) as f64 / 1000.0);
        let call = begin(&target, Duration::ZERO);
        let healed = Instant::now();
        proxy.heal();
        back.push(millis(call.await?.context("the path is open and no call passes")? - healed));
        while ours.daemon.hear::<Changed>().await?.state != LinkState::Healthy {}
        while !ours.relay.hear::<Presence>().await?.ready {}
    }
    println!();
    line("black hole → the daemon knows", &daemons);
    line("black hole → the relay knows", &relays);
    line("the network is back → a call answered", &back);
    let worst = quantile([daemons, relays].concat(), 1.0) / 1000.0;
    // The silence itself is 10 s; what is above is timers, and this bench's own look at the relay.
    goals.add("dead peer noticed, both sides, worst (+ 0.1 s of timers)", Wanted::AtMost(10.1), worst, " s");
    goals.add("network back → a call answered", Wanted::AtMost(2000.0), median(back), " ms");
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
