//! The timer of a room: a task that exists while something is due, and is woken only when something is due earlier.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::limits;
use tokio::runtime::Handle;

use super::Room;

/// The timer never sleeps longer, so that awake time keeps its pace and a sleep of this machine is noticed.
pub(crate) fn bounded(left: Duration) -> Duration {
    left.min(limits::ROOM_TURN_MAX)
}

/// Starts the task. The room marks itself armed before, and unarmed when a turn finds nothing due.
pub(crate) fn run<R: Room>(room: Arc<R>, runtime: &Handle, first: Duration) {
    runtime.spawn(async move {
        let mut left = first;
        loop {
            let began = room.pace().now().boot;
            tokio::select! {
                () = tokio::time::sleep(left) => {
                    let late = room.pace().now().boot.saturating_sub(began + left);
                    if late > limits::STALL_NOTICED {
                        // This process did not run. What the sockets received meanwhile is read first, else our own stall
                        // would look like their silence.
                        tokio::time::sleep(limits::STALL_NOTICED).await;
                    }
                }
                () = room.earlier().notified() => {}
            }
            match room.turn() {
                Some(next) => left = next,
                None => return,
            }
        }
    });
}
