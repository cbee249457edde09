//! The machine's two clocks: boot time as the system reads it, awake time with everything taken out that was no turn of ours.

use holdfast_core::limits;
use holdfast_core::status::UnixMs;
use holdfast_core::time::Now;
use holdfast_relay::{Clock as _, SystemClock};

/// Reads boot time and adds at most [`limits::AWAKE_STEP_MAX`] of every turn to awake time; the loop turns at least every
/// [`limits::SHELL_TURN_MAX`]. A greater step is a sleep, a stopped process or a paused machine.
#[derive(Debug)]
pub(crate) struct Turns {
    clock: SystemClock,
    last: Now,
}

impl Turns {
    pub(crate) fn new() -> Self {
        let clock = SystemClock::default();
        let boot = clock.now().boot;
        Turns { clock, last: Now { boot, awake: boot } }
    }

    /// This moment; a turn begins with it.
    pub(crate) fn now(&mut self) -> Now {
        let boot = self.clock.now().boot.max(self.last.boot);
        let step = (boot - self.last.boot).min(limits::AWAKE_STEP_MAX);
        self.last = Now { boot, awake: self.last.awake + step };
        self.last
    }

    /// The calendar, for people.
    pub(crate) fn unix_ms(&self) -> UnixMs {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
    }
}
