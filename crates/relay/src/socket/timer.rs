//! The timer of a room: a task that exists while something is due, and is woken only when something is due earlier.

use std::sync::{Arc, Weak};
use std::time::Duration;

use holdfast_core::limits;
use holdfast_core::time::Now;
use tokio::runtime::Handle;

use super::Room;

/// When the timer's task of a room looks next (boot time), if it runs. Lives under the room's lock.
#[derive(Default)]
pub(crate) struct Alarm(Option<Duration>);

impl Alarm {
    /// The machine has something due in `left`, or nothing.
    pub(crate) fn set<R: Room>(&mut self, room: &Weak<R>, runtime: &Handle, now: Now, left: Option<Duration>) {
        let Some(left) = left.map(bounded) else { return };
        let due = now.boot + left;
        match self.0 {
            Some(armed) if armed <= due => {}
            Some(_) => {
                self.0 = Some(due);
                if let Some(room) = room.upgrade() {
                    room.earlier().notify_one();
                }
            }
            None => {
                if let Some(room) = room.upgrade() {
                    self.0 = Some(due);
                    run(room, runtime, left);
                }
            }
        }
    }

    /// The task had its turn: how long it sleeps now. Nothing: it ends.
    pub(crate) fn next(&mut self, now: Now, left: Option<Duration>) -> Option<Duration> {
        let left = left.map(bounded);
        self.0 = left.map(|left| now.boot + left);
        left
    }
}

/// The timer never sleeps longer, so that awake time keeps its pace and a sleep of this machine is noticed.
fn bounded(left: Duration) -> Duration {
    left.min(limits::ROOM_TURN_MAX)
}

fn run<R: Room>(room: Arc<R>, runtime: &Handle, first: Duration) {
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
