//! The seat's folder, used off the runtime's threads and by one at a time: a disk that does not answer keeps nothing else of
//! this process waiting.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_core::code::Code;
use holdfast_core::limits;
use holdfast_core::seat::{LockTry, Taker, Unusable};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use super::folder::Folder;

/// See the module.
#[derive(Debug)]
pub(super) struct OnDisk {
    folder: Arc<Mutex<Folder>>,
    path: PathBuf,
    /// Whoever hangs keeps it, so that not one thread after another hangs.
    turn: Arc<Semaphore>,
}

impl OnDisk {
    /// Nothing is looked at yet.
    pub(super) fn new(path: PathBuf, me: Taker) -> OnDisk {
        let folder = Arc::new(Mutex::new(Folder::new(path.clone(), me)));
        OnDisk { folder, path, turn: Arc::new(Semaphore::new(1)) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the lock is still ours and no later generation known: for whoever is off the runtime's threads already.
    pub(super) fn holds(&self, generation: u64) -> impl Fn() -> bool + Send + Sync + use<> {
        let folder = Arc::clone(&self.folder);
        move || folder.try_lock_for(limits::SEAT_DISK).is_some_and(|folder| folder.holds(generation))
    }

    /// Does something with the folder; nothing comes of it if the disk does not answer in time, or still owes an answer.
    pub(super) async fn act<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Folder) -> T + Send + 'static,
    ) -> Result<T, Unusable> {
        self.try_act(act, |_, _| {}).await
    }

    /// Tries the lock. One that comes too late is let go of: nobody knows that it is ours.
    pub(super) async fn try_lock(&self) -> LockTry {
        let tried = self.try_act(Folder::try_lock, |folder, _| folder.abandon()).await;
        tried.unwrap_or_else(LockTry::Broken)
    }

    /// Does what has to be done even where the disk does not answer in time; then it is done when it does.
    pub(super) async fn finish(&self, act: impl FnOnce(&mut Folder) + Send + 'static) {
        let folder = Arc::clone(&self.folder);
        let done = tokio::task::spawn_blocking(move || act(&mut folder.lock()));
        // It goes on by itself.
        let _ = tokio::time::timeout(limits::SEAT_DISK, done).await;
    }

    async fn try_act<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Folder) -> T + Send + 'static,
        late: impl FnOnce(&mut Folder, T) + Send + 'static,
    ) -> Result<T, Unusable> {
        let silent = || {
            let reason = format!("{}: the disk does not answer", self.path.display());
            Unusable::for_now(Code::Unavailable, reason)
        };
        let turn = Arc::clone(&self.turn).try_acquire_owned().map_err(|_| silent())?;
        let folder = Arc::clone(&self.folder);
        let (tell, mut told) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let mut folder = folder.lock();
            let done = act(&mut folder);
            drop(turn);
            if let Err(done) = tell.send(done) {
                late(&mut folder, done);
            }
        });
        match tokio::time::timeout(limits::SEAT_DISK, &mut told).await {
            Ok(done) => done.map_err(|_| Unusable::for_now(Code::InternalError, "the seat's folder was not looked at")),
            Err(_) => {
                // From here on it is late; a moment ago it was not.
                told.close();
                told.try_recv().map_err(|_| silent())
            }
        }
    }
}
