//! Sockets between processes of this user on this machine, and JSON lines over them.

mod lines;

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

pub(crate) use lines::{Lines, write_line};
pub(crate) use system::{Accepted, Listener, Stream, accept, close, connect, listen};
