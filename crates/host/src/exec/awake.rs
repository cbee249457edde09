//! Waiting in awake time, by which a call's deadline counts: a process that was stopped or a machine that slept is not late.

use std::time::Duration;

use holdfast_core::limits;
use tokio::time::Instant;

/// Waits until this process was awake for `time`. As on the link, a turn counts for at most [`limits::AWAKE_STEP_MAX`].
pub(super) async fn pass(time: Duration) {
    let mut left = time;
    while !left.is_zero() {
        let turn = Instant::now();
        tokio::time::sleep(left.min(limits::SHELL_TURN_MAX)).await;
        left = after(turn.elapsed(), left);
    }
}

/// What is left of a wait after a turn.
fn after(turn: Duration, left: Duration) -> Duration {
    left.saturating_sub(turn.min(limits::AWAKE_STEP_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freeze_longer_than_the_deadline_takes_one_step_of_it() {
        let s = Duration::from_secs;
        assert_eq!(after(s(1), s(60)), s(59));
        assert_eq!(after(s(1000), s(60)), s(60) - limits::AWAKE_STEP_MAX);
        assert_eq!(after(s(2), s(1)), s(0));
    }
}
