//! The door as a named pipe: its default access list lets this user, and nobody else of the machine, write to it.

use std::io;
use std::path::Path;

use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions};

pub(super) type Stream = NamedPipeClient;

/// The name of the pipe.
pub(super) type Place = String;

/// A pipe that listens, and its name for the next one.
#[derive(Debug)]
pub(super) struct Listener {
    next: NamedPipeServer,
    name: String,
}

/// The folder's own name is a digest of service and bot.
fn name(folder: &Path) -> String {
    let seat = folder.file_name().unwrap_or_default().to_string_lossy();
    let user = std::env::var("USERNAME").unwrap_or_default();
    format!(r"\\.\pipe\holdfast-{user}-{seat}")
}

pub(super) fn listen(folder: &Path) -> io::Result<(Listener, Place)> {
    let name = name(folder);
    // The first of its name, so that nobody else answers for this seat.
    let next = ServerOptions::new().first_pipe_instance(true).reject_remote_clients(true).create(&name)?;
    Ok((Listener { next, name: name.clone() }, name))
}

pub(super) async fn accept(listener: &mut Listener) -> io::Result<NamedPipeServer> {
    listener.next.connect().await?;
    let next = ServerOptions::new().reject_remote_clients(true).create(&listener.name)?;
    Ok(std::mem::replace(&mut listener.next, next))
}

pub(super) async fn connect(folder: &Path) -> io::Result<(NamedPipeClient, Option<u32>)> {
    // Whose process listens is not asked: nothing is ended on this system.
    Ok((ClientOptions::new().open(name(folder))?, None))
}

pub(super) fn close(_: &Place) {
    // The name goes with the last handle.
}
