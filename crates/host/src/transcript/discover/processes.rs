//! What is known of processes by their numbers.

use std::collections::HashMap;

use holdfast_core::limits;
use holdfast_core::transcript::discovery::Process;

/// A process and those above it, as far as can be told.
pub(super) fn above(pid: u32) -> Vec<u32> {
    std::iter::successors(Some(pid), |pid| parent(*pid)).take(1 + limits::DISCOVERY_PARENTS).collect()
}

#[cfg(target_os = "linux")]
fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    parent.trim().parse().ok().filter(|parent| *parent != 0)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn parent(pid: u32) -> Option<u32> {
    ps("ppid=", &pid.to_string())?.trim().parse().ok().filter(|parent| *parent != 0)
}

#[cfg(not(unix))]
fn parent(_pid: u32) -> Option<u32> {
    None
}

/// Which of these processes there are.
#[cfg(target_os = "linux")]
pub(super) fn processes(pids: &[u32]) -> HashMap<u32, Process> {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let booted: Option<u64> = stat.lines().find_map(|line| line.strip_prefix("btime ")?.parse().ok());
    let look = |pid: u32| {
        let Some(started) = crate::identity::started(pid) else { return Process::Gone };
        if !crate::identity::lives(pid, Some(&started)) {
            return Process::Gone;
        }
        // In hundredths of a second, whatever the kernel's own clock.
        let since_boot = started.parse::<u64>().ok();
        Process::Runs(booted.zip(since_boot).map(|(booted, hundredths)| booted * 1000 + hundredths * 10))
    };
    pids.iter().map(|pid| (*pid, look(*pid))).collect()
}

/// Which of these processes there are.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn processes(pids: &[u32]) -> HashMap<u32, Process> {
    let mut all: HashMap<u32, Process> = pids.iter().map(|pid| (*pid, Process::Gone)).collect();
    if pids.is_empty() {
        return all;
    }
    let list: Vec<String> = pids.iter().map(u32::to_string).collect();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    for line in ps("pid=,etime=", &list.join(",")).unwrap_or_default().lines() {
        let mut fields = line.split_whitespace();
        let (Some(pid), Some(age)) = (fields.next().and_then(|pid| pid.parse().ok()), fields.next()) else { continue };
        let began = age_in_seconds(age).map(|age| now.as_secs().saturating_sub(age) * 1000);
        all.insert(pid, Process::Runs(began));
    }
    all
}

#[cfg(all(unix, not(target_os = "linux")))]
fn ps(fields: &str, pids: &str) -> Option<String> {
    let out = std::process::Command::new("/bin/ps").args(["-o", fields, "-p", pids]).output().ok()?;
    String::from_utf8(out.stdout).ok()
}

/// Of `[[days-]hours:]minutes:seconds`.
#[cfg(any(test, all(unix, not(target_os = "linux"))))]
fn age_in_seconds(text: &str) -> Option<u64> {
    let (days, time) = text.split_once('-').unwrap_or(("0", text));
    let seconds = time.split(':').try_fold(0, |sum: u64, part| Some(sum * 60 + part.parse::<u64>().ok()?))?;
    Some(days.parse::<u64>().ok()? * 86_400 + seconds)
}

/// Which of these processes there are.
#[cfg(windows)]
pub(super) fn processes(pids: &[u32]) -> HashMap<u32, Process> {
    // In tenths of a microsecond since 1601.
    let unix = |time: u64| (time / 10_000).saturating_sub(11_644_473_600_000);
    let look =
        |pid| crate::platform::process_started(pid).map_or(Process::Gone, |time| Process::Runs(Some(unix(time))));
    pids.iter().map(|pid| (*pid, look(*pid))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_since_a_moment_ago_below_its_parents_and_a_dead_one_does_not() {
        let me = std::process::id();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let all = processes(&[me, child.id()]);
        assert_eq!(all[&child.id()], Process::Gone);
        let Process::Runs(Some(began)) = all[&me] else { panic!("{all:?}") };
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
        assert!((u128::from(began)).abs_diff(now) < 3_600_000, "{began} {now}");
        #[cfg(unix)]
        assert_eq!(above(me)[..2], [me, std::os::unix::process::parent_id()]);
    }

    #[test]
    fn an_age_is_read_as_ps_writes_it() {
        for (text, seconds) in [("00:05", 5), ("12:34", 754), ("01:00:00", 3600), ("2-03:00:01", 183_601)] {
            assert_eq!(age_in_seconds(text), Some(seconds));
        }
        assert_eq!(age_in_seconds("-"), None);
    }
}
