//! One side's two clocks.

use std::time::Duration;

use holdfast_core::limits;
use holdfast_core::time::Now;

/// Boot time is everybody's; awake time stands still while this side is frozen.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    last: Duration,
    awake: Duration,
    frozen: bool,
}

impl Clock {
    pub(super) fn new(t: Duration) -> Clock {
        Clock { last: t, awake: t, frozen: false }
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen
    }

    pub(super) fn freeze(&mut self, t: Duration) {
        self.turn(t);
        self.frozen = true;
    }

    /// As the shells do it: one turn adds at most so much.
    pub(super) fn thaw(&mut self, t: Duration) {
        self.awake += (t - self.last).min(limits::AWAKE_STEP_MAX);
        self.last = t;
        self.frozen = false;
    }

    /// This moment; not to be asked of a frozen side.
    pub(super) fn turn(&mut self, t: Duration) -> Now {
        *self = Clock { awake: self.peek(t).awake, last: t, frozen: self.frozen };
        Now { boot: t, awake: self.awake }
    }

    /// This moment, without taking it.
    pub(super) fn peek(&self, t: Duration) -> Now {
        Now { boot: t, awake: self.awake + t.saturating_sub(self.last) }
    }
}
