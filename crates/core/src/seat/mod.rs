//! The seat: who may speak for a bot. One process of this user on this machine holds it at a time.
//!
//! The operating system's lock on a file decides; everything else (the socket a holder listens on, the advert beside the
//! lock) is for asking and for showing. [`Seat`] decides when to lock, connect, finish and let go; its shell is in
//! `holdfast-host`.

mod claim;
mod io;
mod machine;
mod peer;

pub use io::{ConnId, Failed, Heard, Input, LockTry, Look, Output, PeerId, SeatView, Told, Unusable, Want};
pub use machine::Seat;
pub use peer::{Advert, Answer, Ask, Record, Reserved, Taker};

#[cfg(test)]
mod tests;
