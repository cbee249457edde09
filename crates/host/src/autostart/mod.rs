//! The operating system's own entry that starts the tray application at login. The entry is the only record: whether it is
//! on is read from there each time, because settings programs of the desktop change it too.

mod program;

#[cfg(any(test, all(unix, not(target_os = "macos"))))]
mod desktop_entry;
#[cfg(any(test, target_os = "macos"))]
mod launch_agent;
#[cfg(any(test, windows))]
mod run_key;

#[cfg(all(unix, not(target_os = "macos")))]
use desktop_entry::Entry;
#[cfg(target_os = "macos")]
use launch_agent::Entry;
#[cfg(windows)]
use run_key::registry::Entry;

use std::io;
use std::path::{Path, PathBuf};

use holdfast_core::limits;
use tokio_util::sync::CancellationToken;

use crate::status_hub::StatusHub;

pub use program::program;

/// Identifies the entry where the system wants a name for it; that of the desktop package.
#[cfg(any(test, target_os = "macos"))]
const IDENTIFIER: &str = "dev.holdfast.desktop";
/// The name of the program, of its desktop entry and of its icon.
const NAME: &str = "holdfast-desktop";
/// Starts hidden.
const ARGUMENT: &str = "--autostart";

/// The entry of one program.
#[derive(Debug, Clone)]
pub struct Autostart(Entry);

impl Autostart {
    /// The entry that starts `program`, whether or not it exists yet. An entry that names a program that is gone, or an
    /// older file of ours beside this one, names this one from now on; an entry that is off stays off.
    pub fn of(program: PathBuf) -> io::Result<Autostart> {
        let entry = Entry::of(program)?;
        if entry.repair()? {
            tracing::info!("the entry that starts Holdfast at login names this program now");
        }
        Ok(Autostart(entry))
    }

    /// Whether the system would start the program at the next login.
    pub fn is_on(&self) -> bool {
        self.0.is_on()
    }

    /// Makes the entry, or takes it away.
    pub fn set(&self, on: bool) -> io::Result<()> {
        self.0.set(on)
    }

    /// Keeps the status true until `stop`.
    pub(crate) async fn follow(self, hub: std::sync::Arc<StatusHub>, stop: CancellationToken) {
        let mut told = None;
        while !stop.is_cancelled() {
            let on = Some(self.is_on());
            if on != told {
                hub.app(|app| app.autostart = on);
                told = on;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(limits::AUTOSTART_POLL) => {}
            }
        }
    }
}

/// Whether an entry that names `named` should name `program`: the named one is gone, or is an older file of ours in the
/// same folder, which is what an update to a new file name leaves behind.
fn outdated(named: &Path, program: &Path) -> bool {
    if named == program {
        return false;
    }
    let Ok(old) = named.metadata() else { return true };
    let ours = |path: &Path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.to_lowercase().starts_with("holdfast"))
    };
    let older = || Some(old.modified().ok()? < program.metadata().ok()?.modified().ok()?);
    named.parent() == program.parent() && ours(named) && ours(program) && older() == Some(true)
}

/// The path as text, which entries are made of.
fn text(program: &Path) -> io::Result<&str> {
    program.to_str().ok_or_else(|| io::Error::other(format!("{} is not Unicode", program.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_outdated_when_its_program_is_gone_or_an_older_one_beside_ours() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, age: u64| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 - age);
            std::fs::File::create(&path).unwrap().set_modified(time).unwrap();
            path
        };
        let ours = file("Holdfast-2.AppImage", 1);
        assert!(!outdated(&ours, &ours));
        assert!(outdated(&dir.path().join("gone"), &ours));
        assert!(outdated(&file("holdfast-1.AppImage", 2), &ours));
        assert!(!outdated(&file("Holdfast-3.AppImage", 0), &ours), "a newer one was put there by somebody");
        assert!(!outdated(&file("other-1.AppImage", 2), &ours), "not ours");
        assert!(!outdated(&file("else/holdfast-desktop", 2), &ours), "another installation, which still starts");
    }
}
