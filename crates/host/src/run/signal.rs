//! What a runner is told when its socket cannot be reached.

use holdfast_core::run::{Identity, Signal};

use super::look::lives;

/// Signals a runner, never another process that inherited its number: a hang-up makes it listen again if its socket's name is
/// gone, `Term` makes it end its program as if it had been asked to, `Kill` leaves what it runs to
/// [`kill_leftovers`](super::kill_leftovers). Returns whether it lives.
pub fn signal(identity: &Identity, signal: Signal) -> bool {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Pid, PidfdFlags, Signal as Unix, pidfd_open, pidfd_send_signal};
        let pid = i32::try_from(identity.pid).ok().and_then(Pid::from_raw);
        // What is held is the process that has the number now; whether it is the runner is seen after that.
        let Some(held) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return false };
        let is_it = lives(identity);
        if is_it {
            let signal = match signal {
                Signal::HangUp => Unix::HUP,
                Signal::Term => Unix::TERM,
                Signal::Kill => Unix::KILL,
            };
            let _ = pidfd_send_signal(&held, signal);
        }
        is_it
    }
    #[cfg(not(target_os = "linux"))]
    {
        let is_it = lives(identity);
        if is_it {
            crate::group::signal_one(identity.pid, signal);
        }
        is_it
    }
}
