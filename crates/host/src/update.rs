//! A newer version put in this program's place while it runs. The process goes on with the file it began with; a restart
//! lets calls end and begins with the new one.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::SystemTime;

use holdfast_core::limits;
use holdfast_core::status::WarningCode;
use tokio_util::sync::CancellationToken;

use crate::status_hub::StatusHub;

/// Identity of one state of the file.
fn look(program: &Path) -> Option<(u64, Option<SystemTime>, u64)> {
    let meta = program.metadata().ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&meta);
    #[cfg(not(unix))]
    let inode = 0;
    Some((meta.len(), meta.modified().ok(), inode))
}

/// Tells once another file has taken the program's place, until `stop`.
pub(crate) async fn follow(program: PathBuf, hub: Arc<StatusHub>, stop: CancellationToken) {
    let began = look(&program);
    let mut seen = began;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(limits::UPDATE_POLL) => {}
        }
        let now = look(&program);
        // Seen twice, so that it is not one that is being written. A file that is gone is no newer version.
        if now.is_some() && now != began && now == seen {
            let text = "a newer Holdfast is installed; this process is the old one until it restarts";
            hub.warn(WarningCode::RestartToUpdate, text);
            return;
        }
        seen = now;
    }
}

/// Begins anew with the file that now stands there and the arguments of this process. Returns only why it could not.
pub fn begin_anew(program: &Path) -> io::Error {
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1));
    #[cfg(unix)]
    return std::os::unix::process::CommandExt::exec(&mut command);
    #[cfg(not(unix))]
    match command.spawn() {
        Ok(_) => std::process::exit(0),
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_core::status::AppStatus;

    #[tokio::test(start_paused = true)]
    async fn a_new_file_in_the_programs_place_is_told_once_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("holdfast");
        std::fs::write(&program, "old").unwrap();
        let (hub, stop) = (StatusHub::new(AppStatus::default()), CancellationToken::new());
        let following = tokio::spawn(follow(program.clone(), Arc::clone(&hub), stop.clone()));
        let told = || hub.snapshot().health.iter().any(|warning| warning.code == WarningCode::RestartToUpdate);
        let look = async || tokio::time::sleep(limits::UPDATE_POLL + std::time::Duration::from_millis(1)).await;
        look().await;
        std::fs::remove_file(&program).unwrap();
        look().await;
        look().await;
        assert!(!told(), "it is only gone");
        std::fs::write(&program, "half a new").unwrap();
        look().await;
        std::fs::write(&program, "a whole new one").unwrap();
        look().await;
        assert!(!told(), "it still changes");
        look().await;
        assert!(told());
        following.await.unwrap();
    }
}
