//! The shell of the worker machine: durable operations of this machine.

pub(crate) mod perform;
