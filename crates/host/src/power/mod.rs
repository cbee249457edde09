//! Keeps the machine from falling asleep by itself while calls run, with mains power. A person who closes the lid or asks
//! for sleep is obeyed: the link then tells the relay (`link::sleep`), and calls go on after the wake.

mod mains;

#[cfg(target_os = "linux")]
#[path = "lock_linux.rs"]
mod lock;
#[cfg(not(target_os = "linux"))]
#[path = "lock_native.rs"]
mod lock;

use holdfast_core::limits;
use tokio::sync::watch;

pub use lock::Locks;
pub use mains::Mains;

/// Holds the machine awake while `busy` and `wanted`; ends when one of their senders is gone.
pub async fn keep_awake(
    locks: Locks,
    mains: Mains,
    mut busy: watch::Receiver<bool>,
    mut wanted: watch::Receiver<bool>,
) {
    let mut held = None;
    let mut told = false;
    let mut wait = limits::KEEP_AWAKE_AFTER;
    loop {
        let due = *busy.borrow_and_update() && *wanted.borrow_and_update();
        if !due {
            held = None;
            wait = limits::KEEP_AWAKE_AFTER;
        }
        tokio::select! {
            changed = busy.changed() => if changed.is_err() { return },
            changed = wanted.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(wait), if due => {
                wait = limits::MAINS_LOOK;
                if !mains.present() {
                    held = None;
                } else if held.is_none() {
                    match locks.hold().await {
                        Ok(lock) => held = Some(lock),
                        Err(error) if !std::mem::replace(&mut told, true) => {
                            tracing::info!("the machine may fall asleep while calls run: {error}");
                        }
                        Err(_) => {}
                    }
                }
            }
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
