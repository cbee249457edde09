//! Which process a number means, so that nothing is killed for having inherited a number.

/// What tells this boot of the machine from any other; empty where a process's start time already does.
pub(crate) fn boot() -> String {
    #[cfg(target_os = "linux")]
    return std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
    #[cfg(not(target_os = "linux"))]
    String::new()
}

/// When a process started, as its system writes it; nothing if there is no such process.
#[cfg(target_os = "linux")]
pub(crate) fn started(pid: u32) -> Option<String> {
    stat(pid).map(|stat| stat.started)
}

/// When a process started, as its system writes it; nothing if there is no such process.
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) fn started(pid: u32) -> Option<String> {
    let out = std::process::Command::new("/bin/ps").args(["-o", "lstart=", "-p", &pid.to_string()]).output().ok()?;
    let text = String::from_utf8(out.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// When a process that lives started, as its system counts it; nothing if there is no such process.
#[cfg(windows)]
pub(crate) fn started(pid: u32) -> Option<String> {
    crate::platform::process_started(pid).map(|time| time.to_string())
}

/// Whether the process that started then lives: a dead one that nobody reaped yet does not.
pub(crate) fn lives(pid: u32, started_then: Option<&str>) -> bool {
    #[cfg(target_os = "linux")]
    return stat(pid).is_some_and(|stat| stat.alive && Some(stat.started.as_str()) == started_then);
    #[cfg(not(target_os = "linux"))]
    return started_then.is_some() && started(pid).as_deref() == started_then;
}

/// A living process that carries a mark in its environment.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(crate) struct Marked {
    pub(crate) pid: u32,
    pub(crate) group: u32,
}

/// Every living process of this user whose environment holds `entry` (`NAME=value`). Only Linux shows environments.
#[cfg(target_os = "linux")]
pub(crate) fn marked(entry: &str) -> Vec<Marked> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    all.filter_map(|process| {
        let pid: u32 = process.ok()?.file_name().to_str()?.parse().ok()?;
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|b| *b == 0).any(|e| e == entry.as_bytes()).then_some(())?;
        let stat = stat(pid)?;
        stat.alive.then_some(Marked { pid, group: stat.group })
    })
    .collect()
}

/// Every living process of this user whose environment holds `entry` (`NAME=value`). Only Linux shows environments.
#[cfg(not(target_os = "linux"))]
pub(crate) fn marked(_entry: &str) -> Vec<Marked> {
    Vec::new()
}

/// The runners of a folder: processes that lead a session and whose last word is that folder.
#[cfg(target_os = "linux")]
pub(crate) fn runners_of(folder: &std::path::Path) -> Vec<u32> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    all.filter_map(|process| {
        let pid: u32 = process.ok()?.file_name().to_str()?.parse().ok()?;
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let last = words.strip_suffix(&[0])?.rsplit(|byte| *byte == 0).next()?;
        let is_it = last == folder.as_os_str().as_encoded_bytes() && stat(pid)?.session == pid;
        is_it.then_some(pid)
    })
    .collect()
}

/// The runners of a folder: processes that lead a group and whose last word is that folder.
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) fn runners_of(folder: &std::path::Path) -> Vec<u32> {
    let listed = std::process::Command::new("/bin/ps").args(["-axww", "-o", "pid=,pgid=,command="]).output();
    let (Ok(listed), Some(folder)) = (listed, folder.to_str()) else { return Vec::new() };
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let runner = |line: &str| {
        let (pid, rest) = line.trim_start().split_once(' ')?;
        let (group, command) = rest.trim_start().split_once(' ')?;
        let is_it = pid == group && command.trim_end().strip_suffix(folder)?.ends_with(' ');
        pid.parse().ok().filter(|_| is_it)
    };
    text.lines().filter_map(runner).collect()
}

/// A job object ends with the runner that has it, and its pipe's name goes with it: there is nothing to look for.
#[cfg(windows)]
pub(crate) fn runners_of(_folder: &std::path::Path) -> Vec<u32> {
    Vec::new()
}

/// Whether a program of this name works in a folder or below it; true where that cannot be told.
#[cfg(target_os = "linux")]
pub(crate) fn works_in(program: &str, folder: &std::path::Path) -> bool {
    let Ok(all) = std::fs::read_dir("/proc") else { return true };
    all.flatten().any(|process| {
        let place = process.path();
        let named = std::fs::read_to_string(place.join("comm")).is_ok_and(|name| name.trim_end() == program);
        named && std::fs::read_link(place.join("cwd")).is_ok_and(|at| at.starts_with(folder))
    })
}

/// Whether a program of this name works in a folder or below it; true where that cannot be told: wherever it runs at all.
#[cfg(not(target_os = "linux"))]
pub(crate) fn works_in(program: &str, _folder: &std::path::Path) -> bool {
    let listed = std::process::Command::new("/bin/ps").args(["-axo", "comm="]).output();
    let ends = |line: &str| line.trim_end().rsplit('/').next() == Some(program);
    listed.map_or(true, |listed| String::from_utf8_lossy(&listed.stdout).lines().any(ends))
}

/// Whether a process group that exists has a member that is not dead; true where that cannot be told.
#[cfg(unix)]
pub(crate) fn has_living_member(group: u32) -> bool {
    #[cfg(target_os = "linux")]
    if let Ok(all) = std::fs::read_dir("/proc") {
        return all.flatten().any(|process| {
            let pid = process.file_name().to_str().and_then(|name| name.parse().ok());
            pid.and_then(stat).is_some_and(|stat| stat.alive && stat.group == group)
        });
    }
    let _ = group;
    true
}

/// The process groups with a living member in the session that a process leads, and that process's own.
#[cfg(target_os = "linux")]
pub(crate) fn groups_of_session(leader: u32) -> Vec<u32> {
    let mut groups = vec![leader];
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = process.file_name().to_str().and_then(|name| name.parse().ok());
        let of_session = pid.and_then(stat).filter(|stat| stat.alive && stat.session == leader);
        groups.extend(of_session.map(|stat| stat.group).filter(|group| !groups.contains(group)));
    }
    groups
}

/// The process's own group: sessions cannot be seen here.
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) fn groups_of_session(leader: u32) -> Vec<u32> {
    vec![leader]
}

#[cfg(target_os = "linux")]
struct Stat {
    alive: bool,
    group: u32,
    session: u32,
    started: String,
}

#[cfg(target_os = "linux")]
fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything, parentheses too.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        alive: !matches!(*fields.first()?, "Z" | "X"),
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: (*fields.get(19)?).to_owned(),
    })
}
