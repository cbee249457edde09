//! A write on its way: run inside the transaction, then settled with the fate of that transaction.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::Connection;

use crate::StoreError;

/// Which writes still pass when there is little room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Refused first.
    Ordinary,
    /// The end of something that was begun: it has the reserve, and can be run again.
    Final,
}

/// What became of one run inside the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ran {
    Keep,
    Undo,
    /// A final write found no room.
    Full,
}

/// Any write, its types hidden.
pub(crate) trait Write: Send {
    fn class(&self) -> Class;
    fn run(&mut self, connection: &Connection) -> Ran;
    /// Tells the outcome.
    fn settle(self: Box<Self>, commit: Result<(), StoreError>);
}

/// A write in the line.
pub(crate) type Job = Box<dyn Write>;

struct Typed<F, D, T, E> {
    class: Class,
    work: F,
    full: fn(&E) -> bool,
    outcome: Option<Result<T, E>>,
    done: D,
}

/// A write that runs once.
pub(crate) fn ordinary<T, E, F, D>(work: F, done: D) -> Job
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
    F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    D: FnOnce(Result<T, E>) + Send + 'static,
{
    let mut work = Some(work);
    let work = move |connection: &Connection| match work.take() {
        Some(work) => work(connection),
        None => Err(StoreError::Closed.into()),
    };
    Box::new(Typed { class: Class::Ordinary, work, full: |_| false, outcome: None, done })
}

/// A write that is run again when its first commit found no room.
pub(crate) fn last<T, F, D>(work: F, done: D) -> Job
where
    T: Send + 'static,
    F: FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
    D: FnOnce(Result<T, StoreError>) + Send + 'static,
{
    Box::new(Typed { class: Class::Final, work, full: |error| *error == StoreError::Full, outcome: None, done })
}

impl<F, D, T, E> Write for Typed<F, D, T, E>
where
    T: Send,
    E: From<StoreError> + Send,
    F: FnMut(&Connection) -> Result<T, E> + Send,
    D: FnOnce(Result<T, E>) + Send,
{
    fn class(&self) -> Class {
        self.class
    }

    fn run(&mut self, connection: &Connection) -> Ran {
        // A defect in one write must not take the store away from everybody.
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.work)(connection)))
            .unwrap_or_else(|_| Err(StoreError::Sqlite("a write panicked".into()).into()));
        match self.outcome.insert(outcome) {
            Ok(_) => Ran::Keep,
            Err(error) if (self.full)(error) => Ran::Full,
            Err(_) => Ran::Undo,
        }
    }

    fn settle(self: Box<Self>, commit: Result<(), StoreError>) {
        let outcome = match (self.outcome, commit) {
            (Some(Err(own)), _) => Err(own),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (_, Err(store)) => Err(store.into()),
            (None, Ok(())) => Err(StoreError::Closed.into()),
        };
        (self.done)(outcome);
    }
}
