//! `make bench`: one table, one run, one load client for every row.
//!
//! `ROUNDS=3` for fewer rounds, `PEERS=0` to leave the peers out, `OUTAGES=5`, `DEVICES=1000` for less of those, and
//! `ONLY=trip,big,memory,idle,hostile,breaks,dead,growth,admission,output,stored,runner,channels` to run parts.

mod channels;
mod child;
mod growth;
mod load;
mod operations;
mod ours;
mod peers;
mod recovery;
mod roles;
mod table;
mod trip;
mod usage;
mod weight;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use tokio::runtime::{Builder, Runtime};

use crate::child::Running;
use crate::load::{Era, Target};
use crate::ours::Ours;
use crate::table::Goals;
use crate::trip::{Kind, Row};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const FOOT: &str = "
All rows: one Rust client (HTTP/1.1 keep-alive, one connection per call in flight, 50 calls warm-up), on the machine that serves too.
holdfast: relay and daemon as two processes, the link between them, bearer token, policy, argument check, timeline and
acknowledged results included; the work is a tool `echo` inside the daemon that only this bench registers. The peers run the same
echo as a stdio server; they check no token, accept a foreign Origin, and keep no result. The floor keeps and checks nothing.
Memory is PSS where it is compared: relay and daemon share the pages of one binary. Added cost is an upper bound: everything
between the floor and ours at 1 in flight, with envelope, ids, acknowledgement and status beside auth, policy, argument check
and timeline.
Durable admissions: bare SQLite is one table with a unique id, at 16 one thread that commits what waits; nats-server syncs each
message. All are on the disk of the temporary folder. Output through worker and relay: one process with both, each piece on disk
before it is acknowledged; the plain WebSocket keeps nothing. Stored operations: both homes in turns, each started anew.
Channels: the service is a Discord that the bench plays without its rate limit; a request counts once it was read there. Until
then each message was committed to disk. Files are in the page cache.";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => single()?.block_on(bench()),
        ["stdio"] => roles::stdio::run(),
        ["relay", devices] => as_shipped()?.block_on(roles::relay::run(devices.parse()?)),
        ["daemon", relay] => as_shipped()?.block_on(roles::daemon::run(relay)),
        ["fleet", relay] => single()?.block_on(roles::fleet::run(relay.parse()?)),
        ["sink"] => single()?.block_on(operations::sink()),
        ["follower", how, ref paths @ ..] => single()?.block_on(roles::follower::run(how, paths)),
        ["floor-front"] => single()?.block_on(roles::floor::front()),
        ["floor-echo", front] => single()?.block_on(roles::floor::echo(front.parse()?)),
        _ => bail!("unknown role {arguments:?}"),
    }
}

/// One thread: the driver, and roles that are not ours.
fn single() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Ours, as the binary runs them; `WORKERS` to try another number of threads.
fn as_shipped() -> Result<Runtime> {
    match std::env::var("WORKERS") {
        Ok(workers) => {
            let workers = workers.parse().context("WORKERS")?;
            Ok(Builder::new_multi_thread().worker_threads(workers).enable_all().build()?)
        }
        Err(_) => Ok(holdfast_host::runtime::build()?),
    }
}

/// What the environment asks for.
struct Asked {
    rounds: usize,
    outages: usize,
    devices: usize,
    peers: bool,
    only: Option<Vec<String>>,
}

impl Asked {
    fn read() -> Result<Asked> {
        let variable = |name: &str| std::env::var(name).ok();
        let number = |name, default| variable(name).map_or(Ok(default), |n| n.parse()).context(name);
        Ok(Asked {
            rounds: number("ROUNDS", 7)?,
            outages: number("OUTAGES", 20)?,
            devices: number("DEVICES", 10_000)?,
            peers: variable("PEERS").is_none_or(|n| n != "0"),
            only: variable("ONLY").map(|parts| parts.split(',').map(str::to_owned).collect()),
        })
    }

    fn wants(&self, part: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|name| name == part))
    }
}

async fn bench() -> Result<()> {
    let asked = Asked::read()?;
    let mut goals = Goals::default();
    if asked.wants("trip") || asked.wants("big") {
        compare(&asked, &mut goals).await?;
    }
    if asked.wants("memory") {
        weight::memory(100_000, &mut goals).await?;
    }
    if asked.wants("idle") {
        weight::idle(&mut goals).await?;
    }
    if asked.wants("hostile") {
        weight::hostile(&mut goals).await?;
    }
    if asked.wants("breaks") {
        recovery::breaks(asked.outages, &mut goals).await?;
    }
    if asked.wants("dead") {
        recovery::dead_peer(3, &mut goals).await?;
    }
    if asked.wants("growth") {
        growth::run(asked.devices, asked.rounds, &mut goals).await?;
    }
    if asked.wants("admission") {
        operations::admission(asked.rounds, asked.peers, &mut goals).await?;
    }
    if asked.wants("output") {
        operations::output(asked.rounds, &mut goals).await?;
    }
    if asked.wants("stored") {
        operations::stored(asked.rounds, &mut goals).await?;
    }
    if asked.wants("runner") {
        operations::runner_memory(&mut goals).await?;
    }
    if asked.wants("channels") {
        channels::run(asked.rounds, &mut goals).await?;
    }
    goals.print();
    println!("{FOOT}");
    Ok(())
}

/// The rows that stand beside each other: all started first, then measured in turns.
async fn compare(asked: &Asked, goals: &mut Goals) -> Result<()> {
    let mut running = Vec::new();
    let mut rows = Vec::new();

    let ours = Ours::start(false).await.context("holdfast")?;
    for (name, era) in [("holdfast 2026-07-28", Era::Stateless), ("holdfast 2025-11-25", Era::Session)] {
        let target = ours.target(era).open().await?;
        rows.push(Row { name: name.into(), kind: Kind::Ours(era), target, pids: ours.pids() });
    }

    let mut front = Running::role(&["floor-front"])?;
    let address: SocketAddr = front.hear().await?;
    let mut echo = Running::role(&["floor-echo", &address.to_string()])?;
    echo.hear::<String>().await?;
    let target = Target::new(address, "/mcp", None, Era::Floor);
    let name = "floor: axum + one WS hop".into();
    rows.push(Row { name, kind: Kind::Floor, target, pids: vec![front.pid(), echo.pid()] });
    running.extend([front, echo]);

    if asked.peers {
        let folder = peers::install().await?;
        for peer in peers::PEERS {
            let (process, address) = peer.start(&folder).await?;
            let target = Target::new(address, "/mcp", None, Era::Session).open().await.context(peer.name)?;
            rows.push(Row { name: peer.name.into(), kind: Kind::Peer, target, pids: vec![process.pid()] });
            running.push(process);
        }
    }

    if asked.wants("trip") {
        trip::run(&rows, asked.rounds, Duration::from_millis(700), goals).await?;
    }
    if asked.wants("big") {
        trip::big(&rows, asked.rounds, goals).await?;
    }
    Ok(())
}
