//! Noticing that a transcript changed: a reason to look and nothing more, because events get lost on some file systems. The
//! machine looks every [`limits::TRANSCRIPT_POLL`] anyway.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(doc)]
use holdfast_core::limits;
use notify::event::{EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};

/// Watches the folder of one transcript or, until there is one, the nearest above it.
pub(super) struct Wake {
    transcript: PathBuf,
    watcher: notify::Result<RecommendedWatcher>,
    watched: Option<Folder>,
    /// What is watched went away, even if something stands there that looks the same.
    lost: Arc<AtomicBool>,
    warned: bool,
}

#[derive(PartialEq, Eq)]
struct Folder {
    path: PathBuf,
    place: (u64, u64),
}

impl Wake {
    /// Calls `tell`, on a thread of the system's watcher, when something happened to a transcript.
    pub fn new(transcript: &str, tell: impl Fn() + Send + 'static) -> Wake {
        let transcript = PathBuf::from(transcript);
        let lost = Arc::new(AtomicBool::new(false));
        let watcher = notify::recommended_watcher({
            let (transcript, lost) = (transcript.clone(), lost.clone());
            move |event: notify::Result<Event>| {
                let Some(concern) = concern(event.ok().as_ref(), &transcript) else { return };
                if concern == Concern::Folder {
                    lost.store(true, Ordering::Release);
                }
                tell();
            }
        });
        Wake { transcript, watcher, watched: None, lost, warned: false }
    }

    /// The transcript that is watched.
    pub fn transcript(&self) -> &Path {
        &self.transcript
    }

    /// Makes sure that the right folder is watched. To be called before each look at the file, so that nothing falls between.
    pub fn aim(&mut self) {
        // The folder may be made, or removed, while it is taken aim at; the next poll comes here again.
        for _ in 0..3 {
            let Some(nearest) = nearest(&self.transcript) else { return };
            if !self.lost.swap(false, Ordering::AcqRel) && self.watched.as_ref() == Some(&nearest) {
                return;
            }
            let last = self.watched.take();
            let watched = match &mut self.watcher {
                Ok(watcher) => {
                    if let Some(last) = last {
                        // It went with its folder, if that is gone.
                        let _ = watcher.unwatch(&last.path);
                    }
                    watcher.watch(&nearest.path, RecursiveMode::NonRecursive).map_err(|e| e.to_string())
                }
                Err(e) => Err(e.to_string()),
            };
            match watched {
                Ok(()) => self.watched = Some(nearest),
                Err(e) => {
                    if !std::mem::replace(&mut self.warned, true) {
                        let folder = nearest.path.display();
                        tracing::warn!("a transcript is only polled, because {folder} cannot be watched: {e}");
                    }
                    return;
                }
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Concern {
    File,
    /// Perhaps another folder has to be watched.
    Folder,
}

/// Whom an event concerns, if not only others; one that says nothing, or an error, may be about anything.
fn concern(event: Option<&Event>, transcript: &Path) -> Option<Concern> {
    let Some(event) = event.filter(|event| !event.need_rescan() && !event.paths.is_empty()) else {
        return Some(Concern::Folder);
    };
    // Reading it is no change, and we read it.
    if event.kind.is_access() || !event.paths.iter().any(|path| transcript.starts_with(path)) {
        return None;
    }
    let gone = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    let of_folder = event.paths.iter().any(|path| path != transcript && transcript.starts_with(path));
    Some(if gone && of_folder { Concern::Folder } else { Concern::File })
}

/// The folder nearest above that exists.
fn nearest(transcript: &Path) -> Option<Folder> {
    transcript.ancestors().skip(1).find_map(|path| {
        let meta = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
        #[cfg(unix)]
        let place = {
            use std::os::unix::fs::MetadataExt as _;
            (meta.dev(), meta.ino())
        };
        // A folder that is watched cannot be replaced there.
        #[cfg(not(unix))]
        let place = {
            let _ = meta;
            (0, 0)
        };
        Some(Folder { path: path.to_path_buf(), place })
    })
}
