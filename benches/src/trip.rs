//! The round trip: ours, the floor and the peers, interleaved, so that a slow minute of the machine is everybody's.

use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::load::{self, Era, Measured, Target, Until};
use crate::table::{Goals, Wanted, median, mib, micros, short};
use crate::usage;

/// Calls in flight.
const LEVELS: [usize; 3] = [1, 8, 16];
/// Calls before each measurement that do not count.
const WARM_UP: u64 = 50;

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Ours, spoken to in this era.
    Ours(Era),
    /// The bare echo.
    Floor,
    /// Somebody else's.
    Peer,
}

/// One row of the table.
pub struct Row {
    /// What it is called.
    pub name: String,
    /// What it stands for.
    pub kind: Kind,
    /// Where it is reached.
    pub target: Target,
    /// Its processes.
    pub pids: Vec<u32>,
}

#[derive(Default)]
struct Column {
    rounds: Vec<Measured>,
    cpu: Duration,
    calls: u64,
}

/// Arguments and expected piece of the answer for a payload of this many bytes.
pub fn payload(bytes: usize) -> (String, String) {
    let text = "holdfast".chars().cycle().take(bytes).collect::<String>();
    (format!(r#"{{"text":"{text}"}}"#), text)
}

/// Measures all rows and prints the first half of the table.
pub async fn run(rows: &[Row], rounds: usize, each: Duration, goals: &mut Goals) -> Result<()> {
    let (arguments, expect) = payload(200);
    let mut columns: Vec<Vec<Column>> =
        rows.iter().map(|_| LEVELS.iter().map(|_| Column::default()).collect()).collect();
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        for (row, columns) in rows.iter().zip(&mut columns) {
            for (level, column) in LEVELS.iter().zip(columns) {
                let before = usage::cpu(&row.pids)?;
                let measured = load::run(&row.target, &arguments, &expect, *level, WARM_UP, Until::Time(each));
                let measured = measured.await.with_context(|| format!("{} at {level}", row.name))?;
                column.cpu += usage::cpu(&row.pids)?.saturating_sub(before);
                column.calls += measured.calls + WARM_UP.next_multiple_of(*level as u64);
                column.rounds.push(measured);
            }
        }
    }
    print(rows, &columns, rounds);
    compare(rows, &columns, goals);
    Ok(())
}

fn print(rows: &[Row], columns: &[Vec<Column>], rounds: usize) {
    println!(
        "round trip of a 200 B echo, medians of {rounds} interleaved rounds; p50/p99 in µs, calls/s in thousands, CPU in µs per call\n"
    );
    print!("{:<26}", "");
    for level in LEVELS {
        print!(" | {:^35}", format!("{level} in flight"));
    }
    println!(" | peak RSS, PSS MB");
    for (row, columns) in rows.iter().zip(columns) {
        print!("{:<26}", row.name);
        for column in columns {
            let of = |what: fn(&Measured) -> f64| median(column.rounds.iter().map(what).collect());
            let (p50, p99) = (of(|m| micros(m.p50)), of(|m| micros(m.p99)));
            let cpu = micros(column.cpu) / column.calls as f64;
            let trip = format!("{p50:.0} / {p99:.0}");
            print!(" | {trip:>14} {:>6} k/s CPU {:>5}", short(of(|m| m.per_second) / 1000.0), short(cpu));
        }
        let memory = usage::memory(&row.pids);
        println!(" | {:>6} {:>6}", short(mib(memory.peak)), short(mib(memory.pss)));
    }
}

fn compare(rows: &[Row], columns: &[Vec<Column>], goals: &mut Goals) {
    /// Wanted ÷ best peer per level for p50, calls/s; p99 at 8; p50 ÷ floor at 1 and 8.
    struct Bar {
        era: Era,
        name: &'static str,
        p50: [f64; 3],
        per_second: [f64; 3],
        p99: f64,
        floor: [f64; 2],
    }
    let bars = [
        Bar {
            era: Era::Stateless,
            name: "2026-07-28",
            p50: [0.50, 0.20, 0.17],
            per_second: [2.2, 6.0, 7.0],
            p99: 0.20,
            floor: [1.25, 1.40],
        },
        Bar {
            era: Era::Session,
            name: "2025-11-25",
            p50: [0.60, 0.28, 0.22],
            per_second: [1.8, 4.5, 5.5],
            p99: 0.25,
            floor: [1.45, 1.90],
        },
    ];
    let all =
        |kind: Kind| rows.iter().zip(columns).filter(move |(row, _)| row.kind == kind).map(|(_, columns)| columns);
    for bar in bars {
        let Some(ours) = all(Kind::Ours(bar.era)).next() else { continue };
        // Per round: ours over the best of `others` in that round.
        let ratio =
            |others: Kind, level: usize, what: fn(&Measured) -> f64, best: fn(f64, f64) -> f64| -> Option<f64> {
                let rounds = ours[level].rounds.iter().enumerate().map(|(round, measured)| {
                    let best = all(others).map(|columns| what(&columns[level].rounds[round])).reduce(best)?;
                    Some(what(measured) / best)
                });
                rounds.collect::<Option<Vec<f64>>>().map(median)
            };
        for (at, level) in LEVELS.iter().enumerate() {
            if let Some(ratio) = ratio(Kind::Peer, at, |m| micros(m.p50), f64::min) {
                goals.add(format!("{}: p50 ÷ best peer at {level}", bar.name), Wanted::AtMost(bar.p50[at]), ratio, "");
            }
            if let Some(ratio) = ratio(Kind::Peer, at, |m| m.per_second, f64::max) {
                goals.add(
                    format!("{}: calls/s ÷ best peer at {level}", bar.name),
                    Wanted::AtLeast(bar.per_second[at]),
                    ratio,
                    " ×",
                );
            }
        }
        if let Some(ratio) = ratio(Kind::Peer, 1, |m| micros(m.p99), f64::min) {
            goals.add(format!("{}: p99 ÷ best peer at 8", bar.name), Wanted::AtMost(bar.p99), ratio, "");
        }
        let added = ours[0].rounds.iter().enumerate().filter_map(|(round, measured)| {
            let floor = all(Kind::Floor).next()?[0].rounds[round];
            Some(micros(measured.p50) - micros(floor.p50))
        });
        let added = median(added.collect());
        goals.add(format!("{}: added to the floor at 1, all together", bar.name), Wanted::AtMost(20.0), added, " µs");
        for (at, wanted) in bar.floor.iter().enumerate() {
            if let Some(ratio) = ratio(Kind::Floor, at, |m| micros(m.p50), f64::min) {
                goals.add(format!("{}: p50 ÷ floor at {}", bar.name, LEVELS[at]), Wanted::AtMost(*wanted), ratio, "");
            }
        }
    }
}

/// A megabyte there and back, one call in flight.
pub async fn big(rows: &[Row], rounds: usize, goals: &mut Goals) -> Result<()> {
    let (arguments, expect) = payload(1_000_000);
    let mut times: Vec<_> = rows.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (row, times) in rows.iter().zip(&mut times) {
            // A peer may refuse a megabyte; that is a figure too.
            let measured = load::run(&row.target, &arguments, &expect, 1, 2, Until::Calls(15)).await;
            times.push(measured.map(|m| micros(m.p50) / 1000.0));
        }
    }
    println!("\n1 MB echo, p50 in ms, 1 in flight");
    for (row, times) in rows.iter().zip(times) {
        match times.into_iter().collect::<Result<Vec<f64>>>() {
            Ok(times) => {
                let p50 = median(times);
                println!("{:<26} {:>8}", row.name, short(p50));
                match row.kind {
                    Kind::Ours(Era::Stateless) => {
                        goals.add("2026-07-28: 1 MB echo p50", Wanted::AtMost(3.0), p50, " ms")
                    }
                    Kind::Ours(_) => goals.add("2025-11-25: 1 MB echo p50", Wanted::AtMost(4.0), p50, " ms"),
                    Kind::Floor | Kind::Peer => {}
                }
            }
            Err(error) => println!("{:<26} {:>8} ({:.80})", row.name, "fails", error.to_string()),
        }
    }
    Ok(())
}
