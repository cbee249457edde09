//! A socket as a file, for processes of this user only.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// The end of who connected.
pub(crate) type Stream = UnixStream;
/// The end of who listens.
pub(crate) type Accepted = UnixStream;
/// Who listens.
pub(crate) type Listener = UnixListener;

/// The longest path a socket may have, on the system that allows least.
const PATH_MAX: usize = 103;

/// A path to the socket that is short enough for the system, as long as its folder is open.
fn reach(path: &Path) -> io::Result<(PathBuf, Option<File>)> {
    if path.as_os_str().len() <= PATH_MAX {
        return Ok((path.to_path_buf(), None));
    }
    if cfg!(target_os = "linux")
        && let (Some(folder), Some(name)) = (path.parent(), path.file_name())
    {
        use std::os::fd::AsRawFd as _;
        let open = File::open(folder)?;
        return Ok((Path::new("/proc/self/fd").join(open.as_raw_fd().to_string()).join(name), Some(open)));
    }
    let why = format!("{} is too long for a socket; HOLDFAST_STATE_DIR may name a shorter folder", path.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// Listens at a path in a folder that nobody else gets into. What stood there is removed: whoever calls this knows that
/// its holder is gone.
pub(crate) fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::symlink_metadata(path) {
        Ok(_) => fs::remove_file(path)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    // Nobody else gets into the folder, so the mode may come a moment later.
    let (short, _open) = reach(path)?;
    let listener = UnixListener::bind(short)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// The next connection of a process of this user.
pub(crate) async fn accept(listener: &mut UnixListener) -> io::Result<UnixStream> {
    loop {
        let (stream, _) = listener.accept().await?;
        if same_user(&stream)?.is_some() {
            return Ok(stream);
        }
    }
}

/// Connects to a process of this user, and says which it is where the system tells.
pub(crate) async fn connect(path: &Path) -> io::Result<(UnixStream, Option<u32>)> {
    let wanted = path.to_path_buf();
    let looked = tokio::task::spawn_blocking(move || {
        let found = fs::symlink_metadata(&wanted)?;
        if !found.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a socket"));
        }
        reach(&wanted)
    });
    let (short, _open) = looked.await.map_err(io::Error::other)??;
    let stream = UnixStream::connect(short).await?;
    match same_user(&stream)? {
        Some(pid) => Ok((stream, pid)),
        None => Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user listens there")),
    }
}

/// Takes the name away.
pub(crate) fn close(path: &Path) {
    // Already gone is as good.
    let _ = fs::remove_file(path);
}

/// The process at the other end, if it is this user's.
#[allow(clippy::option_option, reason = "ours or not, and of ours the number where the system tells it")]
fn same_user(stream: &UnixStream) -> io::Result<Option<Option<u32>>> {
    let peer = stream.peer_cred()?;
    let ours = peer.uid() == nix::unistd::geteuid().as_raw();
    Ok(ours.then(|| peer.pid().and_then(|pid| u32::try_from(pid).ok())))
}
