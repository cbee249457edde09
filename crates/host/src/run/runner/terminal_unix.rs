//! A terminal for a program: the one place of a runner that needs unsafe code, because a program takes its terminal between
//! fork and exec.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::FdFlags;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use tokio::process::Command;

/// A terminal, at the end that shows what is in it.
pub(super) struct Terminal(OwnedFd);

impl Terminal {
    /// A new one, and the program's end of it.
    pub(super) fn open(cols: u16, rows: u16) -> io::Result<(Terminal, OwnedFd)> {
        let screen = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        rustix::io::fcntl_setfd(&screen, FdFlags::CLOEXEC)?;
        rustix::pty::grantpt(&screen)?;
        rustix::pty::unlockpt(&screen)?;
        let name = rustix::pty::ptsname(&screen, Vec::new())?;
        let program = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        let terminal = Terminal(screen);
        terminal.resize(cols, rows)?;
        Ok((terminal, program))
    }

    /// A copy of its descriptor.
    pub(super) fn copy(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    /// Another size; who has it in the foreground is told.
    pub(super) fn resize(&self, cols: u16, rows: u16) -> io::Result<()> {
        Ok(rustix::termios::tcsetwinsize(&self.0, Winsize { ws_col: cols, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 })?)
    }
}

/// Lets a program lead a session whose terminal is its standard input.
#[allow(unsafe_code, reason = "nothing else runs in a child between fork and exec")]
pub(super) fn lead(command: &mut Command) {
    // SAFETY: the closure makes two system calls that neither allocate nor lock.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?)
        });
    }
}
