//! What the relay stores, and in which file. How a file is opened and written: [`holdfast_store`].

pub(crate) mod schema;

use std::path::Path;

pub use holdfast_store::{Store, StoreError};

use holdfast_store::Layout;

/// File of the store inside the data folder.
pub const FILE: &str = "relay.sqlite";

/// Opens or creates the relay's store in a folder. Blocks; the errors are those of [`Store::open`].
pub fn open(folder: &Path) -> Result<Store, StoreError> {
    Store::open(folder, &Layout { file: FILE, steps: schema::STEPS, reserve: None, page: holdfast_store::PAGE })
}
