//! Followers of transcripts by themselves, so that their memory and wake-ups are theirs.

use std::io::Write as _;
use std::time::Instant;

use anyhow::{Context as _, Result};
use holdfast_core::transcript::{Binding, Part, Start};
use holdfast_host::transcript::{Followed, Follower, follow, real_path};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::say;
use crate::table::micros;

/// All are bound.
#[derive(Serialize, Deserialize)]
pub struct Bound {
    /// From the first order until the last stood where it begins.
    pub micros: f64,
}

/// Everything that stood there was heard.
#[derive(Serialize, Deserialize)]
pub struct Through {
    /// How many lines that was.
    pub entries: u64,
    /// From the order to follow it.
    pub micros: f64,
}

/// Follows these, from their `end` or, the first to what is its end now, from the `beginning`; `numbers`: what the first
/// says is said here too.
pub async fn run(how: &str, paths: &[&str]) -> Result<()> {
    let began = Instant::now();
    let mut all = Vec::new();
    for path in paths {
        let (tell, mut told) = mpsc::channel(1);
        let follower = follow(tell)?;
        let transcript = real_path(path.as_ref()).map_err(anyhow::Error::msg)?;
        let start = if how == "beginning" { Start::Beginning } else { Start::End };
        follower.bind(Binding { transcript, start, generation: 1 });
        next(&follower, &mut told).await?;
        all.push((follower, told));
    }
    say(&Bound { micros: micros(began.elapsed()) })?;
    let (follower, told) = all.first_mut().context("no transcript")?;
    if how == "beginning" {
        let size = std::fs::metadata(paths[0])?.len();
        let (mut entries, mut offset) = (0, 0);
        while offset < size {
            let (numbers, end) = next(follower, told).await?;
            (entries, offset) = (entries + numbers.len() as u64, end);
        }
        say(&Through { entries, micros: micros(began.elapsed()) })?;
    }
    loop {
        let (said, _) = next(follower, told).await?;
        if how == "numbers" {
            let mut out = std::io::stdout().lock();
            for said in said {
                writeln!(out, "{}", said.get(..20).unwrap_or(&said))?;
            }
        }
    }
}

/// What is given out next, and where it ends.
async fn next(follower: &Follower, told: &mut mpsc::Receiver<Followed>) -> Result<(Vec<String>, u64)> {
    loop {
        if let Followed::Entries { entries, cursor } = told.recv().await.context("it ended")? {
            follower.taken();
            let said = entries.into_iter().flat_map(|entry| entry.parts).filter_map(|part| match part {
                Part::Said(text) => Some(text),
                _ => None,
            });
            return Ok((said.collect(), cursor.offset));
        }
    }
}
