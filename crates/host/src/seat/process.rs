//! Which process a number means, so that nothing is shown or ended for having inherited a number.

use std::fmt;
use std::str::FromStr;

use crate::identity;

/// A process by its number and when it started, as its system writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) pid: u32,
    pub(super) started: Option<String>,
}

/// What tells this boot of the machine from any other.
pub(super) fn boot() -> String {
    identity::boot()
}

impl Proof {
    pub(super) fn of_this_process() -> Proof {
        let pid = std::process::id();
        Proof { pid, started: identity::started(pid) }
    }

    /// Whether that very process lives.
    pub(super) fn lives(&self) -> bool {
        // Looked at every second, where the start time costs a process it is not asked for.
        #[cfg(all(unix, not(target_os = "linux")))]
        return i32::try_from(self.pid).is_ok_and(|pid| {
            !matches!(nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None), Err(nix::errno::Errno::ESRCH))
        });
        #[cfg(not(all(unix, not(target_os = "linux"))))]
        return cfg!(windows) || self.started.is_some() && identity::started(self.pid) == self.started;
    }

    /// Ends it, if it is the process that answers at the seat's socket too. In plain words if that was not done.
    pub(super) fn kill(&self, listens: Option<u32>) -> Result<(), String> {
        let pid = self.pid;
        let not_proven = || Err(format!("it is not certain that process {pid} holds the seat; end it yourself"));
        #[cfg(unix)]
        {
            let same = self.started.is_some() && identity::started(pid) == self.started;
            if listens != Some(pid) || !same || pid == std::process::id() {
                return not_proven();
            }
            let raw = nix::unistd::Pid::from_raw(i32::try_from(pid).map_err(|e| e.to_string())?);
            nix::sys::signal::kill(raw, nix::sys::signal::Signal::SIGKILL)
                .map_err(|e| format!("process {pid} cannot be ended: {e}"))
        }
        #[cfg(not(unix))]
        {
            let _ = listens;
            not_proven()
        }
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.pid, self.started.as_deref().unwrap_or_default())
    }
}

impl FromStr for Proof {
    type Err = ();

    fn from_str(text: &str) -> Result<Proof, ()> {
        let (pid, started) = text.trim_end_matches('\n').split_once(' ').ok_or(())?;
        let started = Some(started.to_owned()).filter(|s| !s.is_empty());
        Ok(Proof { pid: pid.parse().map_err(drop)?, started })
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_ended_only_when_lock_socket_and_start_time_name_the_same_one() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        let proof = Proof { pid, started: identity::started(pid) };
        let read: Proof = proof.to_string().parse().unwrap();
        assert_eq!(read, proof);
        assert!(proof.kill(None).is_err());
        assert!(proof.kill(Some(std::process::id())).is_err());
        assert!(Proof { started: Some("1".into()), ..proof.clone() }.kill(Some(pid)).is_err());
        assert!(Proof { started: None, ..proof.clone() }.kill(Some(pid)).is_err());
        assert!(Proof::of_this_process().kill(Some(std::process::id())).is_err());
        assert!(child.try_wait().unwrap().is_none());
        proof.kill(Some(pid)).unwrap();
        assert!(!child.wait().unwrap().success());
        for bad in ["", "7", "x 1", "\n", "-1 1"] {
            assert!(bad.parse::<Proof>().is_err(), "{bad:?}");
        }
    }
}
