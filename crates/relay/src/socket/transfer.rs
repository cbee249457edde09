//! Watching the transfer rule ([`too_slow`]) on a socket: a frame that is read or written too slowly is dead.

use std::future::Future as _;
use std::pin::Pin;
use std::task::Context;

use holdfast_core::limits;
use holdfast_core::wire::too_slow;
use tokio::time::{Instant, Sleep};

use super::wire::Meter;

/// Watches the frame in transfer, if there is one. Costs a timer only while a frame is neither whole nor written.
#[derive(Default)]
pub(super) struct Transfer {
    window: Option<Window>,
    reads: u64,
    writes: u64,
}

struct Window {
    over: Pin<Box<Sleep>>,
    read: u64,
    written: u64,
    reads: u64,
    writes: u64,
}

impl Transfer {
    /// A whole frame was read.
    pub(super) fn read(&mut self) {
        self.reads += 1;
    }

    /// Everything was written.
    pub(super) fn wrote(&mut self) {
        self.writes += 1;
    }

    /// Whether the frame that is being read or written was too slow over the last window. Wakes the task at its end.
    pub(super) fn too_slow(&mut self, cx: &mut Context<'_>, meter: &Meter, reading: bool, writing: bool) -> bool {
        if !reading && !writing {
            self.window = None;
            return false;
        }
        loop {
            let Transfer { window, reads, writes } = self;
            let window = window.get_or_insert_with(|| Window {
                over: Box::pin(tokio::time::sleep_until(Instant::now() + limits::TRANSFER_WINDOW)),
                read: meter.read(),
                written: meter.written(),
                reads: *reads,
                writes: *writes,
            });
            if window.over.as_mut().poll(cx).is_pending() {
                return false;
            }
            let slow_read = reading && window.reads == *reads && too_slow(meter.read() - window.read);
            let slow_write = writing && window.writes == *writes && too_slow(meter.written() - window.written);
            if slow_read || slow_write {
                return true;
            }
            self.window = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;
    use std::time::Duration;

    use super::*;

    const S: Duration = Duration::from_secs(1);

    /// Whether the frame is found too slow while `each_second` happens, and after how many seconds.
    async fn found(
        reading: bool,
        writing: bool,
        mut each_second: impl FnMut(&Meter, &mut Transfer, u64),
    ) -> Option<u64> {
        let (meter, mut transfer) = (Meter::default(), Transfer::default());
        for second in 0..100 {
            let slow = poll_fn(|cx| Poll::Ready(transfer.too_slow(cx, &meter, reading, writing))).await;
            if slow {
                return Some(second);
            }
            each_second(&meter, &mut transfer, second);
            tokio::time::sleep(S).await;
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_slower_than_the_rate_is_found_at_the_end_of_the_window() {
        assert_eq!(found(true, false, |_, _, _| {}).await, Some(30));
        assert_eq!(found(true, false, |meter, _, _| meter.add_read(4095, S)).await, Some(30));
        assert_eq!(found(false, true, |meter, _, _| meter.add_written(4095)).await, Some(30));
        assert_eq!(found(false, true, |meter, _, _| meter.add_read(1 << 20, S)).await, Some(30), "each way by itself");
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_at_the_rate_or_whole_within_the_window_lives() {
        assert_eq!(found(true, false, |meter, _, _| meter.add_read(4097, S)).await, None);
        assert_eq!(found(true, false, |_, transfer, _| transfer.read()).await, None);
        assert_eq!(found(false, true, |_, transfer, _| transfer.wrote()).await, None);
        assert_eq!(found(false, false, |_, _, _| {}).await, None);
    }
}
