//! What it costs to remember many ended operations: a start, and an admission.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use holdfast_core::limits;
use rusqlite::Connection;

use super::api::{Api, Serve};
use crate::table::{Goals, Wanted, median, short};

/// Admissions of one round.
const ADMISSIONS: usize = 20;

/// Milliseconds.
#[derive(Default)]
struct Times {
    ready: Vec<f64>,
    live: Vec<f64>,
    hard: Vec<f64>,
    admission: Vec<f64>,
}

/// Two homes in turns: one that knows an operation or two, and one that knows as many as are remembered.
pub async fn run(rounds: usize, goals: &mut Goals) -> Result<()> {
    let homes = [tempfile::tempdir()?, tempfile::tempdir()?];
    let mut known = Vec::new();
    for (home, many) in homes.iter().zip([false, true]) {
        let serve = Serve::start(home.path()).await?;
        let mut api = serve.api(home.path()).await?;
        let id = api.exec(&["true"]).await?.id;
        api.until(&id, |view| view.state == "completed").await?;
        // Until the worker knows that the relay knows.
        tokio::time::sleep(Duration::from_secs(1)).await;
        serve.process.stop().await?;
        if many {
            for file in ["relay/operations.sqlite", "worker/ledger.sqlite"] {
                multiply(&home.path().join("data-dir").join(file))?;
            }
        }
        known.push((id, api));
    }
    let mut times = [Times::default(), Times::default()];
    for _ in 0..rounds {
        for ((home, times), (id, api)) in homes.iter().zip(&mut times).zip(&mut known) {
            round(home.path(), id, api, times).await?;
        }
    }
    let [few, many] = times.map(|times| [times.ready, times.live, times.hard, times.admission].map(median));
    println!("\n{:<58} {:>10} {:>10}", "ended operations stored, at relay and worker; ms, median", "few", "100 000");
    let names = [
        "start → relay answers",
        "start → worker live",
        "start after a kill → worker live",
        "admission over HTTP, p50",
    ];
    for ((name, few), many) in names.iter().zip(few).zip(many) {
        println!("{name:<58} {:>10} {:>10}", short(few), short(many));
    }
    goals.add("start → worker live, 1 → 100 000 stored operations", Wanted::AtMost(1.25), many[1] / few[1], " ×");
    goals.add("admission, 1 → 100 000 stored operations", Wanted::AtMost(1.25), many[3] / few[3], " ×");
    Ok(())
}

/// `id`: an operation that is known, at the end the newest: the oldest are forgotten.
async fn round(home: &Path, id: &mut String, known: &Api, times: &mut Times) -> Result<()> {
    let (serve, mut api, live) = start(home, id, known).await?;
    times.ready.push(millis(serve.ready));
    times.live.push(live);
    let mut admissions = Vec::new();
    for _ in 0..ADMISSIONS {
        let asked = Instant::now();
        *id = api.exec(&["true"]).await?.id;
        admissions.push(millis(asked.elapsed()));
        api.until(id, |view| view.state == "completed").await?;
    }
    times.admission.push(median(admissions));
    // Killed as it is dropped.
    drop(serve);
    let (serve, _, live) = start(home, id, known).await?;
    times.hard.push(live);
    serve.process.stop().await
}

async fn start(home: &Path, id: &str, known: &Api) -> Result<(Serve, Api, f64)> {
    let began = Instant::now();
    let serve = Serve::start(home).await?;
    let mut api = known.again(serve.address).await?;
    api.until(id, |view| view.worker_live).await?;
    Ok((serve, api, millis(began.elapsed())))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Makes as many operations of one that ended as are remembered.
fn multiply(file: &Path) -> Result<()> {
    let db = Connection::open(file)?;
    let names = db
        .prepare("SELECT name FROM pragma_table_info('operations')")?
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<Result<Vec<_>, _>>()?;
    let values = names.iter().map(|name| match name.as_str() {
        "n" | "seq" => "NULL".into(),
        "id" => "'op_' || substr(hex(randomblob(11)), 2) || 'A'".into(),
        "run" => "'run_' || substr(hex(randomblob(11)), 2) || 'A'".into(),
        // No account has more than its share.
        "account" => "account || (x % 4)".into(),
        same => same.to_owned(),
    });
    let (names, values) = (names.join(", "), values.collect::<Vec<_>>().join(", "));
    let more = limits::OPERATIONS_KEPT - 1;
    db.execute_batch(&format!(
        "WITH RECURSIVE many(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM many WHERE x < {more})
         INSERT INTO operations ({names}) SELECT {values} FROM many, (SELECT * FROM operations LIMIT 1)"
    ))
    .with_context(|| file.display().to_string())?;
    let totals: bool =
        db.query_row("SELECT count(*) FROM sqlite_master WHERE name = 'totals'", [], |row| row.get(0))?;
    if totals {
        db.execute_batch(
            "UPDATE totals SET ended = (SELECT count(*) FROM operations),
             output = output + (SELECT sum(octet_length(outcome)) FROM operations);
             DELETE FROM accounts;
             INSERT INTO accounts SELECT account, count(*) FROM operations WHERE ended IS NOT NULL GROUP BY account",
        )?;
    }
    Ok(())
}
