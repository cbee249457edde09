//! Questions to disks of which one may not answer: each is asked on a thread of its own, and keeps nobody waiting for long.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use holdfast_core::limits;
use parking_lot::Mutex;
use tokio::sync::watch;

/// What is being asked of paths. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Asked<T>(Arc<Mutex<HashMap<PathBuf, Open<T>>>>);

/// A question without an answer.
#[derive(Debug, Clone)]
struct Open<T> {
    since: Instant,
    answer: watch::Receiver<Option<T>>,
}

impl<T> Default for Asked<T> {
    fn default() -> Asked<T> {
        Asked(Arc::default())
    }
}

impl<T: Clone + Send + Sync + 'static> Asked<T> {
    /// What `look` makes of a path; nothing, if the disk has not answered [`limits::DISK_WAIT`] after it was first asked. A path
    /// is asked about once at a time, so that a disk that hangs keeps one thread for it, and only the first to ask waits.
    pub(crate) async fn ask(&self, path: &Path, look: impl FnOnce(&Path) -> T + Send + 'static) -> Option<T> {
        let Open { since, mut answer } = self.open(path, look);
        let left = limits::DISK_WAIT.saturating_sub(since.elapsed());
        let answered = tokio::time::timeout(left, answer.wait_for(Option::is_some)).await;
        answered.ok()?.ok()?.clone()
    }

    fn open(&self, path: &Path, look: impl FnOnce(&Path) -> T + Send + 'static) -> Open<T> {
        let mut questions = self.0.lock();
        if let Some(open) = questions.get(path) {
            return open.clone();
        }
        let (tell, answer) = watch::channel(None);
        let open = Open { since: Instant::now(), answer };
        questions.insert(path.to_owned(), open.clone());
        let (questions, path) = (Arc::clone(&self.0), path.to_owned());
        tokio::task::spawn_blocking(move || {
            let said = look(&path);
            questions.lock().remove(&path);
            tell.send_replace(Some(said));
        });
        open
    }
}

impl Asked<PathBuf> {
    /// A path without links; as it is written where the disk says nothing of it, or does not answer.
    pub(crate) async fn real(&self, path: &str) -> PathBuf {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        self.ask(Path::new(path), real).await.unwrap_or_else(|| PathBuf::from(path))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_disk_that_does_not_answer_keeps_one_thread_and_no_other_path_waiting() {
        let asked = Asked::default();
        let (answer, hangs) = mpsc::channel::<u8>();
        let look = move |_: &Path| hangs.recv().unwrap_or_default();
        assert_eq!(asked.ask(Path::new("/dead"), look).await, None);
        assert_eq!(asked.ask(Path::new("/dead"), |_| unreachable!("it is asked already")).await, None);
        assert_eq!(asked.ask(Path::new("/alive"), |_| 2).await, Some(2));
        answer.send(1).unwrap();
        while !asked.0.lock().is_empty() {
            tokio::time::sleep(limits::DISK_WAIT / 100).await;
        }
        assert_eq!(asked.ask(Path::new("/dead"), |_| 3).await, Some(3));
    }
}
