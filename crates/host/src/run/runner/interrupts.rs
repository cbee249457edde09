//! When the system asks the runner to end.

use std::io;

/// Waits for the signals by which a process is asked to end. A hang-up is none of them: a runner has no terminal.
#[cfg(unix)]
pub(super) struct Interrupts {
    term: tokio::signal::unix::Signal,
    int: tokio::signal::unix::Signal,
    _hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Interrupts {
    pub(super) fn new() -> io::Result<Interrupts> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Interrupts {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            _hang_up: signal(SignalKind::hangup())?,
        })
    }

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
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

    pub(super) async fn next(&mut self) {
        std::future::pending().await
    }
}
