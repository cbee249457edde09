//! Channels: how soon a chat service hears what an agent wrote, what a long transcript costs, and what a fast one that is
//! turned over loses; each beside what a terminal offers.

mod latency;
mod length;
mod rest;
mod stage;
mod turned;

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

use crate::child::Running;
use crate::table::Goals;

/// All of them.
pub async fn run(rounds: usize, goals: &mut Goals) -> Result<()> {
    latency::run(rounds, goals).await?;
    length::run(rounds, goals).await?;
    turned::run(goals).await?;
    rest::run(goals).await
}

/// A line of the generic format that says this number, and is about so long.
fn line(number: u64, length: usize) -> String {
    format!("{{\"type\":\"assistant\",\"message\":{{\"content\":\"[{number}]{}\"}}}}\n", "x".repeat(length))
}

/// The number a line says.
fn number(line: &str) -> Option<u64> {
    line.split_once('[')?.1.split_once(']')?.0.parse().ok()
}

fn open(path: &Path) -> Result<File> {
    Ok(OpenOptions::new().create(true).append(true).open(path)?)
}

/// `tail -F` of a file, from its end on.
struct Tail(Running);

impl Tail {
    /// Starts it, and writes lines that say zero until it tells of one.
    async fn start(path: &Path) -> Result<Tail> {
        let mut command = Command::new("tail");
        command.args(["-n", "0", "-F"]).arg(path).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut tail = Tail(Running::start(&mut command).context("tail")?);
        let mut file = open(path)?;
        loop {
            file.write_all(line(0, 0).as_bytes())?;
            if let Ok(heard) = tokio::time::timeout(Duration::from_millis(200), tail.0.hear::<Value>()).await {
                heard?;
                return Ok(tail);
            }
        }
    }

    /// The next line.
    async fn line(&mut self) -> Result<String> {
        self.0.line().await
    }
}

/// How long a program takes to its end, its output thrown away.
async fn takes(program: &str, arguments: &[&str], path: &Path) -> Result<Duration> {
    let began = Instant::now();
    let status = Command::new(program).args(arguments).arg(path).stdout(Stdio::null()).status().await?;
    ensure!(status.success(), "{program}: {status}");
    Ok(began.elapsed())
}
