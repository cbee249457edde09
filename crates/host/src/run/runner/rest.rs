//! What a runner that waits keeps in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Gives back what a runner does not need while it waits, as the last thing before its thread waits: whatever runs after that
/// stands in memory again, and the system reads around it.
#[derive(Debug, Clone, Default)]
pub(super) struct Rest(Arc<AtomicBool>);

impl Rest {
    /// Nothing happens: the next wait is to be a cheap one.
    pub(super) fn wanted(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// The thread is about to wait.
    pub(super) fn waits(&self) {
        if self.0.swap(false, Ordering::Relaxed) {
            #[cfg(target_os = "linux")]
            crate::memory::give_back();
        }
    }
}
