//! Admissions that are on disk before they are answered: the worker's ledger beside a bare SQLite loop of the same promise
//! and a message server that syncs before it answers.

use std::path::Path;
use std::sync::mpsc::{self, SyncSender};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures_util::future::try_join_all;
use holdfast_core::id::{OperationId, RunId};
use holdfast_core::operation::{Operation, Request};
use holdfast_core::policy::Role;
use holdfast_core::worker::{Change, Row};
use holdfast_host::ledger::Ledger;
use parking_lot::Mutex;
use rusqlite::{Connection, params};

use super::nats::Nats;
use crate::peers;
use crate::table::{Goals, Wanted, median, short};

/// Short, and many of them: how long a disk takes to sync changes by the second.
const TURN: Duration = Duration::from_millis(100);
const TURNS: usize = 6;
const PRODUCERS: [usize; 2] = [1, 16];

/// All of them in turns, one producer and sixteen.
pub async fn run(rounds: usize, with_peer: bool, goals: &mut Goals) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let ledger = Ledger::open(folder.path(), [0; 32])?.ledger;
    let alone = Mutex::new(Bare::open(&folder.path().join("alone.sqlite"))?);
    let shared = Bare::open(&folder.path().join("shared.sqlite"))?.shared();
    let nats = match with_peer {
        true => Some(Nats::start(&peers::install().await?.join(peers::NATS), folder.path()).await?),
        false => None,
    };
    println!("\n{:<46} {:>14} {:>14}", "durable admissions/s, median", "1 producer", "16 producers");
    let (mut ours, mut bare, mut theirs) = (Columns::default(), Columns::default(), Columns::default());
    for _ in 0..rounds * TURNS {
        for (column, producers) in PRODUCERS.into_iter().enumerate() {
            ours[column].push(drive(producers, |row| admit(&ledger, row)));
            bare[column].push(match producers {
                1 => drive(1, |row| alone.lock().write(&[&row]).is_ok()),
                _ => drive(producers, |row| shared.write(row)),
            });
            if let Some(nats) = &nats {
                theirs[column].push(publish(nats, producers).await?);
            }
        }
    }
    ledger.close();
    line("holdfast: the worker's ledger", &ours);
    line("bare SQLite, WAL, synchronous FULL", &bare);
    if with_peer {
        line("nats-server 2.15.1, JetStream, sync always", &theirs);
    }
    for (column, producers) in PRODUCERS.into_iter().enumerate() {
        // Of each round by itself: disks drift.
        let shares = ours[column].iter().zip(&bare[column]).map(|(ours, bare)| ours / bare * 100.0).collect();
        let name = format!("durable admissions ÷ bare SQLite at {producers}");
        goals.add(name, Wanted::AtLeast(80.0), median(shares), " %");
    }
    Ok(())
}

type Columns = [Vec<f64>; 2];

fn line(name: &str, columns: &Columns) {
    let [one, many] = columns.clone().map(|rates| short(median(rates)));
    println!("{name:<46} {one:>14} {many:>14}");
}

/// What a relay asks for: an operation of ordinary size that was never seen before.
pub fn fresh() -> Row {
    let request =
        r#"{"type":"exec","command":{"argv":["cargo","test","--workspace"]},"cwd":"project","env":{"CI":"1"}}"#;
    Row::received(Operation {
        request_id: OperationId::mint(rand::random()),
        run_id: Some(RunId::mint(rand::random())),
        session_id: None,
        role: Role::Operator,
        client: Some("holdfast-bench".into()),
        after: None,
        // A constant; `null` would be a workspace's configuration.
        request: serde_json::from_str(request).unwrap_or(Request::WorkspaceConfig { config: serde_json::Value::Null }),
    })
}

/// Admits and waits until that is on disk.
pub fn admit(ledger: &Ledger, row: Row) -> bool {
    let (tell, told) = mpsc::sync_channel(1);
    ledger.commit(vec![Change::Admit(Box::new(row))], move |outcome| _ = tell.send(outcome.is_ok()));
    told.recv() == Ok(true)
}

/// Admissions per second of this many producers, each with one on its way.
fn drive(producers: usize, admit: impl Fn(Row) -> bool + Sync) -> f64 {
    let began = Instant::now();
    let produce = || {
        let mut admitted = 0;
        while began.elapsed() < TURN && admit(fresh()) {
            admitted += 1;
        }
        admitted
    };
    let admitted: u32 = std::thread::scope(|scope| {
        let all: Vec<_> = (0..producers).map(|_| scope.spawn(produce)).collect();
        all.into_iter().map(|producer| producer.join().unwrap_or(0)).sum()
    });
    f64::from(admitted) / began.elapsed().as_secs_f64()
}

async fn publish(nats: &Nats, producers: usize) -> Result<f64> {
    let payload = serde_json::to_vec(&fresh().operation)?;
    let connect = try_join_all((0..producers).map(|_| nats.producer(&payload)));
    let mut all = connect.await?;
    let began = Instant::now();
    let produce = all.iter_mut().map(async |producer| {
        let mut published = 0;
        while began.elapsed() < TURN {
            producer.publish().await?;
            published += 1;
        }
        anyhow::Ok(published)
    });
    let published: u32 = try_join_all(produce).await?.into_iter().sum();
    ensure!(published > 0, "nothing was published");
    Ok(f64::from(published) / began.elapsed().as_secs_f64())
}

/// One table, one insert, one commit: what the promise costs at least.
struct Bare(Connection);

impl Bare {
    fn open(file: &Path) -> Result<Bare> {
        let connection = Connection::open(file)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(
            "CREATE TABLE operations (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, request TEXT NOT NULL,
             digest BLOB NOT NULL)",
        )?;
        Ok(Bare(connection))
    }

    fn write(&mut self, rows: &[&Row]) -> Result<()> {
        let write = self.0.transaction()?;
        let mut insert = write.prepare_cached("INSERT INTO operations (id, request, digest) VALUES (?1, ?2, ?3)")?;
        for row in rows {
            let request = serde_json::to_string(&row.operation.request)?;
            insert.execute(params![row.operation.request_id.as_str(), request, row.digest.0])?;
        }
        drop(insert);
        Ok(write.commit()?)
    }

    /// A thread that writes; whatever waits shares one commit.
    fn shared(mut self) -> Shared {
        let (line, waiting) = mpsc::channel::<Waiting>();
        std::thread::spawn(move || {
            while let Ok(first) = waiting.recv() {
                let group: Vec<Waiting> = std::iter::once(first).chain(waiting.try_iter()).collect();
                let rows: Vec<&Row> = group.iter().map(|(row, _)| row).collect();
                let written = self.write(&rows).context("bare SQLite").is_ok();
                for (_, tell) in group {
                    // It waits for the answer.
                    let _ = tell.send(written);
                }
            }
        });
        Shared(line)
    }
}

type Waiting = (Row, SyncSender<bool>);

struct Shared(mpsc::Sender<Waiting>);

impl Shared {
    fn write(&self, row: Row) -> bool {
        let (tell, told) = mpsc::sync_channel(1);
        self.0.send((row, tell)).is_ok() && told.recv() == Ok(true)
    }
}
