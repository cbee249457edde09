//! Outages across a restart.

use std::path::Path;

use holdfast_core::limits;
use holdfast_core::status::{OutageLog, UnixMs};
use serde::{Deserialize, Serialize};

use crate::files::{self, FileError};

#[derive(Serialize, Deserialize)]
struct Stored {
    saved_at: UnixMs,
    log: OutageLog,
}

/// What an earlier process remembered; nothing if the file is absent or not readable, which is worth no more than a line
/// in the log.
pub(super) fn load(file: &Path) -> OutageLog {
    let text = match files::read(file, limits::OUTAGES_FILE_MAX) {
        Ok(text) => text,
        Err(e) if e.is_absent() => return OutageLog::default(),
        Err(e) => {
            tracing::warn!("earlier outages are forgotten: {e}");
            return OutageLog::default();
        }
    };
    match serde_json::from_str::<Stored>(&text) {
        Ok(mut stored) => {
            stored.log.close_open(stored.saved_at);
            stored.log
        }
        Err(_) => {
            tracing::warn!("earlier outages are forgotten: {} is not readable", file.display());
            OutageLog::default()
        }
    }
}

pub(super) fn save(file: &Path, log: &OutageLog, now: UnixMs) -> Result<(), FileError> {
    let stored = Stored { saved_at: now, log: log.clone() };
    // The types hold nothing that JSON cannot.
    let text = serde_json::to_vec(&stored).unwrap_or_default();
    files::replace(file, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_core::status::{LinkState, Tally};

    #[test]
    fn an_outage_survives_the_process_and_a_broken_file_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("outages.json");
        assert_eq!(load(&file), OutageLog::default());
        let mut log = OutageLog::default();
        log.observe(1_000, LinkState::Outage, 1_000, Some("reset"), Tally::default());
        save(&file, &log, 5_000).unwrap();
        assert_eq!(load(&file).list(6_000)[0].ended_at, Some(5_000));
        files::replace(&file, b"{").unwrap();
        assert_eq!(load(&file), OutageLog::default());
    }
}
