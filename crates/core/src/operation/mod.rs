//! Durable operations: what the relay (the *control* side) and the worker call the same thing.
//!
//! An *operation* is work that must not be lost or done twice. Its identity is minted by the relay and stays the same
//! through every reconnect, crash and repetition; its [`Digest`] tells a repetition from a conflict. What an operation asks
//! is a [`Request`], how it stands a [`State`], how it ended an [`Outcome`].

pub mod bytes_text;
mod check;
mod digest;
mod needs;
mod outcome;
mod request;

pub use check::BadRequest;
pub use digest::Digest;
pub use outcome::{Exit, Failure, Outcome, State, Stream, Streams};
pub use request::{Command, File, Kind, OnFull, OnLeaseExpiry, Operation, Project, Request};
