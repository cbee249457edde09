//! Chat services, as far as nothing of one service is in it: what is said there, in which pieces, and what comes back.

pub mod asks;
mod chunk;
mod commits;
mod fences;
pub mod inbox;
pub mod outbox;
pub mod signs;
mod tables;
mod words;

pub use chunk::{Chunk, chunks};
pub use commits::{CommitError, Ticket};
pub use fences::fences;
pub use tables::tables;
pub use words::{Attachment, Button, ChannelId, Click, Draft, Incoming, Look, MessageId, Scope, SendError, UserId};
