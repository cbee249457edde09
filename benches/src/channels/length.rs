//! A transcript of a gibibyte: bound at its end, and read from its beginning.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};

use super::{line, open, takes};
use crate::child::Running;
use crate::roles::follower::{Bound, Through};
use crate::table::{Goals, Wanted, median, mib, short};
use crate::usage;

const SIZE: usize = 1 << 30;

/// The file is in the page cache for everybody.
pub async fn run(rounds: usize, goals: &mut Goals) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("long.jsonl");
    let mut file = BufWriter::new(open(&path)?);
    let (mut size, mut lines) = (0, 0);
    while size < SIZE {
        let line = line(lines, 1000);
        file.write_all(line.as_bytes())?;
        (size, lines) = (size + line.len(), lines + 1);
    }
    file.flush()?;
    let name = path.to_str().context("a name that is no text")?;
    let (mut bound, mut peak, mut tail, mut count) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let mut role = Running::role(&["follower", "end", name])?;
        bound.push(role.hear::<Bound>().await?.micros / 1000.0);
        peak.push(mib(usage::own_memory(role.pid()).peak));
        tail.push(takes("tail", &["-n", "1"], &path).await?.as_secs_f64() * 1000.0);
        count.push(takes("wc", &["-l"], &path).await?.as_secs_f64() * 1000.0);
    }
    let empty = base(folder.path()).await?;
    let mut role = Running::role(&["follower", "beginning", name])?;
    role.hear::<Bound>().await?;
    let Through { entries, micros } = role.hear().await?;
    anyhow::ensure!(entries == lines, "{entries} entries of {lines} lines");
    let through = mib(usage::own_memory(role.pid()).peak);
    println!("\n{:<66} {:>8}    {:>8}", "a transcript of 1 GiB", "ms", "peak MB");
    let row = |name: &str, time: Option<f64>, peak: Option<f64>| {
        let [time, peak] = [time, peak].map(|figure| figure.map(short).unwrap_or_default());
        println!("{name:<66} {time:>8}    {peak:>8}");
    };
    row("bound at its end", Some(median(bound.clone())), Some(median(peak.clone())));
    row("`tail -n 1`, with its start", Some(median(tail)), None);
    row("read from its beginning, every line an entry", Some(micros / 1000.0), Some(through));
    row("`wc -l`, with its start", Some(median(count)), None);
    row("the same process with an empty transcript", None, Some(empty));
    goals.add("1 GiB transcript: bound", Wanted::AtMost(50.0), median(bound), " ms");
    goals.add("1 GiB transcript: memory to bind it", Wanted::AtMost(16.0), median(peak) - empty, " MB");
    goals.add("1 GiB transcript: memory to read it all", Wanted::AtMost(64.0), through - empty, " MB");
    Ok(())
}

/// Memory of the role itself.
async fn base(folder: &Path) -> Result<f64> {
    let empty = folder.join("empty.jsonl");
    drop(open(&empty)?);
    let mut role = Running::role(&["follower", "end", empty.to_str().context("a name that is no text")?])?;
    role.hear::<Bound>().await?;
    Ok(mib(usage::own_memory(role.pid()).peak))
}
