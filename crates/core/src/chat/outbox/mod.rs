//! What is said in channels: every message is in custody from the moment its transcript was read until the service has it,
//! through lost answers, crashes and hand-over. Nothing is posted twice, and what is not posted is told.
//!
//! [`Outbox`] is one holder's whole machine: it is made from what the seat's store has when the holder begins to serve, and
//! ends with it. Rules that everything here rests on:
//!
//! - A message is committed, with the place in its transcript that was read, before it is first sent, and never changed.
//! - A channel is a lane: one send is under way in it, and the next begins only when the end of the last is committed. So
//!   after a crash only the first message of each lane may have been sent, and the channel is asked whether it was.
//! - One commit is under way; what comes meanwhile goes with the next. A failed one is made again as it was. So a cursor is
//!   never committed before what it passed over.
//!
//! Parts: `record` names what is durable; `lane` is one channel; `sending` is what becomes of sends and comparisons,
//! `intake` how entries become messages and which are too old, `people` what is shown and set going again.

mod intake;
mod io;
mod lane;
mod machine;
mod people;
mod record;
mod sending;
#[cfg(test)]
mod tests;

pub use io::{Attempt, Entry, Input, LaneView, OutboxView, Output, Posted, Told, Trouble};
pub use machine::Outbox;
pub use record::{Change, Key, LaneRow, Record, Standing, Stored};
