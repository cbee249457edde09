//! Removing what Holdfast keeps on this machine. Only entries that Holdfast makes are touched: a data folder may hold
//! somebody else's files too, and a workspace is a person's own.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use crate::channel;
use crate::config::{self, Config};
use crate::engines;
use crate::files::FileError;
use crate::lock::DataLock;
use crate::paths::Dirs;
use crate::secrets::Secrets;

/// What stands in a data folder, but for the lock, which belongs to whoever removes.
const ENTRIES: [(&str, &str); 13] = [
    ("secrets.json", "credentials"),
    ("folder-id", "the folder's id"),
    ("relay", "the relay's accounts, devices, grants and keys"),
    ("outbox", "results that wait for the relay"),
    ("results", "big results that wait for clients"),
    ("calls", "marks of running programs"),
    ("worker", "the ledger of durable operations"),
    ("runs", "programs of durable operations, which end with it, and their output"),
    ("home", "the home folder of programs that clients ran"),
    ("outages.json", "the outages of the last day"),
    ("stopped.json", "which engines were stopped"),
    ("api.json", "the address of a process that is gone"),
    ("logs", "logs"),
];

/// What a reset removes, in plain words: paths that exist, and what they are.
pub fn found(dirs: &Dirs, all: bool) -> Vec<(PathBuf, &'static str)> {
    let entries = ENTRIES.iter().map(|(name, what)| (dirs.data.join(name), *what));
    let config = all.then(|| (dirs.config_file(), "the configuration"));
    entries.chain(config).filter(|(path, _)| path.symlink_metadata().is_ok()).collect()
}

/// Removes it all, credentials in the system's keyring too. Whoever calls owns the data folder. May block for a while.
pub fn erase(dirs: &Dirs, all: bool, _owned: &DataLock) -> Result<(), FileError> {
    // What the keyring holds is named after the configuration; one that cannot be read names nothing.
    let config = config::read(&dirs.config_file()).unwrap_or_default();
    if let Ok(secrets) = Secrets::open(&dirs.data, config.secrets.store) {
        for name in credentials(&config) {
            // The file goes as a whole, and a keyring that refuses now is not asked twice.
            let _ = secrets.delete(&name);
        }
    }
    for (path, _) in found(dirs, all) {
        let is_folder = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let removed = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match removed {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(FileError::io(&path)(e)),
            _ => {}
        }
    }
    Ok(())
}

fn credentials(config: &Config) -> Vec<String> {
    let bot = config.channel.backend.zip(config.channel.bot.as_deref());
    let bot = bot.map(|(service, bot)| channel::secret_name(service, bot));
    engines::credential_names(config).into_iter().chain(bot).collect()
}
