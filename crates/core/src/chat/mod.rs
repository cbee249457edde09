//! Chat services, as far as nothing of one service is in it: what is said there, in which pieces, and what comes back.

mod chunk;
mod fences;
mod tables;

pub use chunk::{Chunk, chunks};
pub use fences::fences;
pub use tables::tables;
