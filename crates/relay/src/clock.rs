//! Reading the clocks, and a clock that a test moves by hand.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use holdfast_core::time::Now;
use parking_lot::Mutex;

/// Where the relay reads time. Expiry that is stored uses the calendar; waiting in memory uses [`Now`].
pub trait Clock: Send + Sync + std::fmt::Debug + 'static {
    /// Boot and awake time since the process started.
    fn now(&self) -> Now;
    /// Seconds since 1970.
    fn unix(&self) -> i64;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    boot: Duration,
    awake: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { boot: boot_reading().unwrap_or_default(), awake: Instant::now() }
    }
}

/// The clock that goes on while the machine sleeps, as every process of this boot reads it; `None` where there is none.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "macos"))]
pub fn boot_reading() -> Option<Duration> {
    use nix::time::{ClockId, clock_gettime};
    #[cfg(target_os = "macos")]
    const BOOT: ClockId = ClockId::CLOCK_MONOTONIC;
    #[cfg(not(target_os = "macos"))]
    const BOOT: ClockId = ClockId::CLOCK_BOOTTIME;
    clock_gettime(BOOT).ok().map(Duration::from)
}

/// The clock that goes on while the machine sleeps, as every process of this boot reads it; `None` where there is none.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "macos")))]
pub fn boot_reading() -> Option<Duration> {
    None
}

impl Clock for SystemClock {
    fn now(&self) -> Now {
        let awake = self.awake.elapsed();
        Now { boot: boot_reading().map_or(awake, |reading| reading.saturating_sub(self.boot)), awake }
    }

    fn unix(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| i64::try_from(t.as_secs()).unwrap_or(i64::MAX))
    }
}

/// A clock that stands still until it is moved; for tests of expiry.
#[derive(Debug)]
pub struct ManualClock(Mutex<Duration>);

/// The calendar of a [`ManualClock`] starts here: 2026-01-01.
const MANUAL_EPOCH: i64 = 1_767_225_600;

impl Default for ManualClock {
    fn default() -> Self {
        ManualClock(Mutex::new(Duration::from_secs(1)))
    }
}

impl ManualClock {
    /// Moves all clocks forward.
    pub fn advance(&self, by: Duration) {
        *self.0.lock() += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Now {
        Now::at(*self.0.lock())
    }

    fn unix(&self) -> i64 {
        MANUAL_EPOCH.saturating_add(i64::try_from(self.0.lock().as_secs()).unwrap_or(i64::MAX))
    }
}
