//! Counts since the start, over all devices.

use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_core::control::Note;
use holdfast_core::operation::State;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// The live counters.
        #[derive(Debug, Default)]
        pub(super) struct Counters { $($name: AtomicU64),+ }

        /// The counters at one moment.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
        pub struct OperationCounts { $($(#[$doc])* pub $name: u64),+ }

        impl Counters {
            pub(super) fn view(&self) -> OperationCounts {
                OperationCounts { $($name: self.$name.load(Ordering::Relaxed)),+ }
            }
        }
    };
}

counters! {
    /// Operations admitted.
    operations_admitted,
    /// Operations that the store had lost and a worker gave back.
    operations_adopted,
    /// Times an operation was handed to a worker's socket, first or again.
    operations_sent,
    /// Operations that ran to their end.
    operations_completed,
    /// Operations that failed.
    operations_failed,
    /// Operations somebody cancelled.
    operations_cancelled,
    /// Operations never sent in their time.
    operations_expired,
    /// Operations whose outcome will not be known.
    operations_unknown,
    /// Bytes of output committed.
    operation_output_bytes,
    /// Times a worker became live.
    workers_recovered,
    /// Times a worker's socket was lost.
    workers_lost,
    /// Workers refused because another ledger is connected.
    workers_in_use,
}

impl Counters {
    pub(super) fn count(&self, note: &Note) {
        let counter = match note {
            Note::Live { .. } => &self.workers_recovered,
            Note::Away { .. } => &self.workers_lost,
            Note::InUse => &self.workers_in_use,
            Note::Admitted { .. } => &self.operations_admitted,
            Note::Adopted { .. } => &self.operations_adopted,
            Note::Sent { .. } => &self.operations_sent,
            Note::Ended { state, .. } => match state {
                State::Completed => &self.operations_completed,
                State::Failed => &self.operations_failed,
                State::Cancelled => &self.operations_cancelled,
                State::Expired => &self.operations_expired,
                _ => &self.operations_unknown,
            },
            Note::LedgerReplaced { .. } => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn committed(&self, bytes: usize) {
        self.operation_output_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}
