//! What of the seat was told: each true change once, whatever a snapshot between them showed.

use super::texts::{self, Words};
use crate::status::{SeatState, SeatStatus};

/// One thing to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Acquired(u64),
    Superseded,
    Failed,
    Frozen,
}

#[derive(Debug, Default)]
pub(super) struct SeatWatch {
    /// The state before; `None` before the first snapshot.
    before: Option<SeatState>,
    /// The generation in which this process spoke last, told or found at the start.
    spoke: Option<u64>,
    /// Another process took the seat from this one, and this is not told yet.
    superseded: bool,
    /// The failure, or the question, that stands is told.
    failed: bool,
    frozen: bool,
}

impl SeatWatch {
    pub(super) fn observe(&mut self, seat: Option<&SeatStatus>) {
        let state = seat.map_or(SeatState::Off, |seat| seat.state);
        let holds = |state| matches!(state, SeatState::Connecting | SeatState::Serving | SeatState::Draining);
        match (self.before, seat) {
            // What is so at the start did not just happen.
            (None, Some(seat)) if state == SeatState::Serving => self.spoke = Some(seat.generation),
            // Who lets go of the seat has no reason to give; who lost it has.
            (Some(before), Some(seat)) if holds(before) && state == SeatState::Off => {
                self.superseded = seat.reason.is_some();
            }
            _ => self.superseded &= state == SeatState::Off,
        }
        self.failed &= state == SeatState::Failed;
        self.frozen &= seat.is_some_and(|seat| seat.frozen);
        self.before = Some(state);
    }

    /// The next thing to tell, and its words.
    pub(super) fn untold(&self, seat: Option<&SeatStatus>) -> Option<(Said, Words)> {
        let seat = seat?;
        if self.superseded {
            return Some((Said::Superseded, texts::seat_superseded(seat)));
        }
        match seat.state {
            SeatState::Serving if self.spoke != Some(seat.generation) => {
                Some((Said::Acquired(seat.generation), texts::seat_acquired(seat)))
            }
            SeatState::Failed if !self.failed => Some((Said::Failed, texts::seat_failed(seat))),
            _ if seat.frozen && !self.frozen => Some((Said::Frozen, texts::seat_frozen())),
            _ => None,
        }
    }

    pub(super) fn told(&mut self, said: Said) {
        match said {
            Said::Acquired(generation) => self.spoke = Some(generation),
            Said::Superseded => self.superseded = false,
            Said::Failed => self.failed = true,
            Said::Frozen => self.frozen = true,
        }
    }
}
