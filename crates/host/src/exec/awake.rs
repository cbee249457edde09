//! Waiting in awake time, by which a call's deadline counts: a process that was stopped or a machine that slept is not late.

use std::time::Duration;

use holdfast_core::limits;
use tokio::time::Instant;

/// Waits until this process was awake for `time`. As on the link, a turn counts for at most [`limits::AWAKE_STEP_MAX`].
pub(crate) async fn pass(time: Duration) {
    let mut left = time;
    while !left.is_zero() {
        let turn = Instant::now();
        tokio::time::sleep(left.min(limits::SHELL_TURN_MAX)).await;
        left = after(turn.elapsed(), left);
    }
}

/// Does work, and tells for how long this process was awake meanwhile.
pub(crate) async fn measured<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let mut awake = Duration::ZERO;
    let mut turn = Instant::now();
    tokio::pin!(work);
    loop {
        let done = tokio::select! {
            biased;
            done = &mut work => Some(done),
            () = tokio::time::sleep(limits::SHELL_TURN_MAX) => None,
        };
        awake += turn.elapsed().min(limits::AWAKE_STEP_MAX);
        match done {
            Some(done) => return (done, awake),
            None => turn = Instant::now(),
        }
    }
}

/// What is left of a wait after a turn.
fn after(turn: Duration, left: Duration) -> Duration {
    left.saturating_sub(turn.min(limits::AWAKE_STEP_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_is_measured_turn_by_turn() {
        let (done, took) = measured(async {
            tokio::time::sleep(Duration::from_millis(7_300)).await;
            5
        })
        .await;
        assert_eq!((done, took), (5, Duration::from_millis(7_300)));
    }

    #[test]
    fn a_freeze_longer_than_the_deadline_takes_one_step_of_it() {
        let s = Duration::from_secs;
        assert_eq!(after(s(1), s(60)), s(59));
        assert_eq!(after(s(1000), s(60)), s(60) - limits::AWAKE_STEP_MAX);
        assert_eq!(after(s(2), s(1)), s(0));
    }
}
