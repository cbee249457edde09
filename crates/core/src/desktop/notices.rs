//! What is worth interrupting a person for.

use std::time::Duration;

use crate::status::StatusSnapshot;
use crate::time::Now;

/// What a notice is about. The window may be opened at the place that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoticeKind {
    /// The relay has been away for [`crate::limits::NOTICE_OUTAGE`].
    Outage,
    /// It is back, after an outage that was told.
    Recovered,
    /// Calls ended without a known outcome.
    CallsLost,
    /// A client asks to be let in.
    Consent,
    /// A call asks before it runs.
    Question,
    /// The seat was taken, taken over, or given up.
    Seat,
    /// The engines could not start.
    StartFailed,
    /// The window was closed and Holdfast goes on.
    StillRunning,
}

/// One notice, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub kind: NoticeKind,
    /// A few words.
    pub title: String,
    /// A sentence or two.
    pub body: String,
}

/// Which notices a person wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoticeSwitches {
    /// Outages, and their ends.
    pub outages: bool,
    /// Lost calls.
    pub calls_lost: bool,
    /// Clients that ask to be let in.
    pub consents: bool,
    /// Calls that ask before they run.
    pub questions: bool,
    /// The seat.
    pub seat: bool,
    /// Engines that could not start.
    pub start_failed: bool,
    /// That Holdfast goes on when the window is closed.
    pub still_running: bool,
}

impl Default for NoticeSwitches {
    fn default() -> Self {
        NoticeSwitches {
            outages: true,
            calls_lost: true,
            consents: true,
            questions: true,
            seat: true,
            start_failed: true,
            still_running: true,
        }
    }
}

/// What happened.
#[derive(Debug, Clone, Copy)]
pub enum NoticeInput<'a> {
    /// The state, as it is now.
    Snapshot(&'a StatusSnapshot),
    /// The status window was closed.
    WindowClosed,
    /// A person changed what is told.
    Switches(NoticeSwitches),
}

/// The machine.
#[derive(Debug)]
pub struct Notices {
    switches: NoticeSwitches,
}

impl Notices {
    /// A machine of a process that starts now.
    pub fn new(now: Now, switches: NoticeSwitches) -> Self {
        let _ = now;
        Notices { switches }
    }

    /// Takes in what happened.
    pub fn handle(&mut self, now: Now, input: NoticeInput<'_>) {
        let _ = now;
        if let NoticeInput::Switches(switches) = input {
            self.switches = switches;
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Now) {
        let _ = now;
    }

    /// The next notice.
    pub fn poll_output(&mut self) -> Option<Notice> {
        None
    }

    /// Time until something is due.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        let _ = now;
        None
    }
}
