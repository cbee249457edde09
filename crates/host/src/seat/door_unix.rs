//! The door as a socket in the seat's folder, for processes of this user only.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

pub(super) type Stream = UnixStream;

/// The path of the socket.
pub(super) type Place = PathBuf;

/// The longest path a socket may have, on the system that allows least.
const PATH_MAX: usize = 103;

fn socket(folder: &Path) -> PathBuf {
    folder.join("holder.sock")
}

/// A path to the socket that is short enough for the system, as long as the folder is open.
fn reach(folder: &Path) -> io::Result<(PathBuf, Option<File>)> {
    let path = socket(folder);
    if path.as_os_str().len() <= PATH_MAX {
        return Ok((path, None));
    }
    if cfg!(target_os = "linux") {
        use std::os::fd::AsRawFd as _;
        let open = File::open(folder)?;
        return Ok((PathBuf::from(format!("/proc/self/fd/{}/holder.sock", open.as_raw_fd())), Some(open)));
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{} is too long for a socket; HOLDFAST_STATE_DIR may name a shorter folder", path.display()),
    ))
}

pub(super) fn listen(folder: &Path) -> io::Result<(UnixListener, Place)> {
    let path = socket(folder);
    match fs::symlink_metadata(&path) {
        Ok(_) => fs::remove_file(&path)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    // Nobody else gets into the folder, so the mode may come a moment later.
    let (short, _open) = reach(folder)?;
    let listener = UnixListener::bind(short)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    Ok((listener, path))
}

pub(super) async fn accept(listener: &mut UnixListener) -> io::Result<UnixStream> {
    loop {
        let (stream, _) = listener.accept().await?;
        if same_user(&stream)?.is_some() {
            return Ok(stream);
        }
    }
}

pub(super) async fn connect(folder: &Path) -> io::Result<(UnixStream, Option<u32>)> {
    let path = socket(folder);
    let found = fs::symlink_metadata(&path)?;
    if !found.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a socket"));
    }
    let (short, _open) = reach(folder)?;
    let stream = UnixStream::connect(short).await?;
    match same_user(&stream)? {
        Some(pid) => Ok((stream, pid)),
        None => Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user listens there")),
    }
}

pub(super) fn close(place: &Place) {
    // Already gone is as good.
    let _ = fs::remove_file(place);
}

/// The process at the other end, if it is this user's.
#[allow(clippy::option_option, reason = "ours or not, and of ours the number where the system tells it")]
fn same_user(stream: &UnixStream) -> io::Result<Option<Option<u32>>> {
    let peer = stream.peer_cred()?;
    let ours = peer.uid() == nix::unistd::geteuid().as_raw();
    Ok(ours.then(|| peer.pid().and_then(|pid| u32::try_from(pid).ok())))
}
