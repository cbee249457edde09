//! What a binding costs whose agent says nothing.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::open;
use crate::child::Running;
use crate::roles::follower::Bound;
use crate::table::{Goals, Wanted, mib, short};
use crate::usage;

const BINDINGS: usize = 10;
const SETTLE: Duration = Duration::from_secs(3);
const IDLE: Duration = Duration::from_secs(20);

/// Of ten in one process.
pub async fn run(goals: &mut Goals) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut arguments = vec!["follower".to_owned(), "end".to_owned()];
    for n in 0..BINDINGS {
        let path = folder.path().join(format!("{n}/idle.jsonl"));
        std::fs::create_dir_all(path.parent().context("a folder")?)?;
        drop(open(&path)?);
        arguments.push(path.to_str().context("a name that is no text")?.to_owned());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut role = Running::role(&arguments)?;
    role.hear::<Bound>().await?;
    tokio::time::sleep(SETTLE).await;
    let before = (usage::waits(role.pid()), usage::cpu(&[role.pid()])?);
    tokio::time::sleep(IDLE).await;
    let wakeups = usage::wakeups(role.pid(), &before.0) as f64 / IDLE.as_secs_f64() / BINDINGS as f64;
    let cpu = (usage::cpu(&[role.pid()])? - before.1).as_secs_f64() / IDLE.as_secs_f64() / BINDINGS as f64;
    println!(
        "\n{BINDINGS} bindings at rest: {} wake-ups/s and {} % of a core each, PSS {} MB in all",
        short(wakeups),
        short(cpu * 100.0),
        short(mib(usage::memory(&[role.pid()]).pss))
    );
    goals.add("a binding at rest: wake-ups", Wanted::AtMost(1.0), wakeups, " /s");
    Ok(())
}
