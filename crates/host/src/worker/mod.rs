//! The shell of the worker machine: durable operations of this machine.

mod ledger;
pub(crate) mod perform;
