//! An agent that writes 10 MB/s and turns its transcript over each 10 MiB, as one that was looked at does: which lines are
//! lost, and which come twice.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::sync::mpsc;

use super::{Tail, line, number, open};
use crate::child::Running;
use crate::roles::follower::Bound;
use crate::table::{Goals, Wanted};

const RATE: f64 = 10e6;
const TURN: usize = 10 << 20;
const LENGTH: usize = 500;
const LINES: u64 = 200_000;
/// So long nobody says anything once it is over.
const OVER: Duration = Duration::from_secs(5);

/// The same file for both.
pub async fn run(goals: &mut Goals) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("fast.jsonl");
    drop(open(&path)?);
    let mut ours = Running::role(&["follower", "numbers", path.to_str().context("a name that is no text")?])?;
    ours.hear::<Bound>().await?;
    let tail = Tail::start(&path).await?;
    let (tell, mut told) = mpsc::unbounded_channel();
    let by_tail = tell.clone();
    tokio::spawn(async move {
        let mut tail = tail;
        while let Ok(line) = tail.line().await {
            let _ = by_tail.send((false, number(&line)));
        }
    });
    tokio::spawn(async move {
        while let Ok(line) = ours.line().await {
            let _ = tell.send((true, number(&line)));
        }
    });
    let writer = std::thread::spawn({
        let path = path.clone();
        move || write(&path)
    });
    let mut counts = [vec![0_u8; 1 + LINES as usize], vec![0_u8; 1 + LINES as usize]];
    loop {
        match tokio::time::timeout(OVER, told.recv()).await {
            Ok(heard) => {
                let (ours, number) = heard.context("both ended")?;
                if let Some(count) = number.and_then(|n| counts[usize::from(ours)].get_mut(usize::try_from(n).ok()?)) {
                    *count = count.saturating_add(1);
                }
            }
            Err(_) if writer.is_finished() => break,
            Err(_) => {}
        }
    }
    let (files, took) = writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))??;
    let title = format!("{LINES} lines in {files} files, {:.1} MB/s", LINES as f64 * LENGTH as f64 / 1e6 / took);
    println!("\n{title:<66} {:>8} {:>8}", "lost", "twice");
    let [lost_by_tail, lost] = counts.map(|counts| {
        // Zero is what began it.
        let lost = counts.iter().skip(1).filter(|count| **count == 0).count();
        (lost, counts.iter().skip(1).filter(|count| **count > 1).count())
    });
    for (name, (lost, twice)) in [("`tail -F`", lost_by_tail), ("the follower", lost)] {
        println!("{name:<66} {lost:>8} {twice:>8}");
    }
    goals.add("10 MB/s and turned over: lines lost or twice", Wanted::AtMost(0.0), (lost.0 + lost.1) as f64, "");
    Ok(())
}

/// Writes all lines at the rate; how many files, and how many seconds it took.
fn write(path: &Path) -> Result<(usize, f64)> {
    use std::io::Write as _;
    let rotated: PathBuf = path.with_extension("jsonl.1");
    let mut file = open(path)?;
    let (mut size, mut whole, mut files) = (0, 0, 1);
    let began = Instant::now();
    for n in 1..=LINES {
        let line = line(n, LENGTH - 60);
        file.write_all(line.as_bytes())?;
        (size, whole) = (size + line.len(), whole + line.len());
        if size >= TURN {
            std::fs::rename(path, &rotated)?;
            file = open(path)?;
            (size, files) = (0, files + 1);
        }
        let due = Duration::from_secs_f64(whole as f64 / RATE);
        if n % 20 == 0 {
            std::thread::sleep(due.saturating_sub(began.elapsed()));
        }
    }
    Ok((files, began.elapsed().as_secs_f64()))
}
