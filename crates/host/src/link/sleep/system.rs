//! Windows and macOS call us when they sleep, and wait a moment for the call to return.

use holdfast_core::limits;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::{Delay, Sleep};
use crate::platform::{self, Power};

struct Listener {
    events: mpsc::UnboundedSender<Sleep>,
    delay: Delay,
    threads: Handle,
}

/// Machines that run; one that ended is dropped when the next one comes.
static LISTENERS: Mutex<Vec<Listener>> = Mutex::new(Vec::new());

pub(super) fn watch(events: mpsc::UnboundedSender<Sleep>, delay: Delay) {
    let mut listeners = LISTENERS.lock();
    listeners.retain(|listener| !listener.events.is_closed());
    listeners.push(Listener { events, delay, threads: Handle::current() });
    drop(listeners);
    if let Err(error) = platform::on_power(told) {
        tracing::debug!(%error, "sleep will not be announced");
    }
}

fn told(power: Power) {
    for listener in &*LISTENERS.lock() {
        let event = match power {
            Power::Sleeps => Sleep::Announced,
            Power::Woke => Sleep::Over,
        };
        if listener.events.send(event).is_ok() && matches!(power, Power::Sleeps) {
            let allowed = listener.delay.0.notified();
            // Sleep comes anyway; the machine then notices it by its clocks.
            let _ = listener.threads.block_on(async { tokio::time::timeout(limits::SUSPEND_ACK_WAIT, allowed).await });
        }
    }
}
