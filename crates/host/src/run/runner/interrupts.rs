//! When the system asks the runner to end.

use std::io;

/// What a signal says.
#[cfg_attr(windows, allow(dead_code, reason = "no signal comes there"))]
pub(super) enum Interrupt {
    /// The runner is asked to end.
    End,
    /// Nobody reaches it: a runner has no terminal, so a hang-up says this.
    Unreached,
}

/// Waits for signals.
#[cfg(unix)]
pub(super) struct Interrupts {
    term: tokio::signal::unix::Signal,
    int: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Interrupts {
    pub(super) fn new() -> io::Result<Interrupts> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Interrupts {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    pub(super) async fn next(&mut self) -> Interrupt {
        tokio::select! {
            _ = self.term.recv() => Interrupt::End,
            _ = self.int.recv() => Interrupt::End,
            _ = self.hang_up.recv() => Interrupt::Unreached,
        }
    }
}

/// A detached process is asked nothing on this system.
#[cfg(windows)]
pub(super) struct Interrupts;

#[cfg(windows)]
impl Interrupts {
    pub(super) fn new() -> io::Result<Interrupts> {
        Ok(Interrupts)
    }

    pub(super) async fn next(&mut self) -> Interrupt {
        std::future::pending().await
    }
}
