//! Process groups: told to end, and looked at until they have.

use holdfast_core::run::Signal;

#[cfg(unix)]
use crate::identity;

/// Name of the variable that marks every process of a tree.
pub(crate) const MARK: &str = "HOLDFAST_RUN";

#[cfg(unix)]
pub(crate) fn signal(group: u32, signal: Signal) {
    if let Some(group) = pid(group) {
        let _ = nix::sys::signal::killpg(group, of(signal));
    }
}

/// Signals one process.
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) fn signal_one(process: u32, signal: Signal) {
    if let Some(process) = pid(process) {
        let _ = nix::sys::signal::kill(process, of(signal));
    }
}

#[cfg(unix)]
fn of(signal: Signal) -> nix::sys::signal::Signal {
    match signal {
        Signal::HangUp => nix::sys::signal::Signal::SIGHUP,
        Signal::Term => nix::sys::signal::Signal::SIGTERM,
        Signal::Kill => nix::sys::signal::Signal::SIGKILL,
    }
}

/// Whether a group has a living member.
#[cfg(unix)]
pub(crate) fn lives(group: u32) -> bool {
    // EPERM means that somebody is there. A dead process nobody reaped yet is there too, and does not count.
    pid(group).is_some_and(|group| nix::sys::signal::killpg(group, None) != Err(nix::errno::Errno::ESRCH))
        && identity::has_living_member(group)
}

/// Kills one process.
#[cfg(unix)]
pub(crate) fn kill_one(process: u32) {
    if let Some(process) = pid(process) {
        let _ = nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL);
    }
}

/// Never 0 or 1: those would be our own group and everybody.
#[cfg(unix)]
fn pid(group: u32) -> Option<nix::unistd::Pid> {
    i32::try_from(group).ok().filter(|group| *group > 1).map(nix::unistd::Pid::from_raw)
}

/// A job object cannot be asked, only ended, and its handle is the child's.
#[cfg(windows)]
pub(crate) fn signal(_group: u32, _signal: Signal) {}

#[cfg(windows)]
pub(crate) fn signal_one(_process: u32, _signal: Signal) {}

#[cfg(windows)]
pub(crate) fn kill_one(_process: u32) {}

#[cfg(windows)]
pub(crate) fn lives(_group: u32) -> bool {
    false
}
