//! The outbox folder: results too big to wait in memory.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_core::id::CallId;
use holdfast_core::limits;

use crate::files;

/// `<data>/outbox/`: one file per result, 0600, named after its call. Emptied at the start, because the calls of an earlier
/// process are lost to this one.
#[derive(Debug, Clone)]
pub(super) struct Spill(Arc<Path>);

impl Spill {
    pub(super) fn open(data_dir: &Path) -> std::io::Result<Spill> {
        let folder = data_dir.join("outbox");
        files::make_dir(&folder).and_then(|()| files::own_dir(&folder)).map_err(std::io::Error::other)?;
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_file() || path.is_symlink() {
                std::fs::remove_file(path)?;
            }
        }
        Ok(Spill(folder.into()))
    }

    /// Writes a result. It needs no sync: a crash of this process ends its calls anyway.
    pub(super) fn store(&self, id: &CallId, text: &str) -> std::io::Result<()> {
        let path = self.path(id);
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options.open(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        if written.is_err() {
            self.remove(id);
        }
        written
    }

    /// Reads a result back.
    pub(super) fn load(&self, id: &CallId) -> Option<Arc<str>> {
        files::read(&self.path(id), limits::FRAME_MAX).ok().map(Arc::from)
    }

    /// Deletes a result that arrived.
    pub(super) fn remove(&self, id: &CallId) {
        // One that is not there is as good as deleted; the next start empties the folder anyway.
        let _ = std::fs::remove_file(self.path(id));
    }

    fn path(&self, id: &CallId) -> PathBuf {
        // A call id has only base64url characters and at most 245 of them: a plain file name.
        self.0.join(id.as_str())
    }
}
