//! `make bench`: one table, one run, one load client for every row.
//!
//! `ROUNDS=3` for fewer rounds, `PEERS=0` to leave the peers out, `ONLY=trip,big` to run parts.

mod child;
mod load;
mod peers;
mod roles;
mod table;
mod trip;
mod usage;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::child::Running;
use crate::load::{Era, Target};
use crate::table::Goals;
use crate::trip::{Kind, Row};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => runtime(1)?.block_on(bench()),
        ["stdio"] => roles::stdio::run(),
        ["floor-front"] => runtime(1)?.block_on(roles::floor::front()),
        ["floor-echo", front] => runtime(1)?.block_on(roles::floor::echo(front.parse()?)),
        _ => bail!("unknown role {arguments:?}"),
    }
}

/// `workers` threads; 1 means that everything runs on the main thread.
fn runtime(workers: usize) -> Result<tokio::runtime::Runtime> {
    let mut builder = match workers {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    Ok(builder.worker_threads(workers).enable_all().build()?)
}

/// What the environment asks for.
struct Asked {
    rounds: usize,
    peers: bool,
    only: Option<Vec<String>>,
}

impl Asked {
    fn read() -> Result<Asked> {
        let variable = |name: &str| std::env::var(name).ok();
        Ok(Asked {
            rounds: variable("ROUNDS").map_or(Ok(7), |n| n.parse()).context("ROUNDS")?,
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
    let mut running = Vec::new();
    let mut rows = Vec::new();

    let mut front = Running::role(&["floor-front"])?;
    let address: SocketAddr = front.hear()?;
    let mut echo = Running::role(&["floor-echo", &address.to_string()])?;
    echo.hear::<String>()?;
    rows.push(Row {
        name: "floor: axum + one WS hop".into(),
        kind: Kind::Floor,
        target: Target::new(address, "/mcp", None, Era::Floor),
        pids: vec![front.pid(), echo.pid()],
    });
    running.extend([front, echo]);

    if asked.peers && (asked.wants("trip") || asked.wants("big")) {
        let folder = peers::install()?;
        for peer in peers::PEERS {
            let (process, address) = peer.start(&folder)?;
            let target = Target::new(address, "/mcp", None, Era::Session).open().await.context(peer.name)?;
            rows.push(Row { name: peer.name.into(), kind: Kind::Peer, target, pids: vec![process.pid()] });
            running.push(process);
        }
    }

    if asked.wants("trip") {
        trip::run(&rows, asked.rounds, Duration::from_millis(700), &mut goals).await?;
    }
    if asked.wants("big") {
        trip::big(&rows, asked.rounds, &mut goals).await?;
    }
    goals.print();
    Ok(())
}
