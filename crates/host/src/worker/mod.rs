//! The shell of the worker machine: durable operations of this machine.
//!
//! One task ([`run`]) owns the socket, the ledger and the tries; each try of a run has a task of its own ([`tend`]).

mod ledger;
pub(crate) mod perform;
mod report;
mod rules;
mod run;
mod strays;
mod tend;
#[cfg(test)]
mod tests;
mod tries;
mod types;

pub(crate) use ledger::Aside;
pub use ledger::{Ledger, Opened};
pub(crate) use run::spawn;
pub use types::WorkerError;
pub(crate) use types::{WorkerHandle, WorkerObserver, WorkerOptions};
