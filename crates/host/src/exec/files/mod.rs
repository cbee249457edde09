//! Tools that read and change files.

mod read;
mod workspace;

pub(super) use read::{Nothing, PathOnly, here, list_dir, list_roots, read_file};
pub(super) use workspace::{Access, Spot, Workspace};
