//! The one thread that writes, and its group commit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use holdfast_core::limits;
use parking_lot::Mutex;
use rusqlite::Connection;

use crate::StoreError;

/// A write on its way: run inside the transaction, then settled with the fate of that transaction.
trait Write: Send {
    /// `false` when what it did must be undone.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Tells the outcome.
    fn settle(self: Box<Self>, commit: Result<(), StoreError>);
}

struct Job<F, D, T, E> {
    work: Option<F>,
    outcome: Option<Result<T, E>>,
    done: D,
}

impl<F, D, T, E> Write for Job<F, D, T, E>
where
    T: Send,
    E: From<StoreError> + Send,
    F: FnOnce(&Connection) -> Result<T, E> + Send,
    D: FnOnce(Result<T, E>) + Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        let Some(work) = self.work.take() else { return false };
        // A defect in one write must not take the store away from everybody.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(connection)))
            .unwrap_or_else(|_| Err(StoreError::Sqlite("a write panicked".into()).into()));
        self.outcome.insert(outcome).is_ok()
    }

    fn settle(self: Box<Self>, commit: Result<(), StoreError>) {
        let outcome = match (self.outcome, commit) {
            (Some(Err(own)), _) => Err(own),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (_, Err(store)) => Err(store.into()),
            (None, Ok(())) => Err(StoreError::Closed.into()),
        };
        (self.done)(outcome);
    }
}

/// Hands writes to the thread.
pub(crate) struct Writer {
    queue: Mutex<Option<SyncSender<Box<dyn Write>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(crate) fn start(connection: Connection) -> Result<Writer, StoreError> {
        let (queue, jobs) = sync_channel(limits::STORE_QUEUE);
        let thread = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || run(connection, &jobs))
            .map_err(|e| StoreError::Sqlite(e.to_string()))?;
        Ok(Writer { queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)) })
    }

    pub(crate) fn submit<T, E, F, D>(&self, work: F, done: D)
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        D: FnOnce(Result<T, E>) + Send + 'static,
    {
        let job: Box<dyn Write> = Box::new(Job { work: Some(work), outcome: None, done });
        // The lock is let go before a refused job is told, because `done` may write again.
        let refused = match &*self.queue.lock() {
            None => Some((job, StoreError::Closed)),
            Some(queue) => match queue.try_send(job) {
                Ok(()) => None,
                Err(TrySendError::Full(job)) => Some((job, StoreError::Busy)),
                Err(TrySendError::Disconnected(job)) => Some((job, StoreError::Closed)),
            },
        };
        if let Some((job, why)) = refused {
            job.settle(Err(why));
        }
    }

    pub(crate) fn close(&self) {
        drop(self.queue.lock().take());
        let thread = self.thread.lock().take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // It only fails if the thread panicked, and then there is nothing left to wait for.
            drop(thread.join());
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

fn run(connection: Connection, jobs: &Receiver<Box<dyn Write>>) {
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        while group.len() < limits::STORE_GROUP
            && let Ok(next) = jobs.try_recv()
        {
            group.push(next);
        }
        commit(&connection, group);
    }
    // Leaves no -wal file behind a clean stop; without it the next start replays the log, which is as good.
    drop(connection.pragma_update(None, "wal_checkpoint", "TRUNCATE"));
}

fn commit(connection: &Connection, mut group: Vec<Box<dyn Write>>) {
    let fate = write_all(connection, &mut group);
    if fate.is_err() && !connection.is_autocommit() {
        // Fails only when SQLite has already rolled back.
        drop(connection.execute_batch("ROLLBACK"));
    }
    for job in group {
        job.settle(fate.clone());
    }
}

fn write_all(connection: &Connection, group: &mut [Box<dyn Write>]) -> Result<(), StoreError> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    for job in group.iter_mut() {
        connection.execute_batch("SAVEPOINT one")?;
        let keep = job.run(connection);
        if connection.is_autocommit() {
            // A full disk made SQLite roll the whole transaction back, neighbours included.
            return Err(StoreError::Full);
        }
        connection.execute_batch(if keep { "RELEASE one" } else { "ROLLBACK TO one; RELEASE one" })?;
    }
    connection.execute_batch("COMMIT")?;
    Ok(())
}
