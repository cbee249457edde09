//! A file that is damaged: found, and put aside.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use holdfast_core::limits;
use rusqlite::{Connection, ErrorCode};

use crate::{StoreError, file};

/// Whether the last stop left a log behind: it was not clean, or somebody else has the file open. Reads sizes only.
pub(crate) fn was_stopped_hard(path: &Path) -> Result<bool, StoreError> {
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    let log = size(&file::beside(path, file::LOG)) > 0;
    if log && size(path) == 0 {
        // SQLite would forget the log and begin anew.
        return Err(StoreError::Damaged);
    }
    Ok(log)
}

/// Looks through the whole file, as far as [`limits::STORE_CHECK_MAX`] allows.
pub(crate) fn check(connection: &Connection) -> Result<(), StoreError> {
    file::allow(connection, Some(limits::STORE_CHECK_MAX))?;
    let found = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    file::allow(connection, None)?;
    match found {
        Ok(verdict) if verdict == "ok" => Ok(()),
        Ok(_) => Err(StoreError::Damaged),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Renames a store's files to `<file>.damaged-<unix seconds>` and says where they are now.
pub(crate) fn set_aside(path: &Path) -> std::io::Result<PathBuf> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // Later than every other, whatever the clock says.
    let unix = kept(path).last().map_or(now, |newest| now.max(newest + 1));
    let aside = aside(path, unix);
    // The main file first: a log without it is told apart at the next start, it without its log is not.
    for suffix in file::ALL {
        match fs::rename(file::beside(path, suffix), file::beside(&aside, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    for old in kept(path).iter().rev().skip(limits::STORE_DAMAGED_KEPT) {
        for suffix in file::ALL {
            // One that cannot be removed stays.
            drop(fs::remove_file(file::beside(&self::aside(path, *old), suffix)));
        }
    }
    Ok(aside)
}

fn aside(path: &Path, unix: u64) -> PathBuf {
    file::beside(path, &format!(".damaged-{unix}"))
}

/// When the damaged files were set aside that still stand there, oldest first.
pub(crate) fn kept(path: &Path) -> Vec<u64> {
    let Some((folder, file)) = path.parent().zip(path.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let prefix = format!("{file}.damaged-");
    let unix = |name: String| name.strip_prefix(&prefix)?.parse::<u64>().ok();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut kept: Vec<u64> = entries.filter_map(|entry| unix(entry.file_name().into_string().ok()?)).collect();
    kept.sort_unstable();
    kept
}
