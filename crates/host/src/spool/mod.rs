//! The output of a run on disk: written by its runner, read and sent by the worker.
//!
//! Each stream is a row of [segments](holdfast_core::run::Segment). What is acknowledged is removed by whole segments; the
//! last one stays, because it says how much was written.

mod reader;
mod writer;

pub use reader::{Read, Reader, remove, trim, written};
pub(crate) use writer::Writer;
