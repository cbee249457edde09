//! Accounts, devices and tokens: who may do what.

/// What is kept in memory of people.
#[derive(Debug, Default)]
pub(crate) struct People {}
