//! CPU time and memory of a process and all its descendants, from `/proc`.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Memory of a process tree, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory {
    /// Resident now.
    pub rss: u64,
    /// Resident now, shared pages divided by their sharers.
    pub pss: u64,
    /// Highest resident size since the start or since [`forget_peak`], summed over the processes.
    pub peak: u64,
}

/// The process and every descendant that lives now.
fn tree(pid: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(parent) = stat(child).and_then(|fields| fields.get(1)?.parse().ok()) {
            children.entry(parent).or_default().push(child);
        }
    }
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(next) = found.get(at) {
        found.extend(children.get(next).cloned().unwrap_or_default());
        at += 1;
    }
    found
}

/// The fields of `/proc/PID/stat` after the command's name: 0 = state, 1 = parent, 11 = user ticks, 12 = system ticks.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// CPU time, user and system, of the trees below these processes; of children already reaped too.
pub fn cpu(pids: &[u32]) -> Result<Duration> {
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)?.context("no clock tick")? as f64;
    let ticks: u64 = pids
        .iter()
        .flat_map(|pid| tree(*pid))
        .filter_map(stat)
        .flat_map(|fields| (11..=14).filter_map(move |at| fields.get(at)?.parse::<u64>().ok()))
        .sum();
    Ok(Duration::from_secs_f64(ticks as f64 / per_second))
}

/// Memory of the trees below these processes.
pub fn memory(pids: &[u32]) -> Memory {
    let mut sum = Memory::default();
    for own in pids.iter().flat_map(|pid| tree(*pid)).map(own_memory) {
        sum.rss += own.rss;
        sum.peak += own.peak;
        sum.pss += own.pss;
    }
    sum
}

/// Memory of one process.
pub fn own_memory(pid: u32) -> Memory {
    Memory {
        rss: kib(pid, "status", "VmRSS:"),
        peak: kib(pid, "status", "VmHWM:"),
        pss: kib(pid, "smaps_rollup", "Pss:"),
    }
}

fn kib(pid: u32, file: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Lets [`Memory::peak`] start over from what is resident now.
pub fn forget_peak(pids: &[u32]) -> Result<()> {
    for pid in pids.iter().flat_map(|pid| tree(*pid)) {
        std::fs::write(format!("/proc/{pid}/clear_refs"), "5").context("clear_refs")?;
    }
    Ok(())
}

/// How often each thread of a process gave up the processor to wait, since it began.
pub type Waits = HashMap<String, u64>;

/// Of every thread that lives now.
pub fn waits(pid: u32) -> Waits {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let waits = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("status")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        Some((task.file_name().into_string().ok()?, line.trim().parse().ok()?))
    });
    waits.collect()
}

/// How often a process woke since then; what a thread did that ended meanwhile is not known.
pub fn wakeups(pid: u32, before: &Waits) -> u64 {
    waits(pid).iter().map(|(thread, now)| now.saturating_sub(before.get(thread).copied().unwrap_or(0))).sum()
}
