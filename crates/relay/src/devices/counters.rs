//! Counts since the start, over all devices.

use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_core::code::Code;
use holdfast_core::switchboard::{EndKind, Loss, Note};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// The live counters.
        #[derive(Debug, Default)]
        pub struct Counters { $($name: AtomicU64),+ }

        /// The counters at one moment.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
        pub struct CountersView { $($(#[$doc])* pub $name: u64),+ }

        impl Counters {
            /// Reads them all.
            pub fn view(&self) -> CountersView {
                CountersView { $($name: self.$name.load(Ordering::Relaxed)),+ }
            }
        }
    };
}

counters! {
    /// Calls sent to a device.
    calls_started,
    /// Calls that ended with a result.
    calls_completed,
    /// Calls whose tool failed.
    calls_failed,
    /// Calls somebody stopped.
    calls_cancelled,
    /// Of the failed ones: by deadline.
    calls_timed_out,
    /// Calls never sent.
    calls_expired,
    /// Calls sent of which no word came.
    calls_unknown,
    /// Times a call lost its link.
    calls_detached,
    /// Times a call was bound to a proven link again.
    calls_rebound,
    /// Results nobody waited for.
    unmatched_results,
    /// Results handed over and not taken.
    undelivered_results,
    /// Sockets that became ready.
    sockets_ready,
    /// Sockets lost.
    sockets_lost,
    /// Of them: for silence.
    sockets_silent,
    /// Of them: a rule was broken.
    protocol_errors,
    /// Of them: a frame was missing.
    frame_gaps,
    /// Instances refused because the device answers on another socket.
    device_in_use,
}

impl Counters {
    pub(super) fn count(&self, note: &Note) {
        let add = |counter: &AtomicU64| {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        match note {
            Note::Sent { .. } => add(&self.calls_started),
            Note::Detached { .. } => add(&self.calls_detached),
            Note::Rebound { .. } => add(&self.calls_rebound),
            Note::Ended { kind, code, .. } => {
                add(match kind {
                    EndKind::Done => &self.calls_completed,
                    EndKind::Failed => &self.calls_failed,
                    EndKind::Cancelled => &self.calls_cancelled,
                    EndKind::Expired => &self.calls_expired,
                    EndKind::Unknown => &self.calls_unknown,
                });
                if *code == Some(Code::Timeout) {
                    add(&self.calls_timed_out);
                }
            }
            Note::Unmatched => add(&self.unmatched_results),
            Note::Undelivered { .. } => add(&self.undelivered_results),
            Note::Ready { .. } => add(&self.sockets_ready),
            Note::Lost { why, .. } => {
                add(&self.sockets_lost);
                match why {
                    Loss::Silence => add(&self.sockets_silent),
                    Loss::Gap => add(&self.frame_gaps),
                    Loss::Protocol => add(&self.protocol_errors),
                    _ => {}
                }
            }
            Note::InUse => add(&self.device_in_use),
            Note::Queued { .. } | Note::Suspending | Note::GraceOver => {}
        }
    }
}
