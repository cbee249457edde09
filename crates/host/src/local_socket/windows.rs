//! A socket as a named pipe: its default access list lets this user, and nobody else of the machine, write to it.

use std::io;
use std::path::Path;

use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions};

/// The end of who connected.
pub(crate) type Stream = NamedPipeClient;
/// The end of who listens.
pub(crate) type Accepted = NamedPipeServer;

/// A pipe that listens, and its name for the next one.
#[derive(Debug)]
pub(crate) struct Listener {
    next: NamedPipeServer,
    name: String,
}

/// The last two words of the path tell it from every other.
fn name(path: &Path) -> String {
    let word = |of: Option<&Path>| of.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let user = std::env::var("USERNAME").unwrap_or_default();
    format!(r"\\.\pipe\holdfast-{user}-{}-{}", word(path.parent()), word(Some(path)))
}

pub(crate) fn listen(path: &Path) -> io::Result<Listener> {
    let name = name(path);
    // The first of its name, so that nobody else answers here.
    let next = ServerOptions::new().first_pipe_instance(true).reject_remote_clients(true).create(&name)?;
    Ok(Listener { next, name })
}

pub(crate) async fn accept(listener: &mut Listener) -> io::Result<NamedPipeServer> {
    listener.next.connect().await?;
    let next = ServerOptions::new().reject_remote_clients(true).create(&listener.name)?;
    Ok(std::mem::replace(&mut listener.next, next))
}

pub(crate) async fn connect(path: &Path) -> io::Result<(NamedPipeClient, Option<u32>)> {
    // Whose process listens is not asked: nothing is ended on this system.
    Ok((ClientOptions::new().open(name(path))?, None))
}

pub(crate) fn close(_: &Path) {
    // The name goes with the last handle.
}
