//! Reading the clocks, and a clock that a test moves by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use holdfast_core::time::Now;
use parking_lot::Mutex;

/// Where the relay reads time. Expiry that is stored uses the calendar; waiting in memory uses [`Now`].
pub trait Clock: Send + Sync + std::fmt::Debug + 'static {
    /// Boot and awake time since the process started.
    fn now(&self) -> Now;
    /// Seconds since 1970.
    fn unix(&self) -> i64;
    /// A moment that another process of the same boot can tell its distance from, whatever happens to the calendar; `None`
    /// where boots cannot be told apart.
    fn boot(&self) -> Option<BootMoment>;
}

/// A moment of one boot of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootMoment {
    /// Tells the boot from any other.
    pub boot: Arc<str>,
    /// Since the boot, sleep included.
    pub at: Duration,
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    boot: Duration,
    awake: Instant,
    boot_id: Option<Arc<str>>,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { boot: boot_reading().unwrap_or_default(), awake: Instant::now(), boot_id: boot_id() }
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

#[cfg(target_os = "linux")]
fn boot_id() -> Option<Arc<str>> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().into()).filter(|id: &Arc<str>| !id.is_empty())
}

#[cfg(target_os = "macos")]
fn boot_id() -> Option<Arc<str>> {
    let said = std::process::Command::new("/usr/sbin/sysctl").args(["-n", "kern.bootsessionuuid"]).output().ok()?;
    let id = String::from_utf8(said.stdout).ok()?;
    Some(id.trim().into()).filter(|id: &Arc<str>| said.status.success() && !id.is_empty())
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn boot_id() -> Option<Arc<str>> {
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

    fn boot(&self) -> Option<BootMoment> {
        Some(BootMoment { boot: self.boot_id.clone()?, at: boot_reading()? })
    }
}

/// A clock that stands still until it is moved; for tests of expiry.
#[derive(Debug)]
pub struct ManualClock {
    since: Mutex<Duration>,
    /// What the calendar is ahead, in seconds.
    ahead: AtomicI64,
}

/// The calendar of a [`ManualClock`] starts here: 2026-01-01.
const MANUAL_EPOCH: i64 = 1_767_225_600;

impl Default for ManualClock {
    fn default() -> Self {
        ManualClock { since: Mutex::new(Duration::from_secs(1)), ahead: AtomicI64::new(0) }
    }
}

impl ManualClock {
    /// Moves all clocks forward.
    pub fn advance(&self, by: Duration) {
        *self.since.lock() += by;
    }

    /// Sets the calendar, and no other clock, forward or back by so many seconds.
    pub fn set_calendar(&self, by: i64) {
        self.ahead.fetch_add(by, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Now {
        Now::at(*self.since.lock())
    }

    fn unix(&self) -> i64 {
        let since = i64::try_from(self.since.lock().as_secs()).unwrap_or(i64::MAX);
        MANUAL_EPOCH.saturating_add(since).saturating_add(self.ahead.load(Ordering::Relaxed))
    }

    fn boot(&self) -> Option<BootMoment> {
        Some(BootMoment { boot: "manual".into(), at: *self.since.lock() })
    }
}
