//! Which engines shall run. Kept in the data folder, so that a start finds them as they were left.

use std::collections::BTreeSet;
use std::path::PathBuf;

use holdfast_core::command::Engine;
use holdfast_core::limits;
use parking_lot::Mutex;

use crate::files;
use crate::paths::Dirs;

/// See the module.
#[derive(Debug)]
pub(crate) struct Wanted {
    file: PathBuf,
    /// Engines that somebody stopped.
    stopped: Mutex<BTreeSet<Engine>>,
}

impl Wanted {
    /// As an earlier process left it. Nothing kept, or nothing that can be read, means that all shall run. Blocks.
    pub(crate) fn load(dirs: &Dirs) -> Wanted {
        let file = dirs.data.join("stopped.json");
        let stopped = match files::read(&file, limits::API_BODY_MAX) {
            Ok(text) => serde_json::from_str(&text).unwrap_or_else(|_| {
                tracing::warn!("all engines start: {} is not readable", file.display());
                BTreeSet::new()
            }),
            Err(e) => {
                if !e.is_absent() {
                    tracing::warn!("all engines start: {e}");
                }
                BTreeSet::new()
            }
        };
        Wanted { file, stopped: Mutex::new(stopped) }
    }

    pub(super) fn runs(&self, engine: Engine) -> bool {
        !self.stopped.lock().contains(&engine)
    }

    /// From now on this engine, or every one, shall run or not. Blocks.
    pub(crate) fn set(&self, engine: Option<Engine>, runs: bool) {
        let mut stopped = self.stopped.lock();
        let before = stopped.clone();
        for each in Engine::ALL.into_iter().filter(|each| engine.is_none_or(|one| one == *each)) {
            if runs {
                stopped.remove(&each);
            } else {
                stopped.insert(each);
            }
        }
        if *stopped == before {
            return;
        }
        let kept = serde_json::to_vec(&*stopped).map_err(|e| e.to_string());
        if let Err(e) = kept.and_then(|text| files::replace(&self.file, &text).map_err(|e| e.to_string())) {
            tracing::warn!("the next start does not know which engines were stopped: {e}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stopped_is_known_to_the_next_process() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = Dirs { config: dir.path().into(), data: dir.path().into() };
        let first = Wanted::load(&dirs);
        assert!(first.runs(Engine::Relay) && first.runs(Engine::Link));
        first.set(Some(Engine::Link), false);
        let second = Wanted::load(&dirs);
        assert_eq!((second.runs(Engine::Relay), second.runs(Engine::Link)), (true, false));
        second.set(None, true);
        assert!(Wanted::load(&dirs).runs(Engine::Link));
        std::fs::write(dir.path().join("stopped.json"), "?").unwrap();
        assert!(Wanted::load(&dirs).runs(Engine::Link), "an unreadable file stops nothing");
    }
}
