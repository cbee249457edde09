//! What ours weighs: memory idle and after many calls, and what a hostile body costs.

use std::time::Duration;

use crate::load::{self, Connection, Era, Until};
use crate::operations::Serve;
use crate::ours::Ours;
use crate::table::{Goals, Wanted, mib, short};
use crate::trip::payload;
use crate::usage;
use anyhow::Result;

/// Bodies per kind of hostility.
const BODIES: u32 = 5;
const SETTLE: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_secs(10);

/// Memory of relay and daemon together.
pub async fn memory(calls: u64, goals: &mut Goals) -> Result<()> {
    let ours = Ours::start(false).await?;
    tokio::time::sleep(SETTLE).await;
    let idle = usage::memory(&ours.pids());
    let (arguments, expect) = payload(200);
    for era in [Era::Stateless, Era::Session] {
        let target = ours.target(era).open().await?;
        load::run(&target, &arguments, &expect, 8, 0, Until::Calls(calls / 2)).await?;
    }
    tokio::time::sleep(SETTLE).await;
    let after = usage::memory(&ours.pids());
    println!(
        "\nmemory of relay + daemon, MB: idle RSS {} PSS {}; after {calls} calls RSS {} PSS {}",
        short(mib(idle.rss)),
        short(mib(idle.pss)),
        short(mib(after.rss)),
        short(mib(after.pss))
    );
    goals.add("relay + daemon memory, idle", Wanted::AtMost(25.0), mib(idle.pss), " MB");
    goals.add(format!("relay + daemon memory, after {calls} calls"), Wanted::AtMost(40.0), mib(after.pss), " MB");
    Ok(())
}

/// The real binary with nothing to do: everything in one process, its own device connected.
pub async fn idle(goals: &mut Goals) -> Result<()> {
    let home = tempfile::tempdir()?;
    let serve = Serve::start(home.path()).await?.process;
    tokio::time::sleep(SETTLE * 3).await;
    let before = usage::waits(serve.pid());
    tokio::time::sleep(IDLE).await;
    let wakeups = usage::wakeups(serve.pid(), &before) as f64 / IDLE.as_secs_f64();
    let memory = usage::memory(&[serve.pid()]);
    println!(
        "\nholdfast serve, idle: RSS {} MB, PSS {} MB, {} wake-ups/s",
        short(mib(memory.rss)),
        short(mib(memory.pss)),
        short(wakeups)
    );
    goals.add("holdfast serve, idle: PSS", Wanted::AtMost(25.0), mib(memory.pss), " MB");
    goals.add("holdfast serve, idle: wake-ups", Wanted::AtMost(5.0), wakeups, " /s");
    Ok(())
}

/// A body of 4 MiB full of small values, authorised and otherwise well-formed.
pub async fn hostile(goals: &mut Goals) -> Result<()> {
    let ours = Ours::start(false).await?;
    let target = ours.target(Era::Stateless);
    println!("\nhostile 4 MiB body");
    let (mut cpu_most, mut extra_most) = (0.0f64, 0.0f64);
    for (name, item) in [("integers", "1,"), ("objects", "{},"), ("nested arrays", "[[]],"), ("strings", "\"\",")] {
        let arguments = format!(r#"{{"values":[{}1]}}"#, item.repeat((4 << 20) / item.len()));
        usage::forget_peak(&ours.pids())?;
        let before = (usage::cpu(&ours.pids())?, usage::memory(&ours.pids()).rss);
        let mut status = 0;
        for _ in 0..BODIES {
            let mut connection = Connection::open(&target).await?;
            status = connection.any(&target, target.echo(1, &arguments)).await?;
        }
        let cpu = (usage::cpu(&ours.pids())?.saturating_sub(before.0) / BODIES).as_secs_f64() * 1000.0;
        let extra = mib(usage::memory(&ours.pids()).peak.saturating_sub(before.1));
        println!("  {name:<14} CPU {:>6} ms, extra peak memory {:>6} MB, HTTP {status}", short(cpu), short(extra));
        (cpu_most, extra_most) = (cpu_most.max(cpu), extra_most.max(extra));
    }
    goals.add("hostile 4 MiB body: CPU of relay + daemon", Wanted::AtMost(60.0), cpu_most, " ms");
    goals.add("hostile 4 MiB body: extra peak memory", Wanted::AtMost(48.0), extra_most, " MB");
    Ok(())
}
