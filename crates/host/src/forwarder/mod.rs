//! What passes between agents and the channels of a bot while this process holds its seat: transcripts become messages, and
//! what people write reaches their agents.
//!
//! A [`Desk`] is there as long as the process; a forwarder from when the seat serves until it leaves or is cut off. It opens
//! the seat's store, makes the machines of [`holdfast_core::chat`] anew from it, and does what they say in one task.

mod desk;
mod store;

pub use desk::{Answered, CannotAsk, Desk, DeskError, Question};
