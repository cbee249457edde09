//! Stores of processes that do not run, changed as time or damage would.

use std::path::Path;

/// Carries a statement out in a store; how many rows it changed.
///
/// # Panics
/// If the store cannot be opened or changed.
pub fn change(store: &Path, statement: &str) -> usize {
    let store = rusqlite::Connection::open(store).expect("a store");
    store.execute(statement, []).expect("a change")
}
