//! Tools that read and change files.

mod find;
mod image;
mod patch;
mod read;
mod workspace;
mod write;

pub(super) use find::{list_files, search_text};
pub(super) use image::view_image;
pub(super) use patch::apply_patch;
pub(super) use read::{Nothing, PathOnly, here, list_dir, list_roots, read_file};
pub(super) use workspace::Workspace;
pub(crate) use workspace::{Access, Spot, open_file};
pub(super) use write::{edit_file, write_file};
