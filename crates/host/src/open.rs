//! Showing something with the desktop's own programs.

use std::path::Path;

/// The desktop would not show it. Its words.
#[derive(Debug, thiserror::Error)]
#[error("nothing here can show {what}: {why}")]
pub struct NotShown {
    what: String,
    why: String,
}

/// Opens a folder in the file browser. May block for a moment.
pub fn folder(path: &Path) -> Result<(), NotShown> {
    opener::open(path).map_err(|e| NotShown { what: path.display().to_string(), why: e.to_string() })
}

/// Opens the status window's address in the browser. May block for a moment.
pub fn window(at: &crate::api::OpenAt) -> Result<(), NotShown> {
    // The address is not repeated: its code may still be good.
    opener::open_browser(&at.url).map_err(|e| NotShown { what: "the window".into(), why: e.to_string() })
}
