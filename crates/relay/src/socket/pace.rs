//! The relay's two clocks as its rooms see them.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::limits;
use holdfast_core::time::Now;
use parking_lot::Mutex;

use crate::clock::Clock;

/// Reads the clock and takes freezes out of awake time: one reading adds at most [`limits::AWAKE_STEP_MAX`], whatever
/// froze us — sleep, SIGSTOP, a paused VM. Whoever waits for an awake deadline reads it at least every
/// [`limits::ROOM_TURN_MAX`].
pub(crate) struct Pace {
    clock: Arc<dyn Clock>,
    last: Mutex<Now>,
}

impl Pace {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let now = clock.now();
        Pace { clock, last: Mutex::new(Now { boot: now.boot, awake: now.boot }) }
    }

    /// This moment.
    pub(crate) fn now(&self) -> Now {
        let boot = self.clock.now().boot;
        let mut last = self.last.lock();
        let step = boot.saturating_sub(last.boot).min(limits::AWAKE_STEP_MAX);
        *last = Now { boot: boot.max(last.boot), awake: last.awake + step };
        *last
    }

    /// This moment in boot time.
    pub(crate) fn boot(&self) -> Duration {
        self.clock.now().boot
    }

    /// Seconds since 1970 of a boot time.
    pub(crate) fn unix_of(&self, boot: Duration) -> i64 {
        let ago = self.clock.now().boot.saturating_sub(boot);
        self.clock.unix().saturating_sub_unsigned(ago.as_secs())
    }

    pub(crate) fn unix(&self) -> i64 {
        self.clock.unix()
    }
}
