//! Sockets between processes of this user on this machine, and JSON lines over them.

mod lines;

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

pub(crate) use lines::{Lines, write_line};
#[cfg(windows)]
pub(crate) use system::Listener;
pub(crate) use system::{Stream, accept, close, connect, listen};
#[cfg(unix)]
pub(crate) use tokio::net::UnixListener as Listener;
